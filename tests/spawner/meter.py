"""A meter that only mints keys, and remembers what it was asked; it can be told to refuse."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import Depends, FastAPI

from infra.kit import service
from infra.kit.errors import AlcoveError
from infra.kit.metrics import Metrics
from infra.kit.tracing import Tracing
from metering_proxy import wire
from tests import quickly


class FakeMeter:
    """Keys by (tenant, generation); `refuse` is raised instead of an answer while it is set."""

    def __init__(self) -> None:
        self.keys: dict[tuple[str, int], str] = {}
        self.minted: list[tuple[str, int]] = []
        self.plan, self.status = "free", "active"
        self.refuse: AlcoveError | None = None

    def app(self, secret: str) -> FastAPI:
        app = FastAPI(openapi_url=None)
        service.install(app, metrics=Metrics("fake_meter"), tracing=Tracing("fake_meter"))
        needs = [Depends(service.require_secret(secret))]

        @app.put("/instance-keys/{tenant}/{generation}", dependencies=needs)
        async def mint(
            tenant: str, generation: int, body: wire.InstanceKeyRequest
        ) -> wire.InstanceKey:
            if self.refuse:
                raise self.refuse
            assert Path(body.directory).is_dir()
            self.minted.append((tenant, generation))
            self.keys[tenant, generation] = f"key-{len(self.minted)}"
            return wire.InstanceKey.model_validate(
                {
                    "key": self.keys[tenant, generation],
                    "plan": self.plan,
                    "status": self.status,
                }
            )

        @app.delete("/instance-keys/{tenant}/{generation}", dependencies=needs, status_code=204)
        async def delete(tenant: str, generation: int) -> None:
            if self.refuse:
                raise self.refuse
            self.keys.pop((tenant, generation), None)

        return app


@asynccontextmanager
async def serving(url: str, secret: str) -> AsyncIterator[FakeMeter]:
    """A fake meter that answers at `url`."""
    meter = FakeMeter()
    async with quickly.serving(meter.app(secret), url):
        yield meter
