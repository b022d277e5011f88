"""A spawner that keeps its contract in memory: each tenant it wakes gets a `FakeAgent` on a real socket."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from fastapi import FastAPI, Response
from starlette.responses import JSONResponse, StreamingResponse

from infra.kit import ids, sse
from infra.kit.errors import AlcoveError
from spawner import wire as spawner_wire
from tests.gateway.fake_agent import FakeAgent, Memory
from tests.gateway.fake_room import room
from tests.quickly import serving

LIMIT_BYTES = 1_000_000_000
Waking = Literal["at once", "when told", "fails"]


@dataclass
class _Tenant:
    memory: Memory = field(default_factory=Memory)
    state: spawner_wire.State = "absent"
    generation: int = 0
    url: str | None = None
    plan: str = "free"
    suspended: bool = False
    error: spawner_wire.Problem | None = None
    changed_at: int = 0
    events: list[spawner_wire.PhaseEvent] = field(default_factory=list)
    agent: FakeAgent | None = None
    person_at: int = 0
    stored_bytes: int | None = None
    clearing_until_at: int | None = None
    stop_agent: AsyncExitStack = field(default_factory=AsyncExitStack)


class FakeSpawner:
    """Starts a `FakeAgent` for each tenant that is woken."""

    def __init__(self, sockets: Path, secret: str, deployment_secret: str) -> None:
        self._sockets, self._deployment_secret = sockets, deployment_secret
        self.tenants: dict[str, _Tenant] = {}
        self.waking: Waking = "at once"
        self.calls: list[str] = []
        self.away = False
        self._changed: set[asyncio.Event] = set()
        self.app = self._routes(room("spawner", secret))

    def of(self, tenant: str) -> _Tenant:
        """The tenant's row, made where there is none."""
        return self.tenants.setdefault(tenant, _Tenant())

    async def become_ready(self, tenant: str) -> None:
        """The start under way succeeds: the agent listens."""
        row = self.of(tenant)
        directory = self._sockets / "t" / tenant / str(row.generation) / "agent"
        directory.mkdir(parents=True, exist_ok=True)
        secret = ids.instance_secret(self._deployment_secret, tenant, row.generation)
        row.agent = FakeAgent(secret, row.memory)
        row.url = f"unix://{directory}/agent.sock"
        served = serving(row.agent.app, row.url)
        await row.stop_agent.enter_async_context(served)
        self._move(row, "ready", "ready")

    async def stop(self, tenant: str) -> None:
        """The instance stops; what it remembers stays."""
        row = self.of(tenant)
        await self._end_agent(row)
        self._move(row, "stopped", "stopped")

    async def die(self, tenant: str) -> None:
        """As a crash: the socket is gone and nobody has said so yet."""
        await self._end_agent(self.of(tenant))

    async def close(self) -> None:
        """Ends every agent and stream."""
        for row in self.tenants.values():
            await self._end_agent(row)
        self.away = True
        for waiter in self._changed:
            waiter.set()

    def fail(self, tenant: str) -> None:
        """The start under way fails."""
        row = self.of(tenant)
        row.error = spawner_wire.Problem(code="image_missing", message="It could not be started.")
        self._move(row, "failed", "failed")

    async def _end_agent(self, row: _Tenant) -> None:
        if row.agent is not None:
            row.agent.cut()
        row.agent, row.url = None, None
        await row.stop_agent.aclose()

    async def _wake(self, tenant: str) -> None:
        row = self.of(tenant)
        if row.state in ("ready", "starting", "creating"):
            return
        row.generation += 1
        row.error = None
        self._move(row, "creating", "queued")
        self._move(row, "starting", "start")
        if self.waking == "at once":
            await self.become_ready(tenant)
        elif self.waking == "fails":
            self.fail(tenant)

    def _move(self, row: _Tenant, state: spawner_wire.State, phase: spawner_wire.Phase) -> None:
        row.state = state
        row.changed_at += 1
        row.events.append(
            spawner_wire.PhaseEvent(
                seq=len(row.events) + 1,
                at=row.changed_at,
                generation=row.generation,
                state=state,
                phase=phase,
                message=phase,
                error=row.error,
            )
        )
        for waiter in self._changed:
            waiter.set()

    def _instance(self, tenant: str) -> dict[str, Any]:
        row = self.of(tenant)
        return spawner_wire.Instance(
            tenant=tenant,
            state=row.state,
            generation=row.generation,
            url=row.url if row.state == "ready" else None,
            owner_uid=os.getuid() if row.state == "ready" else None,
            plan=row.plan,
            suspended=row.suspended,
            runtime="process",
            error=row.error,
            changed_at=row.changed_at,
            seq=len(row.events),
            stored_bytes=row.stored_bytes,
            storage_bytes=LIMIT_BYTES,
            clearing_until_at=row.clearing_until_at,
        ).model_dump()

    def _is_full(self, tenant: str) -> bool:
        return (self.of(tenant).stored_bytes or 0) > LIMIT_BYTES

    async def _follow(self, tenant: str, after: int) -> AsyncIterator[bytes]:
        waiter = asyncio.Event()
        self._changed.add(waiter)
        yield b": hello\n\n"
        try:
            while not self.away:
                waiter.clear()
                for event in self.of(tenant).events[after:]:
                    after = event.seq
                    yield sse.frame(event.model_dump_json(), event_id=str(event.seq))
                await waiter.wait()
        finally:
            self._changed.discard(waiter)

    def _routes(self, app: FastAPI) -> FastAPI:
        def noted(what: str) -> None:
            if self.away:
                raise AlcoveError("unavailable", "not now")
            self.calls.append(what)

        @app.put("/instances/{tenant}")
        async def wake(tenant: str, body: spawner_wire.Wake) -> Any:
            noted(f"wake {tenant} {body.reason}")
            if self.of(tenant).suspended:
                raise AlcoveError("forbidden", "suspended", reason="suspended")
            if self._is_full(tenant) and self.of(tenant).clearing_until_at is None:
                raise AlcoveError("forbidden", "It is full.", reason="storage_full")
            await self._wake(tenant)
            return JSONResponse(self._instance(tenant), 202)

        @app.get("/instances/{tenant}")
        async def instance(tenant: str) -> Any:
            noted(f"instance {tenant}")
            return self._instance(tenant)

        @app.delete("/instances/{tenant}")
        async def stop(tenant: str) -> Any:
            noted(f"stop {tenant}")
            await self.stop(tenant)
            return JSONResponse(self._instance(tenant), 202)

        @app.get("/instances/{tenant}/events")
        async def events(tenant: str, after: int = 0) -> Response:
            noted(f"events {tenant}")
            return StreamingResponse(self._follow(tenant, after), media_type="text/event-stream")

        @app.put("/instances/{tenant}/clearing")
        async def clear(tenant: str) -> Any:
            noted(f"clear {tenant}")
            if (self.of(tenant).stored_bytes or 0) > 2 * LIMIT_BYTES:
                raise AlcoveError("forbidden", "Far too much.", reason="storage_past_ceiling")
            if self._is_full(tenant):
                self.of(tenant).clearing_until_at = time.time_ns() // 1_000_000 + 900_000
            return self._instance(tenant)

        @app.put("/instances/{tenant}/activity")
        async def activity(tenant: str, body: spawner_wire.Activity) -> Response:
            noted(f"activity {tenant}")
            self.of(tenant).person_at = body.person_at
            return Response(status_code=204)

        @app.post("/instances/query")
        async def query(body: spawner_wire.InstanceQuery) -> Any:
            noted("query")
            names = body.ids if body.ids is not None else list(self.tenants)
            rows = [self._instance(name) for name in names]
            rows = [row for row in rows if body.state is None or row["state"] == body.state]
            rows.sort(key=lambda row: (row[body.sort] or 0, row["tenant"]))
            if body.order == "desc":
                rows.reverse()
            return {"rows": rows[body.offset : body.offset + body.limit], "total": len(rows)}

        @app.put("/tenants/{tenant}/suspension")
        async def suspend(tenant: str) -> Any:
            noted(f"suspend {tenant}")
            self.of(tenant).suspended = True
            if self.of(tenant).state == "ready":
                await self.stop(tenant)
            return self._instance(tenant)

        @app.delete("/tenants/{tenant}/suspension")
        async def resume(tenant: str) -> Any:
            noted(f"resume {tenant}")
            self.of(tenant).suspended = False
            return self._instance(tenant)

        @app.put("/tenants/{tenant}/plan")
        async def plan(tenant: str, body: spawner_wire.PlanChoice) -> Any:
            noted(f"plan {tenant} {body.plan}")
            self.of(tenant).plan = body.plan
            return self._instance(tenant)

        @app.get("/host")
        async def host() -> Any:
            noted("host")
            probe = {"name": "engine", "ok": False, "detail": "none answers", "remedy": "install"}
            return {"runtime": "process", "wall": False, "probes": [probe], "instances": {}}

        return app
