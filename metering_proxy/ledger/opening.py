"""Which store a database has. The driver of the other one is not even imported."""

from sqlalchemy import make_url

from infra.kit.clock import Clock, SystemClock
from infra.kit.db import Database
from metering_proxy.ledger.stores import Store


def store(db: Database, *, worker: str, lease_s: float, clock: Clock | None) -> Store:
    """The store for this database. `clock`: instead of the database's own."""
    lease_ms = round(lease_s * 1000)
    if db.is_sqlite:
        from metering_proxy.ledger.on_sqlite import SqliteStore

        path = make_url(db.url).database
        assert path is not None, "the ledger needs a file"
        return SqliteStore(path, worker, lease_ms, clock or SystemClock())
    from metering_proxy.ledger.on_postgres import PostgresStore

    return PostgresStore(db, worker, lease_ms, clock)
