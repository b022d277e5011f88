"""Agents have no network, so their spans are fetched from them here and handed to the collector.

What an agent says is not trusted: each span is checked and cut, and the resource that it claims to be is
replaced by what it is. Without OTEL_EXPORTER_OTLP_ENDPOINT nothing is fetched.
"""

import logging
from dataclasses import dataclass, field
from typing import Annotated, Any

import aiohttp
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from spawner.agent_client import AgentClient
from spawner.instances import Row, read_all

log = logging.getLogger(__name__)
_COLLECTOR_S = 5
_MOST_SPANS = 512

Hex32 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
Hex16 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16}$")]
Nanos = Annotated[str, StringConstraints(pattern=r"^[0-9]{1,20}$")]
Short = Annotated[str, StringConstraints(max_length=256)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Value(_Part):
    stringValue: Short | None = None
    intValue: Nanos | None = None


class _Attribute(_Part):
    key: Short
    value: _Value


class _Status(_Part):
    code: int = Field(ge=0, le=2)
    message: Short = ""


class _Span(_Part):
    traceId: Hex32
    spanId: Hex16
    parentSpanId: Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{16})?$")] = ""
    name: Short
    kind: int = Field(1, ge=0, le=5)
    startTimeUnixNano: Nanos
    endTimeUnixNano: Nanos
    attributes: list[_Attribute] = Field(default_factory=list, max_length=32)
    status: _Status


class _Scope(_Part):
    spans: list[_Span] = Field(max_length=_MOST_SPANS)


class _Resource(_Part):
    scopeSpans: list[_Scope] = Field(max_length=8)


class Answer(_Part):
    """The answer of an agent's `/spans`."""

    last: int = Field(ge=0)
    resourceSpans: list[_Resource] = Field(max_length=8)


@dataclass(frozen=True, slots=True)
class ForwardSpans:
    """Fetches finished spans of every ready agent and sends them to `endpoint` (OTLP over HTTP, JSON)."""

    db: Database
    agents: AgentClient
    endpoint: str
    _seen: dict[tuple[str, int], int] = field(default_factory=dict)

    async def __call__(self) -> None:
        """One round. An agent that does not answer, or answers nonsense, is passed over."""
        async with self.db.read() as reading:
            ready = await read_all(reading, "ready")
        names = {(row.tenant, row.generation) for row in ready}
        for name in set(self._seen) - names:
            del self._seen[name]
        timeout = aiohttp.ClientTimeout(total=_COLLECTOR_S)
        async with aiohttp.ClientSession(timeout=timeout) as session:
            for row in ready:
                await self._forward(session, row)

    async def _forward(self, session: aiohttp.ClientSession, row: Row) -> None:
        name = (row.tenant, row.generation)
        assert row.url is not None
        path = f"/spans?after={self._seen.get(name, 0)}"
        try:
            answer = await self.agents.ask(Answer, row.url, path, row.tenant, row.generation)
            if answer.resourceSpans:
                await self._send(session, answer)
        except (AlcoveError, aiohttp.ClientError, TimeoutError) as error:
            log.info("spans not forwarded", extra={"tenant": row.tenant, "error": str(error)})
            return
        self._seen[name] = answer.last

    async def _send(self, session: aiohttp.ClientSession, answer: Answer) -> None:
        url = f"{self.endpoint.rstrip('/')}/v1/traces"
        async with session.post(url, json=_as_ours(answer)) as response:
            response.raise_for_status()


def _as_ours(answer: Answer) -> dict[str, Any]:
    """The spans under the one resource that agents are: no tenant can speak as another service."""
    spans = [
        span.model_dump(exclude_none=True)
        for resource in answer.resourceSpans
        for scope in resource.scopeSpans
        for span in scope.spans
    ]
    name = {"key": "service.name", "value": {"stringValue": "agent"}}
    scope = {"scope": {"name": "alcove.agent"}, "spans": spans}
    return {"resourceSpans": [{"resource": {"attributes": [name]}, "scopeSpans": [scope]}]}
