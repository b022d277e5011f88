"""One-time links that the gateway makes: of the running Compose installation, else of the data of `alcove run`."""

import asyncio
from typing import Any

from infra.cli import compose, run
from infra.cli.home import Trouble, location, open_home
from infra.setup import say


def admin() -> None:
    """Print a link that makes whoever opens it an admin. Raises Trouble."""
    say.line(_ask("admin-link", "--always")["url"])


def password(email: str) -> None:
    """Print a link by which the account of that address gets a new password. Raises Trouble."""
    say.line(_ask("password-link", "--", email)["url"])


def _ask(*words: str) -> dict[str, Any]:
    if compose.is_running():
        return compose.ask_gateway(*words)
    if not (location() / "state.json").exists():
        raise Trouble("Nothing is installed here yet: make run, or make init and make up.")
    home = open_home(location(), shared=True)
    try:
        return asyncio.run(run.ask_gateway(home, *words))
    finally:
        home.close()
