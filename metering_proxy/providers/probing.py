"""One real call to a provider, to say whether address and key work. It asks for the list of models: no tokens."""

import asyncio
import time
from urllib.parse import urlsplit

import orjson

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from infra.kit.relay import RelayRequest
from metering_proxy import wire
from metering_proxy.egress.addresses import literal
from metering_proxy.providers.connections import Connection
from metering_proxy.providers.upstreams import Upstreams

_TIMEOUT_S = 10.0
_MOST_BYTES = 4 * 1024 * 1024


async def probe(
    connection: Connection, upstreams: Upstreams, clock: Clock, *, host_name: str | None = None
) -> wire.Probe:
    """Calls the provider once. Raises nothing for what the provider does.

    `host_name`: under which the meter's container knows the machine it runs on; who mixes up the two is told.
    """
    started = time.perf_counter()
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            status, body = await _ask(connection, upstreams)
    except TimeoutError:
        return wire.Probe(ok=False, at=clock.now_at(), detail=f"no answer within {_TIMEOUT_S:g} s")
    except AlcoveError as error:
        hint = _hint(connection, host_name) if error.reason == "unreachable" else ""
        return wire.Probe(ok=False, at=clock.now_at(), detail=error.message + hint)
    latency_ms = round((time.perf_counter() - started) * 1000)
    ok, detail, models = _finding(status, body)
    return wire.Probe(ok=ok, at=clock.now_at(), detail=detail, latency_ms=latency_ms, models=models)


async def _ask(connection: Connection, upstreams: Upstreams) -> tuple[int, bytes]:
    headers = [("accept", "application/json"), *connection.headers("models")]
    if connection.kind.auth == "x-api-key":
        headers.append(("anthropic-version", "2023-06-01"))
    async with upstreams.use(connection) as upstream:
        response = await upstream.open(RelayRequest("GET", connection.kind.models_path, headers))
        try:
            body = b""
            async for chunk in response.chunks():
                body += chunk
                if len(body) > _MOST_BYTES:
                    break
        finally:
            await response.close()
        return response.status, body


def _hint(connection: Connection, host_name: str | None) -> str:
    """What an operator most likely forgot, where nobody answers at an address of the machine itself."""
    if host_name is None or connection.base_url.startswith("unix:"):
        return ""
    parts = urlsplit(connection.base_url)
    host, address = parts.hostname or "", literal(parts.hostname or "")
    if host == host_name:
        return ". Let the server on this machine listen for containers too, not at 127.0.0.1 alone"
    if host == "localhost" or (address and (address.is_loopback or address.is_unspecified)):
        port = f":{parts.port}" if parts.port else ""
        there = f"{parts.scheme}://{host_name}{port}{parts.path}"
        return f". {host} is the meter's own container: for a server on this machine use {there} instead"
    return ""


def _finding(status: int, body: bytes) -> tuple[bool, str, int | None]:
    if status in (401, 403):
        return False, f"the provider refuses the key (HTTP {status})", None
    if status != 200:
        return False, f"the provider answered HTTP {status}", None
    try:
        models = orjson.loads(body)["data"]
        many = "1 model" if len(models) == 1 else f"{len(models)} models"
        return True, f"the provider answers and lists {many}", len(models)
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return False, "something answers there, but it lists no models", None
