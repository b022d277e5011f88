"""Which streams are open in this process, and how they are told that something changed or that it is over."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from gateway.accounts import sessions
from gateway.limits import Limits
from infra.kit.db import Database
from infra.kit.errors import AlcoveError

What = Literal["pending", "quota", "instance"]
Ending = Literal["signed_out", "suspended", "closing"]


@dataclass(eq=False)
class Listener:
    """One open stream: what it has not told its tab yet, and why it must end."""

    session_id: str
    tenant: str
    changed: set[What] = field(default_factory=set)
    ending: Ending | None = None
    signal: asyncio.Event = field(default_factory=asyncio.Event)
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def tell(self, what: What) -> None:
        """Something changed."""
        self.changed.add(what)
        self.signal.set()

    def end(self, why: Ending) -> None:
        """It is over."""
        self.ending = self.ending or why
        self.signal.set()
        self.over.set()


class Hub:
    """The open streams. Ending a session here is at once; `watch` finds what other processes ended."""

    def __init__(self, db: Database, limits: Limits) -> None:
        self._db, self._limits = db, limits
        self._listeners: set[Listener] = set()
        self._closing = False

    @property
    def count(self) -> int:
        """How many streams are open."""
        return len(self._listeners)

    def join(self, session_id: str, tenant: str) -> Listener:
        """Adds a stream. Raises `rate_limited` (reason `streams`) above the tenant's number."""
        if self._closing:
            raise AlcoveError("unavailable", "We are restarting.", retry_after_s=1)
        mine = sum(1 for other in self._listeners if other.tenant == tenant)
        if mine >= self._limits.streams_per_tenant:
            raise AlcoveError(
                "rate_limited", "Too many tabs are open.", reason="streams", retry_after_s=5
            )
        listener = Listener(session_id, tenant)
        self._listeners.add(listener)
        return listener

    def leave(self, listener: Listener) -> None:
        """Removes a stream that ended."""
        self._listeners.discard(listener)

    def tell(self, tenant: str, what: What) -> None:
        """Something of this tenant changed."""
        for listener in self._listeners:
            if listener.tenant == tenant:
                listener.tell(what)

    def end_sessions(self, session_ids: Iterable[str]) -> None:
        """These sessions are over."""
        gone = set(session_ids)
        for listener in self._listeners:
            if listener.session_id in gone:
                listener.end("signed_out")

    def end_tenant(self, tenant: str) -> None:
        """This tenant was suspended."""
        for listener in self._listeners:
            if listener.tenant == tenant:
                listener.end("suspended")

    def close(self) -> None:
        """The process ends: every stream does, and its tab comes back to whoever serves then."""
        self._closing = True
        for listener in self._listeners:
            listener.end("closing")

    async def watch(self) -> None:
        """Ends streams whose session is over or whose tenant is not active, whoever decided it."""
        if not self._listeners:
            return
        ids = sorted({listener.session_id for listener in self._listeners})
        alive: dict[str, bool] = {}
        async with self._db.read() as reading:
            for start in range(0, len(ids), 500):
                part = ids[start : start + 500]
                alive |= await sessions.still_alive(reading, part, self._limits)
        for listener in self._listeners:
            # one that joined while the database was asked is looked at next time
            if listener.session_id in ids:
                standing = alive.get(listener.session_id)
                if standing is None:
                    listener.end("signed_out")
                elif not standing:
                    listener.end("suspended")
