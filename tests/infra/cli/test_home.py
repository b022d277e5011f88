import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from infra.cli.home import (
    LONGEST_SOCKETS_ROOT,
    SECRETS,
    Trouble,
    free_port,
    open_home,
    sockets_root,
)


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A short runtime directory, as a login gives one."""
    with tempfile.TemporaryDirectory(prefix="a", dir="/tmp") as path:
        monkeypatch.setenv("XDG_RUNTIME_DIR", path)
        yield Path(path)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.usefixtures("runtime")
def test_secrets_are_the_same_files_when_opened_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    first = open_home(data)
    made = {name: first.secret_file(name).read_text() for name in SECRETS}
    first.close()
    again = open_home(data)
    again.close()
    assert {name: again.secret_file(name).read_text() for name in SECRETS} == made
    assert len(set(made.values())) == len(SECRETS)
    assert {mode(again.secret_file(name)) for name in SECRETS} == {0o600}
    assert mode(data) == mode(data / "secrets") == 0o700
    assert (again.deployment, again.sockets) == (first.deployment, first.sockets)


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_secret_is_not_replaced_when_it_is_lost_or_changed(tmp_path: Path, damage: str) -> None:
    home = open_home(tmp_path / "data")
    home.close()
    file = home.secret_file("meter_sealing_key")
    file.unlink() if damage == "lost" else file.write_text("0" * 64)
    before = file.exists() and file.read_text()
    with pytest.raises(Trouble, match="meter_sealing_key"):
        open_home(tmp_path / "data")
    assert (file.exists() and file.read_text()) == before


@pytest.mark.usefixtures("runtime")
@pytest.mark.parametrize("content", ["", "[1]", "{", "\0" * 60])
def test_state_is_not_made_up_anew_when_it_is_damaged(tmp_path: Path, content: str) -> None:
    open_home(tmp_path / "data").close()
    state = tmp_path / "data" / "state.json"
    state.write_text(content)
    with pytest.raises(Trouble, match=r"state\.json is damaged"):
        open_home(tmp_path / "data")
    assert state.read_text() == content


@pytest.mark.usefixtures("runtime")
def test_trouble_names_the_place_when_something_else_lies_there(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    with pytest.raises(Trouble, match="data: File exists"):
        open_home(tmp_path / "data")
    home = open_home(tmp_path / "other")
    home.close()
    home.secret_file("service_secret").unlink()
    home.secret_file("service_secret").mkdir()
    with pytest.raises(Trouble, match="service_secret: Is a directory"):
        open_home(tmp_path / "other")


@pytest.mark.usefixtures("runtime")
def test_second_run_is_refused_while_the_first_holds_the_data(tmp_path: Path) -> None:
    home = open_home(tmp_path / "data")
    with pytest.raises(Trouble, match=f"process {os.getpid()}"):
        open_home(tmp_path / "data")
    looked = open_home(tmp_path / "data", shared=True)
    looked.close()
    home.close()
    open_home(tmp_path / "data").close()


def test_sockets_root_stays_short_when_the_clone_lies_deep(runtime: Path, tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200) / ("e" * 200)
    root = sockets_root(deep, None)
    assert root.parent == runtime
    longest = root / "t" / ("a" * 16) / "123456" / "agent" / "agent.sock"
    assert len(os.fsencode(root)) <= LONGEST_SOCKETS_ROOT
    assert len(os.fsencode(longest)) < 108
    assert sockets_root(deep, str(root)) == root


def test_sockets_root_is_elsewhere_when_a_link_lies_in_its_place(
    runtime: Path, tmp_path: Path
) -> None:
    expected = sockets_root(tmp_path, None)
    expected.rmdir()
    expected.symlink_to("/etc")
    found = sockets_root(tmp_path, str(expected))
    assert found != expected
    assert stat.S_ISDIR(found.lstat().st_mode)
    found.rmdir()


def test_port_is_the_remembered_one_while_it_is_free() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        busy = taken.getsockname()[1]
        assert free_port(busy, first=busy, tries=50) != busy
    assert free_port(busy, first=busy + 1) == busy
