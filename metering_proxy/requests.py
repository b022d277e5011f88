"""Calls that have ended, newest first, and one call in every detail: its hold, the entries of its attempts and
corrections, the price row behind them."""

import json
from dataclasses import asdict
from typing import Any

from sqlalchemy import RowMapping, and_, or_, select

from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import wire
from metering_proxy.models import FAILED, entry, reservation
from metering_proxy.pricing import Price
from metering_proxy.providers.catalog import Catalog

_SHARED = ("plan", "payer", "wire", "provider", "model", "price_id", "markup_ppm")


class Requests:
    """Looks calls up for the control listener."""

    def __init__(self, db: Database, catalog: Catalog) -> None:
        self._db, self._catalog = db, catalog

    async def listed(
        self,
        account: str | None,
        before: tuple[int, str] | None,
        limit: int,
        *,
        failed: bool = False,
    ) -> wire.RequestRows:
        """Calls of one tenant or of all, newest first, from behind `before` (started, id) on; or only those that
        `failed`."""
        usage = select(entry).where(FAILED if failed else entry.c.kind == "usage")
        if account is not None:
            usage = usage.where(entry.c.account == account)
        if before is not None:
            at, last = before
            older = and_(entry.c.started_at == at, entry.c.request_id < last)
            usage = usage.where(or_(entry.c.started_at < at, older))
        newest = usage.order_by(entry.c.started_at.desc(), entry.c.request_id.desc())
        async with self._db.read() as reading:
            rows = await reading.rows(newest.limit(limit + 1))
        shown = rows[:limit]
        onward = None
        if len(rows) > limit:
            onward = f"{shown[-1]['started_at']}.{shown[-1]['request_id']}"
        return wire.RequestRows(rows=[_row(row) for row in shown], next=onward)

    async def detail(self, request_id: str) -> wire.RequestDetail:
        """Everything about one call. Raises `not_found`."""
        async with self._db.read() as reading:
            hold = await reading.row(
                select(reservation).where(reservation.c.request_id == request_id)
            )
            rows = await reading.rows(
                select(entry)
                .where(entry.c.request_id == request_id)
                .order_by(entry.c.attempt, entry.c.at, entry.c.kind)
            )
        found = hold or next(iter(rows), None)
        if found is None:
            raise AlcoveError("not_found", "there is no such request")
        return wire.RequestDetail(
            id=request_id,
            tenant=found["account"],
            **{name: found[name] for name in _SHARED},
            price=await self._price(found["price_id"]),
            started_at=rows[0]["started_at"] if rows else found["created_at"],
            **_of_the_hold(hold),
            cost_nanos=sum(row["cost_nanos"] for row in rows),
            charge_nanos=sum(row["charge_nanos"] for row in rows),
            entries=[_entry(row) for row in rows],
        )

    async def _price(self, price_id: str) -> dict[str, int] | None:
        for connection in await self._catalog.connections():
            for model in connection.models:
                for price in model.prices:
                    if price.id == price_id:
                        return _rates(price)
        return None


def _row(row: RowMapping) -> wire.RequestRow:
    names = wire.RequestRow.model_fields.keys() - {"id", "tenant", "estimated", "failure"}
    return wire.RequestRow(
        id=row["request_id"],
        tenant=row["account"],
        estimated=bool(row["estimated"]),
        failure=json.loads(row["parts"]).get("failure"),
        **{name: row[name] for name in names},
    )


def _of_the_hold(hold: RowMapping | None) -> dict[str, Any]:
    names = ("state", "dispatched_at", "ended_at", "charge_held_nanos", "output_limit")
    return {name: None if hold is None else hold[name] for name in names}


def _rates(price: Price) -> dict[str, int]:
    rates = {name: rate for name, rate in asdict(price.rates).items() if type(rate) is int}
    return {"from_at": price.from_at, **rates}


def _entry(row: RowMapping) -> wire.RequestEntry:
    values = {name: row[name] for name in wire.RequestEntry.model_fields}
    flags = {name: bool(row[name]) for name in ("estimated", "overrun")}
    parts = json.loads(row["parts"])
    return wire.RequestEntry.model_validate({**values, **flags, "parts": parts})
