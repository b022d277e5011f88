"""The preview's web server: pages from samples, the built files, and the API of api.py."""

import asyncio
from pathlib import Path
from typing import Any

from aiohttp import web

from gateway.pages.environment import DIST, environment
from tests.pages.preview import samples, words
from tests.pages.preview.api import ASSISTANT, ROUTES, SCENE
from tests.pages.preview.assistant import Assistant
from tests.pages.preview.frames import now_ms
from tests.pages.preview.pages import PAGES

CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'; object-src 'none'"
)
TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types dompurify"


def common(request: web.Request) -> dict[str, Any]:
    """What every template gets."""
    theme = request.cookies.get("alcove_theme", "auto")
    return {
        "theme": theme if theme in ("light", "dark") else "auto",
        "csrf": "preview",
        "account": samples.PERSON,
        "path": request.path,
        "notice": request.query.get("notice"),
        "error": request.query.get("error"),
    }


def page(request: web.Request, template: str, context: dict[str, Any]) -> web.Response:
    """One rendered page under the gateway's own CSP."""
    chat = request.path.startswith("/chat")
    html = request.app[MADE].get_template(template).render(**common(request) | context)
    return web.Response(
        text=html,
        content_type="text/html",
        headers={
            "content-security-policy": CSP + (TRUSTED_TYPES if chat else ""),
            "cache-control": "no-store",
        },
    )


async def sample(request: web.Request) -> web.Response:
    """Any address of PAGES; htmx gets the table alone."""
    if request.path not in PAGES:
        return page(request, *PAGES["/error/404"])
    template, context = PAGES[request.path]
    if request.path == "/admin/tenants" and request.headers.get("HX-Request") == "true":
        template = "admin/_tenants.html"
        query = context["query"] | {
            key: request.query[key]
            for key in ("q", "plan", "status", "state", "mark", "sort", "order")
            if key in request.query
        }
        query["page"] = int(request.query.get("page", "1"))
        rows = [row for row in context["rows"] if query["q"] in row["email"]]
        context = context | {
            "query": query,
            "rows": rows,
            "total": len(rows) if query["q"] else context["total"],
        }
    return page(request, template, context)


async def probe(request: web.Request) -> web.Response:
    """A test of a provider, as htmx asks for it."""
    await asyncio.sleep(0.4)
    return page(
        request,
        "admin/_probe.html",
        {"probe": samples.PROBE_OK | {"at": now_ms()}, "failing": False},
    )


async def chat(request: web.Request) -> web.Response:
    """The chat page; `?scene=` sets how the assistant is found: ready, asleep, stuck, demo, limit."""
    scene = request.query.get("scene")
    if scene:
        set_scene(request.app, scene)
    boot = {
        "conversation_id": request.match_info.get("id"),
        "csrf": "preview",
        "email": samples.ADMIN["email"],
        "is_admin": True,
        "demo_model": request.app[SCENE]["name"] == "demo",
        "plan": "Free",
        "meter_away": request.app[SCENE]["name"] == "no-meter",
    }
    return page(request, "chat.html", {"boot": boot, "account": samples.ADMIN})


def set_scene(app: web.Application, name: str) -> None:
    """Puts the assistant into one of the situations a person may find it in."""
    assistant = app[ASSISTANT]
    app[SCENE]["name"] = name
    if name in ("asleep", "stuck"):
        assistant.state, assistant.pending = "stopped", []
    else:
        assistant.state = "ready"
    assistant.is_counted = name != "no-meter"
    assistant.percent = {"limit": 100, "near": 86}.get(name, 37)


MADE: web.AppKey[Any] = web.AppKey("made", object)


def create_app(dist: Path = DIST, pace_s: float = 0.03) -> web.Application:
    """The preview with an assistant that has a past."""
    app = web.Application()
    app[MADE] = environment(dist)
    app[SCENE] = {"name": "ready", "slow": 1.0}
    assistant = app[ASSISTANT] = Assistant(pace_s=pace_s)
    assistant.remember(
        "What to do with kitchen scraps",
        [
            (
                "What could I do with my kitchen scraps? I have a balcony, but no garden.",
                words.COMPOST,
            ),
            ("Which of them is the cheapest?", words.TABLE),
            ("And how do I average the temperature over a week? Code, please.", words.CODE),
        ],
        0,
    )
    for title, days in (
        ("Moving average in Python", 0),
        ("A letter to the landlord about the boiler", 1),
        ("Packing list for Lofoten", 1),
        ("Words for Ingrid's sixtieth", 3),
        ("Why is the sky darker at the zenith", 12),
        ("Notes on the choir's spring programme and who sings what", 40),
    ):
        assistant.remember(title, [(title, "Done, and noted.")], days)
    app.add_routes(
        [
            *ROUTES,
            web.post("/admin/providers/{id}/probes", probe),
            web.get("/chat", chat),
            web.get("/chat/{id}", chat),
            web.static("/static", dist),
            web.get("/{any:.*}", sample),
        ]
    )
    return app
