"""Migrations and tables tell the same story, on both databases."""

from alembic import command
from sqlalchemy import Connection

from infra.kit import migrate, schema
from infra.kit.clock import FakeClock
from infra.kit.db import Database, sql
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.ops import Refused
from metering_proxy.ledger.verify import verify
from metering_proxy.models import metadata
from tests.metering_proxy.books import ask


async def test_migrated_database_is_what_the_code_declares(db: Database) -> None:
    assert not await schema.at_head(db, "metering_proxy")
    await migrate.upgrade(db, "metering_proxy")
    await migrate.upgrade(db, "metering_proxy")
    assert await schema.at_head(db, "metering_proxy")
    assert await migrate.drift(db, metadata) == []


async def test_what_a_former_release_held_is_held_and_counted_after_the_upgrade(
    db: Database, clock: FakeClock
) -> None:
    async with db.engine.begin() as connection:
        await connection.run_sync(_upgrade_to, "0009")
    async with db.transaction() as tx:
        await tx.execute(
            sql(
                "INSERT INTO account_window (account, kind, start_at, spent, held)"
                " VALUES ('a', 'charge_month', 0, 7, 5), ('a', 'requests_minute', 0, 1, 1)"
            )
        )
        await tx.execute(_FORMER, {"until_at": clock.now_at() + 60_000})
    await migrate.upgrade(db, "metering_proxy")
    async with db.read() as reading:
        rows = await reading.rows(sql("SELECT kind, spent, held FROM account_window ORDER BY kind"))
        assert [tuple(row.values()) for row in rows] == [
            ("charge_month", 7, 5),
            ("requests_minute", 1, 1),
        ]
    assert (await verify(db)).held_nanos == 0
    ledger = Ledger(db, clock=clock)
    ledger.start()
    assert isinstance(await ledger.reserve(ask("a", concurrent=1)), Refused)
    clock.advance(61)
    assert (await ledger.sweep()).charged == 1
    await ledger.close()
    assert (await verify(db)).held_nanos == 0


def _upgrade_to(connection: Connection, revision: str) -> None:
    settings = migrate.config("metering_proxy")
    settings.attributes["connection"] = connection
    command.upgrade(settings, revision)


_FORMER = sql(
    "INSERT INTO reservation (request_id, account, state, worker, wire, provider, model, price_id, payer,"
    " windows, month_start_at, created_at, lease_until_at, markup_ppm, charge_held_nanos, input_tokens,"
    " input_cost_nanos, output_rate_nanos, output_limit, output_seen)"
    " VALUES ('r', 'a', 'dispatched', 'w', 'openai_chat', 'p', 'p/m', 'p/m@1', 'operator',"
    """ '[["charge_month","charge",0,5,100],["requests_minute","requests",0,1,100]]',"""
    " 0, 0, :until_at, 0, 5, 1, 1, 1, 1, 0)"
)
