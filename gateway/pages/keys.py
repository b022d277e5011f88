"""The page of a person's keys: their own to model providers, and those of their programs. As it is shown;
what the person does there is key_acts.py's matter.
"""

from typing import Any, Literal

from fastapi import APIRouter, Depends, Request, Response

from gateway.accounts.sessions import Identity
from gateway.pages.render import page
from gateway.web.identity import Person, signed_in
from gateway.web.parts import Parts, parts
from infra.kit.errors import AlcoveError
from metering_proxy.wire import ApiKey, Model, NewApiKey, Provider

router = APIRouter(prefix="/account/keys", dependencies=[Depends(signed_in)])
State = Literal["live", "replaced", "expired", "revoked"]

_AWAY = "The meter does not answer just now, so keys cannot be shown or changed. Those that exist go on working."


@router.get("")
async def keys(request: Request, person: Person) -> Response:
    """The page."""
    return await show(request, person)


async def show(
    request: Request,
    person: Identity,
    *,
    fresh: NewApiKey | None = None,
    form_name: str | None = None,
    errors: dict[str, str] | None = None,
    values: dict[str, str] | None = None,
    status: int = 200,
) -> Response:
    """The page, with what was wrong in one of its forms, or with a `fresh` key that is shown this once."""
    here = parts(request)
    programs: list[dict[str, Any]] | None = None
    providers: list[dict[str, Any]] | None = None
    model: str | None = None
    try:
        now_at = here.clock.now_at()
        programs = _programs(await here.meter.api_keys(person.tenant), now_at)
        providers = await listed_providers(here, person.tenant)
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


async def listed_providers(here: Parts, tenant: str) -> list[dict[str, Any]]:
    """Where a key of the person's own can be used, or still lies. Of the operator's connection: its name alone."""
    own = {key.provider: key for key in await here.meter.own_keys(tenant)}
    known = {each.id: each for each in await here.meter.providers()}
    usable = [name for name, each in known.items() if takes_keys(each)]
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


def takes_keys(provider: Provider) -> bool:
    """Whether people can use their own keys there."""
    return not provider.local and provider.enabled
