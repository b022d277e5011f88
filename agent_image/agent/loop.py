"""The loop: ask the model, run the tools that it wants, ask again, until it has answered.

It yields steps and knows nothing of storage, requests or events. Whoever takes a step has written
it down before the loop goes on, so a killed process loses at most a step.
"""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass

from agent.batching import batched
from agent.context import Context
from agent.errors import ContextTooLong
from agent.faults import Faults
from agent.guard import LoopGuard, Verdict
from agent.providers.asking import Asking
from agent.providers.wire import Reply, Wanted
from agent.spans import Trace
from agent.text import well_formed
from agent.tools.registry import Registry
from agent.transcript import Asked, Call, Ended, Exchange, Notice, Round, Started, Step, Text, Turn
from infra.kit import ids

MAX_ROUNDS = 8
PARALLEL = 4
BATCH_S = 0.04
_REPEATED = "Refused: this only repeats what was done before. Do something else, or answer."
_NO_MORE = "Refused: no more tools in this turn. Answer with what you have."
_GAVE_UP = "I could not finish this within the number of steps that one answer may take."
_ENDED = {
    True: Notice("loop_guard", "The assistant was repeating itself and was made to answer."),
    False: Notice(
        "round_limit", f"The assistant used all {MAX_ROUNDS} rounds of tools for this answer."
    ),
}


@dataclass(frozen=True, slots=True)
class Loop:
    """Plays turns. `prepare` finds what the model is to know of the conversation and of the person."""

    asking: Asking
    tools: Registry
    prepare: Callable[[Turn, Trace], Awaitable[Context]]
    faults: Faults

    async def run(self, turn: Turn, trace: Trace) -> AsyncGenerator[Step, None]:
        """Every step from where the turn stands to its answer. Raises ModelError where the model fails."""
        guard = LoopGuard.resumed(turn.rounds, self.tools.knows)
        context = await self.prepare(turn, trace)
        yield Asked(context.model.id)
        async for step in self._finish_calls(turn, guard, trace):
            yield step
        while True:
            may_call = not guard.ended and len(turn.rounds) < MAX_ROUNDS
            if not may_call:
                yield _ENDED[guard.ended]
            reply = Reply()
            async with contextlib.aclosing(self._ask(context, turn, may_call, trace)) as parts:
                async for part in parts:
                    if isinstance(part, Reply):
                        reply = part
                        if reply.model not in ("", context.model.id):
                            yield Asked(reply.model)  # a fallback answered
                    else:
                        yield Text(part)
            self.faults.reach("after_model")
            for notice in _notices(reply):
                yield notice
            calls = _calls(reply.calls) if may_call and context.model.tools else []
            turn.rounds.append(Round(reply.text, calls))
            if not calls:
                break
            async for step in self._run_calls(turn, guard, trace):
                yield step
        if turn.shown_chars == 0 and reply.stop != "refusal":
            yield Text(_GAVE_UP)

    async def _ask(
        self, context: Context, turn: Turn, may_call: bool, trace: Trace
    ) -> AsyncGenerator[str | Reply, None]:
        """One answer; what the model finds too long is told again with less."""
        current = Exchange(turn.user_text, turn.rounds)
        while True:
            prompt = context.prompt(current, may_call=may_call)
            try:
                with trace.span("chat", **{"gen_ai.request.model": context.model.id}):
                    answer = self.asking.answer(
                        context.model, prompt, trace.headers(), may_be_empty=turn.shown_chars > 0
                    )
                    async with (
                        contextlib.aclosing(answer) as parts,
                        contextlib.aclosing(batched(parts, BATCH_S)) as batches,
                    ):
                        async for part in batches:
                            yield part
                return
            except ContextTooLong:
                smaller = context.smaller(current)
                if smaller is None:
                    raise
                context = smaller

    async def _run_calls(
        self, turn: Turn, guard: LoopGuard, trace: Trace
    ) -> AsyncGenerator[Step, None]:
        """Every call of the newest round gets its result, whatever becomes of its neighbours."""
        number = len(turn.rounds) - 1
        for position, call in enumerate(turn.rounds[-1].calls):
            yield Started(call, self.tools.title(call.name), number, position)
            call.result = self._refusal(call, guard)
            if call.result is not None:
                call.failed = True
                yield Ended(call)
        async for step in self._finish_calls(turn, guard, trace):
            yield step

    def _refusal(self, call: Call, guard: LoopGuard) -> str | None:
        """Why a call is not run, for the model to read; None: it is."""
        known = self.tools.knows(call.name)
        verdict = guard.before(call, known=known)
        if verdict is Verdict.END:
            return _NO_MORE
        if not known:
            return self.tools.unknown(call.name)
        return _REPEATED if verdict is Verdict.REFUSE else None

    async def _finish_calls(
        self, turn: Turn, guard: LoopGuard, trace: Trace
    ) -> AsyncGenerator[Step, None]:
        """Runs the calls of the newest round that have no result: side by side, told in their order."""
        open_calls = [c for one in turn.rounds[-1:] for c in one.calls if c.result is None]
        if not open_calls:
            return
        self.faults.reach("before_tool")
        async with contextlib.aclosing(self._results(open_calls, turn, trace)) as results:
            async for call, whole in results:
                self.faults.reach("after_tool")
                if note := guard.note_after(call):
                    call.result = f"{call.result}\n[{note}]"
                yield Ended(call, whole)

    async def _results(
        self, calls: Sequence[Call], turn: Turn, trace: Trace
    ) -> AsyncGenerator[tuple[Call, str | None], None]:
        width = asyncio.Semaphore(PARALLEL)

        async def one(call: Call) -> tuple[Call, str | None]:
            async with width:
                with trace.leaf("execute_tool", **{"gen_ai.tool.name": call.name}) as span:
                    done = await self.tools.run(call, turn)
                    span.error = "failed" if call.failed else None
                    return done

        tasks = [asyncio.create_task(one(call)) for call in calls]
        try:
            for task in tasks:
                yield await task
        finally:
            for task in tasks:
                task.cancel()
            # A tool that will not be cancelled must not hold the person's stop.
            await asyncio.wait(tasks, timeout=1.0)


def _calls(wanted: Sequence[Wanted]) -> list[Call]:
    """The calls of an answer, each with an id of ours and one of the model's that no neighbour has."""
    calls: list[Call] = []
    taken: set[str] = set()
    for one in wanted:
        ours = f"call_{ids.ulid()}"
        theirs = ours if not one.id or one.id in taken else one.id
        taken.add(theirs)
        arguments, problem = one.parsed()
        calls.append(Call(ours, theirs, well_formed(one.name)[:128], arguments, problem=problem))
    return calls


def _notices(reply: Reply) -> list[Notice]:
    """What the person should know about how an answer came about."""
    if reply.clamped_to is not None:
        return [
            Notice(
                "clamped",
                f"Little is left of your allowance: this answer was limited to {reply.clamped_to} tokens.",
            )
        ]
    if reply.stop == "length":
        return [Notice("length", "This answer reached the greatest length and was cut.")]
    if reply.stop == "refusal":
        return [Notice("refusal", "The model declined to answer this.")]
    return []
