"""Which heads are let in. llhttp has refused bad syntax already; this refuses what is ambiguous.

Two machines that read one head differently are how requests are smuggled, so there is one way to say
a thing: one Host, an absolute path that decodes to one meaning, names without underscores.
"""

import re
from functools import lru_cache
from urllib.parse import unquote_to_bytes

from infra.kit.http1.heads import Malformed, framing

_NAME = re.compile(rb"[A-Za-z0-9-]+")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_AUTHORITY = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]):([0-9]{1,5})")
_TARGET = re.compile(rb"/[\x21\x22\x24-\x7e]*")
_BAD_ESCAPE = re.compile(rb"%(?![0-9A-Fa-f]{2})")


@lru_cache(2048)
def header_name(raw: bytes) -> str | None:
    """The name in lower case; None for one that is dropped (`X_Tenant_Id` would pass for `X-Tenant-Id`)."""
    return raw.decode("ascii").lower() if _NAME.fullmatch(raw) else None


@lru_cache(256)
def _is_host(value: str) -> bool:
    return bool(_HOST.fullmatch(value))


def checked_target(raw: bytes) -> str:
    """The target, as it came. Raises Malformed unless it is a path with one meaning.

    Refused: absolute form and `*`, broken escapes, bytes that are not UTF-8 or control characters once
    decoded, and `.` or `..` as a segment once decoded.
    """
    if not _TARGET.fullmatch(raw):
        raise Malformed("its target is not an absolute path")
    if b"%" in raw or b"/." in raw:
        _check_decoded(raw)
    return raw.decode("ascii")


def checked_authority(raw: bytes) -> str:
    """The target of a CONNECT, `host:port`, as it came. Raises Malformed unless both are there and plain."""
    found = _AUTHORITY.fullmatch(raw)
    if found is None or not 0 < int(found[1]) < 65_536:
        raise Malformed("the target of a CONNECT is host:port")
    return raw.decode("ascii")


def _check_decoded(raw: bytes) -> None:
    if _BAD_ESCAPE.search(raw):
        raise Malformed("its target has a broken escape")
    path, _, query = raw.partition(b"?")
    try:
        text = unquote_to_bytes(path).decode("utf-8")
        unquote_to_bytes(query).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Malformed("its target is not UTF-8") from error
    if any(character < " " or character == "\x7f" for character in text):
        raise Malformed("its path holds control characters")
    if any(part in (".", "..") for part in text.replace("\\", "/").split("/")):
        raise Malformed("its path climbs")


def checked_framing(headers: list[tuple[str, str]], *, chunks: bool) -> int:
    """The length of the body, 0 where none is said, or CHUNKED. Raises Malformed unless there is
    exactly one valid Host and one framing. `chunks`: whether the version knows chunked."""
    names = [name for name, _ in headers]
    if names.count("host") != 1 or not _is_host(headers[names.index("host")][1]):
        raise Malformed("it needs exactly one valid Host")
    if "content-length" not in names and "transfer-encoding" not in names:
        return 0
    length = framing(headers)
    if length < 0 and not chunks:
        raise Malformed("its version has no chunked bodies")
    return length
