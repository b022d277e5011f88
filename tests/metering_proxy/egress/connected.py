"""Somebody's service behind a connection, and a tenant that is connected to it."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from infra.kit.clock import FakeClock
from metering_proxy import wire
from tests.metering_proxy.egress.outdoors import Names
from tests.metering_proxy.house import House, Tenant

TOKEN = "gho_a-token.of/someone+else=="
NAME = "api.example"


@dataclass
class Origin:
    """A TLS server that answers as it was told and keeps what it was sent, byte for byte."""

    port: int = 0
    answer: bytes = (
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-theirs: yes\r\nset-cookie: a=b\r\n\r\nok"
    )
    heads: list[bytes] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    connections: int = 0
    gate: asyncio.Event | None = None

    async def accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serves one connection."""
        self.connections += 1
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(int(length or 0)))
                writer.write(self.answer)
                if self.gate is not None:
                    await self.gate.wait()
                    writer.write(b"last")
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    def header(self, name: str) -> list[str]:
        """The values of a header of the newest request."""
        lines = self.heads[-1].decode("latin-1").split("\r\n")[1:]
        pairs = [line.partition(": ") for line in lines if line]
        return [value for key, _, value in pairs if key.lower() == name]


@dataclass
class There:
    """A house whose tenant `mine` has the connection `hub` to the service."""

    house: House
    mine: Tenant
    names: Names
    clock: FakeClock

    async def connect(self, **more: Any) -> wire.TokenConnection:
        """Hands a token over."""
        given = wire.TokenConnectionRequest(
            **{"token": TOKEN, "origin": f"https://{NAME}:{self.port}", **more}
        )
        return await self.house.client.put_token_connection(self.mine.id, "hub", given)

    port: int = 0


async def call(
    tenant: Tenant, target: str, method: str = "GET", **how: Any
) -> tuple[int, Any, bytes]:
    """Status, headers and body of a call; the target goes as it stands."""
    headers = {"authorization": f"Bearer {tenant.key}", **how.pop("headers", {})}
    request = tenant.session.request(
        method,
        aiohttp.client.URL(f"http://localhost{target}", encoded=True),
        headers=headers,
        allow_redirects=False,
        **how,
    )
    async with request as response:
        return response.status, response.headers, await response.read()
