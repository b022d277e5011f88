"""Which template each sample address shows, with which context."""

from typing import Any

from tests.pages.preview import samples as s

FORM: dict[str, Any] = {"values": {"email": ""}, "errors": {}}
QUERY = {
    "q": "",
    "plan": "",
    "status": "",
    "state": "",
    "sort": "charge_month",
    "order": "desc",
    "page": 1,
    "size": 25,
}
TENANT = {
    "tenant": "taaaaaaaaaaaaaaa",
    "email": "mara.lindqvist@example.org",
    "plan": "plus",
    "status": "active",
    "is_admin": False,
    "created_at": s.NOW - 80 * s.DAY_MS,
    "last_seen_at": s.NOW - 40_000,
    "suspended_reason": None,
}
USAGE: dict[str, Any] = {
    "plan": s.PLANS[1],
    "zone": "Europe/Stockholm",
    "month_label": "November 2026",
    "quota": s.quota(41, "ok"),
    "today": s.sums(2),
    "month": s.sums(196),
    "by_model": s.by_model(196),
    "chart": s.chart(24, 310_000_000),
}
TENANTS: dict[str, Any] = {
    "rows": s.tenants(),
    "total": 1248,
    "totals": {"charge_today_nanos": 12_400_000_000, "charge_month_nanos": 318_220_000_000},
    "query": QUERY,
    "pages": 50,
    "plans": ["free", "plus"],
    "zone": "Europe/Stockholm",
    "problems": [],
}
ONE_TENANT: dict[str, Any] = {
    "tenant": TENANT,
    "plans": s.PLANS,
    "quota": s.quota(84, "near"),
    "quota_override_usd": "35.00",
    "month": s.sums(196),
    "by_model": s.by_model(196),
    "instance": s.INSTANCE,
    "audit": s.AUDIT,
    "zone": "Europe/Stockholm",
    "problems": [],
    "values": {},
    "errors": {},
    "form": None,
}
SPEND: dict[str, Any] = {
    "days": 30,
    "zone": "Europe/Stockholm",
    "chart": s.chart(30, 9_000_000_000),
    "by_model": s.by_model(4_000),
    "totals": s.sums(4_000),
    "top": [
        {"tenant": r["tenant"], "email": r["email"], "charge_nanos": r["charge_month_nanos"]}
        for r in s.tenants(5)
    ],
    "problems": [],
}
PROVIDER_FORM: dict[str, Any] = {
    "provider": None,
    "errors": {},
    "values": {"kind": "openai", "name": "", "base_url": "", "default_model": "", "models": []},
}
COMPATIBLE = {
    "kind": "compatible",
    "name": "Workshop server",
    "base_url": "http://models.lan:8000/v1",
    "default_model": "qwen3-30b",
    "models": [
        {"id": "qwen3-30b", "input_usd": "0.10", "output_usd": "0.40"},
        {"id": "gemma-3-12b", "input_usd": "0.05", "output_usd": "-1"},
    ],
}
NO_ONE = {"account": None}
ADMIN = {"account": s.ADMIN}

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
        FORM | NO_ONE | {"token": "sample", "state": "ready", "expires_at": s.NOW + 840_000},
    ),
    "/setup/old": (
        "setup.html",
        FORM | NO_ONE | {"token": "old", "state": "expired", "expires_at": s.NOW},
    ),
    "/setup/used": (
        "setup.html",
        FORM | NO_ONE | {"token": "used", "state": "used", "expires_at": s.NOW},
    ),
    "/usage": ("usage.html", USAGE),
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
    "/account": (
        "account.html",
        FORM
        | {
            "member_since_at": s.NOW - 80 * s.DAY_MS,
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
        },
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
    "/admin/tenants": ("admin/tenants.html", ADMIN | TENANTS),
    "/admin/tenants/nobody": (
        "admin/tenants.html",
        ADMIN | TENANTS | {"rows": [], "total": 0, "query": QUERY | {"q": "zebra"}},
    ),
    "/admin/tenants/new": (
        "admin/tenants.html",
        ADMIN
        | TENANTS
        | {
            "rows": [],
            "total": 0,
            "problems": ["The meter does not answer, so amounts are missing."],
        },
    ),
    "/admin/tenants/taaaaaaaaaaaaaaa": ("admin/tenant.html", ADMIN | ONE_TENANT),
    "/admin/tenants/suspended": (
        "admin/tenant.html",
        ADMIN
        | ONE_TENANT
        | {
            "tenant": TENANT | {"status": "suspended", "suspended_reason": "Card was disputed."},
            "instance": None,
            "quota": None,
            "audit": [],
        },
    ),
    "/admin/tenants/refused": (
        "admin/tenant.html",
        ADMIN
        | ONE_TENANT
        | {
            "form": "quota",
            "values": {"limit_usd": "-3", "reason": ""},
            "errors": {
                "limit_usd": "An amount cannot be below zero.",
                "reason": "Say why, so that the record makes sense later.",
            },
        },
    ),
    "/admin/spend": ("admin/spend.html", ADMIN | SPEND),
    "/admin/spend/none": (
        "admin/spend.html",
        ADMIN
        | SPEND
        | {
            "totals": s.NOTHING,
            "by_model": [],
            "top": [],
            "chart": {"series": [], "days": [], "total_nanos": 0},
        },
    ),
    "/admin/providers": (
        "admin/providers.html",
        ADMIN
        | {
            "problems": [],
            "providers": [
                s.provider(),
                s.provider(
                    id="p2",
                    name="Workshop server",
                    kind="compatible",
                    base_url="http://models.lan:8000/v1",
                    key_hint=None,
                    is_default=False,
                    default_model="qwen3-30b",
                    models=1,
                    probe=s.PROBE_BAD,
                ),
                s.DEMO | {"is_default": False},
            ],
        },
    ),
    "/admin/providers/none": (
        "admin/providers.html",
        ADMIN | {"problems": [], "providers": [s.DEMO]},
    ),
    "/admin/providers/new": ("admin/provider_form.html", ADMIN | PROVIDER_FORM),
    "/admin/providers/p1": (
        "admin/provider_form.html",
        ADMIN
        | {
            "provider": s.provider(),
            "errors": {},
            "values": {
                "kind": "anthropic",
                "name": "Anthropic",
                "base_url": "",
                "default_model": "claude-sonnet-4-5",
                "models": [],
            },
        },
    ),
    "/admin/providers/refused": (
        "admin/provider_form.html",
        ADMIN
        | {
            "provider": None,
            "values": COMPATIBLE,
            "errors": {
                "base_url": "Nothing answered at this address.",
                "models": "A price cannot be below zero.",
            },
        },
    ),
    "/admin/host": (
        "admin/host.html",
        ADMIN
        | {
            "problems": [],
            "services": s.SERVICES,
            "host": {
                "runtime": "process",
                "wall": False,
                "probes": s.PROBES,
                "instances": {"ready": 3, "stopped": 12},
            },
        },
    ),
    "/admin/host/wall": (
        "admin/host.html",
        ADMIN
        | {
            "problems": [],
            "services": s.SERVICES[:2],
            "host": {
                "runtime": "docker",
                "wall": True,
                "probes": s.PROBES[:2],
                "instances": {"ready": 3, "stopped": 12},
            },
        },
    ),
    "/admin/host/down": (
        "admin/host.html",
        ADMIN | {"problems": [], "services": s.SERVICES, "host": None},
    ),
}
