"""The chat page. Opening it by navigation wakes the assistant; a script's or a prefetch's GET does not."""

from typing import Annotated

from fastapi import APIRouter, Path, Request, Response

from gateway.accounts.sessions import Identity
from gateway.pages.render import page
from gateway.web.identity import Person
from gateway.web.parts import Parts, parts

router = APIRouter()


@router.get("/chat")
async def chat(request: Request, person: Person) -> Response:
    """The newest conversation, or an empty one."""
    return await _chat(request, person, None)


@router.get("/chat/{conversation_id}")
async def conversation(
    request: Request,
    person: Person,
    conversation_id: Annotated[str, Path(pattern=r"^[0-9a-zA-Z]{26}$")],
) -> Response:
    """One conversation; whether it exists is the agent's to say, once it is awake."""
    return await _chat(request, person, conversation_id)


async def _chat(request: Request, person: Identity, conversation_id: str | None) -> Response:
    here = parts(request)
    if is_navigation(request):
        here.activity.seen(person.tenant)
        here.background.start(_wake(here, person.tenant), "wake")
    glance = await here.quotas.glance(person.plan)
    boot = {
        "conversation_id": conversation_id,
        "csrf": person.csrf,
        "email": person.email,
        "is_admin": person.is_admin,
        "demo_model": glance.only_demo,
        "plan": glance.title,
        "meter_away": not glance.answered,
    }
    return await page(request, "chat.html", {"boot": boot})


def is_navigation(request: Request) -> bool:
    """Whether a person opened this in a tab: no frame, no script, no prefetch."""
    headers = request.headers
    if "prefetch" in headers.get("sec-purpose", headers.get("purpose", "")):
        return False
    mode, destination = headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")
    return mode in (None, "navigate") and destination in (None, "document")


async def _wake(here: Parts, tenant: str) -> None:
    await here.instances.wake(tenant, "page")
