"""Running calls are counted where they are held, and PostgreSQL takes a batch of the ledger as one statement."""

from pathlib import Path

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_RUNNING = sa.text("state = 'dispatched'")


def upgrade() -> None:
    op.drop_table("slot")
    # An index of what runs only is small, and an ended call leaves it: it stays in one page.
    op.drop_index("ix_reservation_lease", "reservation")
    op.create_index(
        "ix_reservation_running",
        "reservation",
        ["account"],
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    )
    if op.get_bind().dialect.name == "sqlite":
        _without_rowid("account_window")
    else:
        op.execute(Path(__file__).with_name("0010_ledger_post.sql").read_text())


def _without_rowid(table: str) -> None:
    """Makes a row one in one tree, in the order of its key: an account's windows lie together."""
    found = sa.text("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = :table")
    made = op.get_bind().execute(found, {"table": table}).scalar_one()
    op.execute(f"ALTER TABLE {table} RENAME TO {table}_before")
    op.execute(f"{made} WITHOUT ROWID")
    op.execute(f"INSERT INTO {table} SELECT * FROM {table}_before")  # noqa: S608 (our own name)
    op.execute(f"DROP TABLE {table}_before")


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
