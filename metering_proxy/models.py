"""The meter's tables. Money is nano-USD in BIGINT, moments are milliseconds since the epoch UTC.

`entry` is append-only: its migration adds triggers that refuse UPDATE and DELETE.
"""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    text,
)

from infra.kit.jobs import lease_table

metadata = MetaData()
job_lease = lease_table(metadata)


def _id(name: str, length: int = 32, *, key: bool = False) -> Column[str]:
    return Column(name, String(length), primary_key=key, nullable=False)


def _int(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


# What the gateway decided about a tenant. `quota` is JSON: an absent field leaves the plan's limit.
tenant = Table(
    "tenant",
    metadata,
    _id("tenant", key=True),
    _id("plan"),
    _id("status", 16),
    _int("version"),
    Column("quota", Text, nullable=False),
    _int("changed_at"),
    Column("since_at", BigInteger, nullable=False, server_default="0"),  # it came to the plan
    Column("egress", SmallInteger, nullable=False, server_default="0"),
)

# A live key of one generation; only its digest is kept. The row goes when the generation is gone.
instance_key = Table(
    "instance_key",
    metadata,
    _id("tenant", key=True),
    _int("generation", key=True),
    _id("digest", 64),
    _id("hint", 4),
    Column("directory", Text, nullable=False),
    _int("minted_at"),
    Index("ix_instance_key_digest", "digest", unique=True),
)

# Things that an operator wants to find later, such as a key shown at a stranger's listener.
audit = Table(
    "audit",
    metadata,
    _id("id", key=True),
    _int("at"),
    _id("tenant"),
    _id("what", 64),
    Column("detail", Text, nullable=False),
)

# A connection to a provider that an admin made.
provider = Table(
    "provider",
    metadata,
    _id("id", 64, key=True),
    _id("kind"),
    _id("name", 80),
    Column("base_url", Text, nullable=False),
    Column("sealed_key", Text, nullable=True),
    Column("key_hint", String(4), nullable=True),
    Column("default_model", String(200), nullable=True),
    Column("enabled", SmallInteger, nullable=False),
    Column("is_default", SmallInteger, nullable=False),
    _int("created_at"),
    _int("changed_at"),
    Column("probe", Text, nullable=True),
)

# A model that an admin entered for a connection.
provider_model = Table(
    "provider_model",
    metadata,
    _id("provider", 64, key=True),
    _id("model", 200, key=True),
    _id("kind", 16),
    _int("context_tokens"),
    _int("max_output_tokens"),
)

# Its price from a moment on. Rows are added, never changed: an entry names the row that priced it.
provider_price = Table(
    "provider_price",
    metadata,
    _id("provider", 64, key=True),
    _id("model", 200, key=True),
    _int("from_at", key=True),
    _int("input_nanos"),
    _int("output_nanos"),
)

# What is called when a model fails, in this order; `name` is that model's or an alias.
fallback = Table(
    "fallback",
    metadata,
    _id("name", 264, key=True),
    Column("position", Integer, primary_key=True, autoincrement=False),
    _id("target", 264),
)

# What one account has spent and holds in one window of one limit. A new window is a new row.
account_window = Table(
    "account_window",
    metadata,
    _id("account", key=True),
    _id("kind", key=True),
    _int("start_at", key=True),
    _int("spent"),
    _int("held"),
    CheckConstraint("held >= 0", name="ck_account_window_held"),
    sqlite_with_rowid=False,
)

# A call's hold, from before it is sent until it has ended in exactly one way.
reservation = Table(
    "reservation",
    metadata,
    _id("request_id", key=True),
    _id("account"),
    _id("state", 20),
    _id("worker"),
    _id("wire"),
    _id("provider", 64),
    _id("model", 264),
    _id("price_id", 300),
    _id("payer", 16),
    Column("windows", Text, nullable=False),  # JSON [[kind, measure, start_at, amount, limit], …]
    _int("month_start_at"),
    _int("created_at"),
    _int("dispatched_at", null=True),
    _int("ended_at", null=True),
    _int("lease_until_at"),
    Column("markup_ppm", Integer, nullable=False),
    _int("charge_held_nanos"),
    # What recovery needs when the process that made the call is gone.
    _int("input_tokens"),
    _int("input_cost_nanos"),
    _int("output_rate_nanos"),  # a million tokens
    _int("output_limit"),
    _int("output_seen"),
    Column("plan", String(64), nullable=False, server_default=""),  # <name>@<version of the plans>
    Column("grants", Text, nullable=False, server_default="[]"),  # JSON [[grant, held], …]
    Column("attempt", Integer, nullable=False, server_default="1"),  # the one under way
    # Running calls are few: they are counted, and found when their lease is over, by their own small index.
    Index(
        "ix_reservation_running",
        "account",
        sqlite_where=text("state = 'dispatched'"),
        postgresql_where=text("state = 'dispatched'"),
    ),
)

# Calls that came to no good end. In these very words, or no database finds the index of them.
FAILED = text("kind = 'usage' AND outcome NOT IN ('complete', 'left')")

# The ledger. `kind`: usage, attempt (failed before another was made), or correction_n with signed differences.
entry = Table(
    "entry",
    metadata,
    _id("request_id", key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    _id("kind", key=True),
    _id("account"),
    _int("at"),
    _int("started_at"),
    _int("month_start_at"),
    _id("wire"),
    _id("provider", 64),
    _id("model", 264),
    Column("response_model", String(200), nullable=True),
    _id("price_id", 300),
    _id("payer", 16),
    _id("outcome"),
    Column("estimated", SmallInteger, nullable=False),
    Column("overrun", SmallInteger, nullable=False),
    _int("input_tokens"),
    _int("cache_read_tokens"),
    _int("cache_write_tokens"),
    _int("output_tokens"),
    Column("parts", Text, nullable=False),  # JSON: each bucket that was priced, tier, failure
    Column("markup_ppm", Integer, nullable=False),
    _int("cost_nanos"),
    _int("charge_nanos"),
    Column("plan", String(64), nullable=False, server_default=""),
    Column("grant_nanos", BigInteger, nullable=False, server_default="0"),  # of charge_nanos
    Index("ix_entry_account_started", "account", "started_at"),
    Index("ix_entry_started", "started_at"),
    Index(
        "ix_entry_failed",
        "started_at",
        "request_id",
        sqlite_where=FAILED,
        postgresql_where=FAILED,
    ),
)

# Money that a tenant has beside its plan, spent soonest expiry first once the plan's is used up.
credit_grant = Table(
    "credit_grant",
    metadata,
    _id("id", 64, key=True),
    _id("account"),
    _id("kind", 16),
    _id("note", 200),
    _int("amount_nanos"),
    _int("spent_nanos"),
    _int("held_nanos"),
    _int("expires_at", null=True),
    _int("created_at"),
    _int("revoked_at", null=True),
    CheckConstraint("held_nanos >= 0", name="ck_credit_grant_held"),
    CheckConstraint("spent_nanos + held_nanos <= amount_nanos", name="ck_credit_grant_amount"),
    Index("ix_credit_grant_account", "account"),
)

# What a request took of a grant. Append-only, as the entry beside it.
grant_use = Table(
    "grant_use",
    metadata,
    _id("request_id", key=True),
    _id("grant_id", 64, key=True),
    _int("amount_nanos"),
    _int("at"),
    Index("ix_grant_use_grant", "grant_id"),
)

# A share of a limit that was used up in a window: one row a window, told once.
mark = Table(
    "mark",
    metadata,
    _id("account", key=True),
    _id("kind", key=True),
    _int("start_at", key=True),
    Column("percent", Integer, primary_key=True, autoincrement=False),
    _int("at"),
    _int("told_at", null=True),
    Index("ix_mark_told", "told_at"),
)

# A key that a person holds; only its digest is kept. What ended stays, so that it can be told.
api_key = Table(
    "api_key",
    metadata,
    _id("id", key=True),
    _id("tenant"),
    _id("name", 80),
    _id("digest", 64),
    _id("hint", 4),
    _int("created_at"),
    _int("expires_at", null=True),
    _int("revoked_at", null=True),
    Column("replaces", String(32), nullable=True),
    _int("last_used_at", null=True),  # to the half minute
    Column("models", Text, nullable=True),  # JSON: patterns of canonical ids; NULL: all of the plan
    Index("ix_api_key_digest", "digest", unique=True),
    Index("ix_api_key_tenant", "tenant"),
)

# A tenant's own key to a connection, sealed.
own_key = Table(
    "own_key",
    metadata,
    _id("tenant", key=True),
    _id("provider", 64, key=True),
    Column("sealed_key", Text, nullable=False),
    _id("hint", 4),
    _int("set_at"),
)

# What processes keep in memory and another one has changed, numbered in the order of commits.
change_clock = Table("change_clock", metadata, _int("id", key=True), _int("seq"))
change = Table(
    "change",
    metadata,
    _int("seq", key=True),
    _id("topic", 16),
    _id("subject", 64),
    _int("at"),
)
