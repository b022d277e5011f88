"""The spawner's tables. One row a tenant; its `state` column is the only state there is."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    false,
)

from infra.kit.jobs import lease_table

metadata = MetaData()

# A row exists from the first thing that was said about a tenant: `absent` with generation 0.
instance = Table(
    "instance",
    metadata,
    Column("tenant", String(16), primary_key=True),
    Column("state", String(10), nullable=False),
    Column("generation", Integer, nullable=False, server_default="0"),
    Column("phase", String(16), nullable=False, server_default="stopped"),
    Column("seq", BigInteger, nullable=False, server_default="0"),
    Column("plan", String(32), nullable=False, server_default="free"),
    Column("suspended", Boolean, nullable=False, server_default=false()),
    Column("runtime", String(16)),
    Column("url", Text),
    # A start that somebody asked for and that has not begun: the queue is these rows, by wanted_at.
    Column("wanted_at", BigInteger),
    Column("wanted_reason", String(16)),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("retry_at", BigInteger),
    Column("error_code", String(32)),
    Column("error_message", Text),
    Column("changed_at", BigInteger, nullable=False),
    Column("deadline_at", BigInteger),
    Column("started_at", BigInteger),
    # What keeps it awake: a person's last byte, the end of the last turn seen, the agent's lease.
    Column("person_at", BigInteger),
    Column("busy_at", BigInteger),
    Column("busy_until_at", BigInteger),
    Column("next_schedule_at", BigInteger),
    Column("in_flight", Integer, nullable=False, server_default="0"),
    Column("waiting", Integer, nullable=False, server_default="0"),
    Column("unread", Integer, nullable=False, server_default="0"),
    Column("oom_kills", Integer, nullable=False, server_default="0"),
    Column("status_at", BigInteger),
    Column("stored_bytes", BigInteger),  # what its data took when it was last measured
    Column("clearing_until_at", BigInteger),  # it may be awake past its storage, to be cleared
    Index("instance_by_state", "state"),
    Index("instance_by_wanted", "wanted_at"),
)

phase_event = Table(
    "phase_event",
    metadata,
    Column("tenant", String(16), primary_key=True),
    Column("seq", BigInteger, primary_key=True),
    Column("at", BigInteger, nullable=False),
    Column("generation", Integer, nullable=False),
    Column("state", String(10), nullable=False),
    Column("phase", String(16), nullable=False),
    Column("message", Text, nullable=False),
    Column("typical_ms", Integer),
    Column("error_code", String(32)),
    Column("error_message", Text),
    Index("phase_event_by_phase", "phase", "at"),
)

# A key that the meter may have minted and that has not been taken back yet.
instance_key = Table(
    "instance_key",
    metadata,
    Column("tenant", String(16), primary_key=True),
    Column("generation", Integer, primary_key=True),
    Column("asked_at", BigInteger, nullable=False),
)

job_lease = lease_table(metadata)
