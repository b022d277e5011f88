"""Settings: every problem at once, every secret also from a file, nothing from anywhere else."""

from pathlib import Path

import pytest
from pydantic import Field

from infra.kit.settings import DatabaseUrl, Settings, load


class Example(Settings):
    name: str = Field(validation_alias="EX_NAME")
    secret: str = Field(validation_alias="EX_SECRET", min_length=8)
    size: int = Field(default=3, validation_alias="EX_SIZE", gt=0)


def test_all_problems_are_told_at_once_when_there_are_several(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as left:
        load(Example, {"EX_SECRET": "short", "EX_SIZE": "none"})
    assert left.value.code == 78
    told = capsys.readouterr().err
    assert told.startswith("3 configuration problem(s):")
    assert "EX_NAME: is required" in told
    assert "EX_SECRET:" in told
    assert "EX_SIZE:" in told


def test_problem_does_not_show_the_value_when_it_may_be_a_secret(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        load(Example, {"EX_NAME": "n", "EX_SECRET": "hunter2"})
    assert "hunter2" not in capsys.readouterr().err


def test_value_comes_from_a_file_when_name_file_is_set(tmp_path: Path) -> None:
    (tmp_path / "s").write_text("from a file\n")
    found = load(Example, {"EX_NAME": "n", "EX_SECRET": "", "EX_SECRET_FILE": str(tmp_path / "s")})
    assert found.secret == "from a file"
    assert found.size == 3


def test_both_forms_are_an_error_when_set_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_text("from a file")
    both = {"EX_NAME": "n", "EX_SECRET": "from env!", "EX_SECRET_FILE": str(tmp_path / "s")}
    with pytest.raises(SystemExit):
        load(Example, both)
    assert "EX_SECRET and EX_SECRET_FILE are both set" in capsys.readouterr().err


def test_missing_file_is_named_beside_the_other_problems(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        load(Example, {"EX_SECRET_FILE": "/nowhere/s"})
    told = capsys.readouterr().err
    assert "EX_SECRET_FILE: No such file or directory: /nowhere/s" in told
    assert "EX_NAME: is required" in told


def test_file_is_named_when_it_holds_no_text(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "s").write_bytes(b"\xff\xfe\0")
    with pytest.raises(SystemExit):
        load(Example, {"EX_NAME": "n", "EX_SECRET_FILE": str(tmp_path / "s")})
    assert f"EX_SECRET_FILE: not a text file: {tmp_path / 's'}" in capsys.readouterr().err


class Stored(Settings):
    url: DatabaseUrl = Field(validation_alias="EX_URL")


@pytest.mark.parametrize(
    "url",
    ["sqlite:////srv/a.db", "postgresql://u:p@host/name", "postgres:///name?host=/run/postgresql"],
)
def test_database_is_taken_when_it_is_one_of_the_two_kinds(url: str) -> None:
    assert load(Stored, {"EX_URL": url}).url == url


@pytest.mark.parametrize(
    "url",
    ["hunter2", "mysql://u:hunter2@host/name", "sqlite:///hunter2.db", "postgresql://hunter2@host"],
)
def test_database_is_a_problem_of_the_configuration_when_no_service_can_use_it(
    url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        load(Stored, {"EX_URL": url})
    told = capsys.readouterr().err
    assert left.value.code == 78
    assert "EX_URL:" in told
    assert "hunter2" not in told


def test_settings_do_not_read_the_machine_when_an_environment_was_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("EX_NAME", "from the machine")
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text("EX_SIZE=9\n")
    with pytest.raises(SystemExit):
        load(Example, {"EX_SECRET": "long enough"})
    assert load(Example, {"EX_NAME": "n", "EX_SECRET": "long enough"}).size == 3


def test_settings_cannot_change_when_loaded() -> None:
    found = load(Example, {"EX_NAME": "n", "EX_SECRET": "long enough"})
    with pytest.raises(ValueError, match="frozen"):
        found.size = 4
