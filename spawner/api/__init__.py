"""The control listener's routes, one file a noun. Only services that show the service secret get in."""

from typing import TYPE_CHECKING

from starlette.applications import Starlette

from infra.kit import service
from spawner.api import events, host, instances, tenants

if TYPE_CHECKING:
    from spawner.wiring import Spawner


def install(app: Starlette, spawner: "Spawner") -> None:
    """Adds every route to `app`."""
    secret = service.require_secret(spawner.base.settings.service_secret)
    for routes in (instances, events, tenants, host):
        app.routes.extend(routes.router(spawner).behind(secret))
