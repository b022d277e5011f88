"""The cursor of a tab: `<log epoch>.<agent seq>.<spawner seq>`, opaque to the page, whole in each frame."""

import re
from dataclasses import dataclass, replace

_SHAPE = re.compile(r"([A-Za-z0-9_-]{1,64})\.([0-9]{1,15})(?:\.([0-9]{1,15}))?")
EPOCH = re.compile(r"[A-Za-z0-9_]{1,64}")
_UNKNOWN = "-"


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far a tab has come in each source. No epoch: it has seen nothing of the agent's log."""

    epoch: str | None = None
    agent_seq: int = 0
    spawner_seq: int = 0

    @classmethod
    def parse(cls, text: str | None) -> "Cursor":
        """The cursor that `text` says; the beginning for anything else, since an EventSource cannot
        be told that its id is wrong."""
        found = _SHAPE.fullmatch(text or "")
        if not found:
            return cls()
        epoch, agent_seq, spawner_seq = found.groups()
        if epoch == _UNKNOWN:
            return cls(None, 0, int(spawner_seq or 0))
        return cls(epoch, int(agent_seq), int(spawner_seq or 0))

    def __str__(self) -> str:
        return f"{self.epoch or _UNKNOWN}.{self.agent_seq}.{self.spawner_seq}"

    def with_agent(self, epoch: str, seq: int) -> "Cursor":
        """After an event of the agent's log."""
        return replace(self, epoch=epoch, agent_seq=seq)

    def with_spawner(self, seq: int) -> "Cursor":
        """After a phase of the spawner's."""
        return replace(self, spawner_seq=seq)
