"""The administration's pages: which template each sample address shows, with which context."""

from typing import Any

from tests.pages.preview import samples as s
from tests.pages.preview import samples_people as p
from tests.pages.preview.money_pages import ADMIN, MONEY_PAGES

QUERY = {
    "q": "",
    "plan": "",
    "status": "",
    "state": "",
    "mark": "",
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
    "egress": True,
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
    "own": s.sums(3),
    "by_model": s.by_model(196),
    "instance": s.INSTANCE,
    "grants": p.grants(),
    "new_grant": "01k9z3e7m2q8x4v6t0gggggggg",
    "ways_out": p.WAYS_OUT,
    "ways_record": p.WAYS_RECORD,
    "keys": {"programs": 2, "own": ["anthropic"]},
    "link": None,
    "audit": s.AUDIT,
    "zone": "Europe/Stockholm",
    "problems": [],
    "values": {},
    "errors": {},
    "form": None,
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

ADMIN_PAGES: dict[str, tuple[str, dict[str, Any]]] = MONEY_PAGES | {
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
            "grants": None,
            "ways_out": None,
            "ways_record": None,
            "keys": None,
        },
    ),
    "/admin/tenants/link": (
        "admin/tenant.html",
        ADMIN
        | ONE_TENANT
        | {
            "tenant": TENANT | {"egress": False},
            "grants": [],
            "link": {
                "url": "https://alcove.example/password/Vt3p0mW1sQ8rYk2nJx6bLh9cDf4gTa7eUo5iNz",
                "expires_at": s.NOW + 3_600_000,
            },
        },
    ),
    "/admin/tenants/credit": (
        "admin/tenant.html",
        ADMIN
        | ONE_TENANT
        | {
            "form": "grant",
            "values": {"amount_usd": "0", "note": "A gift", "last_day": "", "reason": "asked"},
            "errors": {"amount_usd": "Give more than nothing."},
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
                    kind="openai_compatible",
                    base_url="http://models.lan:8000/v1",
                    key_hint=None,
                    is_default=False,
                    default_model="qwen3-30b",
                    models=1,
                    probe=s.PROBE_BAD,
                ),
                s.DEMO | {"is_default": False},
                s.EMBEDDINGS,
            ],
        },
    ),
    "/admin/providers/failing": (
        "admin/providers.html",
        ADMIN
        | {
            "problems": [],
            "providers": [
                s.provider(
                    troubles=[
                        s.trouble(),
                        s.trouble(model="claude-haiku-4-5", state="half_open", why="http_529"),
                    ],
                    rests=True,
                ),
                s.provider(
                    id="p3",
                    name="OpenAI",
                    kind="openai",
                    is_default=False,
                    default_model="gpt-5",
                    troubles=[
                        s.trouble(
                            model="gpt-5",
                            state="failing",
                            why="http_401",
                            failures=1,
                            probe_at=None,
                            probe_in_ms=None,
                            passed_over=0,
                        )
                    ],
                ),
                s.DEMO | {"is_default": False},
            ],
        },
    ),
    "/admin/providers/none": (
        "admin/providers.html",
        ADMIN | {"problems": [], "providers": [s.DEMO, s.EMBEDDINGS]},
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
