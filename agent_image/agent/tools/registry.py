"""Which tools there are, and how one is run: checked, timed, capped. A failure is always a result."""

import asyncio
import difflib
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent.providers.wire import ToolSpec
from agent.store.database import Database
from agent.text import cut, cut_end, well_formed
from agent.tools.schema import checked, schema_of
from agent.transcript import Call, Turn
from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError

log = logging.getLogger(__name__)

RESULT_MAX_CHARS = 16_000
_HEAD_CHARS = 11_000
_TAIL_CHARS = 4_500


@dataclass(frozen=True, slots=True)
class Context:
    """What a tool gets besides its arguments: where it works, and for which turn and call."""

    db: Database
    clock: Clock
    turn: Turn
    call_id: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool. `title` is what the person reads while it runs.

    `repeatable`: running the same call again does no harm, so a turn cut off by a restart may run
    it again. False: its effect is unknown then, and the turn ends as interrupted.
    """

    name: str
    title: str
    description: str
    parameters: dict[str, Any]
    run: Callable[..., Awaitable[str]]
    repeatable: bool
    timeout_s: float


def tool(
    title: str, *, repeatable: bool, timeout_s: float = 30.0
) -> Callable[[Callable[..., Awaitable[str]]], Tool]:
    """Makes a tool of `async def name(context, *, arguments…) -> str` and its docstring."""

    def make(function: Callable[..., Awaitable[str]]) -> Tool:
        return Tool(
            name=function.__name__,
            title=title,
            description=inspect.cleandoc(function.__doc__ or ""),
            parameters=schema_of(function),
            run=function,
            repeatable=repeatable,
            timeout_s=timeout_s,
        )

    return make


class Registry:
    """The tools of this agent, by name."""

    def __init__(self, tools: Iterable[Tool], db: Database, clock: Clock) -> None:
        self._tools = {one.name: one for one in sorted(tools, key=lambda one: one.name)}
        self._db = db
        self._clock = clock

    def specs(self) -> Sequence[ToolSpec]:
        """Every tool as the model is told of it, always in the same order (the prompt's prefix is cached)."""
        return [ToolSpec(t.name, t.description, t.parameters) for t in self._tools.values()]

    def knows(self, name: str) -> bool:
        """Whether there is a tool of this name."""
        return name in self._tools

    def title(self, name: str) -> str:
        """What the person reads about a call of this tool."""
        return self._tools[name].title if name in self._tools else name[:64]

    def repeatable(self, name: str) -> bool:
        """Whether a call that may have run can be run again."""
        return name not in self._tools or self._tools[name].repeatable

    def unknown(self, name: str) -> str:
        """What a model is told that called a tool which does not exist: the closest names."""
        close = difflib.get_close_matches(name, self._tools, n=3, cutoff=0.0)
        return f"There is no tool named {name[:64]!r}. The closest: {', '.join(close) or 'none'}."

    async def run(self, call: Call, turn: Turn) -> tuple[Call, str | None]:
        """Runs a call and puts its result into it; the second part is the whole text of a shortened result.

        Never raises but for cancellation: whatever goes wrong is a result that says so.
        """
        found = self._tools[call.name]
        try:
            if call.problem is not None:
                raise AlcoveError("invalid", call.problem)
            arguments = checked(found.parameters, call.arguments)
            context = Context(self._db, self._clock, turn, call.id)
            async with asyncio.timeout(found.timeout_s):
                text = await found.run(context, **arguments)
        except TimeoutError:
            return _failed(
                call, f"{call.name} took longer than {found.timeout_s:g} s and was stopped."
            ), None
        except AlcoveError as error:
            return _failed(call, f"{call.name}: {error.message}"), None
        except Exception as error:
            # The text of an unexpected error may hold what a person wrote: it goes to the model, not to the log.
            log.warning("a tool failed", extra={"tool": call.name, "error": type(error).__name__})
            return _failed(
                call, f"{call.name} failed: {str(error)[:500] or type(error).__name__}"
            ), None
        whole = well_formed(text)
        call.result = shortened(whole, call.id)
        return call, whole if len(whole) > RESULT_MAX_CHARS else None


def _failed(call: Call, message: str) -> Call:
    call.failed = True
    call.result = shortened(well_formed(f"Error: {message}"), call.id)
    return call


def shortened(text: str, handle: str) -> str:
    """A result as it enters the conversation: whole up to 16,000 characters, else head, handle and tail."""
    if len(text) <= RESULT_MAX_CHARS:
        return text
    head, tail = cut(text, _HEAD_CHARS), cut_end(text, _TAIL_CHARS)
    left_out = len(text) - len(head) - len(tail)
    middle = f'[{left_out} characters left out; read them with read_result(handle="{handle}", start={len(head)})]'
    return f"{head}\n{middle}\n{tail}"
