"""What each page is shown with: the contexts of gateway/templates/README.md, filled with a plausible month."""

import random
import time
from typing import Any

DAY_MS = 86_400_000
NOW = int(time.time() * 1000)
ADMIN = {"email": "ines@alcove.example", "is_admin": True}
PERSON = {"email": "mara.lindqvist@example.org", "is_admin": False}
MODELS = ["anthropic/claude-sonnet-4-5", "openai/gpt-5-mini", "local/smollm2-135m"]


def _day(back: int) -> tuple[str, str]:
    moment = time.gmtime((NOW - back * DAY_MS) / 1000)
    return time.strftime("%Y-%m-%d", moment), f"{moment.tm_mday} {time.strftime('%b', moment)}"


def chart(days: int, scale: int) -> dict[str, Any]:
    """A month that looks lived in: quiet weekends, one busy day, a model that arrives half-way."""
    chance = random.Random(7)
    rows = []
    for back in range(days - 1, -1, -1):
        day, label = _day(back)
        busy = 0.25 if (days - back) % 7 in (5, 6) else 1.0
        values = {MODELS[0]: int(scale * busy * chance.uniform(0.4, 1.6))}
        if back < days // 2:
            values[MODELS[1]] = int(scale * busy * chance.uniform(0.1, 0.5))
        if chance.random() < 0.6:
            values[MODELS[2]] = int(scale * 0.02 * chance.random())
        if (days - back) % 11 == 0:
            values = {}
        rows.append(
            {"day": day, "label": label, "values": values, "total_nanos": sum(values.values())}
        )
    return {"series": MODELS, "days": rows, "total_nanos": sum(row["total_nanos"] for row in rows)}


def sums(scale: int) -> dict[str, int]:
    """One *Sum* with its cost."""
    return {
        "requests": 37 * scale,
        "input_tokens": 48_210 * scale,
        "cache_read_tokens": 122_400 * scale,
        "cache_write_tokens": 8_100 * scale,
        "output_tokens": 9_480 * scale,
        "charge_nanos": 41_870_000 * scale,
        "cost_nanos": 34_890_000 * scale,
    }


NOTHING = dict.fromkeys(sums(1), 0)


def quota(percent: int, level: str) -> dict[str, Any]:
    """A *Quota* of $20 with something held."""
    limit = 20_000_000_000
    return {
        "limit_nanos": limit,
        "spent_nanos": limit * percent // 100,
        "held_nanos": 12_400_000 if percent < 100 else 0,
        "percent": percent,
        "resets_at": NOW + 9 * DAY_MS,
        "level": level,
        "credit_nanos": 4_200_000_000 if level == "credit" else 0,
        "marks": [
            f"More than {step} % of this month's quota is used."
            for step in (95, 80, 50)
            if percent >= step
        ][:1],
    }


