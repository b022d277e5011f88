"""Sample rows of the audit."""

from typing import Any

from tests.pages.preview.samples import DAY_MS, NOW

LONG_ADDRESS = (
    "a.person.whose.address.fills.a.whole.line@department-of-long-names.university.example.org"
)
_ACT: dict[str, Any] = {
    "actor": "ines@alcove.example",
    "tenant": "taaaaaaaaaaaaaaa",
    "email": "mara.lindqvist@example.org",
    "reason": None,
    "before": None,
    "after": None,
    "detail": None,
    "ip": "203.0.113.7",
}
ACTS_DONE = [
    _ACT
    | {
        "id": "01k9z3e7m2q8x4v6t0aaaaaa05",
        "at": NOW - 7_200_000,
        "action": "Quota changed",
        "reason": "Conference week, agreed by mail.",
        "before": "$20.00",
        "after": "$35.00",
    },
    _ACT
    | {
        "id": "01k9z3e7m2q8x4v6t0aaaaaa04",
        "at": NOW - 9_200_000,
        "action": "Provider connected",
        "tenant": None,
        "email": None,
        "after": "Anthropic (anthropic)",
    },
    _ACT
    | {
        "id": "01k9z3e7m2q8x4v6t0aaaaaa03",
        "at": NOW - DAY_MS,
        "actor": "mara.lindqvist@example.org",
        "action": "Key for a program made",
        "after": "Notebook on my laptop (…a1B2)",
    },
    _ACT
    | {
        "id": "01k9z3e7m2q8x4v6t0aaaaaa01",
        "at": NOW - 2 * DAY_MS,
        "actor": LONG_ADDRESS,
        "email": LONG_ADDRESS,
        "action": "Key for a program made",
        "after": "Notebook on my laptop (…c3D4)",
    },
]
NOTED = [
    _ACT
    | {
        "id": "01k9z3e7m2q8x4v6t0aaaaaa02",
        "at": NOW - 7_200_000,
        "actor": "The meter",
        "action": "Key shown at another tenant's door",
        "detail": "generation 3 of tbbbbbbbbbbbbbbb",
        "ip": None,
    }
]
