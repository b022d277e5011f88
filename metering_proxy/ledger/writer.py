"""The one writer of the ledger: takes whatever waits, commits it as one batch, tells each caller what came of it.

Batches form by themselves: while one is being committed the next one gathers. What nobody waits for (settlements,
releases, renewals) waits a moment for a hold to be committed with: a caller's next call then pays for one commit,
not for two. What must not be lost is tried again until it is committed or the process ends, when the sweeper takes
over.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ops import Answer, Op, Release, Renew, Reserve, Reserved, Settle, Sweep
from metering_proxy.ledger.stores import Away, Store

_log = logging.getLogger(__name__)
_BATCH = 256
# Answers told in one turn of the event loop: each lets a call run on, and events of streams wait meanwhile.
_TOLD_AT_ONCE = 8
_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_LASTING = (Settle, Release)
_LEISURELY = (Settle, Release, Renew)
# How long those wait for company, and how many of them are company enough.
_LEISURE_S, _COMPANY = 0.002, 16


@dataclass(slots=True)
class _Waiting:
    op: Op
    answer: asyncio.Future[Any]
    tries: int = 0


class Writer:
    """Hands operations to the store in the order in which they came."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._queue: deque[_Waiting] = deque()
        self._untold: deque[tuple[_Waiting, Answer]] = deque()
        self._due = asyncio.Event()
        self._soon: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    def start(self) -> None:
        """Begins, in a task of the running loop."""
        self._task = asyncio.create_task(self._run(), name="ledger-writer")

    def submit(self, op: Op) -> asyncio.Future[Any]:
        """Queues `op`. The answer need not be awaited: the operation happens whoever goes away meanwhile.

        Raises `unavailable` (reason `ledger`) by the answer where the database does not take it.
        """
        waiting = _Waiting(op, asyncio.get_running_loop().create_future())
        if self._closing:
            _refuse(waiting)
        else:
            self._queue.append(waiting)
            self._plan(op)
        return waiting.answer

    def _plan(self, op: Op) -> None:
        """Says when the queue is committed, now that `op` is in it."""
        if not isinstance(op, _LEISURELY) or len(self._queue) >= _COMPANY:
            self._due.set()
        elif self._soon is None:
            self._soon = asyncio.get_running_loop().call_later(_LEISURE_S, self._due.set)

    async def close(self, timeout_s: float = 10.0) -> None:
        """Commits what waits, within `timeout_s`; what is left then is the sweeper's."""
        self._closing = True
        self._due.set()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=timeout_s)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task})
        while self._untold:
            self._tell(*self._untold.popleft())
        await self._store.close()

    async def _run(self) -> None:
        while self._queue or not self._closing:
            await self._due.wait()
            batch = self._take()
            if batch:
                await self._commit(batch)

    def _take(self) -> list[_Waiting]:
        """What is committed next. A sweep locks many accounts, so it goes alone."""
        batch: list[_Waiting] = []
        while self._queue and len(batch) < _BATCH:
            if batch and (isinstance(batch[0].op, Sweep) or isinstance(self._queue[0].op, Sweep)):
                break
            batch.append(self._queue.popleft())
        if not self._queue and not self._closing:
            self._due.clear()
        if self._soon is not None:
            self._soon.cancel()
            self._soon = None
        return batch

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        answers = await apply_each(self._store, [waiting.op for waiting in batch])
        away: list[_Waiting] = []
        for waiting, answer in zip(batch, answers, strict=True):
            if isinstance(answer, Away):
                away.append(waiting)
            elif isinstance(answer, Exception):
                _log.error(
                    "ledger operation failed",
                    exc_info=answer,
                    extra={"op": type(waiting.op).__name__},
                )
                _refuse(waiting)
            else:
                self._untold.append((waiting, answer))
        self._tell_some()
        if away:
            await self._put_off(away)

    def _tell_some(self) -> None:
        for _ in range(min(len(self._untold), _TOLD_AT_ONCE)):
            self._tell(*self._untold.popleft())
        if self._untold:
            asyncio.get_running_loop().call_soon(self._tell_some)

    def _tell(self, waiting: _Waiting, answer: Answer) -> None:
        if not waiting.answer.cancelled():
            waiting.answer.set_result(answer)
        elif isinstance(answer, Reserved) and isinstance(waiting.op, Reserve):
            self.submit(Release(waiting.op.request_id))

    async def _put_off(self, batch: Sequence[_Waiting]) -> None:
        """The database is away: what must not be lost waits and is tried again, first of all."""
        _log.warning("ledger is away", extra={"size": len(batch)})
        again = []
        for waiting in batch:
            waiting.tries += 1
            if isinstance(waiting.op, _LASTING):
                again.append(waiting)
            else:
                _refuse(waiting)
        if again:
            self._queue.extendleft(reversed(again))
            self._due.set()
            await asyncio.sleep(_RETRY_S[min(again[0].tries, len(_RETRY_S)) - 1])


async def apply_each(store: Store, ops: Sequence[Op]) -> list[Answer | Exception]:
    """An answer for each operation, or what went wrong with that one; `Away` with those that have to wait.

    One at fault spoils its batch: then each is done by itself, so that it takes nobody else along.
    """
    try:
        return [*await store.apply(ops)]
    except Away as away:
        return [away] * len(ops)
    except Exception as error:
        if len(ops) == 1:
            return [error]
    answers: list[Answer | Exception] = []
    for op in ops:
        answers += await apply_each(store, [op])
    return answers


def _refuse(waiting: _Waiting) -> None:
    if not waiting.answer.done():
        waiting.answer.set_exception(_unavailable())
        waiting.answer.exception()  # seen: an answer that nobody awaits is no accident


def _unavailable() -> AlcoveError:
    return AlcoveError(
        "unavailable",
        "the ledger cannot be written at this moment",
        reason="ledger",
        retry_after_s=1,
    )
