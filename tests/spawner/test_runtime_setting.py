"""A container runtime that is asked for and not there stops the spawner: it never settles for less of a wall."""

import pytest

from infra.kit.settings import load
from spawner import choose
from spawner.errors import NoRuntime
from spawner.settings import Settings
from tests.spawner.house import House
from tests.spawner.program import environment


async def test_spawner_does_not_begin_when_no_engine_can_give_the_runtime(home: House) -> None:
    nowhere = f"unix://{home.root}/no-engine.sock"
    settings = home.settings(docker_host=nowhere, container_runtime="runsc")
    with pytest.raises(NoRuntime, match="ALCOVE_CONTAINER_RUNTIME=runsc, but no container engine"):
        await choose.choose(settings)


def test_setting_is_refused_when_agents_are_to_be_processes(
    home: House, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = environment(home.settings(runtime="process")) | {"ALCOVE_CONTAINER_RUNTIME": "runsc"}
    with pytest.raises(SystemExit) as ended:
        load(Settings, asked)
    assert ended.value.code == 78
    said = capsys.readouterr().err
    assert "1 configuration problem(s)" in said
    assert "ALCOVE_CONTAINER_RUNTIME asks for containers" in said


@pytest.mark.parametrize("name", ["", "a b", "--privileged", "../runc", "x" * 65])
def test_setting_is_refused_when_it_is_no_name(
    home: House, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    asked = environment(home.settings()) | {"ALCOVE_CONTAINER_RUNTIME": name}
    if not name:  # as a line of .env that was left empty
        assert load(Settings, asked).container_runtime is None
        return
    with pytest.raises(SystemExit):
        load(Settings, asked)
    assert "ALCOVE_CONTAINER_RUNTIME" in capsys.readouterr().err
