"""A JSON body as text with the place of each top-level member, so that it is edited and not written anew.

Strict, since what we read must be what the provider reads: no NaN or Infinity, no member twice, UTF-8 only.
"""

import json
import re
from collections.abc import Sequence
from typing import Any, NoReturn

from infra.kit.errors import AlcoveError
from infra.kit.value import value
from infra.kit.weight import too_heavy

MOST_MEMBERS = 1_000  # of an object whose members are read one by one
_BLANK = " \t\n\r"
_SPACE = re.compile(rf"[{_BLANK}]*")
_written = json.JSONEncoder(separators=(",", ":")).encode
# 300,000 token ids is the most that an embeddings call takes; a long conversation has some 20,000 values.
# A mark in a text is about a token: more of them than this no model reads.
_MOST_WEIGHT, _MOST_MARKS = 400_000, 2_500_000


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object below the first level. Of a member that stands there twice some servers take the first."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise invalid("an object has a member twice")
    return found


# The scanners in C below json.JSONDecoder: a value and its end, and a string's from behind its quote.
_decoder = json.JSONDecoder(parse_constant=_no_constant, object_pairs_hook=_object)
_scan = _decoder.scan_once  # type: ignore[attr-defined]
_scan_string = json.decoder.scanstring  # type: ignore[attr-defined]


@value
class Member:
    """The value of a member and where it stands in the text."""

    value: Any
    start: int
    end: int


@value
class Edit:
    """Replace text[start:end]. `new`: a member that stands nowhere yet."""

    start: int
    end: int
    text: str
    new: bool = False


@value
class Document:
    """An object: the whole text that it stands in, where it begins (after its brace), and its members."""

    text: str
    inside: int
    members: dict[str, Member]

    @property
    def content_type(self) -> str:
        """See wire.Editable."""
        return "application/json"

    def get(self, name: str) -> Any:
        """The member's value, or None."""
        member = self.members.get(name)
        return None if member is None else member.value

    def object(self, name: str) -> "Document | None":
        """A member that is an object, read as strictly as the whole. Raises `invalid`. None: absent or null."""
        member = self.members.get(name)
        if member is None or member.value is None:
            return None
        if not isinstance(member.value, dict):
            raise invalid(f"{name} must be an object", name)
        document, _ = _read(self.text, member.start)
        return document

    def put(self, name: str, value: Any) -> Edit:
        """The edit that gives a member this value, whether or not it stands there already."""
        text = _written(value)
        member = self.members.get(name)
        if member is not None:
            return Edit(member.start, member.end, text)
        comma = "," if self.members else ""
        return Edit(self.inside, self.inside, f"{json.dumps(name)}:{text}{comma}", new=True)

    def put_at(self, place: str, value: Any) -> Edit:
        """The same for a member of a member, `outer.inner`, which is made where it is absent. Raises `invalid`."""
        name, _, inner = place.partition(".")
        if not inner:
            return self.put(name, value)
        found = self.object(name)
        return self.put(name, {inner: value}) if found is None else found.put_at(inner, value)

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """The whole text with the edits made, every other byte as it was."""
        changes = [edit for edit in edits if self.text[edit.start : edit.end] != edit.text]
        return (spliced(self.text, changes) if changes else self.text).encode()


def read(body: bytes) -> Document:
    """The object that `body` is. Raises `invalid`."""
    _check_weight(body)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        raise invalid("the body is not UTF-8") from None
    document, end = _read(text, _skip(text, 0))
    if _skip(text, end) != len(text):
        raise invalid("something follows the JSON object")
    return document


def spliced(text: str, edits: Sequence[Edit]) -> str:
    """A text with the edits made, every other character as it was."""
    parts: list[str] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start, e.end)):
        if edit.new and parts and at == edit.start and not parts[-1].endswith(","):
            parts.append(",")  # two new members of an object that had none
        parts += [text[at : edit.start], edit.text]
        at = edit.end
    parts.append(text[at:])
    return "".join(parts)


def invalid(message: str, field: str | None = None) -> AlcoveError:
    """The refusal of a body; `field` names the member."""
    details: dict[str, Any] = {"reason": "invalid_request"}
    if field is not None:
        details["field"] = field
    return AlcoveError("invalid", message, **details)


def _check_weight(body: bytes) -> None:
    """Refuses a body of more values than any real one has: its parsing would hold up every other tenant."""
    if too_heavy(body, _MOST_WEIGHT, most_marks=_MOST_MARKS):
        raise invalid("the body holds too many values")


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _read(text: str, at: int) -> tuple[Document, int]:
    """The object that begins at `at`, and where it ends. The C scanner does the work below the first level."""
    try:
        return _members(text, at)
    except (ValueError, IndexError, StopIteration):  # the scanner's word for "no value here"
        raise invalid("the body is not a JSON object") from None
    except RecursionError:
        raise invalid("the body is nested too deeply") from None


def _members(text: str, at: int) -> tuple[Document, int]:
    if text[at] != "{":
        raise ValueError("not an object")
    inside = at + 1
    members: dict[str, Member] = {}
    at = _skip(text, inside) if text[inside] in _BLANK else inside
    if text[at] == "}":
        return Document(text, inside, members), at + 1
    while True:
        if text[at] != '"':
            raise ValueError("a name is missing")
        name, at = _scan_string(text, at + 1, True)
        at = _skip(text, at) if text[at] in _BLANK else at
        if text[at] != ":":
            raise ValueError("a colon is missing")
        start = _skip(text, at + 1) if text[at + 1] in _BLANK else at + 1
        value, end = _scan(text, start)
        if name in members:
            raise invalid(f"{name} stands there twice", name)
        if len(members) == MOST_MEMBERS:
            raise invalid("an object has too many members")
        members[name] = Member(value, start, end)
        at = _skip(text, end) if text[end] in _BLANK else end
        if text[at] == "}":
            return Document(text, inside, members), at + 1
        if text[at] != ",":
            raise ValueError("a comma is missing")
        at = _skip(text, at + 1) if text[at + 1] in _BLANK else at + 1
