"""What a meter does again and again beside its calls, and how often."""

from infra.kit.db import Database
from infra.kit.jobs import Job
from metering_proxy.keys import Keys
from metering_proxy.ledger.ledger import Ledger
from metering_proxy.ledger.tidying import tidy
from metering_proxy.ledger.verify import verify
from metering_proxy.marks import Marks
from metering_proxy.reloading import Reloading
from metering_proxy.telemetry import Telemetry

_SWEEP_EVERY_S = 10.0
_RELOAD_EVERY_S = 1.0
_MARKS_EVERY_S = 5.0
_USED_EVERY_S = 30.0
_VERIFY_EVERY_S = 600.0
_TIDY_EVERY_S = 3600.0


def periodic(
    db: Database,
    keys: Keys,
    ledger: Ledger,
    telemetry: Telemetry,
    marks: Marks,
    reloading: Reloading,
) -> list[Job]:
    """The jobs; those that are not `everywhere` run in one process at a time."""

    async def sweep() -> None:
        await ledger.sweep()

    async def prove() -> None:
        verdict = await verify(db)
        telemetry.drift.set(verdict.drift_nanos)
        if not verdict.whole:
            raise RuntimeError(f"the ledger does not agree with itself: {verdict}")

    return [
        Job("sweep", _SWEEP_EVERY_S, sweep, everywhere=True),
        Job("reload", _RELOAD_EVERY_S, reloading.look, everywhere=True),
        Job("marks", _MARKS_EVERY_S, marks.tell),
        Job("used", _USED_EVERY_S, keys.tell_used, everywhere=True),
        Job("verify", _VERIFY_EVERY_S, prove),
        Job("tidy", _TIDY_EVERY_S, lambda: tidy(db)),
    ]
