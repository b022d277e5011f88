"""The gateway's tables. Rules live in the use cases; `migrations/` tells the same story in steps."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

from infra.kit import jobs

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# Who signs in. `email_key` is the address as it is compared (NFKC, case-folded).
account = Table(
    "account",
    metadata,
    Column("id", String(26), primary_key=True),
    Column("email", String(254), nullable=False),
    Column("email_key", String(254), nullable=False, unique=True),
    Column("password_hash", Text, nullable=False),
    Column("is_admin", Boolean, nullable=False),
    Column("created_at", BigInteger, nullable=False),
)

# The wall around one assistant. `version` grows with each change that other rooms must hear of.
tenant = Table(
    "tenant",
    metadata,
    Column("id", String(16), primary_key=True),
    Column("account_id", String(26), ForeignKey("account.id"), nullable=False, unique=True),
    Column("plan", String(32), nullable=False),
    Column("status", String(16), nullable=False),
    Column("suspended_reason", Text),
    Column("quota_charge_month_nanos", BigInteger),
    Column("egress", Boolean, nullable=False, server_default=false()),
    Column("version", Integer, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger),
    Index(None, "plan"),
    Index(None, "status"),
)

# The outbox: a room that has not yet heard of a tenant's newest version. What is sent is read from
# `tenant` when it is sent, so a row here carries no payload and two changes make one call.
tenant_change = Table(
    "tenant_change",
    metadata,
    Column("tenant", String(16), ForeignKey("tenant.id"), primary_key=True),
    Column("room", String(16), primary_key=True),
    Column("version", Integer, nullable=False),
    Column("attempts", Integer, nullable=False),
    Column("retry_at", BigInteger, nullable=False),
    Column("last_error", String(200)),
    Index(None, "retry_at"),
)

# A sign-in. The cookie's secret is stored as its SHA-256 only.
session = Table(
    "session",
    metadata,
    Column("id", String(26), primary_key=True),
    Column("account_id", String(26), ForeignKey("account.id"), nullable=False, index=True),
    Column("secret_hash", String(64), nullable=False, unique=True),
    Column("user_agent", String(300), nullable=False),
    Column("ip", String(64), nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("last_seen_at", BigInteger, nullable=False),
)

# Token buckets, in thousandths of an attempt.
login_throttle = Table(
    "login_throttle",
    metadata,
    Column("key", String(80), primary_key=True),
    Column("allowance_milli", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
)

# One-time links that make an admin; stored as hashes.
admin_link = Table(
    "admin_link",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
)

# One-time links that let an account's owner choose a new password; stored as hashes.
password_link = Table(
    "password_link",
    metadata,
    Column("token_hash", String(64), primary_key=True),
    Column("account_id", String(26), ForeignKey("account.id"), nullable=False, index=True),
    Column("created_at", BigInteger, nullable=False),
    Column("expires_at", BigInteger, nullable=False),
    Column("used_at", BigInteger),
)

# Messages for an agent that is not ready. The text is sealed.
pending_message = Table(
    "pending_message",
    metadata,
    Column("tenant", String(16), ForeignKey("tenant.id"), primary_key=True),
    Column("client_message_id", String(64), primary_key=True),
    Column("conversation_id", String(26), nullable=False),
    Column("sealed_text", Text, nullable=False),
    Column("position", BigInteger, nullable=False),
    Column("state", String(16), nullable=False),
    Column("error_code", String(40)),
    Column("error_message", String(300)),
    Column("created_at", BigInteger, nullable=False),
    Column("request_id", String(64)),
    Column("traceparent", String(55)),
    Index(None, "state"),
)

# What admins did and what happened to accounts. Append-only.
audit = Table(
    "audit",
    metadata,
    Column("id", String(26), primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("actor_account", String(26)),
    Column("actor", String(254), nullable=False),
    Column("tenant", String(16)),
    Column("action", String(60), nullable=False),
    Column("reason", Text),
    Column("before", Text),
    Column("after", Text),
    Column("ip", String(64)),
    Column("request_id", String(64)),
    Index(None, "tenant", "at"),
)

job_lease = jobs.lease_table(metadata)
