"""What a person does with their keys. Each act is audited; its forms are on the page of keys.

Keys to providers go to the meter and never come back; keys for programs come from the meter and are shown once.
"""

from fastapi import APIRouter, Depends, Request, Response

from gateway.accounts.sessions import Identity
from gateway.pages.form_errors import errors_of
from gateway.pages.keys import listed_providers, show, takes_keys
from gateway.pages.render import see_other
from gateway.tenants import audit
from gateway.web.identity import Person, actor, fields, signed_in, written_by_our_page
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import ApiKeyRequest, Provider

router = APIRouter(
    prefix="/account/keys", dependencies=[Depends(signed_in), Depends(written_by_our_page)]
)

_HOME = "/account/keys"
_DAY_MS = 86_400_000
_LASTS = {"30": 30, "90": 90, "365": 365}
_NOT_ROTATED = {
    "rotated": "This key was rotated already. The key in its place is in the list.",
    "keys": "You have as many keys as there may be. End one first.",
}


@router.post("/programs")
async def make(request: Request, person: Person) -> Response:
    """A new key for a program, on this one page and never again."""
    here, sent = parts(request), await fields(request)
    try:
        asked = _asked(sent, here.clock.now_at())
        made = await here.meter.create_api_key(person.tenant, asked)
    except AlcoveError as error:
        return await show(
            request,
            person,
            form_name="make",
            errors=errors_of(error, "name", ("models",)),
            values=sent,
            status=error.status,
        )
    await _audit(request, person, "api_key.made", after=f"{made.name} (…{made.hint})")
    return await show(request, person, fresh=made)


@router.post("/programs/{key}/rotations")
async def rotate(request: Request, person: Person, key: str) -> Response:
    """A new key in its place; the old one works for a day more."""
    try:
        made = await parts(request).meter.rotate_api_key(person.tenant, key)
    except AlcoveError as error:
        if error.code != "conflict":
            raise
        why = _NOT_ROTATED.get(error.reason or "", "This key has ended. Make a new one.")
        return see_other(request, _HOME, error=why)
    await _audit(request, person, "api_key.rotated", after=f"{made.name} (…{made.hint})")
    return await show(request, person, fresh=made)


@router.post("/programs/{key}/revocation")
async def revoke(request: Request, person: Person, key: str) -> Response:
    """Ends a key everywhere within a second."""
    ended = await parts(request).meter.revoke_api_key(person.tenant, key)
    await _audit(request, person, "api_key.revoked", before=f"{ended.name} (…{ended.hint})")
    return see_other(request, _HOME, notice=f"The key “{ended.name}” works no longer.")


@router.post("/providers/{provider}")
async def set_own(request: Request, person: Person, provider: str) -> Response:
    """Tests the person's own key, and seals it when the provider takes it. A refused one is not kept."""
    here, sent = parts(request), await fields(request)
    found = await _find(here, provider)
    try:
        tested = await here.meter.probe_own_key(person.tenant, provider, sent.get("key", ""))
        if not tested.ok:
            raise AlcoveError("invalid", f"The test failed: {tested.detail}. Nothing was changed.")
        kept = await here.meter.put_own_key(person.tenant, provider, sent.get("key", ""))
    except AlcoveError as error:
        errors = errors_of(error, "key")
        return await show(request, person, form_name=provider, errors=errors, status=error.status)
    await _audit(request, person, "own_key.set", after=f"{found.name} (…{kept.hint})")
    return see_other(
        request,
        _HOME,
        notice=f"{found.name} takes your key. It pays for your calls there from the next one on.",
    )


@router.post("/providers/{provider}/deletion")
async def remove_own(request: Request, person: Person, provider: str) -> Response:
    """Forgets the person's own key to a provider, also where the provider is off or gone."""
    here = parts(request)
    listed = await listed_providers(here, person.tenant)
    found = next((each for each in listed if each["id"] == provider and each["own"]), None)
    if found is None:
        raise AlcoveError("not_found", "There is no such key.")
    await here.meter.delete_own_key(person.tenant, provider)
    await _audit(request, person, "own_key.removed", before=found["name"])
    return see_other(
        request,
        _HOME,
        notice=f"Your key to {found['name']} is forgotten. Your plan pays there again.",
    )


def _asked(sent: dict[str, str], now_at: int) -> ApiKeyRequest:
    """What was asked for. Raises `invalid` (field `name` or `models`)."""
    name = " ".join(sent.get("name", "").split())
    if not 1 <= len(name) <= 80:
        problem = "Give it a name of at most 80 characters, so that you know it again."
        raise AlcoveError("invalid", problem, field="name")
    days = _LASTS.get(sent.get("lasts", ""))
    expires_at = now_at + days * _DAY_MS if days else None
    models = sent.get("models", "").replace(",", " ").split()
    try:
        return ApiKeyRequest(name=name, expires_at=expires_at, models=models or None)
    except ValueError:
        problem = "Name models as they are listed, such as anthropic/*."
        raise AlcoveError("invalid", problem, field="models") from None


async def _find(here: Parts, provider: str) -> Provider:
    for each in await here.meter.providers():
        if each.id == provider and takes_keys(each):
            return each
    raise AlcoveError("not_found", "There is no such provider.")


async def _audit(
    request: Request,
    person: Identity,
    action: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> None:
    async with parts(request).db.transaction() as tx:
        await audit.write(
            tx, actor(request, person), action, tenant=person.tenant, before=before, after=after
        )
