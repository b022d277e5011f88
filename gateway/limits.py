"""How much of everything the gateway gives: durations, sizes and rates, as one value to hand in.

These are choices of the product and no settings; a test hands in smaller ones.
"""

from dataclasses import dataclass

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Bucket:
    """At most `capacity` attempts at once; one comes back every `refill_s` seconds."""

    capacity: int
    refill_s: float


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one gateway."""

    # Sessions (NIST SP 800-63B-4: re-authentication after about 30 days at AAL1).
    session_idle_s: int = 14 * DAY_S
    session_absolute_s: int = 30 * DAY_S
    admin_session_absolute_s: int = 12 * 3600
    session_touch_s: int = 60
    admin_link_s: int = 15 * 60
    password_link_s: int = 60 * 60

    # Doors. A stranger can slow an account's sign-in, never lock it: attempts come back by themselves.
    sign_in_ip: Bucket = Bucket(30, 10)
    sign_in_account: Bucket = Bucket(10, 30)
    sign_up_ip: Bucket = Bucket(60, 20)
    setup_ip: Bucket = Bucket(20, 15)

    # Requests.
    header_count: int = 100
    header_bytes: int = 32 * 1024
    body_bytes: int = 256 * 1024
    relay_answer_bytes: int = 8 * 1024 * 1024
    relay_first_byte_s: float = 10.0  # the page itself gives up after 20 s
    relay_total_s: float = 18.0
    relay_in_flight: int = 32

    # Programs with a key (the meter's own bound on a body is the same).
    program_body_bytes: int = 34 * 1024 * 1024
    program_bytes_in_flight: int = 128 * 1024 * 1024
    program_calls: int = 512
    program_first_byte_s: float = 620.0
    program_idle_s: float = 180.0

    # Streams.
    streams_per_tenant: int = 24
    stream_s: float = 600.0
    stream_heartbeat_s: float = 15.0
    stream_watch_s: float = 1.0
    stream_quota_s: float = 60.0
    stream_retry_s: float = 1.0
    event_chars: int = 2 * 1024 * 1024

    # Waiting messages.
    pending_per_tenant: int = 20
    pending_keep_s: int = 7 * DAY_S
    pending_give_up_s: float = 300.0
    pending_poll_s: float = 0.2

    # Telling other rooms.
    activity_report_s: float = 10.0
    outbox_retry_s: float = 2.0
    outbox_retry_max_s: float = 300.0
