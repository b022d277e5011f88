"""Entries of ended calls: what of a reservation they are made of, and the row itself. Rows are only ever added."""

from collections.abc import Mapping
from typing import Any

import orjson

from metering_proxy.ledger.ops import Settle
from metering_proxy.ledger.unit_of_work import UnitOfWork


def enter(
    work: UnitOfWork, ended: Mapping[str, Any], op: Settle, *, kind: str = "usage", paid: int = 0
) -> None:
    """Adds the entry of an ended call. `paid`: what grants have paid of its charge."""
    usage = op.usage
    work.enter(
        {
            "request_id": op.request_id,
            "attempt": ended["attempt"],
            "kind": kind,
            "account": ended["account"],
            "at": work.tx.now_at,
            "started_at": ended["created_at"],
            "month_start_at": ended["month_start_at"],
            "wire": ended["wire"],
            "provider": ended["provider"],
            "model": ended["model"],
            "response_model": op.response_model,
            "price_id": ended["price_id"],
            "payer": ended["payer"],
            "outcome": op.outcome,
            "estimated": int(op.estimated),
            "overrun": int(op.charge_nanos > ended["charge_held_nanos"]),
            "input_tokens": usage.input + usage.audio_input + usage.image_input,
            "cache_read_tokens": usage.cached,
            "cache_write_tokens": usage.cache_write_5m + usage.cache_write_1h,
            "output_tokens": usage.total - usage.total_input,
            "parts": orjson.dumps(op.parts).decode(),
            "markup_ppm": ended["markup_ppm"],
            "cost_nanos": op.cost_nanos,
            "charge_nanos": op.charge_nanos,
            "plan": ended["plan"],
            "grant_nanos": paid,
        },
    )
