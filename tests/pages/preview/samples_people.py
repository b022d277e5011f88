"""What the pages about people's keys, credit and calls are shown with."""

from typing import Any

from tests.pages.preview.samples import DAY_MS, MODELS, NOW


def grants() -> list[dict[str, Any]]:
    """*Grant*s: one that ends, one for good, one that is over."""
    return [
        {
            "id": "01k9z3e7m2q8x4v6t0aaaaaaaa",
            "kind": "grace",
            "note": "Until the new card arrives",
            "amount_nanos": 10_000_000_000,
            "left_nanos": 6_312_400_000,
            "created_at": NOW - 5 * DAY_MS,
            "expires_at": NOW + 9 * DAY_MS,
            "state": "live",
        },
        {
            "id": "01k9z3e7m2q8x4v6t0bbbbbbbb",
            "kind": "credit",
            "note": "For the lost afternoon",
            "amount_nanos": 5_000_000_000,
            "left_nanos": 5_000_000_000,
            "created_at": NOW - 2 * DAY_MS,
            "expires_at": None,
            "state": "live",
        },
        {
            "id": "01k9z3e7m2q8x4v6t0cccccccc",
            "kind": "credit",
            "note": "",
            "amount_nanos": 1_000_000_000,
            "left_nanos": 0,
            "created_at": NOW - 70 * DAY_MS,
            "expires_at": None,
            "state": "spent",
        },
    ]


def program_key(**changes: Any) -> dict[str, Any]:
    """A key for a program, as it works."""
    return {
        "id": "01k9z3e7m2q8x4v6t0dddddddd",
        "name": "Notebook on my laptop",
        "hint": "Zk4Q",
        "created_at": NOW - 12 * DAY_MS,
        "expires_at": NOW + 78 * DAY_MS,
        "revoked_at": None,
        "replaces": None,
        "models": None,
        "last_used_at": NOW - 3_600_000,
        "state": "live",
        **changes,
    }


WAYS_OUT = {
    "allowed": True,
    "bytes": 48_310_000,
    "bytes_limit": 1_000_000_000,
    "tunnels": 212,
    "calls": 0,
    "resets_at": NOW + DAY_MS // 2,
}

_PORT, _INSIDE = "egress_port", "egress_address"
WAYS_RECORD: dict[str, Any] = {
    "days": [
        {
            "start_at": NOW - n * DAY_MS,
            "bytes": 48_310_000 // (n + 1),
            "tunnels": 212 - 30 * n,
            "calls": n,
        }
        for n in range(4)
    ],
    "refusals": {
        "since_at": NOW - 3 * DAY_MS,
        "total": 1_482,
        "reasons": [
            {"reason": _PORT, "times": 1_460, "last_at": NOW - 60_000},
            {"reason": _INSIDE, "times": 22, "last_at": NOW - 3_600_000},
        ],
        "targets": [
            {
                "target": "mail.example.org:25",
                "reason": _PORT,
                "times": 1_300,
                "last_at": NOW - 60_000,
            },
            {
                "target": "metadata.very-long-name-of-a-host.internal.example.com:443",
                "reason": _INSIDE,
                "times": 22,
                "last_at": NOW - 3_600_000,
            },
        ],
        "others": 160,
        "last": [
            {"at": NOW - 60_000, "target": "mail.example.org:25", "reason": _PORT, "kind": None},
            {
                "at": NOW - 3_600_000,
                "target": "metadata.very-long-name-of-a-host.internal.example.com:443",
                "reason": _INSIDE,
                "kind": "link_local",
            },
        ],
    },
}


def call_row(n: int = 0, **changes: Any) -> dict[str, Any]:
    """A row of the list of calls."""
    return {
        "id": f"01k9z3e7m2q8x4v6t0aaaaaa{n:02d}",
        "tenant": "taaaaaaaaaaaaaaa",
        "email": "mara.lindqvist@example.org",
        "started_at": NOW - 90_000 * (n + 1),
        "at": NOW - 90_000 * (n + 1) + 3_200,
        "wire": "anthropic_messages",
        "provider": "anthropic",
        "model": MODELS[n % 3],
        "payer": "operator",
        "outcome": "complete",
        "failure": None,
        "estimated": False,
        "input_tokens": 1_210 + 70 * n,
        "cache_read_tokens": 8_400,
        "cache_write_tokens": 0,
        "output_tokens": 412,
        "cost_nanos": 12_330_000,
        "charge_nanos": 14_796_000,
        **changes,
    }


