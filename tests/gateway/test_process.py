"""The gateway as a process: its verbs, and a death in mid-work."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from gateway.pages.environment import DIST
from tests.gateway.browser import ORIGIN, Browser
from tests.gateway.conftest import DEPLOYMENT_SECRET, SECRET, Gateway
from tests.gateway.fake_meter import FakeMeter
from tests.gateway.fake_spawner import FakeSpawner
from tests.missing import lacks
from tests.quickly import serving
from tests.waiting import until

# each starts interpreters, which takes seconds
pytestmark = pytest.mark.thorough


def _environment(tmp_path: Path, **changes: str) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "ALCOVE_DEPLOYMENT": "test",
        "ALCOVE_SERVICE_SECRET": SECRET,
        "ALCOVE_DEPLOYMENT_SECRET": DEPLOYMENT_SECRET,
        "ALCOVE_SEALING_KEY": "ab" * 32,
        "ALCOVE_GATEWAY_DATABASE_URL": f"sqlite:///{tmp_path}/gateway.db",
        "ALCOVE_GATEWAY_LISTEN": "http://127.0.0.1:0",
        "ALCOVE_GATEWAY_CONTROL": f"unix://{tmp_path}/control.sock",
        "ALCOVE_PUBLIC_URL": ORIGIN,
        "ALCOVE_SPAWNER_URL": f"unix://{tmp_path}/spawner.sock",
        "ALCOVE_METER_URL": f"unix://{tmp_path}/meter.sock",
        **changes,
    }


async def _verb(tmp_path: Path, *verb: str, **changes: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "gateway",
        *verb,
        env=_environment(tmp_path, **changes),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()


async def test_check_lists_every_problem_at_once(tmp_path: Path) -> None:
    code, _, err = await _verb(
        tmp_path,
        "check",
        ALCOVE_SERVICE_SECRET="short",
        ALCOVE_SEALING_KEY="not hex",
        ALCOVE_PUBLIC_URL="alcove.example",
        ALCOVE_METER_URL="ftp://x",
        ALCOVE_GATEWAY_DATABASE_URL="mysql://u:p@host/name",
    )
    assert code == 78
    names = ("SERVICE_SECRET", "SEALING_KEY", "PUBLIC_URL", "METER_URL", "GATEWAY_DATABASE_URL")
    for name in names:
        assert f"ALCOVE_{name}" in err
    assert (await _verb(tmp_path, "check"))[0] == 0


async def test_admin_link_is_made_until_there_is_an_admin(tmp_path: Path) -> None:
    assert (await _verb(tmp_path, "migrate"))[0] == 0
    assert (await _verb(tmp_path, "migrate"))[0] == 0
    code, out, _ = await _verb(tmp_path, "admin-link")
    first = json.loads(out)
    assert code == 0
    assert first["admin"] is False
    assert first["url"].startswith(f"{ORIGIN}/setup/")
    assert first["url"].rsplit("/", 1)[1].encode() not in (tmp_path / "gateway.db").read_bytes()


async def test_admin_link_says_so_when_there_is_an_admin(tmp_path: Path, gateway: Gateway) -> None:
    await gateway.admin()
    assert json.loads((await _verb(tmp_path, "admin-link"))[1]) == {"admin": True}
    again = json.loads((await _verb(tmp_path, "admin-link", "--always"))[1])
    page = await gateway.browser().visit(again["url"].removeprefix(ORIGIN))
    assert 'name="password"' in page.text


async def test_password_link_is_printed_for_whoever_has_an_account(
    tmp_path: Path, gateway: Gateway
) -> None:
    await gateway.person("ada@example.org")
    code, out, _ = await _verb(tmp_path, "password-link", "Ada@Example.org")
    url = json.loads(out)["url"]
    assert code == 0
    assert url.startswith(f"{ORIGIN}/password/")
    page = await gateway.browser().visit(url.removeprefix(ORIGIN))
    assert "ada@example.org" in page.text
    code, out, err = await _verb(tmp_path, "password-link", "--", "-nobody@example.org")
    assert (code, out, err.strip()) == (1, "", "Nobody signed up as -nobody@example.org.")


@asynccontextmanager
async def _gateway(tmp_path: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, str]]:
    log = (tmp_path / "gateway.log").open("ab")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", env=_environment(tmp_path), stdout=log, stderr=log
    )
    started = (tmp_path / "gateway.log").stat().st_size

    def url() -> str | None:
        text = (tmp_path / "gateway.log").read_bytes()[started:].decode()
        lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return next((line["listen"] for line in lines if line["event"] == "serving"), None)

    try:
        found = await until(url, what="the gateway's line")
        assert found is not None
        yield process, found
    finally:
        log.close()
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_waiting_message_survives_kill_9_and_sigterm_ends_streams(tmp_path: Path) -> None:
    if not (DIST / "manifest.json").exists():
        lacks("the pages are not built", "make pages")
    assert (await _verb(tmp_path, "migrate"))[0] == 0
    spawner, meter = FakeSpawner(tmp_path, SECRET, DEPLOYMENT_SECRET), FakeMeter(SECRET)
    spawner.waking = "when told"
    async with (
        serving(spawner.app, f"unix://{tmp_path}/spawner.sock"),
        serving(meter.app, f"unix://{tmp_path}/meter.sock"),
    ):
        async with _gateway(tmp_path) as (process, url):
            ada = Browser(url)
            await ada.sign_up("ada@example.org")
            assert (await ada.post("do not forget me", "m1")).json["state"] == "waiting"
            tenant = next(iter(spawner.tenants), None) or await until(
                lambda: next(iter(spawner.tenants), None)
            )
            process.send_signal(signal.SIGKILL)
            await process.wait()
        async with _gateway(tmp_path) as (process, url):
            ada.url = url
            async with ada.stream() as stream:
                await until(lambda: stream.named("pending"))
                assert stream.named("pending")[0]["messages"][0]["text"] == "do not forget me"
                await until(lambda: spawner.of(tenant).state == "starting")
                await spawner.become_ready(tenant)
                memory = spawner.of(tenant).memory
                await until(lambda: list(memory.by_client_id) == ["m1"])
                process.terminate()
                await until(lambda: stream.ended, timeout_s=5)
                assert await asyncio.wait_for(process.wait(), 5) == 0
            await ada.close()
        await spawner.close()
