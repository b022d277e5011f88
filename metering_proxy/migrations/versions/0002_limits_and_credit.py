"""Credit grants, marks of limits, and which version of which plan a call was made under."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    # Columns are added as they are: a copied table would lose the triggers that guard the ledger.
    op.add_column(
        "tenant", sa.Column("since_at", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.add_column(
        "reservation", sa.Column("plan", sa.String(64), nullable=False, server_default="")
    )
    op.add_column(
        "reservation", sa.Column("grants", sa.Text(), nullable=False, server_default="[]")
    )
    op.add_column("entry", sa.Column("plan", sa.String(64), nullable=False, server_default=""))
    op.add_column(
        "entry", sa.Column("grant_nanos", sa.BigInteger(), nullable=False, server_default="0")
    )
    op.create_table(
        "credit_grant",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(16), nullable=False),
        sa.Column("note", sa.String(200), nullable=False),
        sa.Column("amount_nanos", sa.BigInteger(), nullable=False),
        sa.Column("spent_nanos", sa.BigInteger(), nullable=False),
        sa.Column("held_nanos", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.CheckConstraint("held_nanos >= 0", name="ck_credit_grant_held"),
        sa.CheckConstraint(
            "spent_nanos + held_nanos <= amount_nanos", name="ck_credit_grant_amount"
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_credit_grant_account", "credit_grant", ["account"])
    op.create_table(
        "grant_use",
        sa.Column("request_id", sa.String(32), nullable=False),
        sa.Column("grant_id", sa.String(64), nullable=False),
        sa.Column("amount_nanos", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("request_id", "grant_id"),
    )
    op.create_index("ix_grant_use_grant", "grant_use", ["grant_id"])
    op.create_table(
        "mark",
        sa.Column("account", sa.String(32), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("start_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("percent", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("told_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("account", "kind", "start_at", "percent"),
    )
    op.create_index("ix_mark_told", "mark", ["told_at"])
    _forbid_changes("grant_use")


def _forbid_changes(table: str) -> None:
    """Makes a table append-only: UPDATE and DELETE raise."""
    if op.get_bind().dialect.name == "sqlite":
        for verb in ("UPDATE", "DELETE"):
            op.execute(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                f"BEGIN SELECT RAISE(ABORT, '{table} is append-only'); END"
            )
        return
    op.execute(
        f"CREATE FUNCTION {table}_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{table} is append-only'; END $$"
    )
    op.execute(
        f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
        f"FOR EACH STATEMENT EXECUTE FUNCTION {table}_append_only()"
    )


def downgrade() -> None:
    raise RuntimeError("a ledger is not taken down; restore a backup instead")
