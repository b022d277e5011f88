"""Everything that the gateway does by itself, on one page."""

from gateway.accounts import sessions, throttle
from gateway.limits import DAY_S
from gateway.models import job_lease
from gateway.web.parts import Parts
from infra.kit.jobs import Job, Jobs


def all_jobs(here: Parts) -> Jobs:
    """The supervisor of this process's jobs, not yet started."""

    async def tidy() -> None:
        async with here.db.transaction() as tx:
            now_at = await tx.now_at()
            await sessions.forget_expired(tx, now_at, here.limits)
            await throttle.forget_old(tx, now_at - DAY_S * 1000)
            await here.pending.forget_old(tx)

    return Jobs(
        here.db,
        job_lease,
        here.metrics,
        [
            Job("outbox", here.limits.outbox_retry_s, here.outbox.push_due),
            # everywhere: a dead process's lease must not hold up its messages, and two that hand over
            # the same queue keep its order, since each waits for the agent's 202
            Job("pending", 5, here.delivery.resume, everywhere=True),
            Job("compare", DAY_S, here.outbox.compare_all),
            Job("tidy", 3600, tidy),
            Job("streams", here.limits.stream_watch_s, here.hub.watch, everywhere=True),
            Job("pools", 60, here.upstreams.sweep, everywhere=True),
        ],
    )
