import contextlib
import socket
import stat
from pathlib import Path

import pytest

from infra.cli.home import Trouble, free_port
from infra.cli.init import SECRETS, content, init, read


@pytest.fixture(autouse=True)
def no_engine_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALCOVE_BASE_IMAGE", "base:test")
    monkeypatch.delenv("PUBLIC_URL", raising=False)


def test_env_file_is_private_and_whole_when_written(tmp_path: Path) -> None:
    init(tmp_path / ".env")
    values = read(tmp_path / ".env")
    assert stat.S_IMODE((tmp_path / ".env").stat().st_mode) == 0o600
    assert len({values[name] for name in SECRETS}) == len(SECRETS)
    assert all(len(values[name]) == 64 for name in SECRETS)
    assert values["BIND_ADDRESS"] == "127.0.0.1"
    assert values["PUBLIC_URL"] == f"http://127.0.0.1:{values['PORT']}"
    assert values["ALCOVE_BASE_IMAGE"] == "base:test"


def _first_free_port_taken() -> socket.socket:
    """A listener on the port that `init` would write; another program may be quicker, then on the next."""
    while True:
        with contextlib.suppress(OSError):
            return socket.create_server(("127.0.0.1", free_port(None)))


def test_port_that_is_taken_is_not_written(tmp_path: Path) -> None:
    with _first_free_port_taken() as taken:
        init(tmp_path / ".env")
        assert int(read(tmp_path / ".env")["PORT"]) > taken.getsockname()[1]


def test_env_file_is_untouched_when_init_runs_again(tmp_path: Path) -> None:
    init(tmp_path / ".env")
    before = (tmp_path / ".env").read_bytes()
    init(tmp_path / ".env", "https://other.example.org")
    assert (tmp_path / ".env").read_bytes() == before


def test_env_file_is_not_written_through_a_dangling_link(tmp_path: Path) -> None:
    (tmp_path / ".env").symlink_to(tmp_path / "elsewhere")
    init(tmp_path / ".env")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("url", "bind", "port"),
    [
        ("https://alcove.example.org", "0.0.0.0", "8000"),
        ("http://alcove.lan:8080", "127.0.0.1", "8080"),
        ("http://127.0.0.1:8000/", "127.0.0.1", "8000"),
    ],
)
def test_gateway_is_published_to_others_only_when_the_address_is_https(
    tmp_path: Path, url: str, bind: str, port: str
) -> None:
    (tmp_path / ".env").write_text(content(url, tmp_path, None))
    values = read(tmp_path / ".env")
    assert (values["BIND_ADDRESS"], values["PORT"]) == (bind, port)


@pytest.mark.parametrize("url", ["alcove.example.org", "ftp://x", "https://x/path", "https://"])
def test_init_refuses_an_address_that_nobody_can_type(tmp_path: Path, url: str) -> None:
    with pytest.raises(Trouble):
        content(url, tmp_path, None)


def test_docker_group_is_the_sockets_group(tmp_path: Path) -> None:
    text = content("http://127.0.0.1:8000", tmp_path, None)
    assert f"DOCKER_GID={tmp_path.stat().st_gid}\n" in text


def test_read_names_init_when_there_is_no_env_file(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="make init"):
        read(tmp_path / ".env")
