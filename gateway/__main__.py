"""`python -m gateway`: serve; `migrate`, `check`, `admin-link` and `password-link` besides."""

import argparse
import asyncio
import logging
import os
import sys
from contextlib import AsyncExitStack

import orjson

from gateway.accounts import admin_links, recovery
from gateway.app import control_app, create_app, running
from gateway.limits import Limits
from gateway.settings import GatewaySettings
from gateway.tenants.audit import Actor
from infra.kit import log as logs
from infra.kit import process, service
from infra.kit.db import Database
from infra.kit.errors import AlcoveError
from infra.kit.settings import load
from infra.kit.tracing import Tracing

log = logging.getLogger("gateway")


def main() -> None:
    """Does what the arguments say."""
    arguments = _arguments()
    settings = load(GatewaySettings)
    if arguments.verb == "check":
        return
    if arguments.verb == "admin-link":
        asyncio.run(_admin_link(settings, always=arguments.always))
        return
    if arguments.verb == "password-link":
        asyncio.run(_password_link(settings, arguments.email))
        return
    logs.configure("gateway", settings.log_level)
    try:
        if arguments.verb == "migrate":
            from infra.kit import migrate  # ten megabytes that no serving gateway needs

            migrate.main(Database(settings.gateway_database_url), "gateway")
        else:
            asyncio.run(_serve(settings))
    except AlcoveError as error:
        log.error("start failed", extra={"code": error.code, "why": error.message})
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m gateway", description=__doc__)
    verbs = parser.add_subparsers(dest="verb")
    verbs.add_parser("migrate", help="bring the database to its newest shape")
    verbs.add_parser("check", help="parse the settings and list every problem")
    link = verbs.add_parser("admin-link", help="print a one-time link that makes an admin, as JSON")
    link.add_argument("--always", action="store_true", help="also when an admin exists")
    word = verbs.add_parser(
        "password-link", help="print a one-time link for a new password, as JSON"
    )
    word.add_argument("email", help="whose password")
    return parser.parse_args()


async def _serve(settings: GatewaySettings) -> None:
    service.raise_file_limit()
    tracing = Tracing.from_environment("gateway")
    app = create_app(settings, tracing=tracing)
    async with AsyncExitStack() as stack:
        stack.callback(tracing.close)
        if settings.gateway_control:
            await stack.enter_async_context(
                service.serving(control_app(app), settings.gateway_control)
            )
        await stack.enter_async_context(running(app))
        bound = await stack.enter_async_context(
            service.serving(app, settings.gateway_listen, trusted_proxies=settings.trusted_proxies)
        )
        # first of all when leaving: a server waits for open answers, and streams have no end of their own
        stack.callback(app.state.parts.hub.close)
        log.info("serving", extra={"listen": bound, "public_url": settings.public_url})
        await process.run_until_signal()
        log.info("stopping")


async def _admin_link(settings: GatewaySettings, *, always: bool) -> None:
    db = Database(settings.gateway_database_url)
    try:
        async with db.transaction() as tx:
            if not always and await admin_links.there_is_an_admin(tx):
                _print({"admin": True})
                return
            link = await admin_links.make(tx, Limits())
        url = f"{settings.public_url}/setup/{link.token}"
        _print({"admin": False, "url": url, "expires_at": link.expires_at})
    finally:
        await db.close()


async def _password_link(settings: GatewaySettings, email: str) -> None:
    """Prints the link; ends with 1 and a sentence where nobody has the address."""
    db, actor = Database(settings.gateway_database_url), Actor(None, "the command line")
    try:
        async with db.transaction() as tx:
            link = await recovery.make(tx, actor, email, "asked on the machine", Limits())
    except AlcoveError as error:
        if error.reason != "no_account":
            raise
        sys.exit(error.message)
    finally:
        await db.close()
    url = f"{settings.public_url}/password/{link.token}"
    _print({"url": url, "expires_at": link.expires_at})


def _print(answer: dict[str, object]) -> None:
    sys.stdout.write(orjson.dumps(answer).decode() + os.linesep)


if __name__ == "__main__":
    main()
