"""Small questions about text: how many tokens, where to cut, is it well formed. No storage, no model."""

import unicodedata

_JOINER = "\u200d"


def estimate_tokens(text: str) -> int:
    """An upper estimate without a tokenizer: a token for three ASCII characters, one for any other byte.

    English has about four characters a token, and no byte-level BPE makes more tokens than bytes.
    """
    others = len(text.encode("utf-8", "replace")) - len(text) if not text.isascii() else 0
    wide = sum(1 for c in text if c > "\x7f") if others else 0
    return (len(text) - wide + 2) // 3 + others + wide


def well_formed(text: str) -> str:
    """`text` with surrogate pairs joined and lone surrogates replaced, so that it can be UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def cut(text: str, limit: int) -> str:
    """At most `limit` characters of the beginning, never through a joined character."""
    if len(text) <= limit:
        return text
    end = limit
    while end > 0 and _joined(text[end - 1], text[end]):
        end -= 1
    return text[:end]


def cut_end(text: str, limit: int) -> str:
    """At most `limit` characters of the end, never through a joined character."""
    if len(text) <= limit:
        return text
    start = len(text) - limit
    while start < len(text) and _joined(text[start - 1], text[start]):
        start += 1
    return text[start:]


def _joined(before: str, after: str) -> bool:
    """Whether two neighbours belong to one visible character (marks, variation, skin tones, joins, flags)."""
    return (
        unicodedata.combining(after) != 0
        or unicodedata.category(after) in ("Mn", "Mc", "Me")
        or after in (_JOINER, "\ufe0e", "\ufe0f")
        or before == _JOINER
        or "\U0001f3fb" <= after <= "\U0001f3ff"
        or ("\U0001f1e6" <= after <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff")
    )


def one_line(text: str, limit: int) -> str:
    """`text` on one line of at most `limit` characters, cut between words with an ellipsis."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    head = cut(line, limit - 1)
    space = head.rfind(" ")
    return (head[:space] if space > limit // 2 else head).rstrip(" ,;:.-") + "…"


def title_of(message: str) -> str:
    """A conversation's title from its first message: its first line with words, at most 60 characters."""
    for line in message.splitlines():
        bare = line.strip().lstrip("#>*-`~ \t").rstrip("`*~ \t")
        if any(c.isalnum() for c in bare):
            return one_line(bare, 60)
    return one_line(message, 60) or "New conversation"
