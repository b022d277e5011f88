"""Which template each sample address shows, with which context."""

from typing import Any

from tests.pages.preview import samples as s
from tests.pages.preview import samples_people as p
from tests.pages.preview.admin_pages import ADMIN_PAGES

FORM: dict[str, Any] = {"values": {"email": ""}, "errors": {}}
USAGE: dict[str, Any] = {
    "plan": s.PLANS[1],
    "zone": "Europe/Stockholm",
    "month_label": "November 2026",
    "quota": s.quota(41, "ok"),
    "today": s.sums(2),
    "month": s.sums(196),
    "by_model": s.by_model(196),
    "own": [],
    "grants": [],
    "ways_out": p.WAYS_OUT | {"allowed": False},
    "chart": s.chart(24, 310_000_000),
}
KEYS: dict[str, Any] = {
    "model": "anthropic/claude-sonnet-4-5",
    "programs": [
        p.program_key(),
        p.program_key(
            id="01k9z3e7m2q8x4v6t0eeeeeeee",
            name="Nightly report",
            hint="9wXc",
            state="replaced",
            expires_at=s.NOW + s.DAY_MS,
            models=["anthropic/*"],
        ),
        p.program_key(
            id="01k9z3e7m2q8x4v6t0ffffffff",
            name="Old script",
            hint="aa7B",
            state="revoked",
            revoked_at=s.NOW - 3 * s.DAY_MS,
            expires_at=None,
        ),
    ],
    "providers": [
        {
            "id": "anthropic",
            "name": "Anthropic",
            "usable": True,
            "own": {"hint": "x7Qd", "set_at": s.NOW - 6 * s.DAY_MS},
        },
        {"id": "openai", "name": "OpenAI", "usable": True, "own": None},
    ],
    "address": "https://alcove.example",
    "fresh": None,
    "form": None,
    "errors": {},
    "values": {},
    "problems": [],
}
FRESH = p.program_key(key="alcove-key-Vt3p0mW1sQ8rYk2nJx6bLh9cDf4gTa7eUo5iNz", replaces=None)
NO_ONE = {"account": None}


def _storage(stored: int | None, level: str, until_at: int | None = None) -> dict[str, Any]:
    return {
        "stored_bytes": stored,
        "limit_bytes": 1_000_000_000,
        "percent": (stored or 0) // 10_000_000,
        "level": level,
        "clearing_until_at": until_at,
    }


ACCOUNT = FORM | {
    "member_since_at": s.NOW - 80 * s.DAY_MS,
    "storage": _storage(412_000_000, "ok"),
    "sessions": [
        {
            "id": "s1",
            "current": True,
            "device": "Firefox on Linux",
            "created_at": s.NOW - 2 * s.DAY_MS,
            "last_seen_at": s.NOW - 5_000,
        },
        {
            "id": "s2",
            "current": False,
            "device": "Safari on iPhone",
            "created_at": s.NOW - 9 * s.DAY_MS,
            "last_seen_at": s.NOW - s.DAY_MS,
        },
    ],
}

