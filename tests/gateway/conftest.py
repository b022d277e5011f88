"""The gateway served on a real port, its rooms faked on real sockets."""

import asyncio
import json
import re
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from fastapi import FastAPI
from sqlalchemy import select

from gateway.accounts import admin_links
from gateway.accounts.passwords import Passwords
from gateway.app import create_app, running
from gateway.limits import Limits
from gateway.models import account, tenant
from gateway.pages.environment import TEMPLATES
from gateway.settings import GatewaySettings
from gateway.web.parts import Parts
from infra.kit.clock import FakeClock
from tests.compiled import Compiled
from tests.databases import template
from tests.gateway.browser import ORIGIN, PASSWORD, Browser
from tests.gateway.fake_meter import FakeMeter
from tests.gateway.fake_spawner import FakeSpawner
from tests.quickly import serving

SECRET, DEPLOYMENT_SECRET = "service-" + "s" * 32, "deployment-" + "d" * 32
# Everything that a test waits for, shorter than a person would bear.
QUICK: dict[str, Any] = {
    "stream_heartbeat_s": 5.0,
    "stream_retry_s": 0.05,
    "stream_watch_s": 0.2,
    "pending_poll_s": 0.02,
    "outbox_retry_s": 0.05,
    "relay_first_byte_s": 2.0,
    "relay_total_s": 4.0,
    "activity_report_s": 0.0,
}


@dataclass
class Gateway:
    """One running gateway and everything around it."""

    url: str
    app: FastAPI
    meter: FakeMeter
    spawner: FakeSpawner
    browsers: list[Browser] = field(default_factory=list)

    @property
    def parts(self) -> Parts:
        """The wired parts."""
        found: Parts = self.app.state.parts
        return found

    def browser(self) -> Browser:
        """A fresh one, closed with the gateway."""
        made = Browser(self.url)
        self.browsers.append(made)
        return made

    async def person(self, email: str) -> Browser:
        """A browser of somebody who has just signed up."""
        browser = self.browser()
        await browser.sign_up(email)
        return browser

    async def admin(self, email: str = "admin@example.org") -> Browser:
        """A browser of an admin, made with a setup link."""
        async with self.parts.db.transaction() as tx:
            link = await admin_links.make(tx, self.parts.limits)
        browser = self.browser()
        await browser.visit(f"/setup/{link.token}")
        answer = await browser.submit(f"/setup/{link.token}", email=email, password=PASSWORD)
        assert answer.status == 303, answer.text
        await browser.visit("/account")
        return browser

    async def tenant_of(self, email: str) -> str:
        """The tenant of an account."""
        async with self.parts.db.read() as reading:
            found: str = await reading.value(
                select(tenant.c.id)
                .join(account, account.c.id == tenant.c.account_id)
                .where(account.c.email == email)
            )
        return found


@pytest.fixture(scope="session")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Assets as the build would make them, by the names that templates use."""
    made = tmp_path_factory.mktemp("dist")
    texts = [path.read_text() for path in TEMPLATES.rglob("*.html")]
    assets = {name for text in texts for name in re.findall(r"asset\('([^']+)'\)", text)}
    icons = {name for text in texts for name in re.findall(r"[\"']([a-z0-9-]+)[\"']", text)}
    for text in texts:
        for line in re.findall(r"icons: ([a-z0-9 -]+)", text):
            icons.update(line.split())
    manifest = {name: name.replace(".", "-ABCD1234.") for name in assets | {"favicon.svg"}}
    for file in manifest.values():
        (made / file).write_text("/* built */")
    (made / "manifest.json").write_text(json.dumps(manifest))
    (made / "icons.json").write_text(json.dumps(dict.fromkeys(icons, "<svg></svg>")))
    return made


@pytest.fixture(scope="session")
def migrated() -> Path:
    """A database at head, copied for each test."""
    return asyncio.run(template("gateway"))


@pytest.fixture(scope="session")
def compiled() -> Compiled:
    """Templates that any gateway of this process has compiled."""
    return Compiled()


def settings_for(tmp_path: Path, url: str = "", **changes: Any) -> GatewaySettings:
    """Settings of a gateway in `tmp_path`."""
    values: dict[str, Any] = {
        "deployment": "test",
        "service_secret": SECRET,
        "deployment_secret": DEPLOYMENT_SECRET,
        "sealing_key": "ab" * 32,
        "gateway_database_url": url or f"sqlite:///{tmp_path}/gateway.db",
        "public_url": ORIGIN,
        "spawner_url": f"unix://{tmp_path}/spawner.sock",
        "meter_url": f"unix://{tmp_path}/meter.sock",
        **changes,
    }
    return GatewaySettings(**values)


def fast_passwords() -> Passwords:
    """argon2id with the least work that it allows."""
    return Passwords(PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))


Serve = Callable[..., Awaitable[Gateway]]


@pytest.fixture
async def serve(
    tmp_path: Path, dist: Path, migrated: Path, compiled: Compiled
) -> AsyncIterator[Serve]:
    """Starts gateways over one database and one set of rooms; ends them all after the test."""
    if not (tmp_path / "gateway.db").exists():
        shutil.copy(migrated, tmp_path / "gateway.db")
    async with AsyncExitStack() as stack:
        spawner = FakeSpawner(tmp_path, SECRET, DEPLOYMENT_SECRET)
        meter = FakeMeter(SECRET)
        for name, room in (("spawner", spawner), ("meter", meter)):
            url = f"unix://{tmp_path}/{name}.sock"
            await stack.enter_async_context(serving(room.app, url))

        async def start(
            *, clock: FakeClock | None = None, settings: Any = None, **changes: Any
        ) -> Gateway:
            limits = Limits(**{**QUICK, **changes})
            app = create_app(
                settings or settings_for(tmp_path),
                limits=limits,
                clock=clock,
                passwords=fast_passwords(),
                dist=dist,
            )
            app.state.parts.pages.bytecode_cache = compiled
            await stack.enter_async_context(running(app))
            url = await stack.enter_async_context(serving(app, "http://127.0.0.1:0"))
            made = Gateway(url, app, meter, spawner)
            stack.push_async_callback(_close, made)
            return made

        yield start
        await spawner.close()


async def _close(gateway: Gateway) -> None:
    for browser in gateway.browsers:
        await browser.close()
    gateway.parts.hub.close()


@pytest.fixture
async def gateway(serve: Serve) -> Gateway:
    """A gateway with everything as in production, only quicker."""
    return await serve()
