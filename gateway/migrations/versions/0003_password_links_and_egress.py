"""Links for a new password, and whether a tenant may send anonymous traffic out."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the step."""
    op.create_table(
        "password_link",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("account_id", sa.String(length=26), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["account_id"], ["account.id"], name=op.f("fk_password_link_account_id")
        ),
        sa.PrimaryKeyConstraint("token_hash", name=op.f("pk_password_link")),
    )
    op.create_index(op.f("ix_password_link_account_id"), "password_link", ["account_id"])
    with op.batch_alter_table("tenant") as table:
        table.add_column(
            sa.Column("egress", sa.Boolean(), nullable=False, server_default=sa.false())
        )
