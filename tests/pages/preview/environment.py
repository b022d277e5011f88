"""The Jinja environment of the previewed pages, as gateway/templates/README.md asks for it."""

import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from infra.kit.money import format_usd

GATEWAY = Path(__file__).resolve().parents[3] / "gateway"
DIST = GATEWAY / "static" / "dist"


def _time(at: int, kind: str, text: str, title: str) -> Markup:
    iso = datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Markup('<time class="{}" datetime="{}" title="{}">{}</time>').format(
        kind, iso, title, text
    )


def _full(at: int) -> str:
    moment = datetime.fromtimestamp(at / 1000, UTC)
    return f"{moment.day} {moment:%B %Y, %H:%M} UTC"


def ago(at: int | None) -> Markup:
    """How long ago, in words; `never` for None."""
    if at is None:
        return Markup("never")
    seconds = round(time.time() - at / 1000)
    size, unit = next(
        (
            (s, u)
            for s, u in ((86_400, "day"), (3_600, "hour"), (60, "minute"))
            if abs(seconds) >= s
        ),
        (0, ""),
    )
    if abs(seconds) < 45 or not size:
        return _time(at, "ago", "just now", _full(at))
    n = abs(seconds) // size
    words = f"{n} {unit}{'' if n == 1 else 's'}"
    return _time(at, "ago", f"{words} ago" if seconds > 0 else f"in {words}", _full(at))


def when(at: int | None) -> Markup:
    """The moment itself; `–` for None."""
    return Markup("–") if at is None else _time(at, "when", _full(at), _full(at))


def environment(dist: Path = DIST) -> Environment:
    """Templates, globals and filters over the built files of `dist`."""
    made = Environment(
        loader=FileSystemLoader(GATEWAY / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def asset(name: str) -> str:
        return f"/static/{json.loads((dist / 'manifest.json').read_text())[name]}"

    def icon(name: str) -> Markup:
        return Markup(json.loads((dist / "icons.json").read_text())[name])

    def count(n: int | None) -> str:
        return "–" if n is None else f"{n:,}"

    def money(nanos: int | None) -> str:
        return "no limit" if nanos is None else format_usd(nanos)

    made.globals |= {"asset": asset, "icon": icon}
    made.filters |= {"money": money, "count": count, "ago": ago, "when": when}
    return made


def render(made: Environment, template: str, **context: Any) -> str:
    """One page; kept apart so that a missing variable names its template."""
    try:
        return made.get_template(template).render(**context)
    except Exception as error:
        error.add_note(f"while rendering {escape(template)}")
        raise
