"""What one transaction reads and writes of windows, holds and slots: loaded for all its operations at once,
changed in memory, written back at once. A few statements for any number of calls make the ledger fast.

Rows that were read are locked until the transaction is over, in one order for every process: reservations, then
windows, each by its key. What is in memory therefore is what is true, and a limit checked here holds.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from metering_proxy import models
from metering_proxy.ledger import loading
from metering_proxy.ledger.tx import Tx, Values, insert_into

RUNNING = "dispatched"
_Rows = list[dict[str, Any]]
Key = tuple[str, str, int]
"""Of a window: account, kind, start."""


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


class Own:
    """Rows of the running reservations that one process has made, as they were last committed. Nobody else
    changes them while they run, but for their leases and the output seen, which the sweeper alone asks for."""

    def __init__(self) -> None:
        self.rows: dict[str, dict[str, Any]] = {}

    def follow(self, sheet: "Sheet") -> None:
        """The sheet's transaction is committed."""
        for request_id, row in sheet.touched():
            if row["state"] == RUNNING:
                self.rows[request_id] = row
            else:
                self.rows.pop(request_id, None)

    def doubt(self, requests: Iterable[str]) -> None:
        """It is not known whether a transaction that changed these was committed."""
        for request_id in requests:
            self.rows.pop(request_id, None)


