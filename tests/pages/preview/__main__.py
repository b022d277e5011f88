"""Serves the preview on loopback and lists its pages."""

import argparse
import sys

from aiohttp import web

from gateway.pages.environment import DIST
from tests.pages.preview.pages import PAGES
from tests.pages.preview.server import create_app


def main() -> None:
    """Runs until Ctrl-C."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("--port", type=int, default=8899)
    port = asked.parse_args().port
    if not (DIST / "manifest.json").exists():
        sys.exit("The pages are not built yet: npm ci && node gateway/static/build.mjs")
    addresses = [
        "/chat",
        *(f"/chat?scene={name}" for name in ("asleep", "stuck", "demo", "near", "limit")),
        *PAGES,
    ]
    print(*(f"http://127.0.0.1:{port}{address}" for address in addresses), sep="\n")
    web.run_app(create_app(), host="127.0.0.1", port=port, print=None, handler_cancellation=True)


main()
