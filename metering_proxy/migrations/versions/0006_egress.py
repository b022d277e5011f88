"""Ways out: who may use them, what was taken of each day, and connections with a credential."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column(
        "tenant", sa.Column("egress", sa.SmallInteger(), nullable=False, server_default="0")
    )
    op.create_table(
        "egress_day",
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("start_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("bytes", sa.BigInteger(), nullable=False),
        sa.Column("tunnels", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("account", "start_at"),
        sa.CheckConstraint("bytes >= 0", name="ck_egress_day_bytes"),
    )
    op.create_table(
        "token_connection",
        sa.Column("tenant", sa.String(32), nullable=False),
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("origin", sa.String(300), nullable=False),
        sa.Column("sealed_token", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "id"),
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
