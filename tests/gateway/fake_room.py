"""What the fakes of services share: the service secret, coded errors, health."""

from fastapi import Depends, FastAPI

from infra.kit import service
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing


def room(name: str, secret: str) -> FastAPI:
    """An app that asks for the service secret."""
    app = FastAPI(openapi_url=None, dependencies=[Depends(service.require_secret(secret))])
    service.install(app, metrics=Metrics(name), tracing=Tracing(name), expose_metrics=False)
    return app
