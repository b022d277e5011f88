"""Keys that people hold, and tenants' own keys to providers."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "api_key",
        sa.Column("id", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(32), nullable=False),
        sa.Column("name", sa.String(80), nullable=False),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("hint", sa.String(4), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.Column("replaces", sa.String(32), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_api_key_digest", "api_key", ["digest"], unique=True)
    op.create_index("ix_api_key_tenant", "api_key", ["tenant"])
    op.create_table(
        "own_key",
        sa.Column("tenant", sa.String(32), nullable=False),
        sa.Column("provider", sa.String(64), nullable=False),
        sa.Column("sealed_key", sa.Text(), nullable=False),
        sa.Column("hint", sa.String(4), nullable=False),
        sa.Column("set_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "provider"),
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
