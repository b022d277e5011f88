"""Listeners of tenants: one socket for each live generation, opened and closed while the meter runs."""

import asyncio
import contextlib
import logging
import os
from collections.abc import Iterable
from pathlib import Path

from starlette.types import ASGIApp

from infra.kit import ids, unix
from infra.kit.errors import AlcoveError
from metering_proxy.keys import InstanceKey
from metering_proxy.telemetry import Telemetry
from metering_proxy.tenant_side.connection import (
    Limits,
    Listener,
    TenantConnection,
    configuration,
)

_log = logging.getLogger(__name__)
SOCKET = "meter.sock"


class Listeners:
    """Every tenant's listener of this process."""

    def __init__(
        self, door: ASGIApp, sockets_dir: Path, limits: Limits, telemetry: Telemetry
    ) -> None:
        self._config = configuration(door, limits)
        self._sockets_dir, self._limits, self._telemetry = sockets_dir, limits, telemetry
        self._open: dict[tuple[str, int], tuple[Listener, asyncio.Server, Path]] = {}

    def directory(self, tenant: str, generation: int, given: str) -> str:
        """The directory, if it is that generation's own. Raises `invalid`."""
        if not ids.is_tenant_id(tenant) or not 0 < generation < 2**31:
            raise AlcoveError("invalid", "not the ids of a tenant and a generation")
        own = self._sockets_dir / "t" / tenant / str(generation) / "meter"
        if Path(given) != own:
            raise AlcoveError(
                "invalid", f"the directory must be {own}", reason="directory", given=given
            )
        return str(own)

    async def open(self, key: InstanceKey) -> None:
        """Binds the generation's socket, anew if it was bound before; connections there live on.

        Raises `invalid` (reason `directory`) where the directory is not there.
        """
        path = Path(key.directory) / SOCKET
        held = self._open.get((key.tenant, key.generation))
        listener = held[0] if held else self._listener(key)
        loop = asyncio.get_running_loop()
        try:
            sock = unix.bind(path)
        except OSError as error:
            raise AlcoveError(
                "invalid", f"cannot listen in {key.directory}: {error.strerror}", reason="directory"
            ) from error
        server = await loop.create_unix_server(
            lambda: TenantConnection(self._config, listener), sock=sock, backlog=unix.BACKLOG
        )
        self._open[key.tenant, key.generation] = (listener, server, path)
        if held is not None:
            held[1].close()

    async def open_all(self, keys: Iterable[InstanceKey]) -> None:
        """Binds the sockets of all live generations, at start. One that cannot be bound is logged and left."""
        for key in keys:
            try:
                await self.open(key)
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
        """Ends a generation's listener and cuts its connections; its calls are settled by those who run them."""
        held = self._open.pop((tenant, generation), None)
        if held is None:
            return
        listener, server, path = held
        server.close()
        with contextlib.suppress(OSError):
            directory = unix.open_directory(path.parent)
            try:
                os.unlink(path.name, dir_fd=directory)
            finally:
                os.close(directory)
        for connection in list(listener.state.connections):
            connection.transport.close()

    async def shut(self, grace_s: float) -> None:
        """Ends all: no new connections, up to `grace_s` for calls under way, then they are cut and settle.

        Socket files stay: the next process binds over them.
        """
        tasks = self._stop_listening()
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late, timeout=5)
        self._open.clear()

    def _stop_listening(self) -> set[asyncio.Task[None]]:
        tasks: set[asyncio.Task[None]] = set()
        for listener, server, _ in self._open.values():
            server.close()
            for connection in list(listener.state.connections):
                connection.shutdown()
            tasks |= listener.state.tasks
        return tasks

    def _listener(self, key: InstanceKey) -> Listener:
        return Listener(key.tenant, key.generation, self._limits, self._telemetry)
