"""Which attempt of a request is under way."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "reservation", sa.Column("attempt", sa.Integer(), nullable=False, server_default="1")
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
