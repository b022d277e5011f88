"""Prices that were wrong, made good: calls are priced anew by the prices known now, and differences are entered.

Nothing that was entered is changed, and to do it twice does nothing the second time. What a provider itself said
that a call costs is no matter of our prices, and stays.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from sqlalchemy import ColumnElement, RowMapping, Select, and_, func, select

from infra.kit import money
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import pricing, wire
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.ops import Correct
from metering_proxy.models import entry
from metering_proxy.pricing import Usage
from metering_proxy.providers.catalog import Catalog
from metering_proxy.providers.connections import Connection, folded
from metering_proxy.tenant_side.settling import price_of
from metering_proxy.tenant_side.terms import OPERATOR

_PAGE = 500
_BUCKETS = frozenset(field.name for field in fields(Usage))


@dataclass(slots=True)
class _Sums:
    requests: int = 0
    changed: int = 0
    unpriced: int = 0
    stated: int = 0
    cost_nanos: int = 0
    charge_nanos: int = 0


class Repricing:
    """Prices ended calls anew."""

    def __init__(self, db: Database, catalog: Catalog, ledger: Ledger) -> None:
        self._db, self._catalog, self._ledger = db, catalog, ledger

    async def reprice(self, asked: wire.RepriceRequest) -> wire.Reprice:
        """See the module. Raises `invalid` (period), `unavailable` (ledger): what is entered by then stays."""
        if asked.from_at >= asked.to_at:
            raise AlcoveError("invalid", "a period has a beginning and an end", reason="period")
        connections = {found.id: found for found in await self._catalog.connections()}
        sums, after = _Sums(), ""
        while page := await self._page(asked, after):
            for row in page:
                await self._look(row, connections, sums, asked.dry_run)
            after = page[-1]["request_id"]
        return wire.Reprice(
            requests=sums.requests,
            changed=sums.changed,
            unpriced=sums.unpriced,
            stated=sums.stated,
            cost_nanos=sums.cost_nanos,
            charge_nanos=sums.charge_nanos,
            dry_run=asked.dry_run,
        )

    async def _page(self, asked: wire.RepriceRequest, after: str) -> Sequence[RowMapping]:
        filters = [
            entry.c.started_at >= asked.from_at,
            entry.c.started_at < asked.to_at,
            entry.c.request_id > after,
        ]
        if asked.model is not None:
            filters.append(entry.c.model == asked.model)
        if asked.tenant is not None:
            filters.append(entry.c.account == asked.tenant)
        async with self._db.read() as reading:
            return await reading.rows(_with_sums(filters))

    async def _look(
        self,
        row: RowMapping,
        connections: Mapping[str, Connection],
        sums: _Sums,
        dry_run: bool,
    ) -> None:
        sums.requests += 1
        parts = json.loads(row["parts"])
        if parts.get("stated"):
            sums.stated += 1
            return
        op = _correction(row, parts, connections)
        if op is None:
            sums.unpriced += 1
            return
        cost = op.cost_nanos - op.was_cost_nanos
        charge = op.charge_nanos - op.was_charge_nanos
        if not cost and not charge:
            return
        if dry_run or await self._ledger.correct(op):
            sums.changed += 1
            sums.cost_nanos += cost
            sums.charge_nanos += charge


def _with_sums(filters: list[ColumnElement[bool]]) -> Select[Any]:
    """Usage entries in the order of their ids, beside what all entries of the attempt add up to."""
    every = entry.alias("every")
    chosen = (
        select(entry)
        .where(entry.c.kind == "usage", *filters)
        .order_by(entry.c.request_id)
        .limit(_PAGE)
        .subquery()
    )
    same = and_(every.c.request_id == chosen.c.request_id, every.c.attempt == chosen.c.attempt)
    sums = [func.sum(every.c[name]).label(f"was_{name}") for name in ("cost_nanos", "charge_nanos")]
    return (
        select(chosen, *sums)
        .select_from(chosen.join(every, same))
        .group_by(*chosen.c)
        .order_by(chosen.c.request_id)
    )


def _correction(
    row: RowMapping, parts: Mapping[str, Any], connections: Mapping[str, Connection]
) -> Correct | None:
    """What the call costs by the prices known now; None where its model has none."""
    connection = connections.get(row["provider"])
    name = folded(row["model"].partition("/")[2])
    model = None if connection is None else connection.by_name.get(name)
    if connection is None or model is None:
        return None
    usage = Usage(**{bucket: parts[bucket] for bucket in parts.keys() & _BUCKETS})
    price = price_of(connection, model, row["response_model"], usage, row["started_at"])
    if price is None:
        return None
    cost = pricing.cost_nanos(usage, price)
    free = row["payer"] != OPERATOR or parts.get("absorbed")
    return Correct(
        request_id=row["request_id"],
        attempt=row["attempt"],
        price_id=price.id,
        was_cost_nanos=int(row["was_cost_nanos"]),
        was_charge_nanos=int(row["was_charge_nanos"]),
        cost_nanos=cost,
        charge_nanos=0 if free else money.with_markup(cost, row["markup_ppm"]),
    )
