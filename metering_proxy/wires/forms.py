"""A multipart/form-data body as text with the place of each field, so that it is edited and not written anew.

Bytes are read as Latin-1, which gives each of them a character of its own.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from metering_proxy.wires.document import Edit, invalid, spliced

# One way to write each thing: whatever else a form may say, two readers could understand in two ways.
_TYPE = re.compile(
    r"""multipart/form-data[ \t]*;[ \t]*boundary=(?:"([\w'()+,./:=? -]{0,69}[\w'()+,./:=?-])"|([\w'+.-]{1,70}))""",
    re.IGNORECASE | re.ASCII,
)
_DISPOSITION = re.compile(
    r'form-data; ?name="([\w.[\]-]{1,100})"(; ?filename="[^"\\\r\n]*")?', re.IGNORECASE | re.ASCII
)
_CONTENT_TYPE = re.compile(r'[\w.+/;=" \t-]+', re.ASCII)
_MOST_FIELDS = 64
_MOST_HEAD = 4_096  # characters before a field's value


@dataclass(frozen=True, slots=True)
class Field:
    """Where a field's value stands. `is_file`: it was sent as a file."""

    start: int
    end: int
    is_file: bool


@dataclass(frozen=True, slots=True)
class Form:
    """A form: the whole body and its fields by name. `content_type`: as it was sent, with the boundary."""

    text: str
    fields: dict[str, Field]
    content_type: str

    def value(self, name: str) -> str | None:
        """A field's text, or None where it is absent or not UTF-8."""
        field = self.fields.get(name)
        if field is None:
            return None
        try:
            return self.text[field.start : field.end].encode("latin-1").decode()
        except UnicodeDecodeError:
            return None

    def file(self, name: str) -> bytes | None:
        """A field's bytes."""
        field = self.fields.get(name)
        return None if field is None else self.text[field.start : field.end].encode("latin-1")

    def put_at(self, place: str, value: object) -> Edit:
        """See wire.Editable. Only a field that stands there."""
        field = self.fields[place]
        return Edit(field.start, field.end, str(value).encode().decode("latin-1"))

    def edited(self, edits: Sequence[Edit]) -> bytes:
        """See wire.Editable."""
        return spliced(self.text, edits).encode("latin-1")


def read(body: bytes, content_type: str) -> Form:
    """The form that `body` is. Raises `invalid`: what we read must be what the provider reads."""
    found = _TYPE.fullmatch(content_type.strip())
    if found is None:
        raise invalid("the body must be multipart/form-data with one boundary and nothing else")
    text, mark = body.decode("latin-1"), f"--{found.group(1) or found.group(2)}"
    if not text.startswith(mark + "\r\n"):
        raise invalid("the form does not begin with its boundary")
    fields: dict[str, Field] = {}
    at = len(mark) + 2
    while True:
        head_end, end = text.find("\r\n\r\n", at), text.find(f"\r\n{mark}", at)
        whole = 0 <= head_end <= end and head_end - at <= _MOST_HEAD
        if not whole or len(fields) >= _MOST_FIELDS:
            raise invalid("the form is not whole")
        name, field = _field(text[at:head_end], head_end + 4, end)
        if name in fields:
            raise invalid(f"{name} stands there twice", name)
        fields[name] = field
        at = end + len(mark) + 4
        if text[end + len(mark) + 2 : at] == "--":
            # Nothing may follow, and no value may hold the mark: a looser reader would find more parts.
            if text[at:] not in ("", "\r\n") or text.count(mark) != len(fields) + 1:
                raise invalid("the form's boundary stands inside of it, or something follows it")
            return Form(text, fields, content_type)
        if text[end + len(mark) + 2 : at] != "\r\n":
            raise invalid("the form is not whole")


def _field(head: str, start: int, end: int) -> tuple[str, Field]:
    """The part's name and place. Raises `invalid` unless its head says one name, in the one way there is."""
    named: re.Match[str] | None = None
    seen: set[str] = set()
    for line in head.split("\r\n"):
        header, colon, value = line.partition(":")
        header, value = header.lower(), value.strip(" \t")
        if not colon or header in seen:
            raise invalid("a part of the form has a head that cannot be read in one way")
        seen.add(header)
        if header == "content-disposition":
            named = _DISPOSITION.fullmatch(value)
        elif header != "content-type" or not _CONTENT_TYPE.fullmatch(value):
            raise invalid("a part of the form has a head that is not its name and its type")
    if named is None:
        raise invalid("a part of the form has no name")
    return named.group(1), Field(start, end, named.group(2) is not None)
