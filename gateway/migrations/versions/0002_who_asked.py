"""A waiting message keeps the ids of the request that brought it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the step."""
    with op.batch_alter_table("pending_message") as table:
        table.add_column(sa.Column("request_id", sa.String(length=64), nullable=True))
        table.add_column(sa.Column("traceparent", sa.String(length=55), nullable=True))
