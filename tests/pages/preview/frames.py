"""What the scripted assistant puts on the wire: rows and frames of docs/contracts.md, made from their parts."""

import time
from typing import Any

from infra.kit.ids import ulid

Frame = dict[str, Any]
MODEL = "anthropic/claude-sonnet-4-5"
PHASES = (
    ("queued", "absent", 0.15),
    ("key", "creating", 0.1),
    ("volume", "creating", 0.2),
    ("create", "creating", 0.5),
    ("start", "starting", 0.6),
    ("answering", "starting", 0.7),
    ("ready", "ready", 0.0),
)
TYPICAL = {"queued": 100, "key": 90, "volume": 150, "create": 450, "start": 500, "answering": 600}


def now_ms() -> int:
    """Milliseconds since the epoch."""
    return int(time.time() * 1000)


def conversation(key: str, title: str | None, at: int, state: str) -> Frame:
    """A row of the list of conversations."""
    return {"id": key, "title": title, "created_at": at, "updated_at": at, "last_turn_state": state}


def message(role: str, where: str, turn: str, text: str, at: int, **more: Any) -> Frame:
    """A *Message*; complete unless `more` says otherwise."""
    row = {
        "id": ulid(),
        "conversation_id": where,
        "turn_id": turn,
        "role": role,
        "text": text,
        "state": "complete",
        "error": None,
        "tools": [],
        "created_at": at,
        "notices": [],
    }
    return row | ({"model": MODEL} if role == "assistant" else {}) | more


def instance(state: str, generation: int) -> Frame:
    """The instance's state, unnumbered."""
    reason = "The machine has no room for another assistant just now."
    error = {"code": "unavailable", "message": reason} if state == "failed" else None
    return {
        "type": "CUSTOM",
        "name": "instance",
        "state": state,
        "generation": generation,
        "error": error,
    }


def phase(seq: int, name: str, state: str, generation: int) -> Frame:
    """One phase of a start."""
    return {
        "type": "CUSTOM",
        "name": "spawn.progress",
        "seq": seq,
        "at": now_ms(),
        "generation": generation,
        "state": state,
        "phase": name,
        "message": name,
        "typical_ms": TYPICAL.get(name),
        "error": instance(state, generation)["error"],
    }


def quota(percent: int) -> Frame:
    """The quota's state, unnumbered, with its words ready-made."""
    steps = ((100, "out"), (95, "low"), (80, "near"), (0, "ok"))
    passed = next((least for least in (95, 80, 50) if percent >= least), None)
    mark = {
        "key": f"charge_month.1.{passed}",
        "text": f"More than {passed} % of this month's quota is used",
    }
    return {
        "type": "CUSTOM",
        "name": "quota",
        "plan": "Free",
        "percent": percent,
        "level": next(level for least, level in steps if percent >= least),
        "spent": f"${percent / 100:.2f}",
        "limit": "$1.00",
        "left": f"${max(0, 100 - percent) / 100:.2f}",
        "credit": None,
        "none_given": False,
        "mark": mark if passed else None,
        "resets_at": now_ms() + 9 * 86_400_000,
    }
