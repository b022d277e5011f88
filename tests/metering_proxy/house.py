"""A real meter between a caller on a unix socket and a scripted provider on loopback."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from infra.kit import client as kit_client
from infra.kit import httpd, ids
from infra.kit.clock import Clock
from infra.kit.db import Database, sql
from infra.kit.relay import Timeouts
from metering_proxy import wire
from metering_proxy.app import Meter, create_app
from metering_proxy.client import MeterClient
from metering_proxy.egress.outside import Outside
from metering_proxy.ledger.verify import Verdict, verify
from metering_proxy.providers.dialling import Dialling
from metering_proxy.settings import MeterSettings
from tests.databases import to_head
from tests.quickly import serving
from tests.scripted import ScriptedProvider
from tests.waiting import until

SECRET = "a service secret of thirty-two characters"
MODEL = "scripted-model"
# $1 and $2 a million tokens: an input token costs 1,000 nano-USD, an output token 2,000.
ROW = wire.ModelRow(
    id=MODEL, input_nanos=1_000_000_000, output_nanos=2_000_000_000, max_output_tokens=1_000
)


def settings(root: Path, database_url: str, **more: Any) -> MeterSettings:
    """Settings of a meter whose sockets and database lie under `root`."""
    values: dict[str, Any] = {
        "deployment": "test",
        "service_secret": SECRET,
        "sealing_key": "5a" * 32,
        "database_url": database_url,
        "listen": f"unix://{root}/control.sock",
        "sockets_dir": root / "s",
        "loopback_providers": (),
        "stream_grace_s": 2,
    }
    return MeterSettings(**{**values, **more})


@dataclass
class Answer:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    chunks: list[bytes] = field(default_factory=list)
    cut: bool = False


@dataclass
class Tenant:
    """A tenant with a live key and a session to its own socket."""

    id: str
    generation: int
    key: str
    socket: Path
    session: aiohttp.ClientSession

    async def post(self, path: str, body: Any, *, key: str | None = None, **headers: str) -> Answer:
        """Sends JSON (or bytes as they are) and reads the whole answer; a cut is noted, not raised."""
        sent = {"authorization": f"Bearer {key or self.key}", "content-type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        how: dict[str, Any] = {"data": body} if isinstance(body, bytes) else {"json": body}
        async with self.session.post(f"http://localhost{path}", headers=sent, **how) as response:
            answer = Answer(response.status, response.headers, b"")
            try:
                async for chunk in response.content.iter_any():
                    answer.chunks.append(chunk)
            except aiohttp.ClientError:
                answer.cut = True
            answer.body = b"".join(answer.chunks)
            return answer

    async def chat(self, text: str = "hello", **more: Any) -> Answer:
        """One OpenAI chat completion."""
        body = {"model": MODEL, "messages": [{"role": "user", "content": text}], **more}
        return await self.post("/v1/chat/completions", body)

    async def message(self, text: str = "hello", **more: Any) -> Answer:
        """One Anthropic message."""
        asked = {"model": MODEL, "max_tokens": 100, "messages": [{"role": "user", "content": text}]}
        return await self.post("/v1/messages", {**asked, **more})


@dataclass
class House:
    """A running meter, its control client, and what its database holds."""

    meter: Meter
    client: MeterClient
    root: Path
    _sessions: list[aiohttp.ClientSession] = field(default_factory=list)

    @property
    def db(self) -> Database:
        """The meter's database."""
        return self.meter.db

    async def tenant(self, plan: str | None = None, **quota: Any) -> Tenant:
        """A new tenant with generation 1 and a key; on `plan`, or unheard of."""
        tenant = ids.tenant_id()
        if plan is not None or quota:
            override = wire.QuotaOverride(**quota)
            state = wire.TenantState(
                plan=plan or "free", status="active", version=1, quota=override
            )
            await self.client.put_tenant(tenant, state)
        return await self.generation(tenant, 1)

    async def generation(self, tenant: str, generation: int) -> Tenant:
        """A generation of a tenant, with its own socket and key."""
        directory = self.root / "s" / "t" / tenant / str(generation) / "meter"
        directory.mkdir(parents=True, exist_ok=True)
        minted = await self.client.mint_key(tenant, generation, str(directory))
        session, _ = kit_client.session(f"unix://{directory}/meter.sock")
        self._sessions.append(session)
        return Tenant(tenant, generation, minted.key, directory / "meter.sock", session)

    async def connect(
        self,
        provider: ScriptedProvider,
        kind: str = "openai_compatible",
        more: Sequence[wire.ModelRow] = (),
    ) -> str:
        """A connection to the scripted provider with the test's model and price, and `more`; its id."""
        made = await self.client.create_provider(
            wire.NewProvider(
                kind=kind,  # type: ignore[arg-type]
                name="Scripted",
                base_url=provider.url,
                key="sk-provider-key-1234",
                models=[ROW, *more],
            )
        )
        return made.id

    async def rows(self, statement: str, **values: Any) -> list[dict[str, Any]]:
        """What a query finds."""
        async with self.db.read() as reading:
            return [dict(row) for row in await reading.rows(sql(statement), values)]

    async def entries(self, tenant: Tenant, count: int = 1) -> list[dict[str, Any]]:
        """The tenant's ledger entries, once there are so many and nothing is held."""

        async def found() -> list[dict[str, Any]]:
            rows = await self.rows(
                "SELECT * FROM entry WHERE account = :account ORDER BY started_at, kind",
                account=tenant.id,
            )
            held = await self.held(tenant)
            return rows if len(rows) >= count and held == 0 else []

        rows = await until(found, what=f"{count} settled entries")
        assert len(rows) == count
        return rows

    async def held(self, tenant: Tenant) -> int:
        """Everything that the tenant's windows hold, and its running calls."""
        windows = await self.rows(
            "SELECT held FROM account_window WHERE account = :account", account=tenant.id
        )
        running = await self.rows(
            "SELECT request_id FROM reservation WHERE account = :account AND state = 'dispatched'",
            account=tenant.id,
        )
        return sum(row["held"] for row in windows) + len(running)

    async def held_at_first(self) -> int:
        """What the only call that there was held of its charge before it was sent, in nanos."""
        [row] = await self.rows("SELECT charge_held_nanos FROM reservation")
        return int(row["charge_held_nanos"])

    async def verdict(self) -> Verdict:
        """What the proof of the ledger says."""
        return await verify(self.db)

    async def close(self) -> None:
        """Ends the sessions."""
        for session in self._sessions:
            await session.close()
        await self.client.close()


@asynccontextmanager
async def a_house(
    root: Path,
    database_url: str,
    *,
    clock: Clock | None = None,
    limits: httpd.Limits | None = None,
    capacity: httpd.Capacity | None = None,
    timeouts: Timeouts | None = None,
    outside: Outside | None = None,
    dialling: Dialling | None = None,
    **more: Any,
) -> AsyncIterator[House]:
    """A migrated, running meter with its control listener, while the block runs."""
    chosen = settings(root, database_url, **more)
    meter = create_app(
        chosen,
        clock=clock,
        limits=limits,
        capacity=capacity,
        timeouts=timeouts,
        outside=outside,
        dialling=dialling,
    )
    await to_head(meter.db, "metering_proxy")
    async with meter.running(), serving(meter.app, chosen.listen):
        house = House(meter, MeterClient(chosen.listen, SECRET), root)
        try:
            yield house
        finally:
            await house.close()
