"""The unit of work of one transaction: the windows, holds and running calls that its operations touch, loaded at
once, changed in memory, posted at once. A few statements for any number of calls make the ledger fast.

Rows that were loaded are nobody else's until the transaction is over (tx.py). What is in memory therefore is what
is true, and a limit checked here holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from metering_proxy.ledger.posting import Posting, Row
from metering_proxy.ledger.tx import Key, Mark, Tx

RUNNING = "dispatched"


@dataclass(slots=True)
class Window:
    """A window of an account as it stands now; `was_…`: as it stands in the database."""

    key: Key
    spent: int
    held: int
    was_spent: int
    was_held: int


@dataclass(slots=True)
class Reservation:
    """A reservation's row. `is_new`, `ended`, `rerouted`: that is not written yet."""

    row: dict[str, Any]
    is_new: bool = False
    ended: bool = False
    rerouted: bool = False

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return bool(self.row["state"] == RUNNING)


@dataclass(slots=True)
class Calls:
    """An account's calls that have not ended, with the ends of their leases. `live`: those that count, since their
    lease is not over; `was_live`: as it stands in the database."""

    leases: dict[str, int] = field(default_factory=dict)
    live: int = 0
    was_live: int = 0


@dataclass(slots=True)
class UnitOfWork:
    """See the module."""

    tx: Tx
    _windows: dict[Key, Window] = field(default_factory=dict)
    _reservations: dict[str, Reservation] = field(default_factory=dict)
    _calls: dict[str, Calls] = field(default_factory=dict)
    _renewed: dict[str, int] = field(default_factory=dict)
    _entries: list[Row] = field(default_factory=list)
    _marks: list[Row] = field(default_factory=list)
    _marked: dict[Mark, None] = field(default_factory=dict)

    # -- read -----------------------------------------------------------------------------------------------

    def load(
        self,
        requests: Iterable[str],
        windows: Iterable[Key],
        accounts: Iterable[str],
        *,
        whole: bool = False,
    ) -> None:
        """Reads reservations, the windows that they and `windows` name (made where they are not there), and the
        running calls of `accounts`, whose windows must be among them: nobody else counts those meanwhile.

        `whole`: with their leases and the output seen."""
        wanted = sorted({id for id in requests if id not in self._reservations})
        made = set(windows)
        keys = set(made)
        for row in self.tx.reservations(wanted, whole=whole) if wanted else ():
            self._reservations[row["request_id"]] = Reservation(row)
            account = row["account"]
            keys.update((account, held[0], held[2]) for held in orjson.loads(row["windows"]))
        missing = sorted(keys - self._windows.keys())
        for key, spent, held_amount in self.tx.windows(missing, made) if missing else ():
            self._windows[key] = Window(key, spent, held_amount, spent, held_amount)
        self._load_calls(sorted(set(accounts) - self._calls.keys()))

    def _load_calls(self, new: Sequence[str]) -> None:
        self._calls |= {account: Calls() for account in new}
        for account, request_id, until_at in self.tx.calls(new) if new else ():
            calls = self._calls[account]
            calls.leases[request_id] = until_at
            calls.live += until_at > self.tx.now_at
        for account in new:
            self._calls[account].was_live = self._calls[account].live

    def window(self, key: Key) -> Window | None:
        """A window that was loaded; None where it is gone, as minutes are that nobody counts any more."""
        return self._windows.get(key)

    def made_window(self, key: Key) -> Window:
        """A window that was made where it was not there."""
        return self._windows[key]

    def reservation(self, request_id: str) -> Reservation | None:
        """A reservation that was loaded or made."""
        return self._reservations.get(request_id)

    def running(self, account: str) -> int:
        """How many of an account's calls run: those whose process is gone count until their lease is over."""
        return self._calls[account].live

    # -- changed --------------------------------------------------------------------------------------------

    def hold(self, row: dict[str, Any]) -> None:
        """Adds a reservation. ValueError: there is one already."""
        request_id = row["request_id"]
        if request_id in self._reservations:
            raise ValueError("a request is held once")
        self._renewed.pop(request_id, None)  # what was renewed before was not there yet
        self._reservations[request_id] = Reservation(row, is_new=True)
        calls = self._calls.get(row["account"])
        if calls is not None:
            calls.leases[request_id] = row["lease_until_at"]
            calls.live += 1

    def renew(self, request_id: str, seen: int) -> None:
        """Prolongs a lease and notes the output so far, of a call that has not ended."""
        known = self._reservations.get(request_id)
        if known is not None and known.is_new and known.running:
            until_at = self.tx.now_at + self.tx.lease_ms
            known.row |= {"lease_until_at": until_at, "output_seen": seen}
        elif known is None or known.running:
            self._renewed[request_id] = seen

    def end(self, request_id: str, state: str) -> dict[str, Any] | None:
        """Ends a running reservation, once; its row, or None where it had ended before."""
        found = self._reservations.get(request_id)
        if found is None or not found.running:
            return None
        found.row |= {"state": state, "ended_at": self.tx.now_at}
        found.ended = True
        self._renewed.pop(request_id, None)
        calls = self._calls.get(found.row["account"])
        if calls is not None:
            calls.live -= calls.leases.pop(request_id, 0) > self.tx.now_at
        return found.row

    def rerouted(self, request_id: str) -> dict[str, Any] | None:
        """The row of a running reservation, whose target the caller changes; None where it has ended."""
        found = self._reservations.get(request_id)
        if found is None or not found.running:
            return None
        found.rerouted = True
        return found.row

    def enter(self, entry: Row) -> None:
        """Adds an entry."""
        self._entries.append(entry)

    def mark(self, key: Key, percent: int) -> None:
        """Sets a mark of a window, unless it was set before."""
        mark = (*key, percent)
        if mark in self._marked or mark in self.tx.marked:
            return
        self._marked[mark] = None
        named = dict(zip(("account", "kind", "start_at", "percent"), mark, strict=True))
        self._marks.append(named | {"at": self.tx.now_at, "told_at": None})

    # -- written --------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Posts what has changed. Posted again, it is without effect where nothing has since."""
        tx = self.tx
        posting = Posting(tx.now_at, tx.now_at + tx.lease_ms)
        self._post_reservations(posting)
        self._post_windows(posting)
        posting.calls = [
            (account, calls.was_live) for account, calls in sorted(self._calls.items())
        ]
        posting.renewed = sorted(self._renewed.items())
        posting.entries, self._entries = self._entries, []
        posting.marks, self._marks = self._marks, []
        tx.post(posting)
        for calls in self._calls.values():
            calls.was_live = calls.live

    def written(self) -> Tx:
        """The transaction, with everything written that was changed so far: for queries of other rows."""
        self.write()
        return self.tx

    def _post_reservations(self, posting: Posting) -> None:
        for request_id, found in sorted(self._reservations.items()):
            if found.is_new:
                posting.made.append(found.row)
            elif found.rerouted or found.ended:
                posting.running.append(request_id)
                if found.rerouted:
                    posting.rerouted.append(found.row)
                if found.ended:
                    posting.ended.append((request_id, found.row["state"]))
            found.is_new = found.rerouted = found.ended = False

    def _post_windows(self, posting: Posting) -> None:
        for key, window in sorted(self._windows.items()):
            spent, held = window.spent, window.held
            posting.windows.append((*key, window.was_spent, window.was_held, spent, held))
            window.was_spent, window.was_held = spent, held

    # -- for who remembers ----------------------------------------------------------------------------------

    def windows(self) -> Iterable[Window]:
        """The windows that were loaded or made, as they stand now."""
        return self._windows.values()

    def calls(self) -> Iterable[tuple[str, dict[str, int]]]:
        """Of each account whose calls were loaded, those that have not ended, and their leases' ends."""
        return ((account, calls.leases) for account, calls in self._calls.items())

    def reservations(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The reservations that were loaded or made, as they stand now."""
        for request_id, found in self._reservations.items():
            yield request_id, found.row

    def renewed(self) -> Iterable[str]:
        """The other ones whose leases were prolonged, until a lease from now."""
        return self._renewed.keys()

    def marked(self) -> Iterable[Mark]:
        """The marks that were set."""
        return self._marked