def by_model(scale: int) -> list[dict[str, Any]]:
    """*Row*s, dearest first."""
    return [
        {"model": model, **sums(scale // n)} for model, n in zip(MODELS, (2, 5, 20), strict=True)
    ]


def tenants(count: int = 12) -> list[dict[str, Any]]:
    """Rows of the tenants' table, with every status and state among them."""
    names = [
        "mara.lindqvist",
        "jonas.weber",
        "a.okafor",
        "li.wei",
        "sofia.castro",
        "t.nakamura",
        "elif.demir",
        "p.novak",
        "grace.hall",
        "omar.haddad",
        "a-very-long-name-that-somebody-really-has",
        "ruth.cohen",
    ]
    states = [
        "ready",
        "stopped",
        "starting",
        "stopped",
        "failed",
        "absent",
        "stopping",
        "ready",
        "stopped",
        "ready",
        "stopped",
        None,
    ]
    chance = random.Random(3)
    return [
        {
            "tenant": f"t{n:015d}".replace("0", "a").replace("1", "b"),
            "email": f"{names[n % 12]}@example.org",
            "plan": "plus" if n % 3 == 0 else "free",
            "status": "suspended" if n == 4 else "active",
            "state": states[n % 12],
            "charge_today_nanos": int(chance.random() * 400_000_000) if n % 4 else 0,
            "charge_month_nanos": int(chance.random() * 9_000_000_000) if n != 5 else 410_000,
            "quota_limit_nanos": 20_000_000_000 if n % 3 == 0 else 1_000_000_000,
            "mark": (None, 50, None, 80, None, 95)[n % 6],
            "last_seen_at": NOW - n * n * 3_600_000 - 20_000 if n != 5 else None,
        }
        for n in range(count)
    ]


PLANS = [
    {"name": "free", "title": "Free", "charge_month_nanos": 1_000_000_000},
    {"name": "plus", "title": "Plus", "charge_month_nanos": 20_000_000_000},
]
PROBE_OK = {
    "ok": True,
    "at": NOW - 240_000,
    "detail": "Answered with claude-sonnet-4-5.",
    "latency_ms": 812,
    "models": 9,
}
PROBE_BAD = {
    "ok": False,
    "at": NOW - 60_000,
    "detail": "The provider refused the key (401). Check that it was copied whole.",
    "latency_ms": None,
    "models": None,
}


def provider(**changes: Any) -> dict[str, Any]:
    """One row of the providers' list."""
    row = {
        "id": "p1",
        "name": "Anthropic",
        "kind": "anthropic",
        "base_url": None,
        "key_hint": "q7Xw",
        "enabled": True,
        "local": False,
        "demo": False,
        "default_model": "claude-sonnet-4-5",
        "is_default": True,
        "models": 9,
        "probe": PROBE_OK,
        "troubles": [],
        "rests": False,
    }
    return row | changes


def trouble(**changes: Any) -> dict[str, Any]:
    """One model whose calls fail, as the page of providers is told of it."""
    told = {
        "provider": "p1",
        "model": "claude-sonnet-4-5",
        "payer": "operator",
        "state": "open",
        "since_at": NOW - 18 * 60_000,
        "last_at": NOW - 70_000,
        "failures": 12,
        "why": "unreachable",
        "probe_at": NOW + 50_000,
        "probe_in_ms": 50_000,
        "passed_over": 31,
    }
    return told | changes


DEMO = provider(
    id="demo",
    name="Built-in model",
    kind="local",
    key_hint=None,
    local=True,
    demo=True,
    default_model="smollm2-135m",
    models=1,
    probe=None,
)
EMBEDDINGS = DEMO | {
    "id": "local-embeddings",
    "name": "Local embeddings",
    "kind": "local-embeddings",
    "demo": False,
    "is_default": False,
    "default_model": None,
}
INSTANCE = {
    "tenant": "taaaaaaaaaaaaaaa",
    "state": "ready",
    "generation": 7,
    "plan": "plus",
    "runtime": "docker",
    "phase": "ready",
    "error": None,
    "changed_at": NOW - 900_000,
    "started_at": NOW - 900_000,
    "last_activity_at": NOW - 30_000,
    "alive_because": "an answer is under way",
    "stored_bytes": 412_000_000,
    "storage_bytes": 1_000_000_000,
    "next_schedule_at": None,
}
AUDIT = [
    {
        "at": NOW - 7_200_000,
        "actor": "ines@alcove.example",
        "action": "Quota changed",
        "reason": "Conference week, agreed by mail.",
        "before": "$20.00",
        "after": "$35.00",
    },
    {
        "at": NOW - 3 * DAY_MS,
        "actor": "ines@alcove.example",
        "action": "Plan changed",
        "reason": "Asked for it.",
        "before": "free",
        "after": "plus",
    },
    {
        "at": NOW - 41 * DAY_MS,
        "actor": "ines@alcove.example",
        "action": "Instance stopped",
        "reason": None,
        "before": None,
        "after": None,
    },
]
PROBES = [
    {
        "name": "Docker Engine answers",
        "ok": True,
        "detail": "Engine 20.10.24 at unix:///var/run/docker.sock.",
        "remedy": None,
    },
    {
        "name": "A base image can be had",
        "ok": True,
        "detail": "python:3.12-slim is on this machine.",
        "remedy": None,
    },
    {
        "name": "A socket shared with a container answers",
        "ok": False,
        "detail": "The container started, but its socket refused the connection.",
        "remedy": "Run the spawner on the same machine as the Engine, not through a remote DOCKER_HOST.",
    },
]
SERVICES = [
    {"name": "Gateway", "ok": True, "detail": "Database at its newest migration."},
    {"name": "Spawner", "ok": True, "detail": "Answered in 3 ms."},
    {
        "name": "Metering proxy",
        "ok": False,
        "detail": "No answer within 2 s. Assistants cannot ask models until it is back.",
    },
]
