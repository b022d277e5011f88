"""`python -m spawner` and its other verbs."""

import asyncio
import sys
from pathlib import Path

import pytest

from infra.kit import settings as kit_settings
from spawner import lock
from spawner.errors import Taken
from spawner.layout import Layout, own
from spawner.settings import Settings
from tests.spawner.house import House, gone, tenant
from tests.spawner.program import environment, program, reach


async def run(home: House, *arguments: str, **more: str) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "spawner", *arguments),
        env={**environment(home.settings()), **more},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return process.returncode, output.decode()


async def test_every_problem_is_listed_when_settings_are_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as caught:
        kit_settings.load(
            Settings,
            {
                "ALCOVE_DEPLOYMENT": "Not A Name",
                "ALCOVE_SERVICE_SECRET": "change-me",
                "ALCOVE_SOCKETS_DIR": "relative",
                "ALCOVE_METER_URL": "ftp://x",
            },
        )
    assert caught.value.code == 78
    told = capsys.readouterr().err
    for name in ("DEPLOYMENT", "SERVICE_SECRET", "DEPLOYMENT_SECRET", "SOCKETS_DIR", "METER_URL"):
        assert f"ALCOVE_{name}" in told


@pytest.mark.thorough
async def test_check_touches_nothing_and_migrate_may_be_repeated(home: House) -> None:
    assert await run(home, "check") == (0, "")
    (home.root / "spawner.db").unlink()
    assert (await run(home, "migrate"))[0] == 0
    assert (await run(home, "migrate"))[0] == 0
    assert (home.root / "spawner.db").exists()
    assert (await run(home, "dance"))[0] == 64


@pytest.mark.thorough
async def test_end_is_told_in_a_sentence_when_the_database_is_away(home: House) -> None:
    away = f"sqlite:///{home.root}/nowhere/spawner.db"
    code, output = await run(home, ALCOVE_SPAWNER_DATABASE_URL=away)
    assert code == 1
    assert "unable to open database file" in output
    assert "Our database does not answer" in output
    assert "Traceback" not in output


@pytest.mark.thorough
async def test_sweep_ends_what_a_killed_spawner_left_and_keeps_data(home: House) -> None:
    who = tenant()
    async with program(home.settings(stop_on_exit=False), "tests.spawner.serve", "good") as killed:
        await killed.client.wake(who, "message")
        await reach(killed.client, who, "ready", 10)
        await killed.kill()
    pid = home.starts(who)[0].split()[1]
    assert not gone(pid)
    code, output = await run(home, "sweep", DOCKER_HOST=f"unix://{home.root}/no-engine.sock")
    assert code == 0, output
    assert gone(pid)
    assert not (home.root / "s" / "t" / who).exists()
    assert (home.data(who) / "starts.log").exists()


def test_second_spawner_is_refused_when_one_works_on_the_same_sockets(tmp_path: Path) -> None:
    with lock.only_one(tmp_path), pytest.raises(Taken), lock.only_one(tmp_path):
        pass
    with lock.only_one(tmp_path):
        pass


def test_directories_go_when_a_tenant_filled_them_with_links(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "s", own())
    layout.make("a" * 16, 1)
    precious = tmp_path / "precious"
    precious.mkdir(mode=0o755)
    (precious / "file").write_text("kept")
    place = layout.agent("a" * 16, 1)
    (place / "out").symlink_to(precious)
    (place / "deep").mkdir()
    (place / "deep" / "file").write_text("x")
    layout.seal("a" * 16, 1)
    layout.remove("a" * 16, 1)
    assert not (tmp_path / "s" / "t" / ("a" * 16)).exists()
    assert (precious / "file").read_text() == "kept"
    assert precious.stat().st_mode & 0o777 == 0o755
