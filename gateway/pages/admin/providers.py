"""Providers: who answers the models. Keys go to the meter and are never shown, kept or logged here."""

import asyncio
from collections.abc import Sequence
from typing import Any

from fastapi import APIRouter, Depends, Request, Response
from starlette.datastructures import FormData

from gateway.pages.admin import provider_form
from gateway.pages.form_errors import errors_of
from gateway.pages.render import page, see_other, wants_part
from gateway.tenants import audit
from gateway.web.identity import Admin, actor, admin, form, written_by_our_page
from gateway.web.parts import parts
from gateway.words import sentence
from infra.kit.errors import AlcoveError
from metering_proxy.wire import Breaker, Probe, Provider, ProviderChange

router = APIRouter(
    prefix="/admin/providers", dependencies=[Depends(admin), Depends(written_by_our_page)]
)

_HOME = "/admin/providers"


@router.get("")
async def listing(request: Request) -> Response:
    """All connections."""
    problems: list[str] = []
    here = parts(request)
    providers: list[Provider] = []
    troubles: list[Breaker] = []
    try:
        providers, troubles = await asyncio.gather(here.meter.providers(), here.meter.breakers())
    except AlcoveError:
        problems.append("The meter does not answer just now, so providers cannot be shown.")
    now_at = here.clock.now_at()
    shown = [_shown(each) | _health(each, troubles, now_at) for each in providers]
    context = {"providers": shown, "problems": problems}
    return await page(request, "admin/providers.html", context)


@router.get("/new")
async def new(request: Request, kind: str = "openai") -> Response:
    """The form for a new one."""
    return await _form(request, None, provider_form.empty(kind), {})


@router.post("")
async def create(request: Request, person: Admin) -> Response:
    """Connects a provider, off, and switches it on when its test passes; says what the test found."""
    here, sent = parts(request), await form(request)
    try:
        made = await here.meter.create_provider(provider_form.as_new(sent))
    except AlcoveError as error:
        return await _refused(request, None, sent, error)
    await _audit(request, person, "provider.connected", after=f"{made.name} ({made.kind})")
    return await _tested(request, made, provider_form.wants_default(sent), "is connected")


@router.get("/{provider}")
async def edit(request: Request, provider: str) -> Response:
    """The form of one connection."""
    found = await _find(request, provider)
    return await _form(request, found, provider_form.of(found), {})


@router.post("/{provider}")
async def change(request: Request, person: Admin, provider: str) -> Response:
    """Saves what was changed and tests it again. An empty key keeps the one that is there.

    What calls otherwise than before and fails its test is switched off: it answers nobody until it passes.
    """
    here, sent = parts(request), await form(request)
    before = await _find(request, provider)
    try:
        wanted = provider_form.as_change(sent, before)
        after = await here.meter.change_provider(before.id, wanted)
    except AlcoveError as error:
        return await _refused(request, before, sent, error)
    await _audit(request, person, "provider.changed", before=before.name, after=after.name)
    keeps = before.enabled and not provider_form.changes_calls(wanted, before)
    default = provider_form.wants_default(sent) and not before.is_default
    return await _tested(request, after, default, "is saved", stays=keeps)


@router.post("/{provider}/probes")
async def probe(request: Request, person: Admin, provider: str) -> Response:
    """Calls the provider once and shows what it said; one that was off is switched on when it passes."""
    here, known = parts(request), await _find(request, provider)
    failed = bool(_of(known, await here.meter.breakers()))
    found = await here.meter.probe_provider(known.id)
    if found.ok and not known.enabled:
        await _switch(request, known, on=True)
    if wants_part(request):
        if found.ok and (failed or not known.enabled):  # the row around it says otherwise
            return Response(status_code=204, headers={"hx-refresh": "true"})
        context = {"probe": found.model_dump(), "failing": failed}
        return await page(request, "admin/_probe.html", context)
    return _with_finding(request, "", found)


