"""A meter that keeps its contract in memory, with whatever spend and providers a test gives it."""

import asyncio
from typing import Any
from zoneinfo import available_timezones

from fastapi import FastAPI, Request, Response
from starlette.responses import JSONResponse

from infra.kit.errors import AlcoveError
from metering_proxy import wire as meter_wire
from tests.gateway.fake_meter_books import Books
from tests.gateway.fake_meter_people import People
from tests.gateway.fake_room import room

_GROUPS = ("day", "model", "tenant", "provider", "payer")
_LIMITS = {"free": 1_000_000_000, "plus": 20_000_000_000}


class FakeMeter:
    """Keeps tenants by version, and whatever spend and providers a test gives it."""

    def __init__(self, secret: str) -> None:
        self.tenants: dict[str, meter_wire.Tenant] = {}
        self.usage: list[meter_wire.UsageRow] = []
        self.spent: dict[str, int] = {}
        self.held: dict[str, int] = {}
        self.providers: list[meter_wire.Provider] = []
        self.breakers: list[meter_wire.Breaker] = []
        self.keys: list[str | None] = []
        self.calls: list[str] = []
        self.away = False
        self.hangs = False
        self.probe_fails = False
        self.people = People(lambda tenant: self.tenants[tenant].egress)
        self.books = Books()
        self.app = self._routes(room("meter", secret))

    def spend(
        self, tenant: str, day: str, model: str, cost_nanos: int, payer: str = "operator"
    ) -> None:
        """One request of the tenant. One that the tenant pays for elsewhere is not charged."""
        charge_nanos = cost_nanos if payer == "operator" else 0
        self.spent[tenant] = self.spent.get(tenant, 0) + charge_nanos
        self.usage.append(
            meter_wire.UsageRow(
                tenant=tenant,
                day=day,
                model=model,
                provider=model.partition("/")[0],
                payer=payer,
                requests=1,
                input_tokens=10,
                cache_read_tokens=0,
                cache_write_tokens=0,
                output_tokens=5,
                cost_nanos=cost_nanos,
                charge_nanos=charge_nanos,
                estimated=0,
            )
        )

    def _limit(self, tenant: str) -> int | None:
        row = self.tenants.get(tenant)
        plan = _LIMITS[row.plan if row else "free"]
        if row is None or "charge_month_nanos" not in row.quota.model_fields_set:
            return plan
        return row.quota.charge_month_nanos

    def _routes(self, app: FastAPI) -> FastAPI:
        def noted(what: str) -> None:
            if self.away:
                raise AlcoveError("unavailable", "not now")
            self.calls.append(what)

        self.people.routes(app, noted)
        self.books.routes(app, noted)

        @app.put("/tenants/{tenant}")
        async def put(tenant: str, body: meter_wire.TenantState) -> Any:
            noted(f"tenant {tenant} {body.plan} {body.status} {body.version}")
            if body.plan not in _LIMITS:
                raise AlcoveError("invalid", "there is no such plan")
            known = self.tenants.get(tenant)
            if known is None or body.version > known.version:
                known = meter_wire.Tenant(
                    tenant=tenant, **{name: getattr(body, name) for name in body.model_fields_set}
                )
                self.tenants[tenant] = known
            return JSONResponse(known.model_dump(exclude_unset=True))

        @app.get("/tenants/{tenant}/quota")
        async def quota(tenant: str) -> Any:
            noted(f"quota {tenant}")
            row = self.tenants.get(tenant)
            return meter_wire.Quota(
                plan=row.plan if row else "free",
                status=row.status if row else "active",
                charge_month=meter_wire.MoneyWindow(
                    limit_nanos=self._limit(tenant),
                    spent_nanos=self.spent.get(tenant, 0),
                    held_nanos=self.held.get(tenant, 0),
                    resets_at=1_800_000_000_000,
                ),
                requests_minute=meter_wire.CountWindow(limit=20, used=0),
                concurrent=meter_wire.CountWindow(limit=2, used=0),
                tokens_today=0,
                credit_nanos=self.people.credit(tenant),
                marks=self.people.marks.get(tenant, []),
            )

        @app.get("/usage")
        async def usage(request: Request, tenant: str | None = None, group: str = "") -> Any:
            zone = request.query_params.get("zone", "UTC")
            noted(f"usage {tenant} {zone}")
            if zone not in available_timezones():
                raise AlcoveError("invalid", "there is no such zone", reason="zone")
            rows = [row for row in self.usage if tenant in (None, row.tenant)]
            named = group.split(",") if group else []
            shown = [
                row.model_copy(update={n: None for n in _GROUPS if n not in named}) for row in rows
            ]
            return {
                "zone": zone,
                "rows": [row.model_dump() for row in shown],
                "totals": _sums(rows),
            }

        @app.post("/tenants/query")
        async def query(body: meter_wire.TenantsQuery) -> Any:
            noted("query")
            names = body.ids if body.ids is not None else list(self.tenants)
            rows = [
                meter_wire.TenantSpend(
                    tenant=name,
                    charge_today_nanos=self.spent.get(name, 0),
                    charge_month_nanos=self.spent.get(name, 0),
                    requests_month=0,
                    quota_limit_nanos=self._limit(name),
                )
                for name in names
            ]
            rows.sort(key=lambda row: (row.charge_month_nanos, row.tenant))
            if body.order == "desc":
                rows.reverse()
            total = sum(row.charge_month_nanos for row in rows)
            return {
                "rows": [row.model_dump() for row in rows[body.offset : body.offset + body.limit]],
                "total": len(rows),
                "totals": {
                    "charge_today_nanos": total,
                    "charge_month_nanos": total,
                    "requests_month": 0,
                },
            }

        @app.get("/plans")
        async def plans() -> Any:
            noted("plans")
            while self.hangs:
                await asyncio.sleep(0.01)
            return {"plans": [_plan("free", 1), _plan("plus", 20)]}

        @app.get("/models")
        async def models() -> Any:
            noted("models")
            return {"object": "list", "data": [_model("smollm2", demo=True)]}

        @app.get("/providers")
        async def providers() -> Any:
            noted("providers")
            return {"providers": [each.model_dump() for each in self.providers]}

        @app.get("/breakers")
        async def breakers() -> Any:
            noted("breakers")
            return meter_wire.Breakers(breakers=self.breakers)

        @app.post("/providers")
        async def create(body: meter_wire.NewProvider) -> Any:
            noted("create provider")
            if body.kind in ("openai", "anthropic") and not body.key:
                problem = {"field": "key", "problem": "the provider's key is needed"}
                raise AlcoveError("invalid", problem["problem"], fields=[problem])
            self.keys.append(body.key)
            made = meter_wire.Provider(
                id=f"p{len(self.providers) + 1}",
                name=body.name,
                kind=body.kind,
                base_url=body.base_url or "https://api.example",
                key_hint=(body.key or "")[-4:] or None,
                enabled=body.enabled,
                local=False,
                demo=False,
                default_model=body.default_model,
                is_default=body.make_default,
                models=len(body.models),
                rows=body.models,
                probe=None,
            )
            self.providers.append(made)
            return made.model_dump()

        @app.patch("/providers/{provider}")
        async def change(provider: str, body: meter_wire.ProviderChange) -> Any:
            noted(f"change {provider}")
            if "key" in body.model_fields_set:
                self.keys.append(body.key)
            given = body.model_dump(
                exclude_unset=True, include={"name", "default_model", "enabled"}
            )
            found = self._find(provider).model_copy(update=given)
            if body.make_default:
                found = found.model_copy(update={"is_default": True})
            self.providers = [found if p.id == provider else p for p in self.providers]
            return found.model_dump()

        @app.delete("/providers/{provider}")
        async def delete(provider: str) -> Response:
            noted(f"delete {provider}")
            self.providers.remove(self._find(provider))
            return Response(status_code=204)

        @app.post("/providers/{provider}/probes")
        async def probe(provider: str) -> Any:
            noted(f"probe {provider}")
            if self.probe_fails:
                found = meter_wire.Probe(ok=False, at=1, detail="the provider refuses the key")
            else:
                found = meter_wire.Probe(
                    ok=True, at=1, detail="It answered.", latency_ms=12, models=3
                )
            tested = self._find(provider).model_copy(update={"probe": found})
            self.providers = [tested if p.id == provider else p for p in self.providers]
            return found

        return app

    def _find(self, provider: str) -> meter_wire.Provider:
        for each in self.providers:
            if each.id == provider:
                return each
        raise AlcoveError("not_found", "no such provider")


def _sums(rows: list[meter_wire.UsageRow]) -> dict[str, int]:
    names = list(meter_wire.Sums.model_fields)
    return {name: sum(getattr(row, name) for row in rows) for name in names}


def _plan(name: str, dollars: int) -> dict[str, Any]:
    return meter_wire.Plan(
        name=name,
        title=name.capitalize(),
        charge_month_nanos=dollars * 1_000_000_000,
        requests_minute=20,
        concurrent=2,
        markup_ppm=0,
    ).model_dump()


def _model(name: str, *, demo: bool) -> dict[str, Any]:
    facts = meter_wire.ModelFacts(
        default=True,
        kind="chat",
        wire="openai",
        tools=False,
        context_tokens=2048,
        max_output_tokens=300,
        demo=demo,
        profile=None,
    )
    return meter_wire.Model(id=name, owned_by="local", alcove=facts).model_dump()
