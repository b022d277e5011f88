"""Where a person may be sent on: our own paths only."""

import re
from urllib.parse import unquote

# One slash, then no second slash or backslash; nothing that a browser drops or rewrites (controls,
# blanks, backslashes) anywhere, also not once decoded.
_LOCAL = re.compile(r"/(?![/\\])[!-\[\]-~]*")
_LONGEST = 512
DEFAULT = "/chat"


def local(target: str | None) -> str:
    """`target` if it is a path of ours, else the chat page."""
    if not target or len(target) > _LONGEST or not _LOCAL.fullmatch(target):
        return DEFAULT
    once = unquote(target)
    twice = unquote(once)
    for seen in (once, twice):
        path = re.split(r"[?#]", seen, maxsplit=1)[0]
        if path.startswith(("//", "/\\")) or re.search(r"[\x00-\x20\x7f\\]", path):
            return DEFAULT
        if {".", ".."} & set(path.split("/")):
            return DEFAULT
    return target
