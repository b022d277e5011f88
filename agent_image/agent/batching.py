"""Gathers a stream of small texts into fewer, larger ones, without holding the first one back."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TypeVar

T = TypeVar("T")


async def batched(parts: AsyncIterator[str | T], window_s: float) -> AsyncGenerator[str | T, None]:
    """The same texts in the same order, joined where they come within `window_s` of the last one given.

    The first text after a pause passes at once, and so does whatever is not text (or an error),
    behind the text before it. Being left early or cancelled ends the reading of the source.
    """
    loop = asyncio.get_running_loop()
    held: list[str] = []
    due_s = 0.0
    coming: asyncio.Task[str | T | None] | None = None
    try:
        while True:
            coming = coming or asyncio.create_task(_next(parts))
            await asyncio.wait({coming}, timeout=max(0.0, due_s - loop.time()) if held else None)
            if held and (loop.time() >= due_s or not _is_text(coming)):
                yield "".join(held)
                held, due_s = [], loop.time() + window_s
            if not coming.done():
                continue
            part, coming = coming.result(), None
            if part is None:
                return
            if isinstance(part, str):
                held.append(part)
            else:
                yield part
    finally:
        if coming is not None:
            coming.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await coming


async def _next(parts: AsyncIterator[str | T]) -> str | T | None:
    try:
        return await anext(parts)
    except StopAsyncIteration:
        return None


def _is_text(coming: asyncio.Task[str | T | None]) -> bool:
    return coming.done() and coming.exception() is None and isinstance(coming.result(), str)
