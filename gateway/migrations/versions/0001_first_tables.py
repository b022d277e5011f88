"""The first tables: accounts, tenants, sessions, links, outbox, waiting messages, audit."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Makes the step."""
    op.create_table(
        "account",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("email", sa.String(length=254), nullable=False),
        sa.Column("email_key", sa.String(length=254), nullable=False),
        sa.Column("password_hash", sa.Text(), nullable=False),
        sa.Column("is_admin", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_account"),
        sa.UniqueConstraint("email_key", name="uq_account_email_key"),
    )
    op.create_table(
        "admin_link",
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("expires_at", sa.BigInteger(), nullable=False),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("token_hash", name="pk_admin_link"),
    )
    op.create_table(
        "audit",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("actor_account", sa.String(length=26), nullable=True),
        sa.Column("actor", sa.String(length=254), nullable=False),
        sa.Column("tenant", sa.String(length=16), nullable=True),
        sa.Column("action", sa.String(length=60), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("before", sa.Text(), nullable=True),
        sa.Column("after", sa.Text(), nullable=True),
        sa.Column("ip", sa.String(length=64), nullable=True),
        sa.Column("request_id", sa.String(length=64), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_tenant_at", "audit", ["tenant", "at"], unique=False)
    op.create_table(
        "job_lease",
        sa.Column("job", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=32), nullable=False),
        sa.Column("until_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job", name="pk_job_lease"),
    )
    op.create_table(
        "login_throttle",
        sa.Column("key", sa.String(length=80), nullable=False),
        sa.Column("allowance_milli", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_login_throttle"),
    )
    op.create_table(
        "session",
        sa.Column("id", sa.String(length=26), nullable=False),
        sa.Column("account_id", sa.String(length=26), nullable=False),
        sa.Column("secret_hash", sa.String(length=64), nullable=False),
        sa.Column("user_agent", sa.String(length=300), nullable=False),
        sa.Column("ip", sa.String(length=64), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_session_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_session"),
        sa.UniqueConstraint("secret_hash", name="uq_session_secret_hash"),
    )
    op.create_index("ix_session_account_id", "session", ["account_id"], unique=False)
    op.create_table(
        "tenant",
        sa.Column("id", sa.String(length=16), nullable=False),
        sa.Column("account_id", sa.String(length=26), nullable=False),
        sa.Column("plan", sa.String(length=32), nullable=False),
        sa.Column("status", sa.String(length=16), nullable=False),
        sa.Column("suspended_reason", sa.Text(), nullable=True),
        sa.Column("quota_charge_month_nanos", sa.BigInteger(), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("last_seen_at", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["account_id"], ["account.id"], name="fk_tenant_account_id"),
        sa.PrimaryKeyConstraint("id", name="pk_tenant"),
        sa.UniqueConstraint("account_id", name="uq_tenant_account_id"),
    )
    op.create_index("ix_tenant_plan", "tenant", ["plan"], unique=False)
    op.create_index("ix_tenant_status", "tenant", ["status"], unique=False)
    op.create_table(
        "pending_message",
        sa.Column("tenant", sa.String(length=16), nullable=False),
        sa.Column("client_message_id", sa.String(length=64), nullable=False),
        sa.Column("conversation_id", sa.String(length=26), nullable=False),
        sa.Column("sealed_text", sa.Text(), nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("error_code", sa.String(length=40), nullable=True),
        sa.Column("error_message", sa.String(length=300), nullable=True),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_pending_message_tenant"),
        sa.PrimaryKeyConstraint("tenant", "client_message_id", name="pk_pending_message"),
    )
    op.create_index("ix_pending_message_state", "pending_message", ["state"], unique=False)
    op.create_table(
        "tenant_change",
        sa.Column("tenant", sa.String(length=16), nullable=False),
        sa.Column("room", sa.String(length=16), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("retry_at", sa.BigInteger(), nullable=False),
        sa.Column("last_error", sa.String(length=200), nullable=True),
        sa.ForeignKeyConstraint(["tenant"], ["tenant.id"], name="fk_tenant_change_tenant"),
        sa.PrimaryKeyConstraint("tenant", "room", name="pk_tenant_change"),
    )
    op.create_index("ix_tenant_change_retry_at", "tenant_change", ["retry_at"], unique=False)
