"""Who may go out at all, how many at once, and the day's budget: the same for tunnels and for calls."""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from infra.kit.clock import Clock
from infra.kit.errors import AlcoveError
from metering_proxy.egress.budget import Allowance, Budget, Kind
from metering_proxy.egress.rules import Rules
from metering_proxy.tenants import Standing, Tenants


class Ways:
    """Every tenant's ways out in this process, which alone holds that tenant's socket."""

    def __init__(self, tenants: Tenants, budget: Budget, clock: Clock) -> None:
        self._tenants, self._budget, self._clock = tenants, budget, clock
        self._open: Counter[str] = Counter()

    @property
    def open(self) -> int:
        """Ways that are open now."""
        return self._open.total()

    def admit(self, tenant: str, *, anonymous: bool) -> tuple[Standing, Rules]:
        """The tenant's standing and its plan's rules.

        Raises `forbidden`: `suspended`, `deleted`, `egress_plan` (the plan has no way out), and for `anonymous`
        traffic `egress_off` until it was allowed.
        """
        standing = self._tenants.standing(tenant)
        standing.admit()
        rules = standing.plan.egress
        if rules is None:
            raise AlcoveError("forbidden", "the plan has no way out", reason="egress_plan")
        if anonymous and not standing.egress:
            raise AlcoveError(
                "forbidden", "the way out is not allowed to this account yet", reason="egress_off"
            )
        return standing, rules

    @asynccontextmanager
    async def enter(
        self, tenant: str, standing: Standing, rules: Rules, kind: Kind
    ) -> AsyncIterator[Allowance]:
        """One way out while the block runs, and the bytes that it may pass.

        Raises `rate_limited` (reasons `egress_at_once`, `egress_ways_day`, `egress_bytes_day`).
        """
        if self._open[tenant] >= rules.at_once:
            raise AlcoveError(
                "rate_limited",
                f"{rules.at_once} ways out are open already, as many as the plan allows at once",
                reason="egress_at_once",
                retry_after_s=1,
            )
        day = standing.spans.span("day", self._clock.now_at())
        with self._counted(tenant):
            allowance = await self._budget.enter(tenant, day, kind, rules)
        try:
            # Its place is free before bytes are given back: the answer has ended, and the next call may be here.
            with self._counted(tenant):
                yield allowance
        finally:
            await allowance.close()

    @contextmanager
    def _counted(self, tenant: str) -> Iterator[None]:
        self._open[tenant] += 1
        try:
            yield
        finally:
            self._open[tenant] -= 1
            if not self._open[tenant]:
                del self._open[tenant]