# address -> (template, context over the common one)
PAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "/sign-up": ("sign_up.html", FORM | NO_ONE | {"open": True}),
    "/sign-up/refused": (
        "sign_up.html",
        NO_ONE
        | {
            "open": True,
            "values": {"email": "mara@example"},
            "errors": {
                "email": "This does not look like an e-mail address.",
                "password": "This password is in a list of stolen ones. Choose another.",
            },
        },
    ),
    "/sign-up/closed": ("sign_up.html", FORM | NO_ONE | {"open": False}),
    "/sign-in": ("sign_in.html", FORM | NO_ONE | {"next": ""}),
    "/sign-in/refused": (
        "sign_in.html",
        NO_ONE
        | {
            "next": "",
            "values": {"email": "mara@example.org"},
            "errors": {"": "E-mail and password do not belong together."},
        },
    ),
    "/setup/sample": (
        "setup.html",
        FORM
        | NO_ONE
        | {"token": "sample", "state": "ready", "first": True, "expires_at": s.NOW + 840_000},
    ),
    "/setup/another": (
        "setup.html",
        FORM
        | NO_ONE
        | {"token": "another", "state": "ready", "first": False, "expires_at": s.NOW + 840_000},
    ),
    "/setup/old": (
        "setup.html",
        FORM | NO_ONE | {"token": "old", "state": "expired", "expires_at": s.NOW},
    ),
    "/setup/part": (
        "setup.html",
        FORM | NO_ONE | {"token": "part", "state": "unknown", "expires_at": None},
    ),
    "/setup/used": (
        "setup.html",
        FORM | NO_ONE | {"token": "used", "state": "used", "expires_at": s.NOW},
    ),
    "/usage": ("usage.html", USAGE),
    "/usage/credit": (
        "usage.html",
        USAGE
        | {
            "quota": s.quota(100, "credit"),
            "grants": p.grants(),
            "ways_out": p.WAYS_OUT,
            "own": s.by_model(30),
        },
    ),
    "/usage/near": ("usage.html", USAGE | {"quota": s.quota(84, "near")}),
    "/usage/out": ("usage.html", USAGE | {"quota": s.quota(100, "out")}),
    "/usage/new": (
        "usage.html",
        USAGE
        | {
            "quota": s.quota(0, "ok") | {"held_nanos": 0},
            "today": s.NOTHING,
            "month": s.NOTHING,
            "by_model": [],
            "chart": {"series": [], "days": [], "total_nanos": 0},
        },
    ),
    "/usage/no-meter": ("usage.html", USAGE | {"quota": None}),
    "/account": ("account.html", ACCOUNT),
    "/account/near": ("account.html", ACCOUNT | {"storage": _storage(970_000_000, "low")}),
    "/account/full": ("account.html", ACCOUNT | {"storage": _storage(1_084_000_000, "out")}),
    "/account/clearing": (
        "account.html",
        ACCOUNT | {"storage": _storage(1_084_000_000, "out", s.NOW + 840_000)},
    ),
    "/account/unmeasured": (
        "account.html",
        ACCOUNT | {"storage": _storage(None, "ok")},
    ),
    "/account/away": ("account.html", ACCOUNT | {"storage": None}),
    "/account/keys": ("keys.html", KEYS),
    "/account/keys/fresh": ("keys.html", KEYS | {"fresh": FRESH}),
    "/account/keys/none": ("keys.html", KEYS | {"programs": [], "providers": []}),
    "/account/keys/refused": (
        "keys.html",
        KEYS
        | {
            "form": "openai",
            "errors": {
                "key": "The test failed: the provider refuses the key (HTTP 401). Nothing was changed."
            },
        },
    ),
    "/account/keys/no-meter": (
        "keys.html",
        KEYS
        | {
            "programs": None,
            "providers": None,
            "problems": ["The meter does not answer just now."],
        },
    ),
    "/password/sample": (
        "password.html",
        NO_ONE
        | {
            "token": "sample",
            "state": "ready",
            "email": "mara.lindqvist@example.org",
            "expires_at": s.NOW + 3_400_000,
            "errors": {},
        },
    ),
    "/password/used": (
        "password.html",
        NO_ONE
        | {"token": "used", "state": "used", "email": None, "expires_at": s.NOW, "errors": {}},
    ),
    "/password/part": (
        "password.html",
        NO_ONE
        | {"token": "part", "state": "unknown", "email": None, "expires_at": None, "errors": {}},
    ),
    "/password/old": (
        "password.html",
        NO_ONE
        | {"token": "old", "state": "expired", "email": None, "expires_at": s.NOW, "errors": {}},
    ),
    "/error": (
        "error.html",
        {
            "code": 503,
            "title": "The house is being rebuilt",
            "text": "The database does not answer, so this page could not be made.",
            "kept": "Your conversations and your assistant's memory are stored elsewhere and are not touched.",
            "remedy": "Wait a minute and load the page again. If it stays so, tell whoever runs this Alcove.",
            "action": {"href": "/chat", "label": "Try again"},
            "request_id": "01k9z3e7m2q8x4v6t0",
        },
    ),
    "/error/404": (
        "error.html",
        {
            "code": 404,
            "title": "There is nothing here",
            "text": "The address may be mistyped, or what was here has been deleted.",
            "kept": None,
            "remedy": None,
            "action": None,
            "request_id": None,
        },
    ),
    **ADMIN_PAGES,
}
