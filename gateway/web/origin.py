"""Where a request was made: pages of ours may write, pages of others may only link to us.

Fetch metadata first (https://www.w3.org/TR/fetch-metadata/), Origin against PUBLIC_URL second, never
against Host. A browser sends no Origin on the EventSource's GET, so reading does not ask for one.
"""

from collections.abc import Iterable

from starlette.types import ASGIApp, Receive, Scope, Send

from gateway.web.refusal import send_refusal
from infra.kit.errors import AlcoveError

SAFE = frozenset(("GET", "HEAD", "OPTIONS"))


class SameOrigin:
    """Refuses (403) writes that were not made on our pages, and API reads made on other sites' pages."""

    def __init__(self, app: ASGIApp, *, origins: Iterable[str]) -> None:
        self._app = app
        self._origins = frozenset(origins)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = {k.decode("latin-1"): v.decode("latin-1") for k, v in scope["headers"]}
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if scope["method"] in SAFE:
            foreign = scope["path"].startswith("/api/") and site in ("cross-site", "same-site")
        else:
            foreign = not self._is_ours(site, origin)
        if foreign:
            error = AlcoveError("forbidden", "this was not sent by our own page", reason="origin")
            await send_refusal(scope, send, error)
            return
        await self._app(scope, receive, send)

    def _is_ours(self, site: str | None, origin: str | None) -> bool:
        """At least one of the two must vouch, and neither may contradict."""
        if site is None and origin is None:
            return False
        return site in (None, "same-origin") and (origin is None or origin in self._origins)
