"""E-mail addresses as they are typed and as they are compared."""

import re
import unicodedata

from infra.kit.errors import AlcoveError

_SHAPE = re.compile(r"[^@\s\x00-\x1f\x7f]{1,64}@[^@\s\x00-\x1f\x7f]{1,253}")


def clean(email: str) -> str:
    """The address without surrounding blanks. Raises `invalid` (field `email`) for what is none."""
    found = unicodedata.normalize("NFKC", email).strip()
    domain = found.rpartition("@")[2]
    good = _SHAPE.fullmatch(found) and "." in domain.strip(".") and ".." not in found
    if not good or len(key(found)) > 254 or not found.isprintable():
        raise AlcoveError("invalid", "This is not an e-mail address.", field="email")
    return found


def key(email: str) -> str:
    """What makes two spellings one address: NFKC and case-folded."""
    return unicodedata.normalize("NFKC", email).strip().casefold()
