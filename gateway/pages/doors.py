"""The ways in and out: sign-up, sign-in, sign-out, and the setup link of the first admin."""

from fastapi import APIRouter, Depends, Request, Response

from gateway.accounts import admin_links, sessions
from gateway.accounts.doors import Entered
from gateway.accounts.one_time import State
from gateway.pages.render import page, see_other
from gateway.web.identity import fields, optional, visitor, written_by_our_page
from gateway.web.parts import parts
from gateway.web.paths import local
from infra.kit.errors import AlcoveError

router = APIRouter(dependencies=[Depends(written_by_our_page)])
way_out = APIRouter()

_SHOWN_IN_FORM = ("invalid", "unauthorized", "conflict", "forbidden", "not_found", "rate_limited")


@router.get("/")
async def landing(request: Request) -> Response:
    """To the chat, or to the door."""
    return see_other(request, "/chat" if await optional(request) else "/sign-in")


@router.get("/sign-up")
async def sign_up_form(request: Request) -> Response:
    """The form."""
    if await optional(request):
        return see_other(request, "/chat")
    return await _sign_up(request, {"email": ""}, {})


@router.post("/sign-up")
async def sign_up(request: Request) -> Response:
    """Makes the account and lets its owner in."""
    email, password = await _typed(request)
    try:
        entered = await parts(request).doors.sign_up(email, password, visitor(request))
    except AlcoveError as error:
        count(request, "sign_up", error)
        return refused(
            error, await _sign_up(request, {"email": email}, errors_of(error), status_of(error))
        )
    count(request, "sign_up")
    return await enter(request, entered, "/chat")


@router.get("/sign-in")
async def sign_in_form(request: Request) -> Response:
    """The form."""
    target = local(request.query_params.get("next"))
    if await optional(request):
        return see_other(request, target)
    return await _sign_in(request, {"email": ""}, {}, target)


@router.post("/sign-in")
async def sign_in(request: Request) -> Response:
    """Lets in who knows the password, and sends them where they wanted to go."""
    email, password = await _typed(request)
    target = local((await fields(request)).get("next", ""))
    try:
        entered = await parts(request).doors.sign_in(email, password, visitor(request))
    except AlcoveError as error:
        count(request, "sign_in", error)
        shown = await _sign_in(
            request, {"email": email}, {"": error.message}, target, status_of(error)
        )
        return refused(error, shown)
    count(request, "sign_in")
    return await enter(request, entered, target)


@way_out.post("/sign-out")
async def sign_out(request: Request) -> Response:
    """Ends the session, its streams included. Fine for who is signed out already."""
    here, identity = parts(request), await optional(request)
    if identity is not None:
        await written_by_our_page(request)
        async with here.db.transaction() as tx:
            await sessions.end(tx, identity.scope, identity.session_id)
        here.hub.end_sessions([identity.session_id])
    response = see_other(request, "/sign-in")
    here.cookies.clear(response, here.cookies.session)
    response.headers["clear-site-data"] = '"storage"'
    return response


@router.get("/setup")
@router.get("/setup/")
@router.get("/setup/{token}")
async def setup_form(request: Request, token: str = "") -> Response:
    """The form of the one-time link; where it is used, expired or cut off, it says what to do."""
    return await _setup(request, token, {"email": ""}, {})


@router.post("/setup/{token}")
async def setup(request: Request, token: str) -> Response:
    """Uses the link up: its user is an admin and signed in."""
    email, password = await _typed(request)
    try:
        entered = await parts(request).doors.set_up(token, email, password, visitor(request))
    except AlcoveError as error:
        count(request, "setup", error)
        shown = await _setup(request, token, {"email": email}, errors_of(error), status_of(error))
        return refused(error, shown)
    count(request, "setup")
    return await enter(request, entered, "/admin/providers")


async def _sign_up(
    request: Request, values: dict[str, str], errors: dict[str, str], status: int = 200
) -> Response:
    open_ = parts(request).doors.sign_up_is_open
    context = {"values": values, "errors": errors, "open": open_}
    return await page(request, "sign_up.html", context, status)


async def _sign_in(
    request: Request,
    values: dict[str, str],
    errors: dict[str, str],
    target: str,
    status: int = 200,
) -> Response:
    context = {"values": values, "errors": errors, "next": target}
    return await page(request, "sign_in.html", context, status)


async def _setup(
    request: Request,
    token: str,
    values: dict[str, str],
    errors: dict[str, str],
    status: int = 200,
) -> Response:
    here = parts(request)
    async with here.db.read() as reading:
        state, expires_at = await admin_links.state(reading, token)
        first = not await admin_links.there_is_an_admin(reading)
    context = {
        "values": values,
        "errors": errors,
        "token": token,
        "state": state,
        "expires_at": expires_at,
        "first": first,
    }
    return await page(request, "setup.html", context, link_status(state, status))


async def _typed(request: Request) -> tuple[str, str]:
    sent = await fields(request)
    return sent.get("email", "")[:320], sent.get("password", "")


def errors_of(error: AlcoveError) -> dict[str, str]:
    """*errors* of the templates."""
    field = error.details.get("field")
    return {field if isinstance(field, str) else "": error.message}


def status_of(error: AlcoveError) -> int:
    """The status of the form that shows what was wrong. Raises what no form can show."""
    if error.code not in _SHOWN_IN_FORM:
        raise error
    return error.status


def link_status(state: State, status: int) -> int:
    """The status of a one-time link's page: 404 for one that never was, 410 for one that is no good any more."""
    if state == "unknown":
        return 404
    return status if state == "ready" or status != 200 else 410


def count(request: Request, door: str, error: AlcoveError | None = None) -> None:
    """Counts an attempt at a door."""
    outcome = "opened" if error is None else "refused"
    if error is not None and error.code == "rate_limited":
        outcome = "throttled"
    parts(request).metrics.doors.labels(door, outcome).inc()


def refused(error: AlcoveError, shown: Response) -> Response:
    """The form again, with when to try anew where attempts are up."""
    retry_after = error.details.get("retry_after_s")
    if isinstance(retry_after, int):
        shown.headers["retry-after"] = str(retry_after)
    return shown


async def enter(
    request: Request, entered: Entered, target: str, notice: str | None = None
) -> Response:
    """Sets the new session's cookie; the one before it ends, whoever it belonged to."""
    here, before = parts(request), await optional(request)
    if before is not None:
        async with here.db.transaction() as tx:
            await sessions.end(tx, before.scope, before.session_id)
        here.hub.end_sessions([before.session_id])
    response = see_other(request, target, notice=notice)
    limits = here.limits
    longest_s = limits.admin_session_absolute_s if entered.is_admin else limits.session_absolute_s
    here.cookies.set(response, here.cookies.session, entered.secret, longest_s)
    here.cookies.clear(response, here.cookies.anonymous)
    return response
