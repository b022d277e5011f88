"""What a model is told in one call: stable beginning first, history within a budget, the volatile last.

The stored conversation is never changed here; what does not fit is left out of this call only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agent import memory, prompts
from agent.dialogue import Dialogue, size
from agent.memory import Recalled
from agent.providers.models import Model
from agent.providers.wire import Prompt, ToolSpec
from agent.text import estimate_tokens
from agent.transcript import Exchange

_ANSWER_MAX_TOKENS = 4096
_HISTORY_MAX_TOKENS = 24_000
_DEMO_HISTORY_TOKENS = 600
_MARGIN_TOKENS = 200
_EXCERPT_CHARS = 400
_DEMO_EXCERPT_CHARS = 160


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that stays the same during one turn. `shrink`: how often its room has been halved."""

    model: Model
    now_at: int
    recalled: Recalled
    history: Sequence[Exchange]
    tools: Sequence[ToolSpec]
    shrink: int = 0

    def smaller(self) -> "Context":
        """The same with half the room, for a model that found the last prompt too long."""
        return replace(self, shrink=self.shrink + 1)

    def prompt(self, current: Exchange, *, may_call: bool = True) -> Prompt:
        """The next call of the current exchange.

        `may_call` False: the answer must be text. Raises ContextTooLong where the current exchange
        does not fit however short its parts are made.
        """
        model, profile = self.model, self.model.profile
        answer = profile.max_tokens if profile else min(model.max_output_tokens, _ANSWER_MAX_TOKENS)
        tools = self.tools if model.tools else ()
        system = self._system()
        room = model.context_tokens - answer - _MARGIN_TOKENS - estimate_tokens(system)
        room -= sum(estimate_tokens(f"{t.description}{t.parameters}") for t in tools)
        dialogue = Dialogue(self._preface(), with_calls=model.tools)
        messages = dialogue.messages(
            self._history_within(min(room, self._history_cap()) >> self.shrink, current),
            current,
            room_tokens=room >> self.shrink,
            may_call=may_call,
        )
        return Prompt(
            system=system,
            messages=messages,
            tools=tools,
            may_call=may_call,
            max_tokens=answer,
            temperature=profile.temperature if profile else None,
        )

    def _history_cap(self) -> int:
        return _DEMO_HISTORY_TOKENS if self.model.profile else _HISTORY_MAX_TOKENS

    def _history_within(self, room_tokens: int, current: Exchange) -> Sequence[Exchange]:
        """The newest exchanges that fit beside the current one, whole, without a hole between them."""
        left = room_tokens - size(current)
        kept: list[Exchange] = []
        for exchange in reversed(self.history):
            left -= size(exchange)
            if left < 0:
                break
            kept.append(exchange)
        return kept[::-1]

    def _system(self) -> str:
        """The system prompt. For a demonstration model it holds what is remembered, within its limit."""
        profile = self.model.profile
        if profile is None:
            return prompts.SYSTEM
        lines = [prompts.DEMO, f"Today is {_date(self.now_at)}."]
        known = [f"- {fact.text}" for fact in self.recalled.facts]
        known += [
            f"- {memory.excerpt_line(e, _DEMO_EXCERPT_CHARS)}" for e in self.recalled.excerpts[:1]
        ]
        if known:
            lines += ["", "What the user told you before:", *known]
        while len(lines) > 1 and estimate_tokens("\n".join(lines)) > profile.system_max_tokens:
            lines.pop()
        return "\n".join(lines)

    def _preface(self) -> str:
        """The volatile block before the person's message: after the history, so that all before it is cached."""
        if self.model.profile is not None:
            return ""
        lines = [f"Now: {_date(self.now_at)}, {_clock(self.now_at)} UTC."]
        if self.recalled.facts:
            lines.append("What the person told you about themselves:")
            lines += [
                f"- {memory.day(f.created_at)}: {_fenced(f.text)}" for f in self.recalled.facts
            ]
        if self.recalled.excerpts:
            lines.append("From other conversations, perhaps related:")
            lines += [
                f"- {_fenced(memory.excerpt_line(e, _EXCERPT_CHARS))}"
                for e in self.recalled.excerpts
            ]
        return "\n".join(("<context>", *lines, "</context>", "", ""))


def _fenced(text: str) -> str:
    """Recalled text cannot close the block that it stands in."""
    return text.replace("<", "‹").replace(">", "›")


def _date(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%A, %-d %B %Y")


def _clock(at: int) -> str:
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%H:%M")
