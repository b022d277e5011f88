"""What the assistant knows from before: facts the person told, and their own words in other conversations.

Raw messages are the truth, facts an overlay. Whatever is recalled is dated, and is never stored again.
"""

from dataclasses import dataclass
from datetime import UTC, datetime

from agent.learning import claims_in
from agent.store import facts, search
from agent.store.database import Tx
from agent.store.facts import Claim, Fact
from agent.text import one_line
from agent.transcript import Turn
from infra.kit.errors import AlcoveError

_STANDING = 12
_FACTS = 4
_EXCERPTS = 3
_CANDIDATES = 24
_FEW = 3
_SELF = frozenset({"i", "me", "my", "mine", "myself", "yo", "mi", "mí", "mis"})


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A message of another conversation."""

    role: str
    text: str
    created_at: int


@dataclass(frozen=True, slots=True)
class Recalled:
    """What bears on one message: who the person is, facts that share its words, words said elsewhere."""

    standing: tuple[Fact, ...] = ()
    related: tuple[Fact, ...] = ()
    excerpts: tuple[Excerpt, ...] = ()
    about_self: bool = False

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Every fact, each once."""
        return (*self.standing, *(fact for fact in self.related if fact not in self.standing))

    @property
    def few_facts(self) -> tuple[Fact, ...]:
        """The facts for a model that more would confuse: those asked for, or who the person is."""
        return (self.related or (self.standing if self.about_self else ()))[:_FEW]


def day(at: int) -> str:
    """A date as the model is told it."""
    return datetime.fromtimestamp(at / 1000, UTC).strftime("%Y-%m-%d")


def fact_line(fact: Fact) -> str:
    """A fact with its id and date, for a tool's answer."""
    return f"[{fact.id}] {day(fact.created_at)} {fact.text}"


def sentence(fact: Fact) -> str:
    """A fact as a whole sentence, for a model that makes nothing of a bare `Name: Ana`."""
    what, colon, value = fact.text.partition(": ")
    if fact.relation == "note":
        return f"The user told you: {fact.text}."
    if colon:
        return f"The user's {what[:1].lower()}{what[1:]} is {value}."
    return f"The user {fact.text[:1].lower()}{fact.text[1:]}."


def excerpt_line(excerpt: Excerpt, limit: int) -> str:
    """A message of another conversation, dated, on one line."""
    who = "the person said" if excerpt.role == "user" else "you answered"
    return f"{day(excerpt.created_at)}, in another conversation, {who}: {one_line(excerpt.text, limit)}"


def learn(tx: Tx, text: str, conversation_id: str, message_id: str) -> list[Fact]:
    """Keeps what a message of the person says about them; the same message again changes nothing."""
    return [facts.put(tx, claim, "user", conversation_id, message_id) for claim in claims_in(text)]


def remember(tx: Tx, sentence: str, turn: Turn) -> Fact:
    """Keeps a fact that the model proposes, if the person's own message of this turn says it.

    Raises `invalid` where it does not: what a tool, a page or memory said is no fact about anybody.
    """
    wanted = search.content_words(sentence)
    said = search.words(turn.user_text)
    heard = [word for word in wanted if _occurs(word, said, turn.user_text)]
    told = [w for w in wanted if w not in ("user", "person", "user's", "person's")]
    if not told or len(heard) < 0.6 * len(told):
        raise AlcoveError(
            "invalid", "the person did not say this in their last message; keep to their own words"
        )
    known = claims_in(turn.user_text)
    claim = next(
        (c for c in known if all(w in search.words(sentence) for w in search.words(c.object))), None
    )
    kept = claim or Claim("note", sentence, one_line(sentence, 300))
    return facts.put(tx, kept, "agent", turn.conversation_id, turn.user_message_id)


def recall(tx: Tx, turn: Turn) -> Recalled:
    """What is worth knowing for a turn: who the person is, and what shares telling words with the message.

    What the message itself has just taught is left out: it stands there anyway.
    """
    wanted = search.content_words(turn.user_text)
    related = facts.find(tx, " ".join(wanted), _FACTS) if wanted else []
    return Recalled(
        standing=_older(facts.newest(tx, _STANDING, standing=True), turn),
        related=_older(related, turn),
        excerpts=tuple(excerpts(tx, turn.user_text, turn.conversation_id, _EXCERPTS)),
        about_self=not _SELF.isdisjoint(search.words(turn.user_text)) or "我" in turn.user_text,
    )


def _older(found: list[Fact], turn: Turn) -> tuple[Fact, ...]:
    return tuple(fact for fact in found if fact.created_at < turn.created_at)


def excerpts(tx: Tx, query: str, outside: str, limit: int) -> list[Excerpt]:
    """Messages of other conversations that are about the same thing, the person's own before answers.

    The floor: half of the query's telling words must occur. Without telling words nothing is found.
    """
    wanted = search.content_words(query)
    hits = search.find(tx, "message", search.match_any(wanted), _CANDIDATES, outside=outside)
    found: list[Excerpt] = []
    for hit in hits:
        row = tx.one("SELECT role, text, created_at FROM message WHERE id = ?", hit.ref)
        if row is not None and _covers(row["text"], wanted):
            found.append(Excerpt(row["role"], row["text"], row["created_at"]))
    found.sort(key=lambda one: one.role != "user")
    return found[:limit]


def _covers(text: str, wanted: list[str]) -> bool:
    held = search.words(text)
    return 2 * sum(_occurs(word, held, text) for word in wanted) >= len(wanted)


def _occurs(word: str, among: list[str], text: str) -> bool:
    """Whether a word, or one with the same beginning, is there; runs of unspaced scripts by any pair."""
    if len(word) > 1 and not word.isascii() and word not in among:
        folded = text.casefold()
        if any(word[i : i + 2] in folded for i in range(len(word) - 1)):
            return True
    stem = word[: max(4, len(word) - 2)]
    return any(held == word or (len(word) > 4 and held.startswith(stem)) for held in among)
