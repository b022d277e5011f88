"""What the spawner asks an agent: whether it answers, and how busy it is.

An agent is not trusted: its socket is checked before it is spoken to, and its answers are cut at a size
and a time and checked for their form.
"""

import asyncio
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.kit import ids, unix
from infra.kit.errors import AlcoveError
from infra.kit.relay import ProtocolUpstream, RelayRequest, Timeouts

_MOST_BYTES = 512 * 1024
_LATEST_AT = 1 << 53
T = TypeVar("T", bound=BaseModel)


class Health(BaseModel):
    """The answer of `/healthz`."""

    model_config = ConfigDict(extra="ignore")

    ok: bool
    generation: int


class Status(BaseModel):
    """The answer of `/status`, as far as the spawner uses it."""

    model_config = ConfigDict(extra="ignore")

    in_flight: int = Field(ge=0, le=1_000_000)
    waiting: int = Field(0, ge=0, le=1_000_000)
    busy_until_at: int | None = Field(None, ge=0, le=_LATEST_AT)
    next_schedule_at: int | None = Field(None, ge=0, le=_LATEST_AT)
    unread: int = Field(0, ge=0, le=1_000_000)
    oom_kills: int = Field(0, ge=0, le=1_000_000)


class AgentClient:
    """Calls agents at their own addresses, one short connection a call."""

    def __init__(self, deployment_secret: str, *, owner_uid: int, timeout_s: float = 3.0) -> None:
        self._deployment_secret = deployment_secret
        self._owner_uid, self._timeout_s = owner_uid, timeout_s

    async def health(self, url: str) -> Health:
        """Raises `unavailable` while nobody listens, `forbidden` (reason `untrusted_socket`) where
        what lies there is not the agent's socket, `bad_gateway` or `timeout` for a bad answer."""
        return _parse(Health, await self._get(url, "/healthz", []))

    async def status(self, url: str, tenant: str, generation: int) -> Status:
        """How busy it is. Errors as `health`."""
        return await self.ask(Status, url, "/status", tenant, generation)

    async def ask(self, kind: type[T], url: str, path: str, tenant: str, generation: int) -> T:
        """Whatever an agent tells to those who show its secret. Errors as `health`."""
        secret = ids.instance_secret(self._deployment_secret, tenant, generation)
        headers = [("authorization", f"Bearer {secret}")]
        return _parse(kind, await self._get(url, path, headers))

    async def _get(self, url: str, path: str, headers: list[tuple[str, str]]) -> bytes:
        limit = self._timeout_s
        timeouts = Timeouts(connect_s=limit, first_byte_s=limit, idle_s=limit)
        async with ProtocolUpstream(
            url, owner_uid=self._owner_uid, timeouts=timeouts, limit=1
        ) as upstream:
            try:
                async with asyncio.timeout(limit):
                    return await _read(upstream, path, headers)
            except TimeoutError as error:
                raise AlcoveError("timeout", "the agent did not answer in time") from error
            except AlcoveError as error:
                if isinstance(error.__cause__, unix.NotTrusted):
                    raise AlcoveError(
                        "forbidden",
                        "what lies in place of the agent's socket is not the agent's",
                        reason="untrusted_socket",
                    ) from error
                raise


def _parse(kind: type[T], raw: bytes) -> T:
    try:
        return kind.model_validate_json(raw)
    except ValidationError as error:
        raise AlcoveError(
            "bad_gateway", "the agent's answer is not of the expected form"
        ) from error


async def _read(upstream: ProtocolUpstream, path: str, headers: list[tuple[str, str]]) -> bytes:
    response = await upstream.open(RelayRequest("GET", path, [("host", "agent"), *headers]))
    try:
        body = bytearray()
        async for chunk in response.chunks():
            body += chunk
            if len(body) > _MOST_BYTES:
                raise AlcoveError("bad_gateway", "the agent's answer is too long")
        if response.status != 200:
            raise AlcoveError("bad_gateway", f"the agent answered HTTP {response.status}")
        return bytes(body)
    finally:
        await response.close()
