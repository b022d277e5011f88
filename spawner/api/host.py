"""How instances run on this machine."""

from typing import TYPE_CHECKING

from fastapi import APIRouter
from sqlalchemy import func, select

from spawner import wire
from spawner.models import instance

if TYPE_CHECKING:
    from spawner.wiring import Spawner


def router(spawner: "Spawner") -> APIRouter:
    """`/host`."""
    routes = APIRouter()

    @routes.get("/host")
    async def host() -> wire.Host:
        query = select(instance.c.state, func.count().label("n")).group_by(instance.c.state)
        async with spawner.base.db.read() as reading:
            counts = {row["state"]: int(row["n"]) for row in await reading.rows(query)}
        runtime = spawner.chosen.runtime
        return wire.Host(
            runtime=runtime.name,
            wall=runtime.wall,
            probes=spawner.chosen.probes,
            instances=counts,
        )

    return routes