@router.post("/{provider}/default")
async def make_default(request: Request, person: Admin, provider: str) -> Response:
    """Its default model answers from the next message on, also where its test failed: an admin may know better."""
    here, found = parts(request), await _find(request, provider)
    await here.meter.change_provider(found.id, ProviderChange(make_default=True, enabled=True))
    await _audit(request, person, "provider.made_default", after=found.name)
    return see_other(request, _HOME, notice=f"{found.name} answers from the next message on.")


@router.post("/{provider}/deletion")
async def delete(request: Request, person: Admin, provider: str) -> Response:
    """Forgets the connection and its key."""
    here, found = parts(request), await _find(request, provider)
    await here.meter.delete_provider(found.id)
    await _audit(request, person, "provider.disconnected", before=found.name)
    return see_other(request, _HOME, notice=f"{found.name} is disconnected; its key is forgotten.")


async def _find(request: Request, provider: str) -> Provider:
    for each in await parts(request).meter.providers():
        if each.id == provider:
            return each
    raise AlcoveError("not_found", "There is no such provider.")


async def _tested(
    request: Request, provider: Provider, default: bool, done: str, *, stays: bool = False
) -> Response:
    """Tests what was saved, then switches it on or off by what was found. `stays`: on, whatever is found."""
    said = f"{provider.name} {done}."
    try:
        found = await parts(request).meter.probe_provider(provider.id)
    except AlcoveError as error:
        found = Probe(ok=False, at=parts(request).clock.now_at(), detail=error.message)
    if found.ok:
        await _switch(request, provider, on=True, default=default)
        return _with_finding(request, said, found)
    if stays:
        return _with_finding(request, said, found)
    await _switch(request, provider, on=False)
    off = f"{provider.name} is saved, but it is off until a test passes."
    return _with_finding(request, off, found)


async def _switch(request: Request, provider: Provider, *, on: bool, default: bool = False) -> None:
    if provider.enabled != on or default:
        change = ProviderChange(enabled=on, make_default=default)
        await parts(request).meter.change_provider(provider.id, change)


def _with_finding(request: Request, said: str, found: Probe) -> Response:
    if found.ok:
        return see_other(request, _HOME, notice=f"{said} {sentence(found.detail)}".strip())
    return see_other(request, _HOME, error=f"{said} The test failed: {found.detail}.".strip())


async def _refused(
    request: Request, provider: Provider | None, sent: FormData, error: AlcoveError
) -> Response:
    errors = errors_of(error, "", provider_form.FIELDS)
    return await _form(request, provider, provider_form.typed(sent), errors, error.status)


async def _form(
    request: Request,
    provider: Provider | None,
    values: dict[str, Any],
    errors: dict[str, str],
    status: int = 200,
) -> Response:
    context = {
        "provider": _shown(provider) if provider else None,
        "values": values,
        "errors": errors,
    }
    return await page(request, "admin/provider_form.html", context, status)


def _shown(provider: Provider) -> dict[str, Any]:
    return provider.model_dump(exclude={"rows"})


def _of(provider: Provider, troubles: Sequence[Breaker]) -> list[Breaker]:
    """What fails there with the house's own key; a person's key is that person's matter."""
    return [t for t in troubles if t.provider == provider.id and t.payer == "operator"]


def _health(provider: Provider, troubles: Sequence[Breaker], now_at: int) -> dict[str, Any]:
    """`troubles`: the models that fail, the longest first; `rests`: whether one of them is left alone."""
    mine = sorted(_of(provider, troubles), key=lambda trouble: trouble.since_at)
    return {
        "troubles": [
            {
                **trouble.model_dump(),
                "model": trouble.model.removeprefix(f"{provider.id}/"),
                "probe_in_ms": trouble.probe_at and max(0, trouble.probe_at - now_at),
            }
            for trouble in mine
        ],
        "rests": any(trouble.state != "failing" for trouble in mine),
    }


async def _audit(
    request: Request,
    person: Admin,
    action: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> None:
    async with parts(request).db.transaction() as tx:
        await audit.write(tx, actor(request, person), action, before=before, after=after)
