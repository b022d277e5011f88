"""Waiting for a condition, so that no test sleeps to wait."""

import asyncio
import inspect
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")


async def until(
    condition: Callable[[], T | Awaitable[T]],
    *,
    timeout_s: float = 10.0,
    what: str = "the condition",
) -> T:
    """The first true answer of `condition`, asked every few milliseconds; fails after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while True:
        found = condition()
        answer = await found if inspect.isawaitable(found) else found
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout_s:g} s")
        await asyncio.sleep(0.01)


def until_sync(
    condition: Callable[[], T], *, timeout_s: float = 10.0, what: str = "the condition"
) -> T:
    """As `until`, outside of an event loop."""
    deadline = time.monotonic() + timeout_s
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not come true within {timeout_s:g} s")
        time.sleep(0.01)


async def stretch(seconds: float) -> None:
    """Lets real time pass, to measure something over it. Never to wait for something: that is `until`."""
    await asyncio.sleep(seconds)
