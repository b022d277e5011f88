"""The control listener's routes, one file a noun. Only services that show the service secret get in."""

from typing import TYPE_CHECKING

from fastapi import Depends, FastAPI

from infra.kit import service
from spawner.api import events, host, instances, tenants

if TYPE_CHECKING:
    from spawner.wiring import Spawner


def install(app: FastAPI, spawner: "Spawner") -> None:
    """Adds every route to `app`."""
    secret = [Depends(service.require_secret(spawner.base.settings.service_secret))]
    for routes in (instances, events, tenants, host):
        app.include_router(routes.router(spawner), dependencies=secret)
