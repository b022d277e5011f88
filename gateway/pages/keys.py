"""The person's keys: their own ones to model providers, and those that their own programs use here.

Keys to providers go to the meter and never come back; keys for programs come from the meter and are shown once.
"""

from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response

from gateway.accounts.sessions import Identity
from gateway.pages.render import page, see_other
from gateway.tenants import audit
from gateway.web.identity import Person, actor, form, signed_in, written_by_our_page
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import ApiKey, ApiKeyRequest, Model, NewApiKey, Provider

router = APIRouter(
    prefix="/account/keys", dependencies=[Depends(signed_in), Depends(written_by_our_page)]
)
State = Literal["live", "replaced", "expired", "revoked"]

_HOME = "/account/keys"
_DAY_MS = 86_400_000
_LASTS = {"30": 30, "90": 90, "365": 365}
_SHOWN_IN_FORM = ("invalid", "conflict", "unavailable", "timeout", "rate_limited")
_AWAY = "The meter does not answer just now, so keys cannot be shown or changed. Those that exist go on working."


@router.get("")
async def show(request: Request, person: Person) -> Response:
    """The page."""
    return await _show(request, person)


@router.post("/programs")
async def make(request: Request, person: Person) -> Response:
    """A new key for a program, on this one page and never again."""
    here, sent = parts(request), await _sent(request)
    name = " ".join(sent.get("name", "").split())
    lasts = sent.get("lasts", "")
    models = sent.get("models", "").replace(",", " ").split()
    try:
        if not 1 <= len(name) <= 80:
            raise AlcoveError(
                "invalid", "Give it a name of at most 80 characters, so that you know it again."
            )
        days = _LASTS.get(lasts)
        expires_at = here.clock.now_at() + days * _DAY_MS if days else None
        asked = ApiKeyRequest(name=name, expires_at=expires_at, models=models or None)
        made = await here.meter.create_api_key(person.tenant, asked)
    except (AlcoveError, ValueError) as error:
        problem = _problem(error, "Name models as they are listed, such as anthropic/*.")
        field = "models" if isinstance(error, ValueError) else "name"
        return await _refused(request, person, "make", field, problem, sent)
    await _audit(request, person, "api_key.made", after=f"{made.name} (…{made.hint})")
    return await _show(request, person, fresh=made)


@router.post("/programs/{key}/rotations")
async def rotate(request: Request, person: Person, key: str) -> Response:
    """A new key in its place; the old one works for a day more."""
    try:
        made = await parts(request).meter.rotate_api_key(person.tenant, key)
    except AlcoveError as error:
        if error.code != "conflict":
            raise
        return see_other(request, _HOME, error="This key has ended. Make a new one.")
    await _audit(request, person, "api_key.rotated", after=f"{made.name} (…{made.hint})")
    return await _show(request, person, fresh=made)


@router.post("/programs/{key}/revocation")
async def revoke(request: Request, person: Person, key: str) -> Response:
    """Ends a key everywhere within a second."""
    ended = await parts(request).meter.revoke_api_key(person.tenant, key)
    await _audit(request, person, "api_key.revoked", before=f"{ended.name} (…{ended.hint})")
    return see_other(request, _HOME, notice=f"The key “{ended.name}” works no longer.")


@router.post("/providers/{provider}")
async def set_own(request: Request, person: Person, provider: str) -> Response:
    """Tests the person's own key, and seals it when the provider takes it. A refused one is not kept."""
    here, sent = parts(request), await _sent(request)
    found = await _find(here, provider)
    try:
        tested = await here.meter.probe_own_key(person.tenant, provider, sent.get("key", ""))
        if not tested.ok:
            raise AlcoveError("invalid", f"The test failed: {tested.detail}. Nothing was changed.")
        kept = await here.meter.put_own_key(person.tenant, provider, sent.get("key", ""))
    except AlcoveError as error:
        return await _refused(request, person, provider, "key", _problem(error), {})
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
    listed = await _providers(here, person.tenant)
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


