"""What a model is told in one call: stable beginning first, history within a budget, the volatile last.

The stored conversation is never changed here; what does not fit is left out of this call only.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from agent import memory, prompts
from agent.dialogue import Dialogue, can_squeeze, size
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
# Without it a model of 135 million parameters says one line until its limit (tried).
_DEMO_FREQUENCY_PENALTY = 0.5


@dataclass(frozen=True, slots=True)
class Context:
    """Everything that stays the same during one turn.

    `kept`: at most so many past exchanges, `squeezed`: with short results, for a model that found
    more too long.
    """

    model: Model
    now_at: int
    recalled: Recalled
    history: Sequence[Exchange]
    tools: Sequence[ToolSpec]
    kept: int = 1_000
    squeezed: bool = False

    def smaller(self, current: Exchange) -> "Context | None":
        """A context whose prompt is strictly smaller; None where there is nothing left to leave out.

        Eight, four, two exchanges and the current one alone, then its results made short: with the
        first at most six calls, and no model is needed to summarise anything.
        """
        told = len(self._history_within(self._room()[0], current))
        if told:
            return replace(self, kept=max(n for n in (7, 3, 1, 0) if n < told))
        if self.model.tools and not self.squeezed and can_squeeze(current):
            return replace(self, squeezed=True)
        return None

    def prompt(self, current: Exchange, *, may_call: bool = True) -> Prompt:
        """The next call of the current exchange.

        `may_call` False: the answer must be text. Raises ContextTooLong where the current exchange
        does not fit however short its parts are made.
        """
        model, profile = self.model, self.model.profile
        history_room, room = self._room()
        dialogue = Dialogue(self._preface(), with_calls=model.tools, squeezed=self.squeezed)
        messages = dialogue.messages(
            self._history_within(history_room, current),
            current,
            room_tokens=room,
            may_call=may_call,
        )
        return Prompt(
            system=self._system(),
            messages=messages,
            tools=self.tools if model.tools else (),
            may_call=may_call,
            max_tokens=self._answer_tokens(),
            temperature=profile.temperature if profile else None,
            frequency_penalty=_DEMO_FREQUENCY_PENALTY if profile else None,
        )

    def _answer_tokens(self) -> int:
        profile = self.model.profile
        return (
            profile.max_tokens if profile else min(self.model.max_output_tokens, _ANSWER_MAX_TOKENS)
        )

    def _room(self) -> tuple[int, int]:
        """Tokens for history and current exchange together, and for the current exchange alone."""
        room = self.model.context_tokens - self._answer_tokens() - _MARGIN_TOKENS
        room -= estimate_tokens(self._system())
        if self.model.tools:
            room -= sum(estimate_tokens(f"{t.description}{t.parameters}") for t in self.tools)
        return min(room, self._history_cap()), room

    def _history_cap(self) -> int:
        return _DEMO_HISTORY_TOKENS if self.model.profile else _HISTORY_MAX_TOKENS

    def _history_within(self, room_tokens: int, current: Exchange) -> Sequence[Exchange]:
        """The newest exchanges that fit beside the current one, whole, without a hole between them."""
        left = room_tokens - size(current)
        kept: list[Exchange] = []
        for exchange in reversed(self.history[-self.kept :] if self.kept else ()):
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
        known = [memory.sentence(fact) for fact in self.recalled.few_facts]
        if not known:
            told = self.recalled.excerpts[:1]
            known = [memory.excerpt_line(one, _DEMO_EXCERPT_CHARS) for one in told]
        if known:
            lines += ["", "What you know about the user:", *known]
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
