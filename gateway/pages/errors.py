"""Errors as pages or as JSON, by who asks: what happened, what was kept, what to do."""

import logging
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gateway.pages.render import theme, wants_part
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError, from_response

log = logging.getLogger(__name__)

_CHAT = {"href": "/chat", "label": "Back to the chat"}
_AGAIN = "Try again in a moment."
# code: title, what happened (None: the error's own sentence), what to do
_WORDS: dict[str, tuple[str, str | None, str | None]] = {
    "invalid": ("That did not work", None, "Go back and look at what was entered."),
    "forbidden": ("That is not allowed", None, "Load the page again and repeat what you did."),
    "not_found": (
        "There is nothing here",
        "This page does not exist, or it is not yours.",
        "Check the address, or go back to the chat.",
    ),
    "conflict": ("Something was first", None, "Load the page again to see how things stand."),
    "too_large": ("That is too much at once", None, "Send less."),
    "rate_limited": ("Too many attempts", None, "Wait a moment and try again."),
    "internal": (
        "Something broke on our side",
        "It has been written down with the number below.",
        _AGAIN,
    ),
    "bad_gateway": ("A part of Alcove answered wrongly", None, _AGAIN),
    "unavailable": ("A part of Alcove does not answer", None, _AGAIN),
    "timeout": ("A part of Alcove is too slow just now", None, _AGAIN),
    "quota_exhausted": ("The quota is used up", None, None),
    "unauthorized": ("You are signed out", None, "Sign in to go on."),
}


async def coded(request: Request, error: Exception) -> Response:
    """The handler of every `AlcoveError`."""
    assert isinstance(error, AlcoveError)
    response = _answer(request, error)
    retry_after = error.details.get("retry_after_s")
    if isinstance(retry_after, int):
        response.headers["retry-after"] = str(retry_after)
    if error.code == "forbidden" and error.reason in ("csrf", "origin"):
        log.warning("refused", extra={"reason": error.reason})
    return response


async def malformed(request: Request, error: Exception) -> Response:
    """The handler of requests that do not fit their route: an id of another shape names nothing."""
    assert isinstance(error, RequestValidationError)
    if any(item["loc"][0] == "path" for item in error.errors()):
        return _answer(request, AlcoveError("not_found", "There is nothing of that name."))
    fields = [
        {"field": ".".join(str(part) for part in item["loc"][1:]), "problem": item["msg"]}
        for item in error.errors()
    ]
    wrong = AlcoveError("invalid", "The request is not of the expected form.", fields=fields)
    return _answer(request, wrong)


async def http(request: Request, error: Exception) -> Response:
    """The handler of what the router itself refuses: unknown paths and methods."""
    assert isinstance(error, HTTPException)
    known = from_response(error.status_code, None)
    response = _answer(request, AlcoveError(known.code, str(error.detail)), error.status_code)
    response.headers.update(error.headers or {})
    return response


class Faults:
    """Turns an exception that nobody expected into an answer that tells nothing of it.

    Inside the header middlewares, so that this answer has its headers and its id like any other.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            if started:
                raise
            if not isinstance(error, AlcoveError):
                log.exception("unexpected")
                error = AlcoveError("internal", "Something went wrong on our side.")
            await _answer(Request(scope), error)(scope, receive, send)


def wants_html(request: Request) -> bool:
    """Whether a person looks at the answer."""
    return not request.url.path.startswith("/api/") and "text/html" in request.headers.get(
        "accept", ""
    )


def _answer(request: Request, error: AlcoveError, status: int | None = None) -> Response:
    request_id = request.scope.get("alcove_request_id")
    to_sign_in = error.reason == "signed_out" and not request.url.path.startswith("/api/")
    if to_sign_in and wants_part(request):
        return Response(status_code=204, headers={"hx-redirect": "/sign-in"})
    if to_sign_in and wants_html(request):
        return RedirectResponse(_sign_in_address(request), 303)
    if wants_html(request):
        text = parts(request).pages.get_template("error.html").render(_context(request, error))
        return HTMLResponse(text, status or error.status)
    return JSONResponse(error.body(request_id), status or error.status)


def _sign_in_address(request: Request) -> str:
    if request.method != "GET":
        return "/sign-in"
    query = f"?{request.url.query}" if request.url.query else ""
    return f"/sign-in?next={quote(request.url.path + query, safe='/')}"


def _context(request: Request, error: AlcoveError) -> dict[str, Any]:
    title, text, remedy = _WORDS[error.code]
    identity = getattr(request.state, "identity", None)
    return {
        "code": error.status,
        "title": title,
        "text": text or error.message,
        "kept": None,
        "remedy": remedy,
        "action": _CHAT if identity else {"href": "/", "label": "Go to the start"},
        "request_id": request.scope.get("alcove_request_id"),
        "theme": theme(request),
        "csrf": identity.csrf if identity else "",
        "account": {"email": identity.email, "is_admin": identity.is_admin} if identity else None,
        "path": request.url.path,
        "notice": None,
        "error": None,
    }
