"""The grammar of heads, where a mistake lets two machines disagree on where a message ends.

What leaves is written here and checked as a whole; what came in is judged by `framing`.
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from infra.kit.errors import AlcoveError

Headers = Sequence[tuple[str, str]]
CHUNKED: Final = -1
UNTIL_CLOSED: Final = -2

# RFC 9110, 5.6.2: what a header's name and a method are made of.
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_DIGITS = re.compile(r"[0-9]{1,15}")

is_token = lru_cache(2048)(_TOKEN.fullmatch)


class Malformed(Exception):
    """A head that must not be acted on; the sentence says why."""


def write_head(start: str, headers: Iterable[tuple[str, str]]) -> bytes:
    """The bytes of a head: its first line, headers, and the empty line.

    Raises `invalid` where a part holds what would end its line, or a name is none: such a head would
    be read as another one than was meant.
    """
    lines = [start]
    for name, value in headers:
        if not is_token(name):
            raise AlcoveError("invalid", f"{name!r} cannot name a header")
        lines.append(f"{name}: {value}")
    lines.append("\r\n")
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines) or "\0" in text:
        raise AlcoveError("invalid", "no part of a head may hold a line's end or NUL")
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError as error:
        raise AlcoveError("invalid", "a head is written in latin-1") from error


def framing(headers: Iterable[tuple[str, str]]) -> int:
    """How long the body is that follows these headers: its bytes, CHUNKED or UNTIL_CLOSED (none said).

    Stricter than RFC 9112, 6.3: two lengths, equal or not, a length beside a transfer coding, and any
    coding but plain `chunked` raise Malformed.
    """
    found = UNTIL_CLOSED
    for name, value in headers:
        lower = name.lower()
        if lower == "content-length":
            if found != UNTIL_CLOSED or not _DIGITS.fullmatch(value):
                raise Malformed("its length is not one plain number")
            found = int(value)
        elif lower == "transfer-encoding":
            if found != UNTIL_CLOSED or value.lower() != "chunked":
                raise Malformed("its transfer coding is not plain chunked")
            found = CHUNKED
    return found
