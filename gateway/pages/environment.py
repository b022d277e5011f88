"""The templates' environment: built assets, icons, and the filters of gateway/templates/README.md."""

import json
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

from gateway import failures, ways_out, words
from infra.kit.clock import Clock, SystemClock
from infra.kit.errors import AlcoveError

TEMPLATES = Path(__file__).parent.parent / "templates"
DIST = Path(__file__).parent.parent / "static" / "dist"


def environment(dist: Path, clock: Clock | None = None) -> jinja2.Environment:
    """The environment that every page is rendered in.

    Raises `internal` with the remedy where the assets in `dist` are not built.
    """
    manifest = _read(dist, "manifest.json")
    icons = _read(dist, "icons.json")
    hands = clock or SystemClock()
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["asset"] = lambda name: f"/static/{manifest[name]}"
    made.globals["icon"] = lambda name: Markup(icons[name])  # noqa: S704 (our own build's SVG)
    made.filters["money"] = words.money
    made.filters["count"] = words.count
    made.filters["size"] = words.size
    made.filters["took"] = words.took
    made.filters["sentence"] = words.sentence
    made.filters["outcome"] = lambda word: failures.OUTCOMES.get(word, word.replace("_", " "))
    made.filters["failure"] = failures.failure
    made.filters["egress_reason"] = ways_out.refusal
    made.tests["good_outcome"] = lambda word: word in failures.GOOD_OUTCOMES
    made.filters["ago"] = lambda at: _ago(at, hands.now_at())
    made.filters["when"] = _when
    made.filters["exact"] = _exact
    return made


def favicon(dist: Path) -> str:
    """The file that the favicon was built to."""
    return _read(dist, "manifest.json")["favicon.svg"]


def _read(dist: Path, name: str) -> dict[str, str]:
    try:
        found: dict[str, str] = json.loads((dist / name).read_text())
    except (OSError, ValueError):
        raise AlcoveError(
            "internal", f"the pages are not built ({dist / name}): run `make pages`"
        ) from None
    return found


def _ago(at: int | None, now_at: int) -> Markup:
    if at is None:
        return Markup("never")
    return _time("ago", at, words.distance(at, now_at), words.exact_moment(at))


def _when(at: int | None) -> Markup:
    if at is None:
        return Markup("–")
    return _time("when", at, words.short_moment(at), words.long_moment(at))


def _exact(at: int | None) -> Markup:
    if at is None:
        return Markup("–")
    return _time("exact", at, words.exact_moment(at), words.long_moment(at))


def _time(kind: str, at: int, text: str, title: str) -> Markup:
    return Markup('<time class="{}" datetime="{}" title="{}">{}</time>').format(
        kind, words.iso(at), escape(title), escape(text)
    )
