"""How long each phase of a start usually takes, told from the starts that came to their end."""

from statistics import median

from sqlalchemy import and_, select

from infra.kit.db import Reading
from spawner import wire
from spawner.models import phase_event

_TIMED: frozenset[wire.Phase] = frozenset({"key", "volume", "create", "start", "answering"})
_RECENT = 20


async def typical_ms(reading: Reading, phase: wire.Phase) -> int | None:
    """The median length of `phase` over recent starts, any tenant's; None where it was never seen.

    A phase lasts from its event to the next event of the same generation.
    """
    if phase not in _TIMED:
        return None
    begun, ended = phase_event.alias("begun"), phase_event.alias("ended")
    found = await reading.rows(
        select((ended.c.at - begun.c.at).label("ms"))
        .select_from(
            begun.join(
                ended,
                and_(
                    ended.c.tenant == begun.c.tenant,
                    ended.c.seq == begun.c.seq + 1,
                    ended.c.generation == begun.c.generation,
                    ended.c.phase.notin_(("failed", "stopping", "stopped")),
                ),
            )
        )
        .where(begun.c.phase == phase)
        .order_by(begun.c.at.desc())
        .limit(_RECENT)
    )
    return round(median(row["ms"] for row in found)) if found else None
