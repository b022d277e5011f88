"""When a key that a person holds was used last."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_key", sa.Column("last_used_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
