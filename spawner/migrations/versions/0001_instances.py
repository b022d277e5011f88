"""The first tables: instances, their phase events, and the keys to take back."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "instance",
        sa.Column("tenant", sa.String(length=16), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="0", nullable=False),
        sa.Column("phase", sa.String(length=16), server_default="stopped", nullable=False),
        sa.Column("seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("plan", sa.String(length=32), server_default="free", nullable=False),
        sa.Column("suspended", sa.Boolean(), server_default=sa.false(), nullable=False),
        sa.Column("runtime", sa.String(length=16), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("wanted_at", sa.BigInteger(), nullable=True),
        sa.Column("wanted_reason", sa.String(length=16), nullable=True),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", sa.BigInteger(), nullable=True),
        sa.Column("error_code", sa.String(length=32), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.Column("changed_at", sa.BigInteger(), nullable=False),
        sa.Column("deadline_at", sa.BigInteger(), nullable=True),
        sa.Column("started_at", sa.BigInteger(), nullable=True),
        sa.Column("person_at", sa.BigInteger(), nullable=True),
        sa.Column("busy_at", sa.BigInteger(), nullable=True),
        sa.Column("busy_until_at", sa.BigInteger(), nullable=True),
        sa.Column("next_schedule_at", sa.BigInteger(), nullable=True),
        sa.Column("in_flight", sa.Integer(), server_default="0", nullable=False),
        sa.Column("waiting", sa.Integer(), server_default="0", nullable=False),
        sa.Column("unread", sa.Integer(), server_default="0", nullable=False),
        sa.Column("oom_kills", sa.Integer(), server_default="0", nullable=False),
        sa.Column("status_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("tenant"),
    )
    op.create_index("instance_by_state", "instance", ["state"], unique=False)
    op.create_index("instance_by_wanted", "instance", ["wanted_at"], unique=False)

    op.create_table(
        "instance_key",
        sa.Column("tenant", sa.String(length=16), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("asked_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("tenant", "generation"),
    )
    op.create_table(
        "job_lease",
        sa.Column("job", sa.String(length=64), nullable=False),
        sa.Column("holder", sa.String(length=32), nullable=False),
        sa.Column("until_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("job"),
    )
    op.create_table(
        "phase_event",
        sa.Column("tenant", sa.String(length=16), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("generation", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=10), nullable=False),
        sa.Column("phase", sa.String(length=16), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("typical_ms", sa.Integer(), nullable=True),
        sa.Column("error_code", sa.String(length=32), nullable=True),
        sa.Column("error_message", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("tenant", "seq"),
    )
    op.create_index("phase_event_by_phase", "phase_event", ["phase", "at"], unique=False)


def downgrade() -> None:
    op.drop_table("phase_event")
    op.drop_table("job_lease")
    op.drop_table("instance_key")
    op.drop_table("instance")
