"""A service's process, from the moment it serves to the signal that ends it."""

import asyncio
import gc
import signal

# New objects before the youngest are looked through, and how often that is done before older ones are.
_GARBAGE = (2_000, 10, 5)


async def run_until_signal() -> None:
    """Returns at the first SIGTERM or SIGINT.

    What has been made by now lives as long as the process, so it is taken out of the garbage collector's
    sight: no pause while serving walks over it, nor does the interpreter's end, which would need 0.4 s
    of CPU for what a service has imported and so needs 0.02 s. What a request makes goes by its count of
    references; cycles are rare, and are looked for so much more rarely than by default.
    """
    gc.freeze()
    gc.set_threshold(*_GARBAGE)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
