"""What each tenant's data took when it was last measured."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("instance", sa.Column("stored_bytes", sa.BigInteger(), nullable=True))


def downgrade() -> None:
    op.drop_column("instance", "stored_bytes")
