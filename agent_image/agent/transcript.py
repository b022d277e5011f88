"""A conversation as a model sees it: exchanges of rounds of calls. No wire format, no storage."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Call:
    """One tool call. `id` is ours; `call_id` the model's; `result` is None until it has ended.

    `problem`: why the call cannot be run as it stands (its arguments were not JSON, for one).
    """

    id: str
    call_id: str
    name: str
    arguments: dict[str, Any]
    result: str | None = None
    failed: bool = False
    problem: str | None = None


@dataclass(slots=True)
class Round:
    """One answer of the model: what it said, then the calls it asked for. No calls: it is done."""

    text: str
    calls: list[Call] = field(default_factory=list)


@dataclass(slots=True)
class Exchange:
    """A message of the person and everything that followed it."""

    user_text: str
    rounds: list[Round] = field(default_factory=list)

    @property
    def answered(self) -> bool:
        """Whether the assistant said or did anything."""
        return any(r.text or r.calls for r in self.rounds)


@dataclass(slots=True)
class Turn:
    """A turn at work. `rounds` grows as it goes; `shown_chars` is how much text the person has seen."""

    id: str
    conversation_id: str
    ordinal: int
    user_text: str
    user_message_id: str
    assistant_message_id: str
    request_id: str
    traceparent: str | None
    source: str
    created_at: int
    rounds: list[Round] = field(default_factory=list)
    shown_chars: int = 0


@dataclass(frozen=True, slots=True)
class Text:
    """A step: the model said this."""

    delta: str


@dataclass(frozen=True, slots=True)
class Started:
    """A step: this call of round number `round` is about to run."""

    call: Call
    title: str
    round: int
    position: int


@dataclass(frozen=True, slots=True)
class Ended:
    """A step: this call has its result; `whole` is the result where the model gets only a part."""

    call: Call
    whole: str | None = None


@dataclass(frozen=True, slots=True)
class Notice:
    """A step: something that the person should know about this answer."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A step: this model is answering."""

    model: str


Step = Text | Started | Ended | Notice | Asked
