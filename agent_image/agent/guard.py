"""Notices that a model is going in circles, and ends it: asking politely does not.

Pure: fed with calls and results, it answers what to do with the next call. Numbers from public
reports of loops (cases 1–10): the third repeat gets a note, the next is refused, and whoever goes
on after a refusal is done.
"""

import enum
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

import orjson

from agent.transcript import Call, Round

_SAME_CALL = 3
_SAME_RESULT = 6
_PING_PONG_CALLS = 8
_UNKNOWN = 3


class Verdict(enum.Enum):
    """What to do with a call: run it, answer it with a refusal, or end the use of tools in this turn."""

    ALLOW = "allow"
    REFUSE = "refuse"
    END = "end"


class LoopGuard:
    """Watches the calls of one turn."""

    def __init__(self) -> None:
        self.ended = False
        self._refused = False
        self._unknown = 0
        self._path: list[str] = []
        self._results: dict[str, Counter[str]] = {}
        self._same_result: Counter[tuple[str, str]] = Counter()
        self._waiting: Counter[str] = Counter()

    @classmethod
    def resumed(cls, rounds: Iterable[Round], known: Callable[[str], bool]) -> "LoopGuard":
        """The guard of a turn that is taken up again after these rounds."""
        guard = cls()
        for one in rounds:
            for call in one.calls:
                verdict = guard.before(call, known=known(call.name))
                if verdict is Verdict.ALLOW and call.result is not None:
                    guard.note_after(call)
        return guard

    def before(self, call: Call, *, known: bool) -> Verdict:
        """What to do with the next call; `known`: whether there is such a tool."""
        key = _key(call)
        self._path.append(key)
        if self.ended:
            return Verdict.END
        if not known:
            self._unknown += 1
            return self._end() if self._unknown >= _UNKNOWN else Verdict.REFUSE
        if self._is_circle(call, key):
            if self._refused:
                return self._end()
            self._refused = True
            return Verdict.REFUSE
        self._waiting[key] += 1
        return Verdict.ALLOW

    def _end(self) -> Verdict:
        self.ended = True
        return Verdict.END

    def note_after(self, call: Call) -> str | None:
        """Takes an allowed call's result; a sentence for the model when it was one repeat too many."""
        key, result = _key(call), _hash(call.result or "")
        self._waiting[key] -= 1
        self._results.setdefault(key, Counter())[result] += 1
        self._same_result[call.name, result] += 1
        if self._results[key][result] == _SAME_CALL:
            return "This exact call has now given the same result three times. It will not be run again."
        if self._same_result[call.name, result] == _SAME_RESULT:
            return "Different arguments keep giving this same result. Answer with what you have."
        return None

    def _is_circle(self, call: Call, key: str) -> bool:
        seen = self._results.get(key, Counter())
        repeats = max(seen.values(), default=0) + self._waiting[key]
        same_effect = max(
            (n for (name, _), n in self._same_result.items() if name == call.name), default=0
        )
        return repeats >= _SAME_CALL or same_effect >= _SAME_RESULT or self._is_ping_pong()

    def _is_ping_pong(self) -> bool:
        """Two different calls in turn, A-B-A-B, for more than four whole cycles."""
        last = self._path[-_PING_PONG_CALLS - 1 :]
        if len(last) <= _PING_PONG_CALLS or len(set(last)) != 2:
            return False
        return all(a != b for a, b in pairwise(last))


def _key(call: Call) -> str:
    return (
        f"{call.name}\x1f{_hash(orjson.dumps(_plain(call.arguments), option=orjson.OPT_SORT_KEYS))}"
    )


def _plain(value: Any) -> Any:
    """Arguments with blanks evened out, so that a space more is not another call."""
    if isinstance(value, str):
        return " ".join(value.split())
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


def _hash(data: str | bytes) -> str:
    raw = data.encode("utf-8", "replace") if isinstance(data, str) else data
    return hashlib.sha256(raw).hexdigest()[:16]
