"""Turns at work: a lane a conversation, each turn from queued to exactly one ending.

A turn belongs to the agent, not to the request that made it. What is durable lies in the database;
the tasks here only carry it on, and a restarted agent takes it up from there (`recover`).
"""

import asyncio
import contextlib
import logging
import traceback
from collections.abc import Callable

from agent import journal
from agent.journal import Ending
from agent.loop import Loop
from agent.spans import Spans
from agent.store import turns
from agent.store.database import Database, Tx
from agent.tools.registry import Registry
from agent.transcript import Step, Turn
from infra.kit.errors import AlcoveError
from infra.kit.log import bound

log = logging.getLogger(__name__)

TURN_MAX_S = 300.0
_RESUMES = 2
_STOP = Ending("stopped", "cancelled")
_INTERRUPTED = Ending(
    "interrupted", "interrupted", "interrupted",
    "The assistant was restarted while it answered.", retryable=True,
)  # fmt: skip


class Turns:
    """Runs queued turns, one at a time in each conversation."""

    def __init__(self, db: Database, loop: Loop, tools: Registry, spans: Spans) -> None:
        self._db = db
        self._loop = loop
        self._tools = tools
        self._spans = spans
        self._lanes: dict[str, asyncio.Task[None]] = {}
        self._again: set[str] = set()
        self._running: dict[str, asyncio.Task[None]] = {}
        self._leaving = False

    @property
    def leaving(self) -> bool:
        """Whether this process is about to end and takes no new turn."""
        return self._leaving

    def wake(self, conversation_id: str) -> None:
        """Sees to it that what is queued in a conversation will run."""
        self._again.add(conversation_id)
        if conversation_id not in self._lanes and not self._leaving:
            self._lanes[conversation_id] = asyncio.create_task(self._lane(conversation_id))

    async def recover(self) -> None:
        """Takes up what a former process left: each running turn goes on or ends as interrupted, then lanes run.

        It goes on where the person has seen no word of it and every call that may have run can run
        again; and not for a third time, since the turn itself may be what kills the process.
        """
        for row in await self._db.read(lambda tx: turns.with_state(tx, "running")):
            await self._db.write(self._recovery(row["id"]), durable=True)
        for row in await self._db.read(lambda tx: turns.with_state(tx, "queued")):
            self.wake(row["conversation_id"])

    def _recovery(self, turn_id: str) -> Callable[[Tx], None]:
        def recover(tx: Tx) -> None:
            row = turns.get(tx, turn_id)
            turn = turns.load(tx, row)
            unknown = [
                call.name
                for one in turn.rounds
                for call in one.calls
                if call.result is None and not self._tools.repeatable(call.name)
            ]
            if row["cancel_requested"]:
                journal.finish(tx, turn, _STOP)
            elif turn.shown_chars or unknown or row["resumes"] >= _RESUMES:
                journal.finish(tx, turn, _INTERRUPTED)
            else:
                tx.run(
                    "UPDATE turn SET state = 'queued', resumes = resumes + 1 WHERE id = ?", turn_id
                )

        return recover

    async def cancel(self, turn_id: str) -> bool:
        """Stops a turn, keeping what was said; False where it had ended, and then nothing happens.

        The wish is stored first, so that it outlives this process. Raises `not_found`.
        """

        def wish(tx: Tx) -> str:
            row = turns.get(tx, turn_id)
            if row["state"] in ("queued", "waiting"):
                journal.finish(tx, turns.load(tx, row), _STOP)
            else:
                tx.run("UPDATE turn SET cancel_requested = 1 WHERE id = ?", turn_id)
            return str(row["state"])

        state = await self._db.write(wish, durable=True)
        if state == "running" and (task := self._running.get(turn_id)):
            task.cancel()
        return state in ("queued", "running", "waiting")

    async def cancel_all(self, conversation_id: str) -> None:
        """Stops every turn of a conversation and waits until its lane is empty."""
        rows = await self._db.read(lambda tx: turns.with_state(tx, "queued", "running", "waiting"))
        for row in reversed(rows):
            if row["conversation_id"] == conversation_id:
                await self.cancel(row["id"])
        if lane := self._lanes.get(conversation_id):
            await asyncio.wait({lane}, timeout=2.0)

    async def drain(self, timeout_s: float) -> None:
        """Takes no new turn, lets running ones end for `timeout_s`, and leaves the rest to the next start."""
        self._leaving = True
        if self._running:
            await asyncio.wait(set(self._running.values()), timeout=timeout_s)
        for task in list(self._running.values()):
            task.cancel()
        if self._lanes:
            await asyncio.wait(set(self._lanes.values()), timeout=1.0)

    async def _lane(self, conversation_id: str) -> None:
        try:
            while conversation_id in self._again and not self._leaving:
                self._again.discard(conversation_id)
                while not self._leaving:
                    turn = await self._db.write(lambda tx: _next(tx, conversation_id))
                    if turn is None:
                        break
                    with bound(turn=turn.id, request_id=turn.request_id):
                        await self._run(turn)
        except Exception as error:
            # What could not be written now is taken up by the next start.
            log.error("a lane broke", extra={"error": type(error).__name__})
        finally:
            del self._lanes[conversation_id]

    async def _run(self, turn: Turn) -> None:
        """Plays a turn to its ending; one that is cut off because the process ends keeps none."""
        task = self._running[turn.id] = asyncio.create_task(self._play(turn))
        await asyncio.wait({task})
        del self._running[turn.id]
        if task.cancelled() and self._leaving:
            return
        ending = _STOP if task.cancelled() else _ending(task.exception())
        self._loop.faults.reach("before_reply_publish")
        await self._db.write(lambda tx: journal.finish(tx, turn, ending), durable=True)
        log.info("turn ended", extra={"outcome": ending.outcome, "reason": ending.reason})

    async def _play(self, turn: Turn) -> None:
        """Writes each step down before the loop takes the next."""
        trace = self._spans.trace(turn.traceparent, turn.request_id)
        with trace.span("invoke_agent", turn=turn.id):
            async with (
                asyncio.timeout(TURN_MAX_S),
                contextlib.aclosing(self._loop.run(turn, trace)) as steps,
            ):
                async for step in steps:
                    await self._record(turn, step)

    async def _record(self, turn: Turn, step: Step) -> None:
        await self._db.write(lambda tx: journal.record(tx, turn, step))


def _next(tx: Tx, conversation_id: str) -> Turn | None:
    """The lane's next turn, begun."""
    row = turns.next_queued(tx, conversation_id)
    if row is None:
        return None
    turn = turns.load(tx, row)
    journal.begin(tx, turn)
    return turn


def _ending(error: BaseException | None) -> Ending:
    """How a turn ended that was not stopped. Only a coded error's words reach the person; a log line gets none."""
    if error is None:
        return Ending("complete", "answered")
    if isinstance(error, TimeoutError):
        text = "This answer took too long."
        return Ending("failed", "wall_clock", "timeout", text, retryable=True)
    if isinstance(error, AlcoveError):
        retryable = error.code not in ("quota_exhausted", "forbidden", "too_large", "invalid")
        return Ending(
            "failed", "provider_error", error.code, error.message, retryable, dict(error.details)
        )
    at = traceback.extract_tb(error.__traceback__)[-1]
    log.error(
        "a turn failed",
        extra={"error": type(error).__name__, "where": f"{at.filename}:{at.lineno}"},
    )
    return Ending("failed", "internal", "internal", "Something went wrong inside.", retryable=True)
