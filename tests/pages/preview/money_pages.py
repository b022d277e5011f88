"""The administration's pages about money: spend, calls, prices, who answers in whose place."""

from typing import Any

from tests.pages.preview import samples as s
from tests.pages.preview import samples_audit as audit
from tests.pages.preview import samples_people as p

ADMIN = {"account": s.ADMIN}
SPEND: dict[str, Any] = {
    "days": 30,
    "zone": "Europe/Stockholm",
    "chart": s.chart(30, 9_000_000_000),
    "by_model": s.by_model(4_000),
    "totals": s.sums(4_000),
    "by_provider": [
        {
            "provider": "anthropic",
            "payer": "operator",
            "requests": 74_000,
            "cost_nanos": 69_780_000_000,
            "charge_nanos": 83_740_000_000,
        },
        {
            "provider": "anthropic",
            "payer": "tenant",
            "requests": 1_300,
            "cost_nanos": 4_100_000_000,
            "charge_nanos": 0,
        },
        {
            "provider": "local",
            "payer": "operator",
            "requests": 7_400,
            "cost_nanos": 310_000_000,
            "charge_nanos": 310_000_000,
        },
    ],
    "top": [
        {"tenant": r["tenant"], "email": r["email"], "charge_nanos": r["charge_month_nanos"]}
        for r in s.tenants(5)
    ],
    "problems": [],
}
LIST: dict[str, Any] = {
    "q": "",
    "only": "",
    "rows": p.CALLS,
    "next": "1.x",
    "first": True,
    "tenant": None,
    "problems": [],
}
AUDIT: dict[str, Any] = {
    "q": "",
    "act": "",
    "acts": [("admin.made", "Administrator made"), ("plan.changed", "Plan changed")],
    "by": "",
    "rows": audit.ACTS_DONE,
    "next": "01k9z3e7m2q8x4v6t0aaaaaa03",
    "first": True,
    "problems": [],
}
NO_VALUES = {"from_day": "", "to_day": "", "model": "", "whose": "", "reason": ""}
PRICES: dict[str, Any] = {
    "prices": p.PRICES,
    "plans": p.FULL_PLANS,
    "zone": "Europe/Stockholm",
    "values": NO_VALUES,
    "errors": {},
    "trial": None,
    "problems": [],
}
CHAINS: dict[str, Any] = {
    "chains": [
        {"name": s.MODELS[0], "targets": [s.MODELS[1], s.MODELS[2]]},
        {"name": "best", "targets": [s.MODELS[0]]},
    ],
    "models": s.MODELS,
    "values": {"name": "", "targets": ""},
    "errors": {},
    "problems": [],
}

MONEY_PAGES: dict[str, tuple[str, dict[str, Any]]] = {
    "/admin/spend": ("admin/spend.html", ADMIN | SPEND),
    "/admin/spend/none": (
        "admin/spend.html",
        ADMIN
        | SPEND
        | {
            "totals": s.NOTHING,
            "by_model": [],
            "by_provider": [
                {
                    "provider": "anthropic",
                    "payer": "operator",
                    "requests": 74_000,
                    "cost_nanos": 69_780_000_000,
                    "charge_nanos": 83_740_000_000,
                },
                {
                    "provider": "anthropic",
                    "payer": "tenant",
                    "requests": 1_300,
                    "cost_nanos": 4_100_000_000,
                    "charge_nanos": 0,
                },
                {
                    "provider": "local",
                    "payer": "operator",
                    "requests": 7_400,
                    "cost_nanos": 310_000_000,
                    "charge_nanos": 310_000_000,
                },
            ],
            "top": [],
            "chart": {"series": [], "days": [], "total_nanos": 0},
        },
    ),
    "/admin/requests": ("admin/requests.html", ADMIN | LIST),
    "/admin/audit": ("admin/audit.html", ADMIN | AUDIT),
    "/admin/audit/meter": (
        "admin/audit.html",
        ADMIN | AUDIT | {"by": "meter", "rows": audit.NOTED},
    ),
    "/admin/audit/none": ("admin/audit.html", ADMIN | AUDIT | {"rows": [], "act": "admin.made"}),
    "/admin/requests/failed": (
        "admin/requests.html",
        ADMIN | LIST | {"only": "failed", "rows": p.FAILED_CALLS, "next": None},
    ),
    "/admin/requests/none-failed": (
        "admin/requests.html",
        ADMIN | LIST | {"only": "failed", "rows": [], "next": None},
    ),
    "/admin/requests/none": ("admin/requests.html", ADMIN | LIST | {"rows": [], "next": None}),
    "/admin/requests/unknown": (
        "admin/requests.html",
        ADMIN | LIST | {"rows": [], "next": None, "q": "zebra"},
    ),
    "/admin/requests/one": (
        "admin/request.html",
        ADMIN | {"call": p.CALL, "email": "mara.lindqvist@example.org", "problems": []},
    ),
    "/admin/requests/running": (
        "admin/request.html",
        ADMIN
        | {
            "call": p.CALL
            | {
                "entries": [],
                "ended_at": None,
                "state": "dispatched",
                "price": None,
                "payer": "tenant",
            },
            "email": None,
            "problems": [],
        },
    ),
    "/admin/prices": ("admin/prices.html", ADMIN | PRICES),
    "/admin/prices/trial": (
        "admin/prices.html",
        ADMIN
        | PRICES
        | {
            "values": NO_VALUES | {"from_day": "2026-11-01", "to_day": "2026-11-20"},
            "trial": {
                "requests": 7_252,
                "changed": 311,
                "unpriced": 2,
                "stated": 40,
                "cost_nanos": -1_204_000_000,
                "charge_nanos": -1_444_800_000,
                "dry_run": True,
            },
        },
    ),
    "/admin/prices/refused": (
        "admin/prices.html",
        ADMIN
        | PRICES
        | {"prices": [], "plans": [], "errors": {"from_day": "This is no day.", "": "Not now."}},
    ),
    "/admin/fallbacks": ("admin/fallbacks.html", ADMIN | CHAINS),
    "/admin/fallbacks/none": (
        "admin/fallbacks.html",
        ADMIN | CHAINS | {"chains": [], "errors": {"targets": "There is no model of that name."}},
    ),
}
