"""What one process has changed and others keep in memory."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    clock = op.create_table(
        "change_clock",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.bulk_insert(clock, [{"id": 1, "seq": 0}])
    op.create_table(
        "change",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("topic", sa.String(16), nullable=False),
        sa.Column("subject", sa.String(64), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("seq"),
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
