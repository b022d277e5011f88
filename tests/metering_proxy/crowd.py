"""A crowd that connects and says nothing, or a byte now and then; run with a count and the paths of sockets.

At each line of its input it comes (`come`) or leaves (`go`), and prints how many of it were let in. Every other
one is slow, the rest are silent; it ends with its input.
"""

import asyncio
import contextlib
import resource
import socket
import sys
from pathlib import Path

from infra.kit import unix

_DRIP_S = 4.0  # from one byte of a slow connection to its next


async def _arrive(count: int, paths: list[Path]) -> list[socket.socket]:
    """Connects, some thousands a second: a flood is another matter than a crowd."""
    here: list[socket.socket] = []
    for number in range(count):
        here.append(await unix.connect(paths[number % len(paths)], timeout_s=60))
        if number % 25 == 0:
            await asyncio.sleep(0.005)
    return here


def _stays(one: socket.socket) -> bool:
    """Whether the other side has neither answered nor ended."""
    try:
        one.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


async def _drip(slow: list[socket.socket]) -> None:
    while slow:
        for at in range(0, len(slow), 20):
            for one in slow[at : at + 20]:
                with contextlib.suppress(OSError):
                    one.send(b"G")
            await asyncio.sleep(_DRIP_S * 20 / len(slow))


async def main(count: int, paths: list[Path]) -> None:
    """See the module."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    loop = asyncio.get_running_loop()
    here: list[socket.socket] = []
    dripping: asyncio.Task[None] | None = None
    while order := await loop.run_in_executor(None, sys.stdin.readline):
        if dripping is not None:
            dripping.cancel()
        for one in here:
            one.close()
        here = await _arrive(count, paths) if order == "come\n" else []
        dripping = asyncio.create_task(_drip(here[::2]))
        await asyncio.sleep(0.5)  # for those that are turned away to be told so
        print(sum(map(_stays, here)), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), [Path(name) for name in sys.argv[2:]]))
