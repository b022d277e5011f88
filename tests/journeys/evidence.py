"""What the databases hold, read from outside: the other half of every story."""

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import text
from sqlalchemy.engine import RowMapping

from infra.kit.db import Database
from tests.waiting import until


class Holding(Protocol):
    """What can be asked for its databases: a house, or an installation under Compose."""

    databases: dict[str, str]

    def agent_database(self, tenant: str) -> Path:
        """The file of a tenant's agent."""


async def rows(house: Holding, service: str, query: str, **values: Any) -> Sequence[RowMapping]:
    """Rows of a service's database."""
    db = Database(house.databases[service])
    try:
        async with db.read() as reading:
            return await reading.rows(text(query), values)
    finally:
        await db.close()


async def tenant_of(house: Holding, email: str) -> str:
    """The tenant of the account with this address."""
    found = await rows(
        house,
        "gateway",
        "SELECT tenant.id AS id FROM tenant JOIN account ON account.id = account_id WHERE email = :e",
        e=email,
    )
    return str(found[0]["id"])


def agent_rows(house: Holding, tenant: str, query: str, *values: object) -> list[dict[str, Any]]:
    """Rows of an agent's database."""
    path = house.agent_database(tenant)
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        connection.row_factory = sqlite3.Row
        return [dict(row) for row in connection.execute(query, values)]


def log_of(house: Holding, tenant: str) -> list[dict[str, Any]]:
    """The agent's log: every event with its number."""
    found = agent_rows(house, tenant, "SELECT seq, body FROM event ORDER BY seq")
    return [{"seq": row["seq"], **json.loads(row["body"])} for row in found]


def text_in_log(house: Holding, tenant: str, turn_id: str) -> str:
    """The words of a turn's answer, as the log has them."""
    return "".join(
        event["delta"]
        for event in log_of(house, tenant)
        if event["type"] == "TEXT_MESSAGE_CONTENT" and event["turn_id"] == turn_id
    )


async def entries(house: Holding, tenant: str) -> Sequence[RowMapping]:
    """The ledger's entries of a tenant, oldest first."""
    query = "SELECT * FROM entry WHERE account = :t ORDER BY started_at, request_id"
    return await rows(house, "metering_proxy", query, t=tenant)


async def held_nanos(house: Holding) -> int:
    """What is held in any window of charge, of anybody."""
    query = "SELECT coalesce(sum(held), 0) AS held FROM account_window WHERE kind LIKE 'charge%'"
    return int((await rows(house, "metering_proxy", query))[0]["held"])


async def open_reservations(house: Holding) -> int:
    """Reservations that have not ended."""
    query = "SELECT count(*) AS n FROM reservation WHERE ended_at IS NULL"
    return int((await rows(house, "metering_proxy", query))[0]["n"])


async def all_settled(house: Holding, timeout_s: float = 15.0) -> None:
    """Returns when no reservation is open and nothing is held."""

    async def settled() -> bool:
        return await open_reservations(house) == 0 and await held_nanos(house) == 0

    await until(settled, timeout_s=timeout_s, what="the settlement of every reservation")
    assert await _totals_are_the_ledgers(house)


async def _totals_are_the_ledgers(house: Holding) -> bool:
    """Whether what each window of charge says was spent is what its ledger entries sum up to."""
    windows = await rows(
        house,
        "metering_proxy",
        "SELECT account, start_at, spent FROM account_window WHERE kind = 'charge_month'",
    )
    for window in windows:
        found = await rows(
            house,
            "metering_proxy",
            "SELECT coalesce(sum(charge_nanos), 0) AS total FROM entry"
            " WHERE account = :a AND month_start_at = :s",
            a=window["account"],
            s=window["start_at"],
        )
        assert int(found[0]["total"]) == window["spent"], f"{window} but the ledger says {found}"
    return True
