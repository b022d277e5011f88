"""A meter whose outside is one server on loopback."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from infra.kit.clock import FakeClock
from tests.kit.relay.test_tcp import certificate
from tests.metering_proxy.egress.connected import NAME, Origin, There
from tests.metering_proxy.egress.outdoors import (
    STAND_IN,
    Names,
    Server,
    plans_file,
    serving,
    world,
)
from tests.metering_proxy.house import House, a_house


@pytest.fixture
def names() -> Names:
    """What lookups find."""
    return Names()


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """The server that stands for a public one."""
    async with serving() as running:
        yield running


@pytest.fixture
async def open_house(tmp_path: Path, names: Names, server: Server) -> AsyncIterator[House]:
    """A meter that reaches `server` under names that the test gives it."""
    plans = plans_file(tmp_path, server.port, deny='["denied.example"]')
    async with a_house(
        tmp_path, f"sqlite:///{tmp_path}/meter.db", outside=world(names), plans_file=plans
    ) as running:
        yield running


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[Origin]:
    """A service on loopback whose certificate is for NAME."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(*certificate(tmp_path, NAME))
    running = Origin()
    listening = await asyncio.start_server(running.accepted, STAND_IN, 0, ssl=tls)
    running.port = listening.sockets[0].getsockname()[1]
    yield running
    listening.close()


@pytest.fixture
async def there(tmp_path: Path, service: Origin, clock: FakeClock) -> AsyncIterator[There]:
    """A meter on the test's clock, and a tenant that is connected."""
    names = Names()
    names.say(NAME, [STAND_IN])
    trusting = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
    async with a_house(
        tmp_path,
        f"sqlite:///{tmp_path}/meter.db",
        clock=clock,
        outside=world(names, trusting),
        plans_file=plans_file(tmp_path, 1, at_once="2", bytes_day="1_000_000"),
    ) as house:
        made = There(house, await house.tenant(), names, clock, service.port)
        await made.connect()
        yield made
        await house.meter.egress.close()
