"""Chains of models that answer in each other's place."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "fallback",
        sa.Column("name", sa.String(264), nullable=False),
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("target", sa.String(264), nullable=False),
        sa.PrimaryKeyConstraint("name", "position"),
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
