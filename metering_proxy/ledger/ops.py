"""What the writer is asked to do, and what it answers. Plain values; the algorithm is in batch.py.

A request is `dispatched` (held, and sent from then on) → exactly one of `settled`, `released` (it was given up
before anything was sent, so nothing is entered) and `charged_estimate` (its process died; charged by what it had
forwarded).
"""

from dataclasses import field

from infra.kit.value import value
from metering_proxy.bounds import Bound
from metering_proxy.plans import Measure
from metering_proxy.pricing import Usage

NOT_SENT = "not_sent"
"""The outcome of a call that failed before anything went out: it has an entry, so that it can be found."""


@value
class Window:
    """One limit's window that a request falls in. `limit` in the measure's unit."""

    kind: str
    measure: Measure
    start_at: int
    ends_at: int
    limit: int


@value
class Target:
    """Where a request goes. For recovery: the input as estimated, its cost, and the rate of output (nano-USD a
    million tokens)."""

    provider: str
    model: str
    price_id: str
    input_tokens: int
    input_cost_nanos: int
    output_rate_nanos: int


@value
class Reserve:
    """Hold the most that a request can use. `concurrent` None: no limit of running calls.

    `wanted` is the token limit asked for, `floor` the least that is worth a call.
    """

    request_id: str
    account: str
    wire: str
    target: Target
    payer: str
    started_at: int
    month_start_at: int
    windows: tuple[Window, ...]
    concurrent: int | None
    bound: Bound
    wanted: int
    floor: int
    markup_ppm: int
    plan: str = ""

    @property
    def least(self) -> int:
        """The least token limit with which it is sent."""
        return min(self.floor, self.wanted)


@value
class Reserved:
    """The hold stands; `limit` is the token limit that it covers."""

    limit: int
    charge_held_nanos: int


@value
class Refused:
    """No hold: `kind` names the limit (`charge_month`, …).

    `resets_at` None: when a call ends, or never: not even a window of which nothing is used has room. Then `fits`
    is the largest token limit for which it has; -1: none, since what else the request uses is too much.
    """

    kind: str
    measure: str
    resets_at: int | None
    limit: int
    fits: int | None = None


@value
class Reroute:
    """An attempt has failed and the request goes elsewhere: `failed` is entered for the attempt, and what recovery
    needs follows the new target. False where the request had ended before."""

    failed: "Settle"
    target: Target

    @property
    def request_id(self) -> str:
        """Whose attempt it was."""
        return self.failed.request_id


@value
class Renew:
    """These calls are alive, and so many output tokens were forwarded (as estimated)."""

    seen: tuple[tuple[str, int], ...]


@value
class Release:
    """Nothing was sent: the hold goes back and nothing is charged."""

    request_id: str


@value
class Settle:
    """The call has ended: charge what it used. A second delivery does nothing."""

    request_id: str
    usage: Usage
    cost_nanos: int
    charge_nanos: int
    outcome: str
    estimated: bool
    response_model: str | None = None
    parts: dict[str, int | str] = field(default_factory=dict)

    @property
    def requests(self) -> int:
        """What it counts among the requests that a plan allows: nothing where it failed before it was sent."""
        return int(self.outcome != NOT_SENT)


@value
class Correct:
    """An ended attempt costs and is charged something else than its entries say (`was_…`, in sum): the difference
    is entered. False where its entries say something else by now."""

    request_id: str
    attempt: int
    price_id: str
    was_cost_nanos: int
    was_charge_nanos: int
    cost_nanos: int
    charge_nanos: int


@value
class Sweep:
    """End every call whose lease has run out, and cut leases that the clock's being set back has made too long.

    `mine`: calls that live, with their output as last read: their leases begin anew instead. `expected_at`: what
    the clock should say, by which leases are judged where it has been set ahead.
    """

    at_most: int = 200
    mine: tuple[tuple[str, int], ...] = ()
    expected_at: int | None = None


@value
class Swept:
    """How many calls a sweep ended, and charged by estimate; how many leases it cut, and how many of living calls
    it began anew. `at`: the clock's moment."""

    charged: int = 0
    cut: int = 0
    kept: int = 0
    at: int = 0


Op = Reserve | Reroute | Renew | Release | Settle | Correct | Sweep
Answer = Reserved | Refused | Swept | bool