async def _refused(
    request: Request,
    person: Identity,
    form_name: str,
    field: str,
    problem: tuple[str, int],
    values: dict[str, str],
) -> Response:
    text, status = problem
    return await _show(
        request, person, form_name=form_name, errors={field: text}, values=values, status=status
    )


async def _show(
    request: Request,
    person: Identity,
    *,
    fresh: NewApiKey | None = None,
    form_name: str | None = None,
    errors: dict[str, str] | None = None,
    values: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    here = parts(request)
    programs: list[dict[str, Any]] | None = None
    providers: list[dict[str, Any]] | None = None
    model: str | None = None
    try:
        now_at = here.clock.now_at()
        programs = _programs(await here.meter.api_keys(person.tenant), now_at)
        providers = await _providers(here, person.tenant)
        model = _example(await here.meter.models())
    except AlcoveError:
        programs = providers = None
    context: dict[str, Any] = {
        "programs": programs,
        "providers": providers,
        "model": model,
        "address": here.settings.public_url if here.programs else None,
        "fresh": fresh.model_dump() if fresh else None,
        "form": form_name,
        "errors": errors or {},
        "values": values or {},
        "problems": [_AWAY] if providers is None else [],
    }
    return await page(request, "keys.html", context, status)


def _example(models: list[Model]) -> str | None:
    """The id of a model to begin with: the one that answers by default, where there is one."""
    answering = [model for model in models if model.alcove.kind == "chat"]
    answering.sort(key=lambda model: not model.alcove.default)
    return answering[0].id if answering else None


def _programs(keys: list[ApiKey], now_at: int) -> list[dict[str, Any]]:
    """Those that work first; of those that ended, the newest few."""
    replaced = {key.replaces for key in keys if key.replaces}
    shown = [{**key.model_dump(), "state": _state(key, now_at, key.id in replaced)} for key in keys]
    live = [key for key in shown if key["state"] in ("live", "replaced")]
    ended = [key for key in shown if key["state"] in ("expired", "revoked")]
    return [*live, *ended[:5]]


def _state(key: ApiKey, now_at: int, is_replaced: bool) -> State:
    if key.revoked_at is not None:
        return "revoked"
    if key.expires_at is not None and key.expires_at <= now_at:
        return "expired"
    return "replaced" if is_replaced else "live"


async def _providers(here: Parts, tenant: str) -> list[dict[str, Any]]:
    """Where a key of the person's own can be used, or still lies. Of the operator's connection: its name alone."""
    own = {key.provider: key for key in await here.meter.own_keys(tenant)}
    known = {each.id: each for each in await here.meter.providers()}
    usable = [name for name, each in known.items() if _takes_keys(each)]
    shown = []
    for name in dict.fromkeys([*usable, *own]):
        key = own.get(name)
        shown.append(
            {
                "id": name,
                "name": known[name].name if name in known else name,
                "usable": name in usable,
                "own": {"hint": key.hint, "set_at": key.set_at} if key else None,
            }
        )
    return shown


def _takes_keys(provider: Provider) -> bool:
    return not provider.local and provider.enabled


async def _find(here: Parts, provider: str) -> Provider:
    for each in await here.meter.providers():
        if each.id == provider and _takes_keys(each):
            return each
    raise AlcoveError("not_found", "There is no such provider.")


def _problem(error: Exception, otherwise: str = "") -> tuple[str, int]:
    """What was wrong, as a sentence, and the status. Raises what no form can show."""
    if not isinstance(error, AlcoveError):
        return otherwise, 400
    if error.code not in _SHOWN_IN_FORM:
        raise error
    fields = error.details.get("fields")
    problem = fields[0].get("problem") if isinstance(fields, list) and fields else None
    return str(problem or error.message), error.status


async def _sent(request: Request) -> dict[str, str]:
    return {
        k: v
        for k, v in (await form(request)).items()
        if isinstance(v, str) and not k.startswith("x-")
    }


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
