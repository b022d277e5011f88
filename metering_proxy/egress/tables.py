"""The tables of the ways out, beside the meter's others (models.py)."""

from sqlalchemy import BigInteger, CheckConstraint, Column, String, Table, Text

from metering_proxy.models import metadata

# What a tenant took of one day; a new day is a new row.
egress_day = Table(
    "egress_day",
    metadata,
    Column("account", String(32), primary_key=True),
    Column("start_at", BigInteger, primary_key=True, autoincrement=False),
    Column("bytes", BigInteger, nullable=False),
    Column("tunnels", BigInteger, nullable=False),
    Column("calls", BigInteger, nullable=False),
    CheckConstraint("bytes >= 0", name="ck_egress_day_bytes"),
)

# A tenant's connection to somebody's service: the only origin that its sealed access token is sent to.
token_connection = Table(
    "token_connection",
    metadata,
    Column("tenant", String(32), primary_key=True),
    Column("id", String(64), primary_key=True),
    Column("origin", String(300), nullable=False),
    Column("sealed_token", Text, nullable=False),
    Column("expires_at", BigInteger, nullable=True),
    Column("set_at", BigInteger, nullable=False),
)
