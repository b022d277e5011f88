"""Ten thousand connections that prove nothing, and a neighbour that does not notice."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from infra.kit import client as kit_client
from infra.kit import ids
from metering_proxy import wire
from metering_proxy.client import MeterClient
from tests import scripted as s
from tests.metering_proxy.house import MODEL, ROW
from tests.metering_proxy.test_survival import Place
from tests.scripted import ScriptedProvider

pytestmark = pytest.mark.slow  # processes, and a crowd of 10,000

CROWD = 10_000
_CALLS, _ROUNDS = 150, 5
_LOOSE = '[[plan]]\nname = "free"\ntitle = "Free"\ncharge_month = "1000.00"\n'


class LoosePlace(Place):
    """A place whose plan counts every call and limits none."""

    def environment(self) -> dict[str, str]:
        plans = self.root / "plans.toml"
        plans.write_text(_LOOSE)
        return {**super().environment(), "ALCOVE_METER_PLANS_FILE": str(plans)}


@dataclass
class Neighbour:
    """A tenant that calls, and how long its calls take."""

    session: aiohttp.ClientSession
    key: str

    async def p99_ms(self) -> float:
        """Of so many calls, one after another."""
        took = []
        for _ in range(_CALLS):
            began = time.perf_counter()
            body = {"model": MODEL, "messages": [{"role": "user", "content": "hello"}]}
            headers = {"authorization": f"Bearer {self.key}"}
            url = "http://localhost/v1/chat/completions"
            async with self.session.post(url, json=body, headers=headers) as response:
                await response.read()
                assert response.status == 200
            took.append((time.perf_counter() - began) * 1000)
        return sorted(took)[_CALLS * 99 // 100]


async def a_socket(place: Place, client: MeterClient) -> tuple[Path, str]:
    """A new tenant's socket and key."""
    tenant = ids.tenant_id()
    directory = place.root / "s" / "t" / tenant / "1" / "meter"
    directory.mkdir(parents=True)
    minted = await client.mint_key(tenant, 1, str(directory))
    return directory / "meter.sock", minted.key


@dataclass
class Crowd:
    """The process of crowd.py."""

    process: asyncio.subprocess.Process

    async def told(self, order: str) -> int:
        """After it came (`come`) or left (`go`): how many of it were let in."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(order.encode() + b"\n")
        return int(await self.process.stdout.readline())


@asynccontextmanager
async def a_crowd(sockets: list[Path]) -> AsyncIterator[Crowd]:
    """A crowd at these sockets while the block runs."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.metering_proxy.crowd",
        str(CROWD),
        *map(str, sockets),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        yield Crowd(process)
    finally:
        process.kill()
        await process.wait()


@pytest.mark.parametrize(
    ("sockets", "let_in"), [(1, 64), (160, CROWD)], ids=["at one socket", "at 160 sockets"]
)
async def test_neighbour_keeps_its_pace_while_ten_thousand_say_nothing(
    sockets: int, let_in: int, tmp_path: Path, scripted: ScriptedProvider
) -> None:
    place = LoosePlace(tmp_path, f"sqlite:///{tmp_path}/meter.db")
    assert await place.run("migrate") == 0
    scripted.always(reply=s.text("x"))
    async with place.meter() as meter:
        await meter.client.create_provider(
            wire.NewProvider(
                kind="openai_compatible", name="Scripted", base_url=scripted.url, models=[ROW]
            )
        )
        path, key = await a_socket(place, meter.client)
        crowded = [(await a_socket(place, meter.client))[0] for _ in range(sockets)]
        session, _ = kit_client.session(f"unix://{path}")
        neighbour = Neighbour(session, key)
        async with session, a_crowd(crowded) as crowd:
            await neighbour.p99_ms()
            # Quiet and crowded in turns, the best of each: what else the machine does strikes both.
            quiet, busy = [], []
            for _ in range(_ROUNDS):
                await crowd.told("go")
                quiet.append(await neighbour.p99_ms())
                inside = await crowd.told("come")
                assert inside <= let_in
                assert inside >= let_in * 9 // 10
                busy.append(await neighbour.p99_ms())
        assert min(busy) < 2 * min(quiet), f"quiet {quiet}, crowded {busy}"
