"""The page of a one-time link that lets somebody choose a new password. Opening it changes nothing."""

from fastapi import APIRouter, Depends, Request, Response

from gateway.pages.doors import count, enter, errors_of, link_status, refused, status_of
from gateway.pages.render import page
from gateway.web.identity import fields, visitor, written_by_our_page
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError

router = APIRouter(prefix="/password", dependencies=[Depends(written_by_our_page)])


@router.get("")
@router.get("/")
@router.get("/{token}")
async def show(request: Request, token: str = "") -> Response:
    """The form; where the link is used, expired or cut off, it says what to do."""
    return await _show(request, token, {})


@router.post("/{token}")
async def redeem(request: Request, token: str) -> Response:
    """Sets the password, ends every session of the account, and lets its owner in here."""
    here, password = parts(request), (await fields(request)).get("password", "")
    try:
        entered, ended = await here.recovery.redeem(token, password, visitor(request))
    except AlcoveError as error:
        count(request, "password_link", error)
        return refused(error, await _show(request, token, errors_of(error), status_of(error)))
    count(request, "password_link")
    here.hub.end_sessions(ended)
    return await enter(
        request, entered, "/account", "The password is set. Every other device is signed out."
    )


async def _show(
    request: Request, token: str, errors: dict[str, str], status: int = 200
) -> Response:
    offer = await parts(request).recovery.look(token)
    context = {
        "token": token,
        "state": offer.state,
        "email": offer.email if offer.state == "ready" else None,
        "expires_at": offer.expires_at,
        "errors": errors,
    }
    return await page(request, "password.html", context, link_status(offer.state, status))
