"""The person's account: password, and where they are signed in."""

import re
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from sqlalchemy import select

from gateway.accounts import sessions
from gateway.accounts.sessions import Identity
from gateway.models import account
from gateway.pages.form_errors import errors_of
from gateway.pages.render import page, see_other
from gateway.pages.storage import stored_or_none
from gateway.web.identity import Person, fields, signed_in, visitor, written_by_our_page
from gateway.web.parts import parts
from infra.kit.errors import AlcoveError

router = APIRouter(
    prefix="/account", dependencies=[Depends(signed_in), Depends(written_by_our_page)]
)

_BROWSERS = (
    ("Edge", r"Edg/"),
    ("Opera", r"OPR/"),
    ("Firefox", r"Firefox/|FxiOS/"),
    ("Chrome", r"Chrome/|CriOS/"),
    ("Safari", r"Safari/"),
)
_SYSTEMS = (
    ("iPhone", r"iPhone"),
    ("iPad", r"iPad"),
    ("Android", r"Android"),
    ("Windows", r"Windows"),
    ("macOS", r"Mac OS X|Macintosh"),
    ("Linux", r"Linux|X11"),
)


@router.get("")
async def show(request: Request, person: Person) -> Response:
    """The page."""
    return await _show(request, person, {})


@router.post("/password")
async def change_password(request: Request, person: Person) -> Response:
    """Changes the password; every other session ends."""
    here, sent = parts(request), await fields(request)
    current, new = sent.get("current", ""), sent.get("password", "")
    try:
        ended = await here.doors.change_password(person, current, new, visitor(request))
    except AlcoveError as error:
        return await _show(request, person, errors_of(error, "current"), error.status)
    here.hub.end_sessions(ended)
    return see_other(
        request, "/account", notice="The password is changed. Every other device is signed out."
    )


@router.post("/sessions/revocations")
async def revoke_others(request: Request, person: Person) -> Response:
    """Ends all sessions but this one."""
    here = parts(request)
    async with here.db.transaction() as tx:
        ended = await sessions.end_all(tx, person.scope, keep=person.session_id)
    here.hub.end_sessions(ended)
    return see_other(request, "/account", notice="Every other device is signed out.")


@router.post("/sessions/{session_id}/revocation")
async def revoke(request: Request, person: Person, session_id: str) -> Response:
    """Ends one session of the person's own; 404 for any other."""
    here = parts(request)
    async with here.db.transaction() as tx:
        found = await sessions.end(tx, person.scope, session_id)
    if not found:
        raise AlcoveError("not_found", "There is no such session.")
    here.hub.end_sessions([session_id])
    return see_other(request, "/account", notice="That device is signed out.")


async def _show(
    request: Request, person: Identity, errors: dict[str, str], status: int = 200
) -> Response:
    here = parts(request)
    async with here.db.read() as reading:
        rows = await sessions.listing(reading, person.scope)
        since_at = await reading.value(
            select(account.c.created_at).where(account.c.id == person.account_id)
        )
    listed: list[dict[str, Any]] = [
        {
            "id": row["id"],
            "current": row["id"] == person.session_id,
            "device": device(row["user_agent"]),
            "created_at": row["created_at"],
            "last_seen_at": row["last_seen_at"],
        }
        for row in rows
    ]
    listed.sort(key=lambda each: not each["current"])
    context = {
        "member_since_at": since_at,
        "sessions": listed,
        "storage": await stored_or_none(here, person.tenant),
        "values": {},
        "errors": errors,
    }
    return await page(request, "account.html", context, status)


def device(user_agent: str) -> str:
    """What a person would call it: `Firefox on Linux`."""
    browser = next((name for name, mark in _BROWSERS if re.search(mark, user_agent)), None)
    system = next((name for name, mark in _SYSTEMS if re.search(mark, user_agent)), None)
    if browser and system:
        return f"{browser} on {system}"
    return browser or system or "Unknown device"
