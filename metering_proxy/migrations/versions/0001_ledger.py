"""The first tables: tenants, keys, providers, and the ledger, whose entries nobody may change."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "account_window",
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("start_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("spent", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("held", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.CheckConstraint("held >= 0", name="ck_account_window_held"),
        sa.PrimaryKeyConstraint("account", "kind", "start_at"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("tenant", sa.String(length=32), nullable=False),
        sa.Column("what", sa.String(length=64), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "entry",
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("attempt", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("started_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("month_start_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("wire", sa.String(length=32), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=264), nullable=False),
        sa.Column("response_model", sa.String(length=200), nullable=True),
        sa.Column("price_id", sa.String(length=300), nullable=False),
        sa.Column("payer", sa.String(length=16), nullable=False),
        sa.Column("outcome", sa.String(length=32), nullable=False),
        sa.Column("estimated", sa.SmallInteger(), nullable=False),
        sa.Column("overrun", sa.SmallInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cache_read_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("parts", sa.Text(), nullable=False),
        sa.Column("markup_ppm", sa.Integer(), nullable=False),
        sa.Column("cost_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("charge_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("request_id", "attempt", "kind"),
    )
    op.create_index("ix_entry_account_started", "entry", ["account", "started_at"], unique=False)
    op.create_index("ix_entry_started", "entry", ["started_at"], unique=False)
    op.create_table(
        "instance_key",
        sa.Column("tenant", sa.String(length=32), nullable=False),
        sa.Column("generation", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("digest", sa.String(length=64), nullable=False),
        sa.Column("hint", sa.String(length=4), nullable=False),
        sa.Column("directory", sa.Text(), nullable=False),
        sa.Column("minted_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant", "generation"),
    )
    op.create_index("ix_instance_key_digest", "instance_key", ["digest"], unique=True)
    op.create_table(
        "job_lease",
        sa.Column("job", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=32), nullable=False),
        sa.Column("until_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job"),
    )
    op.create_table(
        "provider",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(length=80), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("sealed_key", sa.Text(), nullable=True),
        sa.Column("key_hint", sa.String(length=4), nullable=True),
        sa.Column("default_model", sa.String(length=200), nullable=True),
        sa.Column("enabled", sa.SmallInteger(), nullable=False),
        sa.Column("is_default", sa.SmallInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("changed_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("probe", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "provider_model",
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("context_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("max_output_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("provider", "model"),
    )
    op.create_table(
        "provider_price",
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=200), nullable=False),
        sa.Column("from_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("input_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("output_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("provider", "model", "from_at"),
    )
    op.create_table(
        "reservation",
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=20), nullable=False),
        sa.Column("worker", sa.String(length=32), nullable=False),
        sa.Column("wire", sa.String(length=32), nullable=False),
        sa.Column("provider", sa.String(length=64), nullable=False),
        sa.Column("model", sa.String(length=264), nullable=False),
        sa.Column("price_id", sa.String(length=300), nullable=False),
        sa.Column("payer", sa.String(length=16), nullable=False),
        sa.Column("windows", sa.Text(), nullable=False),
        sa.Column("month_start_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("created_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("dispatched_at", sa.BigInteger(), autoincrement=False, nullable=True),
        sa.Column("ended_at", sa.BigInteger(), autoincrement=False, nullable=True),
        sa.Column("lease_until_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("markup_ppm", sa.Integer(), nullable=False),
        sa.Column("charge_held_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("input_cost_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("output_rate_nanos", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("output_limit", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("output_seen", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("request_id"),
    )
    op.create_index(
        "ix_reservation_lease", "reservation", ["state", "lease_until_at"], unique=False
    )
    op.create_table(
        "slot",
        sa.Column("account", sa.String(length=32), nullable=False),
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("lease_until_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("account", "request_id"),
    )
    op.create_table(
        "tenant",
        sa.Column("tenant", sa.String(length=32), nullable=False),
        sa.Column("plan", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("quota", sa.Text(), nullable=False),
        sa.Column("changed_at", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.PrimaryKeyConstraint("tenant"),
    )
    _forbid_changes("entry")


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
