"""A page of instances for the admin's table."""

from collections.abc import Sequence

from sqlalchemy import case, func, select

from infra.kit.db import Reading
from spawner import wire
from spawner.instances import Row
from spawner.models import instance

_ORDER: dict[wire.State, int] = {
    "ready": 0,
    "starting": 1,
    "creating": 2,
    "stopping": 3,
    "failed": 4,
    "stopped": 5,
    "absent": 6,
}
_AT_A_TIME = 5_000  # parameters of one statement; SQLite and PostgreSQL both take more


async def query(reading: Reading, asked: wire.InstanceQuery) -> tuple[list[Row | str], int]:
    """The page and how many there are in all. A string is the id of a tenant never started.

    Without `ids` the database sorts and cuts; with them (a set that another room filtered) every id
    is in the answer, so the sorting is done here.
    """
    if asked.ids is not None:
        return await _of(reading, asked.ids, asked)
    condition = instance.c.state == asked.state if asked.state else instance.c.tenant.is_not(None)
    column = (
        case(_ORDER, value=instance.c.state) if asked.sort == "state" else instance.c.changed_at
    )
    order = column.desc() if asked.order == "desc" else column.asc()
    total = await reading.value(select(func.count()).select_from(instance).where(condition))
    found = await reading.rows(
        select(instance)
        .where(condition)
        .order_by(order, instance.c.tenant)
        .offset(asked.offset)
        .limit(asked.limit)
    )
    return [Row.of(one) for one in found], int(total)


async def _of(
    reading: Reading, ids: Sequence[str], asked: wire.InstanceQuery
) -> tuple[list[Row | str], int]:
    known: dict[str, Row] = {}
    for start in range(0, len(ids), _AT_A_TIME):
        part = ids[start : start + _AT_A_TIME]
        found = await reading.rows(select(instance).where(instance.c.tenant.in_(part)))
        known |= {one["tenant"]: Row.of(one) for one in found}
    everybody = [known.get(tenant, tenant) for tenant in dict.fromkeys(ids)]
    kept = [one for one in everybody if asked.state in (None, _state(one))]

    def key(one: Row | str) -> int:
        if asked.sort == "state":
            return _ORDER[_state(one)]
        return one.changed_at if isinstance(one, Row) else 0

    kept.sort(key=lambda one: one.tenant if isinstance(one, Row) else one)
    kept.sort(key=key, reverse=asked.order == "desc")  # stable: equal ones stay sorted by tenant
    return kept[asked.offset : asked.offset + asked.limit], len(kept)


def _state(one: Row | str) -> wire.State:
    return one.state if isinstance(one, Row) else "absent"
