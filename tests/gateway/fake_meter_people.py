"""The fake meter's part about people: their keys, their credit, their marks and their ways out."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Response

from infra.kit import ids
from infra.kit.clock import SystemClock
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.wire import ApiKey, Grant

DAY_MS = 86_400_000
_NOTHING_WENT_OUT = wire.EgressRecord(
    days=[],
    refusals=wire.EgressRefusals(since_at=None, total=0, reasons=[], targets=[], others=0, last=[]),
)


class People:
    """What the meter keeps of each tenant besides money that was spent."""

    def __init__(self, allowed: Callable[[str], bool]) -> None:
        self.allowed = allowed
        self.api_keys: dict[str, list[ApiKey]] = {}
        self.own_keys: dict[tuple[str, str], str] = {}
        self.grants: dict[str, Grant] = {}
        self.marks: dict[str, list[wire.Mark]] = {}
        self.refused_keys: set[str] = set()
        self.audit: list[wire.AuditRow] = []
        self.egress_records: dict[str, wire.EgressRecord] = {}
        self.tried: list[str] = []

    def credit(self, tenant: str) -> int:
        """What live grants have left."""
        return sum(
            grant.amount_nanos - grant.spent_nanos
            for grant in self.grants.values()
            if grant.tenant == tenant and grant.revoked_at is None
        )

    def routes(self, app: FastAPI, noted: Callable[[str], None]) -> None:
        """Adds the routes."""
        self._keys(app, noted)
        self._own(app, noted)
        self._credit(app, noted)

        @app.get("/marks")
        async def all_marks(percent: int = 50) -> Any:
            noted("marks")
            found = [
                wire.TenantMark(tenant=tenant, **max(marks, key=lambda m: m.percent).model_dump())
                for tenant, marks in self.marks.items()
            ]
            return wire.TenantMarks(marks=[m for m in found if m.percent >= percent])

        @app.get("/audit")
        async def audit(tenant: str | None = None, before: str | None = None) -> Any:
            noted(f"audit {tenant}")
            rows = [n for n in self.audit if tenant in (None, n.tenant)]
            rows = [n for n in rows if before is None or n.id < before]
            more = len(rows) > 50
            return wire.AuditPage(rows=rows[:50], next=rows[49].id if more else None)

        @app.get("/tenants/{tenant}/egress/record")
        async def record(tenant: str) -> Any:
            noted(f"egress record {tenant}")
            return self.egress_records.get(tenant, _NOTHING_WENT_OUT)

        @app.get("/tenants/{tenant}/egress")
        async def egress(tenant: str) -> Any:
            noted(f"egress {tenant}")
            return wire.EgressDay(
                allowed=self.allowed(tenant),
                bytes=2_500_000,
                bytes_limit=10_000_000,
                tunnels=3,
                calls=0,
                resets_at=SystemClock().now_at() + DAY_MS,
            )

    def _keys(self, app: FastAPI, noted: Callable[[str], None]) -> None:
        def make(tenant: str, asked: wire.ApiKeyRequest, replaces: str | None) -> wire.NewApiKey:
            secret = ids.secret("alcove-key-")
            made = ApiKey(
                id=ids.ulid(),
                name=asked.name,
                hint=secret[-4:],
                created_at=SystemClock().now_at(),
                expires_at=asked.expires_at,
                revoked_at=None,
                replaces=replaces,
                models=asked.models,
            )
            self.api_keys.setdefault(tenant, []).insert(0, made)
            return wire.NewApiKey(key=secret, **made.model_dump())

        @app.get("/tenants/{tenant}/api-keys")
        async def listed(tenant: str) -> Any:
            noted(f"api keys {tenant}")
            return wire.ApiKeys(keys=self.api_keys.get(tenant, []))

        @app.post("/tenants/{tenant}/api-keys", status_code=201)
        async def create(tenant: str, asked: wire.ApiKeyRequest) -> Any:
            noted(f"new api key {tenant}")
            return make(tenant, asked, None)

        @app.post("/tenants/{tenant}/api-keys/{key}/rotations", status_code=201)
        async def rotate(tenant: str, key: str) -> Any:
            noted(f"rotate {key}")
            old = self._find(tenant, key)
            if old.revoked_at is not None:
                raise AlcoveError("conflict", "this key has ended", reason="ended")
            if any(key == other.replaces for other in self.api_keys[tenant]):
                raise AlcoveError("conflict", "this key has a successor already", reason="rotated")
            asked = wire.ApiKeyRequest(name=old.name, expires_at=old.expires_at, models=old.models)
            made = make(tenant, asked, key)
            self._put(tenant, old.model_copy(update={"expires_at": made.created_at + DAY_MS}))
            return made

        @app.delete("/tenants/{tenant}/api-keys/{key}")
        async def revoke(tenant: str, key: str) -> Any:
            noted(f"revoke {key}")
            now_at = SystemClock().now_at()
            ended = self._find(tenant, key).model_copy(update={"revoked_at": now_at})
            self._put(tenant, ended)
            return ended

    def _own(self, app: FastAPI, noted: Callable[[str], None]) -> None:
        @app.get("/tenants/{tenant}/provider-keys")
        async def listed(tenant: str) -> Any:
            noted(f"own keys {tenant}")
            return wire.OwnKeys(
                keys=[
                    wire.OwnKey(provider=provider, hint=key[-4:], set_at=SystemClock().now_at())
                    for (owner, provider), key in self.own_keys.items()
                    if owner == tenant
                ]
            )

        @app.post("/tenants/{tenant}/provider-keys/{provider}/probes")
        async def tried(tenant: str, provider: str, asked: wire.OwnKeyRequest) -> Any:
            noted(f"try own key {provider}")
            self.tried.append(asked.key)
            ok = asked.key not in self.refused_keys
            detail = "it answers" if ok else "the provider refuses the key (HTTP 401)"
            return wire.Probe(ok=ok, at=1, detail=detail)

        @app.put("/tenants/{tenant}/provider-keys/{provider}")
        async def put(tenant: str, provider: str, asked: wire.OwnKeyRequest) -> Any:
            noted(f"put own key {provider}")
            self.own_keys[(tenant, provider)] = asked.key
            return wire.OwnKey(
                provider=provider, hint=asked.key[-4:], set_at=SystemClock().now_at()
            )

        @app.delete("/tenants/{tenant}/provider-keys/{provider}", status_code=204)
        async def forget(tenant: str, provider: str) -> Response:
            noted(f"forget own key {provider}")
            self.own_keys.pop((tenant, provider), None)
            return Response(status_code=204)

    def _credit(self, app: FastAPI, noted: Callable[[str], None]) -> None:
        @app.get("/tenants/{tenant}/grants")
        async def listed(tenant: str) -> Any:
            noted(f"grants {tenant}")
            return wire.Grants(grants=[g for g in self.grants.values() if g.tenant == tenant])

        @app.put("/tenants/{tenant}/grants/{grant}")
        async def put(tenant: str, grant: str, asked: wire.GrantRequest) -> Any:
            noted(f"grant {grant}")
            known = self.grants.get(grant)
            if known is None:
                known = Grant(
                    id=grant,
                    tenant=tenant,
                    spent_nanos=0,
                    held_nanos=0,
                    created_at=SystemClock().now_at(),
                    revoked_at=None,
                    **asked.model_dump(),
                )
                self.grants[grant] = known
            same = {name: getattr(known, name) for name in wire.GrantRequest.model_fields}
            if known.tenant != tenant or same != asked.model_dump():
                raise AlcoveError("conflict", "another grant has this id", reason="grant")
            return known

        @app.delete("/tenants/{tenant}/grants/{grant}")
        async def revoke(tenant: str, grant: str) -> Any:
            noted(f"revoke grant {grant}")
            known = self.grants.get(grant)
            if known is None or known.tenant != tenant:
                raise AlcoveError("not_found", "there is no such grant")
            ended = known.model_copy(update={"revoked_at": SystemClock().now_at()})
            self.grants[grant] = ended
            return ended

    def _find(self, tenant: str, key: str) -> ApiKey:
        for each in self.api_keys.get(tenant, []):
            if each.id == key:
                return each
        raise AlcoveError("not_found", "there is no such key")

    def _put(self, tenant: str, changed: ApiKey) -> None:
        keys = self.api_keys[tenant]
        self.api_keys[tenant] = [changed if each.id == changed.id else each for each in keys]
