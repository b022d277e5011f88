"""Real processes for the tests that are about several of them."""

import asyncio
import multiprocessing
from collections.abc import Callable


async def at_once(
    work: Callable[..., None], *arguments: object, count: int = 4
) -> list[int | None]:
    """Runs `work` in `count` new processes at the same time; answers their exit codes."""
    context = multiprocessing.get_context("spawn")
    started = [context.Process(target=work, args=arguments) for _ in range(count)]
    for process in started:
        process.start()
    for process in started:
        await asyncio.to_thread(process.join, 60)
    return [process.exitcode for process in started]
