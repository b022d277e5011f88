"""Who sends a request, and whether its page was ours: the dependencies that routes are guarded by."""

import hmac
from typing import Annotated

from fastapi import Depends, Request
from starlette.datastructures import FormData

from gateway.accounts import sessions
from gateway.accounts.sessions import Identity, Visitor
from gateway.tenants.audit import Actor
from gateway.web.origin import SAFE
from gateway.web.parts import Parts, parts
from infra.kit import log
from infra.kit.errors import AlcoveError

CSRF = "x-csrf-token"


async def optional(request: Request) -> Identity | None:
    """Who is signed in; None for nobody. Asked once a request."""
    if not hasattr(request.state, "identity"):
        request.state.identity = await _look_up(request)
    found: Identity | None = request.state.identity
    return found


async def signed_in(request: Request) -> Identity:
    """The person. Raises `unauthorized` (reason `signed_out`). Counts as the session's activity."""
    identity = await present(request)
    here = parts(request)
    if here.clock.now_at() - identity.last_seen_at >= here.limits.session_touch_s * 1000:
        await _touch(here, identity)
    return identity


async def _touch(here: Parts, identity: Identity) -> None:
    """Notes that the person is there; a database that takes nothing just now is no reason to send them away."""
    try:
        async with here.db.transaction() as tx:
            await sessions.touch(tx, identity)
    except AlcoveError as error:
        if error.reason != "database":
            raise


async def present(request: Request) -> Identity:
    """As `signed_in`, without counting as activity: for the stream, which no person holds open."""
    identity = await optional(request)
    if identity is None:
        raise AlcoveError("unauthorized", "You are signed out.", reason="signed_out")
    log.bind(tenant=identity.tenant)
    return identity


async def admin(request: Request) -> Identity:
    """The admin. For everybody else there is no such page (`not_found`)."""
    identity = await signed_in(request)
    if not identity.is_admin:
        raise AlcoveError("not_found", "There is no such page.")
    return identity


async def written_by_our_page(request: Request) -> None:
    """For writes: the token of the session, or of the signed-out browser, came with it, in the header
    or the form. Raises `forbidden` (reason `csrf`)."""
    if request.method in SAFE:
        return
    expected = await csrf_of(request)
    given = request.headers.get(CSRF)
    if given is None and _is_form(request):
        value = (await form(request)).get(CSRF)
        given = value if isinstance(value, str) else None
    if not expected or not given or not hmac.compare_digest(given.encode(), expected.encode()):
        raise AlcoveError(
            "forbidden", "This page was open for too long. Load it again.", reason="csrf"
        )


async def csrf_of(request: Request) -> str | None:
    """The token that this browser's pages carry; None before its first page."""
    identity = await optional(request)
    if identity is not None:
        return identity.csrf
    cookies = parts(request).cookies
    secret = cookies.get(request, cookies.anonymous)
    return sessions.csrf_token(secret) if secret else None


async def form(request: Request) -> FormData:
    """The form that was sent, parsed once. Raises `invalid` for characters that no field can hold.

    Url-encoded only, as our pages send them: a multipart body names its own charset, and so makes
    text that no answer can say.
    """
    if not hasattr(request.state, "form"):
        if not _is_form(request):
            raise AlcoveError("invalid", "This is not a form of ours.", reason="form")
        sent = await request.form(max_files=0, max_fields=2000)
        for _, value in sent.multi_items():
            if not isinstance(value, str) or "\0" in value:
                raise AlcoveError("invalid", "The form holds what no field can.", reason="form")
        request.state.form = sent
    found: FormData = request.state.form
    return found


async def fields(request: Request) -> dict[str, str]:
    """What was typed into the form, by field, without our own token. Raises as `form`."""
    sent = (await form(request)).items()
    return {name: value for name, value in sent if isinstance(value, str) and name != CSRF}


def visitor(request: Request) -> Visitor:
    """Where the request comes from. The address is the peer's, or what a trusted proxy says of it."""
    return Visitor(
        request.client.host if request.client else "unknown", request.headers.get("user-agent", "")
    )


def actor(request: Request, identity: Identity) -> Actor:
    """Who acts, for the audit."""
    return Actor(identity.account_id, identity.email, visitor(request).ip)


def _is_form(request: Request) -> bool:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    return kind == "application/x-www-form-urlencoded"


async def _look_up(request: Request) -> Identity | None:
    here = parts(request)
    secret = here.cookies.get(request, here.cookies.session)
    if secret is None:
        return None
    async with here.db.read() as reading:
        return await sessions.find(reading, secret, here.limits)


Person = Annotated[Identity, Depends(signed_in)]
Present = Annotated[Identity, Depends(present)]
Admin = Annotated[Identity, Depends(admin)]
