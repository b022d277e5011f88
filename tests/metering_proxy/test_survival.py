"""A real meter process that is killed or told to stop in mid-stream: what it held is settled all the same."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from infra.kit import client as kit_client
from infra.kit import ids
from infra.kit.db import Database, sql
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.client import MeterClient
from metering_proxy.ledger.verify import verify
from metering_proxy.settings import MeterSettings
from tests import scripted as s
from tests import tally
from tests.metering_proxy.house import ROW, SECRET
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.thorough  # each starts processes


@dataclass
class Process:
    """A meter in a process of its own."""

    process: asyncio.subprocess.Process
    client: MeterClient

    async def kill(self) -> None:
        """As the kernel does, or a power cut."""
        self.process.kill()
        await self.process.wait()
        tally.count("kills")


@dataclass
class Place:
    """Where a meter lives, and the environment that says so."""

    root: Path
    database_url: str
    more: Mapping[str, str] = field(default_factory=dict)

    def environment(self) -> dict[str, str]:
        """What the process is given."""
        return {
            **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
            "ALCOVE_DEPLOYMENT": "test",
            "ALCOVE_SERVICE_SECRET": SECRET,
            "ALCOVE_SEALING_KEY": "5a" * 32,
            "ALCOVE_METER_DATABASE_URL": self.database_url,
            "ALCOVE_METER_LISTEN": f"unix://{self.root}/control.sock",
            "ALCOVE_SOCKETS_DIR": f"{self.root}/s",
            "ALCOVE_METER_LOOPBACK_PROVIDERS": ",",
            "ALCOVE_METER_LEASE_S": "1",
            **self.more,
        }

    async def run(self, *verb: str) -> int:
        """Runs another verb of the module to its end; its exit status."""
        process = await self._start(*verb)
        return await process.wait()

    @asynccontextmanager
    async def meter(self) -> AsyncIterator[Process]:
        """A meter that serves while the block runs; killed at its end if it still lives."""
        process = await self._start()
        client = MeterClient(f"unix://{self.root}/control.sock", SECRET)
        try:
            await until(lambda: _answers(client), timeout_s=40, what="a meter that is ready")
            yield Process(process, client)
        finally:
            await client.close()
            if process.returncode is None:
                process.kill()
            await process.wait()

    async def _start(self, *verb: str) -> asyncio.subprocess.Process:
        with (self.root / "log").open("ab") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-m", "metering_proxy", *verb, env=self.environment(), stdout=log, stderr=log
            )  # fmt: skip


async def _answers(client: MeterClient) -> bool:
    try:
        await client.service.call("GET", "/readyz", timeout_s=2)
    except AlcoveError:
        return False
    return True


@pytest.fixture
async def place(tmp_path: Path, database_url: str) -> Place:
    """A migrated database and a place for sockets."""
    found = Place(tmp_path, database_url)
    assert await found.run("migrate") == 0
    assert await found.run("migrate") == 0
    return found


async def a_call(
    meter: Process, place: Place, scripted: ScriptedProvider
) -> tuple[str, aiohttp.ClientSession, dict[str, str]]:
    """A tenant with a connected provider, and the session to its socket."""
    row = ROW.model_copy(update={"max_output_tokens": 5_000})
    await meter.client.create_provider(
        wire.NewProvider(
            kind="openai_compatible", name="Scripted", base_url=scripted.url, models=[row]
        )
    )
    tenant = ids.tenant_id()
    directory = place.root / "s" / "t" / tenant / "1" / "meter"
    directory.mkdir(parents=True)
    key = (await meter.client.mint_key(tenant, 1, str(directory))).key
    session, _ = kit_client.session(f"unix://{directory}/meter.sock")
    return tenant, session, {"authorization": f"Bearer {key}"}


_ASK = {"model": "default", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
_URL = "http://localhost/v1/chat/completions"


async def test_killed_meter_leaves_nothing_held_after_its_successors_sweep(
    place: Place, scripted: ScriptedProvider
) -> None:
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate, "never read"))
    db = Database(place.database_url)
    async with place.meter() as meter:
        tenant, session, headers = await a_call(meter, place, scripted)
        async with session:
            response = await session.post(_URL, json=_ASK, headers=headers)
            while b"some words" not in await response.content.readany():
                pass
            await until(lambda: _seen(db), what="the written-down output")
            assert await held(db) > 0
            await meter.kill()
            response.close()
    gate.open()
    async with place.meter() as meter:
        await until(lambda: _settled(db), timeout_s=40, what="the sweep")
        quota = await meter.client.quota(tenant)
        assert (quota.charge_month.held_nanos, quota.concurrent.used) == (0, 0)
        assert await _states(db) == ["charged_estimate"]
        report = await meter.client.usage(from_at=0, to_at=2**45, group=(), tenant=tenant)
        assert (report.totals.requests, report.totals.estimated) == (1, 1)
        assert report.totals.charge_nanos == quota.charge_month.spent_nanos > 0
        assert report.totals.output_tokens == 3 + 2_000
    assert (await verify(db)).whole
    await db.close()


async def _closed(session: aiohttp.ClientSession) -> None:
    """Returns once the meter has taken the signal and lets nobody in any more."""

    async def refused() -> bool:
        try:
            async with session.get("http://localhost/nothing"):
                return False
        except aiohttp.ClientError:
            return True

    await until(refused, what="the door to close")


async def test_stopping_meter_gives_a_stream_its_thirty_seconds_and_settles_it(
    place: Place, scripted: ScriptedProvider
) -> None:
    assert MeterSettings.model_fields["stream_grace_s"].default == 30
    assert "ALCOVE_METER_STREAM_GRACE_S" not in place.environment()
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate, "and the end").using(20, 7))
    db = Database(place.database_url)
    async with place.meter() as meter:
        _, session, headers = await a_call(meter, place, scripted)
        async with session, session.post(_URL, json=_ASK, headers=headers) as response:
            seen = b""
            while b"some words" not in seen:
                seen += await response.content.readany()
            meter.process.send_signal(signal.SIGTERM)
            await _closed(session)
            assert meter.process.returncode is None
            gate.open()
            seen += await response.content.read()
            assert b"and the end" in seen
        assert await meter.process.wait() == 0
    assert await _states(db) == ["settled"]
    async with db.read() as reading:
        [row] = await reading.rows(sql("SELECT charge_nanos, estimated FROM entry"))
    assert tuple(row.values()) == (20 * 1_000 + 7 * 2_000, 0)
    assert (await verify(db)).whole
    await db.close()


@pytest.mark.parametrize("grace_s", [0, 1])
async def test_stopping_meter_cuts_at_the_limit_and_settles_what_does_not_end(
    tmp_path: Path, scripted: ScriptedProvider, grace_s: int
) -> None:
    url, grace = f"sqlite:///{tmp_path}/m.db", {"ALCOVE_METER_STREAM_GRACE_S": str(grace_s)}
    place = Place(tmp_path, url, grace)
    assert await place.run("migrate") == 0
    gate = s.Gate()
    scripted.then(reply=s.text("some words ", gate))
    db = Database(place.database_url)
    async with place.meter() as meter:
        _, session, headers = await a_call(meter, place, scripted)
        async with session, session.post(_URL, json=_ASK, headers=headers) as response:
            await response.content.readany()
            await gate.reached()
            told_s = time.monotonic()
            meter.process.send_signal(signal.SIGTERM)
            assert await meter.process.wait() == 0
            assert grace_s <= time.monotonic() - told_s < grace_s + 15
            with pytest.raises(aiohttp.ClientError):
                await response.content.read()  # cut, so that nobody takes it for a whole one
    gate.open()
    assert await _states(db) == ["settled"]
    assert await held(db) == 0
    async with db.read() as reading:
        [row] = await reading.rows(
            sql("SELECT outcome, estimated, charge_nanos > 0 AS paid FROM entry")
        )
    assert tuple(row.values()) == ("cut", 1, 1)
    assert (await verify(db)).whole
    await db.close()


async def test_meter_says_every_problem_of_its_settings_at_once(tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "metering_proxy",
        "check",
        env={"PATH": os.environ["PATH"], "ALCOVE_METER_LISTEN": "nowhere"},
        stderr=asyncio.subprocess.PIPE,
    )
    _, told = await process.communicate()
    assert process.returncode == 78
    for name in (
        "ALCOVE_DEPLOYMENT",
        "ALCOVE_SEALING_KEY",
        "ALCOVE_METER_LISTEN",
        "ALCOVE_SOCKETS_DIR",
    ):
        assert name in told.decode()


async def held(db: Database) -> int:
    async with db.read() as reading:
        return int(await reading.value(sql("SELECT COALESCE(SUM(held), 0) FROM account_window")))


async def _states(db: Database) -> list[str]:
    async with db.read() as reading:
        return [row["state"] for row in await reading.rows(sql("SELECT state FROM reservation"))]


async def _seen(db: Database) -> bool:
    async with db.read() as reading:
        return bool(await reading.value(sql("SELECT MAX(output_seen) FROM reservation")))


async def _settled(db: Database) -> bool:
    return await held(db) == 0