NOTHING = dict.fromkeys(
    ("input_tokens", "cache_read_tokens", "output_tokens", "cost_nanos", "charge_nanos"), 0
)
CALLS = [
    call_row(0),
    call_row(1, outcome="left", estimated=True),
    call_row(2, payer="tenant", charge_nanos=0, email="jonas.weber@example.org"),
    call_row(3, outcome="provider_error", failure="http_429", **NOTHING),
]
FAILED_CALLS = [
    call_row(0, outcome="not_sent", failure="unreachable", **NOTHING),
    call_row(1, outcome="cut", failure="idle", estimated=True),
    call_row(2, outcome="error", failure="overloaded_error", email="jonas.weber@example.org"),
    call_row(3, outcome="provider_error", failure="http_401", **NOTHING),
]


def _entry(**changes: Any) -> dict[str, Any]:
    return {
        "attempt": 1,
        "kind": "usage",
        "at": NOW - 86_800,
        "outcome": "complete",
        "provider": "anthropic",
        "model": MODELS[0],
        "response_model": "claude-sonnet-4-5-20250929",
        "price_id": "anthropic/claude-sonnet-4-5@2025-09-29",
        "estimated": False,
        "overrun": False,
        "input_tokens": 1_210,
        "cache_read_tokens": 8_400,
        "cache_write_tokens": 0,
        "output_tokens": 412,
        "cost_nanos": 12_330_000,
        "charge_nanos": 14_796_000,
        "grant_nanos": 4_000_000,
        "parts": {"input": 1_210, "read": 8_400, "output": 412, "tier": "standard"},
        **changes,
    }


CALL: dict[str, Any] = {
    "id": "01k9z3e7m2q8x4v6t0aaaaaa00",
    "tenant": "taaaaaaaaaaaaaaa",
    "plan": "plus@3f2a91bc",
    "payer": "operator",
    "wire": "anthropic_messages",
    "provider": "anthropic",
    "model": MODELS[0],
    "price_id": "anthropic/claude-sonnet-4-5@2025-09-29",
    "price": {"from_at": NOW - 60 * DAY_MS, "input": 3_000_000_000, "output": 15_000_000_000},
    "state": "settled",
    "started_at": NOW - 90_000,
    "dispatched_at": NOW - 89_600,
    "ended_at": NOW - 86_800,
    "charge_held_nanos": 92_000_000,
    "output_limit": 4_096,
    "markup_ppm": 200_000,
    "cost_nanos": 12_330_000,
    "charge_nanos": 14_796_000,
    "entries": [
        _entry(
            attempt=0,
            kind="attempt",
            outcome="provider_error",
            provider="openai",
            model=MODELS[1],
            cost_nanos=0,
            charge_nanos=0,
            grant_nanos=0,
            output_tokens=0,
            parts={},
        ),
        _entry(),
        _entry(
            kind="correction_1",
            outcome="corrected",
            input_tokens=0,
            cache_read_tokens=0,
            output_tokens=0,
            cost_nanos=-1_200_000,
            charge_nanos=-1_440_000,
            grant_nanos=0,
            parts={},
        ),
    ],
}


def price(model: str, cost_in: int, cost_out: int, **changes: Any) -> dict[str, Any]:
    """A price in force, in cents a million tokens."""
    return {
        "id": f"{model}@2025-09-29",
        "model": model,
        "from_at": NOW - 60 * DAY_MS,
        "input_nanos": cost_in * 10_000_000,
        "output_nanos": cost_out * 10_000_000,
        "cache_read_nanos": cost_in * 1_000_000,
        "cache_write_5m_nanos": cost_in * 12_500_000,
        "cache_write_1h_nanos": cost_in * 20_000_000,
        "demo": False,
        **changes,
    }


PRICES = [
    price(MODELS[0], 300, 1_500),
    price(MODELS[1], 25, 200),
    price(MODELS[2], 15, 60, demo=True),
]
FULL_PLANS = [
    {
        "name": "free",
        "title": "Free",
        "charge_month_nanos": 1_000_000_000,
        "requests_minute": 20,
        "concurrent": 2,
        "markup_ppm": 0,
        "limits": {"charge_month": 1_000_000_000, "requests_minute": 20},
        "zone": "UTC",
        "anchor": "calendar",
    },
    {
        "name": "plus",
        "title": "Plus",
        "charge_month_nanos": 20_000_000_000,
        "requests_minute": 60,
        "concurrent": 6,
        "markup_ppm": 200_000,
        "limits": {
            "charge_month": 20_000_000_000,
            "charge_day": 5_000_000_000,
            "tokens_day": 2_000_000,
        },
        "zone": "Europe/Berlin",
        "anchor": "rolling",
    },
]
