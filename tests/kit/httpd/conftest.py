"""Every test of this room runs on both event loops."""

import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """The loops a test runs on: Python's own, and the one that services use."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
