"""Finding words again: what the index holds, and queries that no text of a person can break.

FTS5's unicode61 takes a run of Chinese, Japanese or Thai for one word, so such runs are indexed as
overlapping pairs of characters plus the last one alone; then a query of one or two characters
finds them too. Every word of a query is quoted: `don't`, `NEAR(` and `x:y` are only text. What it
would drop though people mean it (the signs of `C++` and `C#`, an emoji) is spelt as a word.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import cache

from agent.store.database import Tx

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf"
    "\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_RUN = re.compile(f"[{_UNSPACED}]+")
_MARKS_BELOW = 0x20000  # beyond it are ideographs, and marks that only select their variants
_COMMON_WORDS = """
a about all am an and any are as at be been but by can could did do does don't for from get go had has have he
hello help her hi him his how i if in is it its just know let like make many me much my no not of ok on or our
please s say she should so some t tell than thank thanks that the their them then there they this to up us want
was we were what when where which who whom why will with would yes you your
al como con cual de del donde el ella en es eso esta este hola la las lo los me mi mis no o para pero por que qué
quien se si sí soy su sus te tu un una y ya yo
的 了 是 我 你 他 她 它 在 有 和 就 不 人 都 一 吗 什么 怎么 请 帮 我的 你的
"""
_COMMON = frozenset(_COMMON_WORDS.split())


@dataclass(frozen=True, slots=True)
class Hit:
    """One found entry, best first; `rank` is bm25's (lower is better)."""

    kind: str
    ref: str
    rank: float


def words(text: str) -> list[str]:
    """The words of `text`, folded for comparison; a run of an unspaced script is one word.

    `C++` is two, `c` and a spelling of the whole, so that either finds it.
    """
    found: list[str] = []
    for each in _word().finditer(unicodedata.normalize("NFKC", text).casefold()):
        run, signs = each["run"] or "", each["signs"] or each["symbol"] or ""
        if run:
            found.append(run)
        if signs:
            found.append(run + "".join(f"x{ord(sign):x}" for sign in signs))
    return found


@cache
def _word() -> re.Pattern[str]:
    """A word with its marks (Hindi's vowels are some) and the signs that belong to it, or a symbol (an emoji)."""
    marks: list[str] = []
    symbols: list[str] = []
    for char in map(chr, range(0x80, _MARKS_BELOW)):
        kind = unicodedata.category(char)
        if kind == "So":
            symbols.append(char)
        elif kind[0] == "M":
            marks.append(char)
    letter = f"[^\\W_{_UNSPACED}]"
    return re.compile(
        f"(?P<run>[{_UNSPACED}]+|{letter}(?:{letter}|[{''.join(marks)}])*)"
        r"(?P<signs>\+{1,2}(?!\w)|#(?!\w))?"
        f"|(?P<symbol>[{''.join(symbols)}])"
    )


def content_words(text: str) -> list[str]:
    """The words that say what a text is about: common ones left out, each once, in order."""
    return list(dict.fromkeys(w for w in words(text) if w not in _COMMON))


def indexed(text: str) -> str:
    """What the index is given for `text`: the very words that a query for it is made of."""
    return " ".join(
        " ".join((*_pairs(word), word[-1])) if _RUN.fullmatch(word) else word
        for word in words(text)
    )


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)]


def _phrase(word: str, *, prefix: bool) -> str:
    if _RUN.fullmatch(word):
        return f'"{" ".join(_pairs(word))}"' if len(word) > 1 else f'"{word}"*'
    return f'"{word}"*' if prefix and len(word) > 2 else f'"{word}"'


def match_all(text: str) -> str | None:
    """An FTS5 expression for entries with every word of `text`, the last perhaps unfinished."""
    found = words(text)
    last = len(found) - 1
    return " AND ".join(_phrase(w, prefix=i == last) for i, w in enumerate(found)) or None


def match_any(found: list[str]) -> str | None:
    """An FTS5 expression for entries with at least one of the words; unspaced runs match by any pair."""
    phrases: list[str] = []
    for word in found[:32]:
        if _RUN.fullmatch(word) and len(word) > 2:
            phrases.extend(f'"{pair}"' for pair in _pairs(word)[:16])
        else:
            phrases.append(_phrase(word, prefix=False))
    return " OR ".join(phrases) or None


def put(tx: Tx, kind: str, ref: str, text: str, conversation_id: str | None = None) -> None:
    """Indexes `text` as the words of one entry, in place of what was there."""
    drop(tx, kind, ref)
    entry = tx.run(
        "INSERT INTO search_entry (kind, ref, conversation_id) VALUES (?, ?, ?)",
        kind, ref, conversation_id,
    ).lastrowid  # fmt: skip
    tx.run("INSERT INTO search (rowid, words) VALUES (?, ?)", entry, indexed(text))


def drop(tx: Tx, kind: str, ref: str) -> None:
    """Takes one entry out of the index."""
    row = tx.one("SELECT id FROM search_entry WHERE kind = ? AND ref = ?", kind, ref)
    if row is not None:
        tx.run("DELETE FROM search WHERE rowid = ?", row["id"])
        tx.run("DELETE FROM search_entry WHERE id = ?", row["id"])


def drop_conversation(tx: Tx, conversation_id: str) -> None:
    """Takes a conversation's title and messages out of the index; facts stay, they are the person's."""
    mine = "SELECT id FROM search_entry WHERE conversation_id = ? AND kind IN ('message', 'title')"
    tx.run(f"DELETE FROM search WHERE rowid IN ({mine})", conversation_id)  # noqa: S608 (no input)
    tx.run(f"DELETE FROM search_entry WHERE id IN ({mine})", conversation_id)  # noqa: S608


def find(
    tx: Tx, kind: str, expression: str | None, limit: int, *, outside: str | None = None
) -> list[Hit]:
    """The best entries of a kind for an expression of `match_all` or `match_any`.

    `outside`: a conversation whose entries are left out.
    """
    if expression is None:
        return []
    rows = tx.all(
        "SELECT e.kind, e.ref, bm25(search) AS rank FROM search JOIN search_entry e ON e.id = search.rowid"
        " WHERE search MATCH ? AND e.kind = ? AND e.conversation_id IS NOT ? ORDER BY rank LIMIT ?",
        expression, kind, outside or "", limit,
    )  # fmt: skip
    return [Hit(row["kind"], row["ref"], row["rank"]) for row in rows]
