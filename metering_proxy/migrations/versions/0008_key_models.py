"""Keys that people hold may be for some models only."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("api_key", sa.Column("models", sa.Text(), nullable=True))


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
