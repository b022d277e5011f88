"""/healthz, /status and /spans: what the spawner asks, and what an exporter fetches."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.asgi import Request, Response
from agent.spans import Spans
from agent.store import events
from agent.store.database import Database, Tx

_CGROUP_V2 = Path("/sys/fs/cgroup/memory.events")
_CGROUP_V1 = Path("/sys/fs/cgroup/memory/memory.oom_control")


@dataclass(frozen=True, slots=True)
class Status:
    """The handlers."""

    db: Database
    spans: Spans
    generation: int

    async def health(self, request: Request) -> Response:
        """GET /healthz: the process answers; asks nobody."""
        return Response(body={"ok": True, "generation": self.generation})

    async def show(self, request: Request) -> Response:
        """GET /status: whether it may be put to sleep, and what is new.

        `busy_until_at` and `next_schedule_at` are null: nothing in this version holds a lease or a schedule.
        """
        return Response(body={**await self.db.read(_counts), "oom_kills": oom_kills()})

    async def finished_spans(self, request: Request) -> Response:
        """GET /spans?after=: finished spans as OTLP JSON."""
        return Response(body=self.spans.after(request.whole("after", 0, 0, 1 << 60)))


def _counts(tx: Tx) -> dict[str, Any]:
    row = tx.one(
        "SELECT coalesce(sum(state IN ('queued', 'running')), 0) AS in_flight,"
        " coalesce(sum(state = 'waiting'), 0) AS waiting FROM turn"
        " WHERE state IN ('queued', 'running', 'waiting')"
    )
    assert row is not None
    return {
        "in_flight": row["in_flight"],
        "waiting": row["waiting"],
        "busy_until_at": None,
        "next_schedule_at": None,
        "unread": events.unread(tx),
        "epoch": events.epoch(tx),
        "last_seq": events.last_seq(tx),
    }


def oom_kills() -> int:
    """How often the kernel killed something in this container for memory (cgroup v2 or v1); 0 where unknown."""
    for file in (_CGROUP_V2, _CGROUP_V1):
        try:
            lines = dict(line.split() for line in file.read_text().splitlines())
            return int(lines["oom_kill"])
        except (OSError, ValueError, KeyError):
            continue
    return 0
