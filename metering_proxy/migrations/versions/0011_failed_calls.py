"""Calls that failed are found without reading all the others."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

_FAILED = sa.text("kind = 'usage' AND outcome NOT IN ('complete', 'left')")


def upgrade() -> None:
    op.create_index(
        "ix_entry_failed",
        "entry",
        ["started_at", "request_id"],
        sqlite_where=_FAILED,
        postgresql_where=_FAILED,
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
