"""From a template and its context to an answer: what every page is given besides its own."""

import base64
import binascii
from typing import Any
from urllib.parse import unquote

import orjson
from fastapi import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from gateway import words
from gateway.accounts.sessions import csrf_token
from gateway.web import cookies as names
from gateway.web.identity import optional
from gateway.web.parts import parts
from infra.kit import ids

_FLASH_S = 60


async def page(
    request: Request, template: str, context: dict[str, Any], status: int = 200
) -> Response:
    """The rendered template. A signed-out browser gets the cookie that its forms are tied to."""
    here = parts(request)
    identity = await optional(request)
    fresh = None
    if identity is not None:
        csrf = identity.csrf
    else:
        known = here.cookies.get(request, here.cookies.anonymous)
        fresh = None if known else ids.secret()
        csrf = csrf_token(known or fresh or "")
    flash = _read_flash(request)
    given = {
        "theme": theme(request),
        "csrf": csrf,
        "account": {"email": identity.email, "is_admin": identity.is_admin} if identity else None,
        "path": request.url.path,
        "notice": flash.get("notice"),
        "error": flash.get("error"),
    }
    text = here.pages.get_template(template).render({**given, **context})
    response = HTMLResponse(text, status)
    if fresh:
        here.cookies.set(response, here.cookies.anonymous, fresh, 86_400)
    if identity is None and here.cookies.session in request.cookies:
        here.cookies.clear(response, here.cookies.session)
    if flash:
        here.cookies.clear(response, _flash_name(request))
    return response


def see_other(
    request: Request, target: str, *, notice: str | None = None, error: str | None = None
) -> Response:
    """303 to one of our paths, with a sentence for the page there."""
    response = RedirectResponse(target, 303)
    said = {key: text for key, text in (("notice", notice), ("error", error)) if text}
    if said:
        value = base64.urlsafe_b64encode(orjson.dumps(said)).decode().rstrip("=")
        parts(request).cookies.set(response, _flash_name(request), value, _FLASH_S)
    return response


def wants_part(request: Request) -> bool:
    """Whether htmx asks, which takes the partial instead of the page."""
    return request.headers.get("hx-request") == "true"


def zone(request: Request) -> str:
    """The reader's time zone, as their browser's script said; else UTC."""
    return words.zone(unquote(request.cookies.get(names.ZONE, ""))[:64])


def theme(request: Request) -> str:
    """The theme that the reader chose."""
    chosen = request.cookies.get(names.THEME, "auto")
    return chosen if chosen in ("light", "dark") else "auto"


def _flash_name(request: Request) -> str:
    return f"{parts(request).cookies.session}-said"


def _read_flash(request: Request) -> dict[str, str]:
    """What the redirect before said. Whoever could forge it could only show a sentence, escaped."""
    raw = request.cookies.get(_flash_name(request), "")
    if not raw or len(raw) > 2000:
        return {}
    try:
        said = orjson.loads(base64.urlsafe_b64decode(raw + "=" * (-len(raw) % 4)))
    except (binascii.Error, ValueError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {k: v for k, v in said.items() if k in ("notice", "error") and isinstance(v, str)}
