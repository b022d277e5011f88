"""Numbers and flags of a request, checked before anything is priced by them."""

from typing import Any

from metering_proxy.wires.document import Document, invalid

MOST_TOKENS = 10_000_000
MOST_CHOICES = 128
# A hundred times the largest context: whoever says more of one call has not counted.
_MOST_TOLD = 1_000_000_000


def count(document: Document, name: str, *, least: int = 1, most: int = MOST_TOKENS) -> int | None:
    """A whole number between `least` and `most`, or None where it is absent or null. Raises `invalid`.

    A truth value, a fraction, text and what is out of range are refused, not read as something near.
    """
    value = document.get(name)
    if value is None:
        return None
    if type(value) is not int:
        raise invalid(f"{name} must be a whole number", name)
    if not least <= value <= most:
        raise invalid(f"{name} must be between {least} and {most}", name)
    return value


def flag(document: Document, name: str) -> bool:
    """A truth value; absent or null is false. Raises `invalid`."""
    value = document.get(name)
    if value is None:
        return False
    if type(value) is not bool:
        raise invalid(f"{name} must be true or false", name)
    return value


def model(document: Document) -> str:
    """The model asked for. Raises `invalid`."""
    value = document.get("model")
    if not isinstance(value, str) or not value:
        raise invalid("model must be the id of a model", "model")
    return value


def text(document: Document, name: str) -> str | None:
    """A text, or None where it is absent or null. Raises `invalid`."""
    value = document.get(name)
    if value is not None and not isinstance(value, str):
        raise invalid(f"{name} must be text", name)
    return value


def reported(value: Any) -> int | None:
    """A count in an answer, where it can be read: a natural number, also as `7.0` or `"7"`; else None."""
    if type(value) is not int:
        if not (_is_digits(value) or (type(value) is float and value.is_integer())):
            return None
        value = int(value)
    return value if 0 <= value <= _MOST_TOLD else None


def natural(value: Any) -> int:
    """The same of what may be missing: it counts as none then, since an answer is not ours to refuse."""
    return 0 if value is None else reported(value) or 0


def nonsense(value: Any) -> bool:
    """Whether something is said there that is no count."""
    return value is not None and reported(value) is None


def replace(seen: dict[str, Any], name: str, value: Any) -> None:
    """Keeps a count that is told again and again: the last one holds, but nothing and 0 replace no more than 0."""
    if value is not None and not (reported(value) == 0 and seen.get(name)):
        seen[name] = value


def merge(seen: dict[str, Any], usage: dict[str, Any]) -> None:
    """Keeps the counts of a usage that is told again and again, and those in its details."""
    if not seen:  # as it nearly always is: one step for all of them
        seen.update((name, value) for name, value in usage.items() if value is not None)
        return
    for name, value in usage.items():
        before = seen.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            for inner, counted in value.items():
                replace(before, inner, counted)
        else:
            replace(seen, name, value)


def _is_digits(value: Any) -> bool:
    return type(value) is str and len(value) <= 16 and value.isascii() and value.isdigit()
