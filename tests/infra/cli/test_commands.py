import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from infra.cli import compose, doctor
from infra.cli.doctor import CHECKS, Finding
from infra.cli.home import Trouble
from tests.missing import lacks

ROOT = Path(__file__).resolve().parents[3]


def alcove(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "infra.cli", *arguments],
        cwd=ROOT,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1", **environment},
        capture_output=True,
        text=True,
    )


def test_help_names_every_verb_with_what_it_is_for() -> None:
    shown = alcove("--help").stdout
    for verb in ("run", "init", "images", "down", "doctor", "version", "admin", "password-link"):
        assert f" {verb} " in shown


def test_version_is_the_one_of_pyproject() -> None:
    version = alcove("version").stdout.strip()
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


def test_down_names_make_init_when_nothing_was_installed(tmp_path: Path) -> None:
    with pytest.raises(Trouble, match="make init"):
        compose.down(tmp_path / ".env")


@pytest.fixture
def not_installed() -> None:
    """For a clone as it was made; one that is installed under Compose is asked otherwise."""
    if compose.ENV_FILE.exists():
        pytest.skip("this clone is installed under Compose: .env is there")


@pytest.mark.usefixtures("not_installed")
def test_admin_link_says_what_to_start_when_nothing_was_installed(tmp_path: Path) -> None:
    done = alcove("admin", "link", ALCOVE_DATA_DIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "make run" in done.stderr
    assert not (tmp_path / "none").exists()


@pytest.mark.usefixtures("not_installed")
def test_password_link_says_what_to_start_when_nothing_was_installed(tmp_path: Path) -> None:
    done = alcove("password-link", "ada@example.org", ALCOVE_DATA_DIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "make run" in done.stderr


def test_doctor_says_what_each_lack_costs_and_fails_only_for_what_is_needed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    wish = Finding(False, "no engine", "no wall: install one")
    need = Finding(False, "no room", "nothing starts", needed=True)
    fine = Finding(True, "Python", "never shown")
    assert doctor.doctor([lambda: fine, lambda: wish]) == 0
    assert doctor.doctor([lambda: wish, lambda: need]) == 1
    shown = capsys.readouterr().out
    assert "! no engine → no wall: install one" in shown
    assert "✗ no room → nothing starts" in shown
    assert "never shown" not in shown


def test_doctor_looks_without_changing_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALCOVE_DATA_DIR", str(tmp_path / "data"))
    findings = [check() for check in CHECKS]
    assert all(finding.what for finding in findings)
    assert all(finding.cost for finding in findings if not finding.ok)
    assert not (tmp_path / "data").exists()


def test_data_of_someone_else_is_told_with_the_command_that_mends_it(tmp_path: Path) -> None:
    if os.getuid() != 0:
        lacks("a folder given away needs root", "run the tests as root")
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 12345, 12345)
    tmp_path.chmod(stat.S_IRWXU | stat.S_IXOTH | stat.S_IROTH)
    program = (
        "import os; os.setgid(54321); os.setuid(54321)\n"
        "from pathlib import Path\n"
        "from infra.cli.home import Trouble, open_home\n"
        f"try: open_home(Path({str(data)!r}))\n"
        "except Trouble as trouble: print(trouble)"
    )
    # Loaded as root first: another user may not read this clone.
    loaded = "import infra.cli.home\n" + program
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True)
    assert f"chown -R 54321:54321 {data}" in done.stdout, done.stderr
