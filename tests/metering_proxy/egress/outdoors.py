"""A world to go out to: names that a test answers for, one loopback address that stands for a public one,
and a count of every connection that this process makes."""

import asyncio
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path

from infra.kit import unix
from metering_proxy import wire
from metering_proxy.egress.addresses import IPAddress, PublicOnly
from metering_proxy.egress.outside import Outside
from tests.kit.httpd.wire import Client
from tests.metering_proxy.house import House, Tenant

STAND_IN = "127.0.0.77"
NOBODY = "127.0.0.78"  # nothing listens there


class StandIn(PublicOnly):
    """Takes two loopback addresses for public ones, and judges all others as every meter does."""

    def refuses(self, address: IPAddress) -> str | None:
        return None if str(address) in (STAND_IN, NOBODY) else super().refuses(address)


@dataclass
class Names:
    """A resolver whose answers the test writes: one list of addresses a lookup, the last one for ever."""

    answers: dict[str, list[list[str]]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gate: asyncio.Event | None = None  # the next lookup waits here

    def say(self, name: str, *answers: list[str]) -> None:
        """What lookups of `name` find, one after another."""
        self.answers[name] = list(answers)

    async def addresses(self, name: str) -> Sequence[IPAddress]:
        self.asked.append(name)
        gate, self.gate = self.gate, None
        if gate is not None:
            await gate.wait()
        answers = self.answers.get(name)
        if answers is None:
            raise OSError("no such name")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return [ip_address(address) for address in found]

    def close(self) -> None:
        """Nothing to end."""


@dataclass
class Server:
    """A server at the address that stands for a public one; counts its connections and what it was sent."""

    port: int = 0
    connections: int = 0
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Gives back what it gets, until the other side ends."""
        self.connections += 1
        self.writers.append(writer)
        try:
            while data := await reader.read(65_536):
                writer.write(data)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.close()


@asynccontextmanager
async def serving(address: str = STAND_IN) -> AsyncIterator[Server]:
    """An echoing server while the block runs."""
    server = Server()
    listening = await asyncio.start_server(server.accepted, address, 0)
    server.port = listening.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listening.close()
        for writer in server.writers:
            writer.transport.abort()


def world(names: Names, tls: ssl.SSLContext | None = None) -> Outside:
    """The outside of a test."""
    return Outside(names, StandIn(), tls=tls, connect_s=2.0)


def plans_file(directory: Path, port: int, **egress: str) -> Path:
    """Plans whose free one lets tunnels to `port`, with more lines of its egress table."""
    lines = "".join(f"{name} = {value}\n" for name, value in egress.items())
    path = directory / "plans.toml"
    path.write_text(
        '[[plan]]\nname = "free"\ntitle = "Free"\ncharge_month = "1.00"\nconcurrent = 2\n'
        f"[plan.egress]\nports = [80, 443, {port}]\n{lines}"
        '[[plan]]\nname = "inside"\ntitle = "No way out"\n'
    )
    return path


async def allowed(house: House, plan: str = "free", *, egress: bool = True) -> Tenant:
    """A tenant that may go out."""
    tenant = await house.tenant()
    state = wire.TenantState(plan=plan, status="active", version=2, egress=egress)
    await house.client.put_tenant(tenant.id, state)
    return tenant


@asynccontextmanager
async def connecting(tenant: Tenant, target: str, key: str | None = None) -> AsyncIterator[Client]:
    """A client that has asked for a tunnel."""
    reader, writer = await unix.open_stream(tenant.socket)
    shown = f"proxy-authorization: Bearer {key or tenant.key}\r\n" if key != "" else ""
    writer.write(f"CONNECT {target} HTTP/1.1\r\nhost: {target}\r\n{shown}\r\n".encode())
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


async def refused(client: Client, status: int, reason: str) -> None:
    """Reads a refusal, and the end."""
    reply = await client.reply()
    assert (reply.status, reply.headers["x-alcove-reason"]) == (status, reason)
    assert f'"code":"{reason}"'.encode() in reply.body
    assert await client.ended()


async def opened(client: Client) -> None:
    """Reads the answer that opens a tunnel."""
    head = await client.reader.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 "), head


_seen: list[str] | None = None


def _audit(event: str, arguments: tuple[object, ...]) -> None:
    if event == "socket.connect" and _seen is not None:
        address = arguments[1]
        if isinstance(address, tuple):
            _seen.append(str(address[0]))


_hooked = False


@contextmanager
def counted() -> Iterator[list[str]]:
    """Every internet address that this process connects to while the block runs, told by the interpreter."""
    global _seen, _hooked
    if not _hooked:
        sys.addaudithook(_audit)
        _hooked = True
    _seen = []
    try:
        yield _seen
    finally:
        _seen = None
