"""The fake meter's part about its books: calls, prices, chains of models, corrections, the ledger as a file."""

from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from starlette.responses import Response

from infra.kit import ids
from infra.kit.errors import AlcoveError
from metering_proxy import wire

_LAST_PAGE = 50


class Books:
    """What a test puts into them, and what it was asked to correct."""

    def __init__(self) -> None:
        self.calls: list[wire.RequestRow] = []
        self.chains: dict[str, list[str]] = {}
        self.corrections: list[wire.RepriceRequest] = []
        self.exported: list[dict[str, str]] = []

    def called(self, tenant: str, **changes: Any) -> wire.RequestRow:
        """One more call, newer than those before."""
        row = wire.RequestRow.model_validate(
            {
                "id": ids.ulid(),
                "tenant": tenant,
                "started_at": 1_700_000_000_000 + len(self.calls),
                "at": 1_700_000_002_500 + len(self.calls),
                "wire": "openai_chat",
                "provider": "openai",
                "model": "openai/gpt-5",
                "payer": "operator",
                "outcome": "complete",
                "estimated": False,
                "input_tokens": 100,
                "cache_read_tokens": 0,
                "cache_write_tokens": 0,
                "output_tokens": 50,
                "cost_nanos": 200_000,
                "charge_nanos": 240_000,
                **changes,
            }
        )
        self.calls.insert(0, row)
        return row

    def routes(self, app: FastAPI, noted: Callable[[str], None]) -> None:
        """Adds the routes."""

        @app.get("/requests")
        async def listed(
            tenant: str | None = None, before: str | None = None, failed: bool = False
        ) -> Any:
            noted(f"requests {tenant}")
            rows = [row for row in self.calls if tenant in (None, row.tenant)]
            rows = [row for row in rows if not failed or row.outcome not in ("complete", "left")]
            if before:
                ids_of = [f"{row.started_at}.{row.id}" for row in rows]
                if before not in ids_of:
                    raise AlcoveError("invalid", "no such place")
                rows = rows[ids_of.index(before) + 1 :]
            shown = rows[:_LAST_PAGE]
            more = len(rows) > len(shown)
            onward = f"{shown[-1].started_at}.{shown[-1].id}" if more else None
            return wire.RequestRows(rows=shown, next=onward)

        @app.get("/requests/{call}")
        async def detail(call: str) -> Any:
            noted(f"request {call}")
            for row in self.calls:
                if row.id == call:
                    return _detail(row)
            raise AlcoveError("not_found", "there is no such request")

        @app.get("/prices")
        async def prices() -> Any:
            noted("prices")
            rates = dict.fromkeys(
                ("cache_read_nanos", "cache_write_5m_nanos", "cache_write_1h_nanos"), 0
            )
            price = wire.Price(
                id="openai/gpt-5@2026-01-01",
                model="openai/gpt-5",
                from_at=0,
                input_nanos=1_250_000_000,
                output_nanos=10_000_000_000,
                demo=False,
                **rates,
            )
            return wire.Prices(prices=[price])

        @app.get("/fallbacks")
        async def chains() -> Any:
            noted("fallbacks")
            found = [wire.Fallback(name=name, targets=t) for name, t in self.chains.items()]
            return wire.Fallbacks(fallbacks=found)

        @app.put("/fallbacks/{name:path}")
        async def put(name: str, asked: wire.FallbackTargets) -> Any:
            noted(f"fallback {name}")
            if "no/such" in asked.targets:
                problem = {"field": "targets", "problem": "there is no model no/such"}
                raise AlcoveError("invalid", problem["problem"], fields=[problem])
            if asked.targets:
                self.chains[name] = asked.targets
            else:
                self.chains.pop(name, None)
            return wire.Fallback(name=name, targets=asked.targets)

        @app.post("/repricings")
        async def reprice(asked: wire.RepriceRequest) -> Any:
            noted("reprice")
            self.corrections.append(asked)
            return wire.Reprice(
                requests=7,
                changed=3,
                unpriced=0,
                stated=0,
                cost_nanos=-1_000_000_000,
                charge_nanos=-1_200_000_000,
                dry_run=asked.dry_run,
            )

        @app.get("/usage/export")
        async def export(request: Request) -> Response:
            noted("export")
            self.exported.append(dict(request.query_params))
            return Response("request_id,charge_nanos\r\nabc,240000\r\n", media_type="text/csv")


def _detail(row: wire.RequestRow) -> wire.RequestDetail:
    same = {name: getattr(row, name) for name in wire.RequestRow.model_fields}
    of_the_entry = {k: v for k, v in same.items() if k in wire.RequestEntry.model_fields}
    used = wire.RequestEntry(
        **of_the_entry,
        attempt=0,
        kind="usage",
        response_model=None,
        price_id="openai/gpt-5@2026-01-01",
        overrun=False,
        grant_nanos=40_000,
        parts={"input": 100, "output": 50} | ({"failure": row.failure} if row.failure else {}),
    )
    return wire.RequestDetail(
        id=row.id,
        tenant=row.tenant,
        plan="free@1",
        payer=row.payer,
        wire=row.wire,
        provider=row.provider,
        model=row.model,
        price_id="openai/gpt-5@2026-01-01",
        price={"from_at": 0, "input": 1_250_000_000, "output": 10_000_000_000},
        state="settled",
        started_at=row.started_at,
        dispatched_at=row.started_at + 100,
        ended_at=row.at,
        charge_held_nanos=900_000,
        output_limit=300,
        markup_ppm=200_000,
        cost_nanos=row.cost_nanos,
        charge_nanos=row.charge_nanos,
        entries=[used],
    )
