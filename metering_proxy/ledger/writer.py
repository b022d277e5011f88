"""The one writer of the ledger: takes whatever waits, commits it as one batch, tells each caller what came of it.

Batches form by themselves: while one is being committed the next one gathers. What must not be lost (settlements,
releases, renewals) is tried again until it is committed or the process ends, when the sweeper takes over.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from infra.kit.errors import AlcoveError
from metering_proxy.ledger.ops import Op, Release, Reserve, Reserved, Settle, Sweep
from metering_proxy.ledger.stores import Result, Store

_log = logging.getLogger(__name__)
_BATCH = 256
_RETRY_S = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
_LASTING = (Settle, Release)


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
        self._wake = asyncio.Event()
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
        waiting.answer.add_done_callback(_seen)
        if self._closing:
            waiting.answer.set_exception(_unavailable())
        else:
            self._queue.append(waiting)
            self._wake.set()
        return waiting.answer

    async def close(self, timeout_s: float = 10.0) -> None:
        """Commits what waits, within `timeout_s`; what is left then is the sweeper's."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            done, _ = await asyncio.wait({self._task}, timeout=timeout_s)
            if not done:
                self._task.cancel()
                await asyncio.wait({self._task})
        await self._store.close()

    async def _run(self) -> None:
        while True:
            while self._queue:
                await self._commit(self._take())
            if self._closing:
                return
            self._wake.clear()
            await self._wake.wait()

    def _take(self) -> list[_Waiting]:
        """What is committed next. A sweep locks many accounts, so it goes alone."""
        batch = [self._queue.popleft()]
        while self._queue and len(batch) < _BATCH:
            if isinstance(batch[0].op, Sweep) or isinstance(self._queue[0].op, Sweep):
                break
            batch.append(self._queue.popleft())
        return batch

    async def _commit(self, batch: Sequence[_Waiting]) -> None:
        try:
            answers = await self._store.apply([waiting.op for waiting in batch])
        except Exception as error:
            await self._failed(batch, error)
            return
        for waiting, answer in zip(batch, answers, strict=True):
            self._tell(waiting, answer)

    def _tell(self, waiting: _Waiting, answer: Result) -> None:
        if isinstance(answer, Exception):
            _log.error(
                "ledger operation failed",
                exc_info=answer,
                extra={"op": type(waiting.op).__name__},
            )
            answer = _unavailable()
        if waiting.answer.cancelled():
            if isinstance(waiting.op, Reserve) and isinstance(answer, Reserved):
                self.submit(Release(waiting.op.request_id))
        elif isinstance(answer, Exception):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)

    async def _failed(self, batch: Sequence[_Waiting], error: Exception) -> None:
        """The transaction failed as a whole: what must not be lost waits and is tried again, first of all."""
        _log.warning(
            "ledger batch failed", extra={"error": type(error).__name__, "size": len(batch)}
        )
        again = [waiting for waiting in batch if isinstance(waiting.op, _LASTING)]
        for waiting in batch:
            waiting.tries += 1
            if waiting not in again and not waiting.answer.done():
                waiting.answer.set_exception(_unavailable())
        if again:
            self._queue.extendleft(reversed(again))
            await asyncio.sleep(_RETRY_S[min(again[0].tries, len(_RETRY_S)) - 1])


def _unavailable() -> AlcoveError:
    return AlcoveError(
        "unavailable",
        "the ledger cannot be written at this moment",
        reason="ledger",
        retry_after_s=1,
    )


def _seen(answer: asyncio.Future[Any]) -> None:
    """An answer that nobody awaits is no accident."""
    with contextlib.suppress(asyncio.CancelledError):
        answer.exception()