@dataclass(slots=True)
class Sheet:
    """See the module."""

    tx: Tx
    own: Own = field(default_factory=Own)
    _windows: dict[Key, Window] = field(default_factory=dict)
    _reservations: dict[str, Reservation] = field(default_factory=dict)
    _slots: dict[str, set[str]] = field(default_factory=dict)
    _renewed: dict[str, int] = field(default_factory=dict)
    _entries: list[Values] = field(default_factory=list)
    _marks: list[Values] = field(default_factory=list)

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
        held: set[Key] = set()
        for row in loading.reservations(self.tx, wanted) if whole else self._rows(wanted):
            self._reservations[row["request_id"]] = Reservation(row)
            held |= loading.keys(row)
        made = set(windows)
        keys = sorted((held | made) - self._windows.keys())
        for key, spent, held_amount in loading.windows(self.tx, keys, made):
            self._windows[key] = Window(key, spent, held_amount, spent, held_amount)
        new = sorted(set(accounts) - self._slots.keys())
        self._slots |= {account: set() for account in new}
        for account, request_id in loading.slots(self.tx, new):
            self._slots[account].add(request_id)

    def window(self, key: Key) -> Window | None:
        """A window that was loaded; None where it is gone, as minutes are that nobody counts any more."""
        return self._windows.get(key)

    def reservation(self, request_id: str) -> Reservation | None:
        """A reservation that was loaded or made."""
        return self._reservations.get(request_id)

    def running(self, account: str) -> int:
        """How many of an account's calls run."""
        return len(self._slots[account])

    def _rows(self, wanted: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Rows of reservations. Of those that this process has made, and not ended, all is known but whether
        another one has ended them."""
        mine = set(loading.running(self.tx, [id for id in wanted if id in self.own.rows]))
        for id in mine:
            yield dict(self.own.rows[id])
        yield from loading.reservations(self.tx, [id for id in wanted if id not in mine])

    # -- changed --------------------------------------------------------------------------------------------

    def hold(self, row: dict[str, Any], *, slot: bool) -> None:
        """Adds a reservation, with a place among its account's running calls. ValueError: there is one already."""
        if row["request_id"] in self._reservations:
            raise ValueError("a request is held once")
        self._renewed.pop(row["request_id"], None)  # what was renewed before was not there yet
        self._reservations[row["request_id"]] = Reservation(row, is_new=True)
        if slot:
            self._slots[row["account"]].add(row["request_id"])

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
        self._slots.get(found.row["account"], set()).discard(request_id)
        return found.row

    def rerouted(self, request_id: str) -> dict[str, Any] | None:
        """The row of a running reservation, whose target the caller changes; None where it has ended."""
        found = self._reservations.get(request_id)
        if found is None or not found.running:
            return None
        found.rerouted = True
        return found.row

    def enter(self, entry: Values) -> None:
        """Adds an entry."""
        self._entries.append(entry)

    def mark(self, mark: Values) -> None:
        """Adds a mark, unless it was set before."""
        self._marks.append(mark)

    # -- written --------------------------------------------------------------------------------------------

    def write(self) -> None:
        """Writes what has changed. Without effect where nothing has."""
        new, rerouted, ended = self._changed_reservations()
        self._many(_INSERT_RESERVATION, new)
        self._many(_INSERT_SLOT, [_slot(row) for row in new if self._has_slot(row)])
        self._many(_REROUTE, rerouted)
        self._write_renewals()
        self._many(_END, ended)
        self._many(_DELETE_SLOT, ended)
        self._write_windows()
        self._many(INSERT_ENTRY, self._entries)
        self._many(_INSERT_MARK, self._marks)
        self._entries, self._marks = [], []

    def touched(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """The reservations that were loaded or made, as they stand now."""
        for request_id, found in self._reservations.items():
            yield request_id, found.row

    def written(self) -> Tx:
        """The transaction, with everything written that was changed so far: for queries of other rows."""
        self.write()
        return self.tx

    def _changed_reservations(self) -> tuple[_Rows, _Rows, _Rows]:
        new: _Rows = []
        rerouted: _Rows = []
        ended: _Rows = []
        for found in self._reservations.values():
            if found.is_new:
                new.append(found.row)
            else:
                if found.rerouted:
                    rerouted.append(found.row)
                if found.ended:
                    ended.append(found.row)
            found.is_new = found.rerouted = found.ended = False
        return new, rerouted, ended

    def _has_slot(self, row: dict[str, Any]) -> bool:
        return row["request_id"] in self._slots.get(row["account"], ())

    def _write_renewals(self) -> None:
        until_at = self.tx.now_at + self.tx.lease_ms
        renewed = [
            {"request_id": id, "until_at": until_at, "seen": seen}
            for id, seen in self._renewed.items()
        ]
        self._many(_RENEW, renewed)
        self._many(_RENEW_SLOT, renewed)
        self._renewed = {}

    def _write_windows(self) -> None:
        moved = []
        for window in sorted(self._windows.values(), key=lambda w: w.key):
            spent, held = window.spent - window.was_spent, window.held - window.was_held
            if spent or held:
                account, kind, start_at = window.key
                moved.append(
                    {"account": account, "kind": kind, "start_at": start_at, "spent": spent, "held": held}
                )  # fmt: skip
                window.was_spent, window.was_held = window.spent, window.held
        self._many(_MOVE, moved)

    def _many(self, sql: str, values: Sequence[Values]) -> None:
        if values:
            self.tx.many(sql, values)


def _slot(row: Values) -> Values:
    return {name: row[name] for name in ("account", "request_id", "lease_until_at")}


INSERT_ENTRY = insert_into(models.entry)
_INSERT_RESERVATION = insert_into(models.reservation)
_INSERT_SLOT = insert_into(models.slot)
_INSERT_MARK = insert_into(models.mark) + " ON CONFLICT DO NOTHING"
_END = (
    "UPDATE reservation SET state = :state, ended_at = :ended_at"
    " WHERE request_id = :request_id AND state = 'dispatched'"
)
_REROUTE = (
    "UPDATE reservation SET attempt = :attempt, provider = :provider, model = :model, price_id = :price_id,"
    " input_tokens = :input_tokens, input_cost_nanos = :input_cost_nanos,"
    " output_rate_nanos = :output_rate_nanos WHERE request_id = :request_id"
)
_DELETE_SLOT = "DELETE FROM slot WHERE account = :account AND request_id = :request_id"
_RENEW = (
    "UPDATE reservation SET lease_until_at = :until_at, output_seen = :seen"
    " WHERE request_id = :request_id AND state = 'dispatched'"
)
_RENEW_SLOT = "UPDATE slot SET lease_until_at = :until_at WHERE request_id = :request_id"
_MOVE = (
    "UPDATE account_window SET spent = spent + :spent, held = held + :held"
    " WHERE account = :account AND kind = :kind AND start_at = :start_at"
)
