"""Listeners of tenants: one socket for each live generation, opened and closed while the meter runs.

What holds before a key is shown (ARCHITECTURE, decision 1) is the matter of the kit's HTTP server: 64
connections a listener without a key, 10 s to a whole header, 30 s idle, nothing new near the file limit.
"""

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from infra.kit import httpd, ids, unix
from infra.kit.errors import AlcoveError
from metering_proxy.keys import InstanceKey
from metering_proxy.tenant_side.exchange import Exchange

_log = logging.getLogger(__name__)
SOCKET = "meter.sock"
Answer = Callable[[Exchange], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class _Open:
    """An open listener. `number`: the how-manieth that was opened."""

    listener: httpd.Listener
    path: Path
    number: int


class Listeners:
    """Every tenant's listener of this process."""

    def __init__(
        self, answer: Answer, sockets_dir: Path, limits: httpd.Limits, capacity: httpd.Capacity
    ) -> None:
        self._answer, self._sockets_dir = answer, sockets_dir
        self._limits, self._capacity = limits, capacity
        self._open: dict[tuple[str, int], _Open] = {}
        self._opened = 0
        self._closing: set[asyncio.Task[None]] = set()

    def directory(self, tenant: str, generation: int, given: str) -> str:
        """The directory, if it is that generation's own. Raises `invalid`."""
        self.check(tenant, generation)
        own = self._sockets_dir / "t" / tenant / str(generation) / "meter"
        if Path(given) != own:
            raise AlcoveError(
                "invalid", f"the directory must be {own}", reason="directory", given=given
            )
        return str(own)

    def check(self, tenant: str, generation: int) -> None:
        """Raises `invalid` for what cannot be the ids of a tenant and a generation."""
        if not ids.is_tenant_id(tenant) or not 0 < generation < 2**31:
            raise AlcoveError("invalid", "not the ids of a tenant and a generation")

    async def open(self, tenant: str, generation: int, directory: str) -> None:
        """Binds the generation's socket, anew if it was bound before: the directory may be another one by now.

        Raises `invalid` (reason `directory`) where it cannot.
        """
        path = Path(directory) / SOCKET
        try:
            sock = unix.bind(path)
        except OSError as error:
            raise AlcoveError(
                "invalid", f"cannot listen in {directory}: {error.strerror}", reason="directory"
            ) from error
        listener = await self.serve(sock, tenant, generation)
        held = self._open.get((tenant, generation))
        self._opened += 1
        self._open[tenant, generation] = _Open(listener, path, self._opened)
        if held is not None:
            self._retire(held.listener)

    async def serve(self, sock: socket.socket, tenant: str, generation: int) -> httpd.Listener:
        """Answers that generation's calls on a socket that listens already; whoever asks for it closes it."""
        handler = self._handler(tenant, generation)
        return await httpd.listen(
            sock, handler, connect=handler, limits=self._limits, capacity=self._capacity
        )

    async def open_all(self, keys: Iterable[InstanceKey]) -> None:
        """Binds the sockets of all live generations, at start; one that cannot be bound is logged.

        Generations whose directory is not below ours belong to another process.
        """
        for key in keys:
            if not Path(key.directory).is_relative_to(self._sockets_dir):
                continue
            try:
                await self.open(key.tenant, key.generation, key.directory)
            except AlcoveError as error:
                _log.warning(
                    "listener not bound",
                    extra={
                        "tenant": key.tenant,
                        "generation": key.generation,
                        "problem": error.message,
                    },
                )

    async def close(self, tenant: str, generation: int) -> None:
        """Ends a generation's listener and cuts its connections; calls that run there settle all the same."""
        held = self._open.pop((tenant, generation), None)
        if held is None:
            return
        listener, path = held.listener, held.path
        with contextlib.suppress(OSError):
            directory = unix.open_directory(path.parent)
            try:
                os.unlink(path.name, dir_fd=directory)
            finally:
                os.close(directory)
        await listener.close(grace_s=0)

    @property
    def tenants(self) -> set[str]:
        """Whose listeners are open here."""
        return {tenant for tenant, _ in self._open}

    @property
    def opened(self) -> int:
        """How many were opened so far: whoever reads keys notes it first."""
        return self._opened

    async def keep(self, tenant: str, generations: Collection[int], opened: int) -> None:
        """Ends the listeners of the tenant's other generations: another process has ended their keys.

        But for those that were opened after `opened` were: their keys may be newer than what was read.
        """
        for (one, generation), held in list(self._open.items()):
            other = one == tenant and generation not in generations
            if other and held.number <= opened:
                await self.close(tenant, generation)

    async def shut(self, grace_s: float) -> None:
        """Ends all: no new connections, up to `grace_s` for answers under way, then they are cut.

        Socket files stay: the next process binds over them.
        """
        listeners = [held.listener for held in self._open.values()]
        self._open.clear()
        await asyncio.gather(*(listener.close(grace_s=grace_s) for listener in listeners))
        await asyncio.gather(*self._closing)

    def _handler(self, tenant: str, generation: int) -> httpd.Handler:
        async def handle(request: httpd.Request) -> None:
            await self._answer(Exchange(request, tenant, generation))

        return handle

    def _retire(self, listener: httpd.Listener) -> None:
        task = asyncio.create_task(listener.close(grace_s=30))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)
