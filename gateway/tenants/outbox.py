"""Sends what the gateway decided about tenants to the rooms that act on it, until they have heard."""

import logging

from gateway.limits import Limits
from gateway.metrics import GatewayMetrics
from gateway.tenants import changes, store
from gateway.tenants.changes import Standing
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from metering_proxy import wire as meter_wire
from metering_proxy.client import MeterClient
from spawner.client import SpawnerClient

log = logging.getLogger(__name__)


class Outbox:
    """Pushes versions; a push is safe to repeat and to overtake, since the highest version wins."""

    def __init__(
        self,
        db: Database,
        meter: MeterClient,
        spawner: SpawnerClient,
        limits: Limits,
        metrics: GatewayMetrics,
    ) -> None:
        self._db, self._meter, self._spawner = db, meter, spawner
        self._limits, self._metrics = limits, metrics

    async def push_due(self) -> None:
        """The job: everything that is due, room by room; a room that is away stops only its own round."""
        for room in changes.ROOMS:
            async with self._db.read() as reading:
                due = await changes.due(reading, room, self._limits.outbox_retry_max_s)
                self._metrics.changes_due.labels(room).set(await changes.count(reading, room))
            for standing in due:
                if await self._push(room, standing) == "unavailable":
                    break

    async def push_now(self, tenant: str, room: str) -> bool:
        """Tells one room at once; whether it heard. If not, the job goes on trying."""
        async with self._db.read() as reading:
            standing = await changes.standing(reading, tenant)
        return standing is not None and await self._push(room, standing) is None

    async def compare_all(self) -> None:
        """The daily job: hands every tenant to the meter again and asks the spawner what it believes."""
        after = ""
        while True:
            async with self._db.read() as reading:
                page = await changes.all_standings(reading, after)
            if not page:
                return
            after = page[-1].tenant
            for standing in page:
                await self._compare(standing)

    async def _push(self, room: str, standing: Standing) -> str | None:
        """The error's code, or None when the room heard."""
        try:
            if room == "meter":
                await self._meter.put_tenant(standing.tenant, _for_meter(standing))
            else:
                await self._tell_spawner(standing)
        except AlcoveError as error:
            log.warning(
                "outbox.not_heard",
                extra={"room": room, "tenant": standing.tenant, "code": error.code},
            )
            async with self._db.transaction() as tx:
                await changes.failed(
                    tx,
                    room,
                    standing.tenant,
                    f"{error.code}: {error.message}",
                    self._limits.outbox_retry_s,
                    self._limits.outbox_retry_max_s,
                )
            return error.code
        async with self._db.transaction() as tx:
            await changes.heard(tx, room, standing.tenant, standing.version)
        return None

    async def _tell_spawner(self, standing: Standing) -> None:
        if standing.status == "active":
            await self._spawner.resume(standing.tenant)
            await self._spawner.set_plan(standing.tenant, standing.plan)
        else:
            await self._spawner.suspend(standing.tenant)

    async def _compare(self, standing: Standing) -> None:
        """A room that knows a higher version of other content outlived a restore of our database."""
        sent = _for_meter(standing)
        try:
            kept = await self._meter.put_tenant(standing.tenant, sent)
            instance = await self._spawner.instance(standing.tenant)
        except AlcoveError as error:
            log.warning(
                "compare.not_answered", extra={"tenant": standing.tenant, "code": error.code}
            )
            return
        active = standing.status == "active"
        spawner_differs = instance.suspended == active or (
            active and instance.plan != standing.plan
        )
        decided = (sent.plan, sent.status, sent.egress)
        meter_differs = kept.version > sent.version or decided != (
            kept.plan,
            kept.status,
            kept.egress,
        )
        if not (meter_differs or spawner_differs):
            return
        log.error(
            "compare.differs",
            extra={
                "tenant": standing.tenant,
                "meter": meter_differs,
                "spawner": spawner_differs,
                "version": standing.version,
                "meter_version": kept.version,
            },
        )
        async with self._db.transaction() as tx:
            await store.outrun(tx, standing.tenant, kept.version)


def _for_meter(standing: Standing) -> meter_wire.TenantState:
    override = standing.quota_charge_month_nanos
    quota = (
        meter_wire.QuotaOverride()
        if override is None
        else meter_wire.QuotaOverride(charge_month_nanos=override)
    )
    return meter_wire.TenantState(
        plan=standing.plan,
        status="active"
        if standing.status == "active"
        else ("deleted" if standing.status == "deleted" else "suspended"),
        version=standing.version,
        quota=quota,
        egress=standing.egress,
    )
