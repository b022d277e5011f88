"""Until when a tenant may be awake past its storage, so that its owner can delete."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("instance", sa.Column("clearing_until_at", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("instance", "clearing_until_at")
