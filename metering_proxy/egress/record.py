"""What was refused to each tenant on its ways out: counts by reason and by target, and the last few, in memory.

A refusal costs who asks for it nothing, so it must cost us no row that is written: a tool that asks a million
times would fill the disk that the ledger needs. What is kept has a fixed size, by tenant and in all; the log has
each of them. A tenant's ways out are all in one process, which alone holds its socket, and this begins with it.
"""

import re
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TypeVar

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy import wire

MOST_TENANTS = 500
MOST_TARGETS = 20
LAST = 20
_MOST_REASONS = 40  # there are some twenty: what an origin's relay says is ours, too
_LONGEST_TARGET = 120
_UNPLAIN = re.compile(r"[^\x21-\x7e]")
_Key = TypeVar("_Key")


@dataclass(slots=True)
class _Count:
    times: int = 0
    last_at: int = 0

    def add(self, at: int) -> None:
        self.times += 1
        self.last_at = at


@dataclass(slots=True)
class _Record:
    """Of one tenant. `others`: refusals of targets that had to make room for those asked for more often."""

    since_at: int
    total: int = 0
    others: int = 0
    reasons: dict[str, _Count] = field(default_factory=dict)
    targets: dict[tuple[str, str], _Count] = field(default_factory=dict)
    last: deque[tuple[int, str, str, str | None]] = field(
        default_factory=lambda: deque(maxlen=LAST)
    )


class Refusals:
    """The records, of the tenants that were refused something last."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def note(self, tenant: str, target: str, error: AlcoveError) -> None:
        """One more."""
        at, reason = self._clock.now_at(), error.reason or error.code
        record = self._records.setdefault(tenant, _Record(at))
        self._records.move_to_end(tenant)
        if len(self._records) > MOST_TENANTS:
            self._records.popitem(last=False)
        asked = _UNPLAIN.sub("?", target[:_LONGEST_TARGET])
        record.total += 1
        record.last.append((at, asked, reason, error.details.get("kind")))
        if reason in record.reasons or len(record.reasons) < _MOST_REASONS:
            record.reasons.setdefault(reason, _Count()).add(at)
        _count_target(record, (asked, reason), at)

    def of(self, tenant: str) -> wire.EgressRefusals:
        """What a tenant was refused, most often first."""
        record = self._records.get(tenant)
        if record is None:
            return wire.EgressRefusals(
                since_at=None, total=0, reasons=[], targets=[], others=0, last=[]
            )
        reasons = [
            wire.EgressReason(reason=reason, times=count.times, last_at=count.last_at)
            for reason, count in _often(record.reasons)
        ]
        targets = [
            wire.EgressTarget(
                target=target, reason=reason, times=count.times, last_at=count.last_at
            )
            for (target, reason), count in _often(record.targets)
        ]
        return wire.EgressRefusals(
            since_at=record.since_at,
            total=record.total,
            reasons=reasons,
            targets=targets,
            others=record.others,
            last=[
                wire.EgressRefusal(at=at, target=target, reason=reason, kind=kind)
                for at, target, reason, kind in reversed(record.last)
            ],
        )


def _count_target(record: _Record, key: tuple[str, str], at: int) -> None:
    """What is asked for again and again keeps its place; the rarest and oldest makes room."""
    if key not in record.targets and len(record.targets) == MOST_TARGETS:
        rarest = min(
            record.targets, key=lambda k: (record.targets[k].times, record.targets[k].last_at)
        )
        record.others += record.targets.pop(rarest).times
    record.targets.setdefault(key, _Count()).add(at)


def _often(counts: dict[_Key, _Count]) -> list[tuple[_Key, _Count]]:
    return sorted(counts.items(), key=lambda item: (-item[1].times, -item[1].last_at))
