"""What a person says about themselves, read from their own words by fixed patterns. No model, no storage.

Precision before recall: a question, a supposition, quoted or reported speech, code and pasted text
teach nothing. English, Spanish and Chinese; the patterns are in `sayings`.
"""

import re
from collections.abc import Iterator

from agent.sayings import NOT_OWN, REMEMBER, SAYINGS, STANDING, UNNAMED, Saying
from agent.store.facts import Claim

_LONGEST_MESSAGE = 2_000
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|「[^」]*」|^>.*$", re.S | re.M
)
_ABBREVIATED = re.compile(r"\b(St|Mt|Ft|Mr|Mrs|Ms|Dr)\. ")
_SENTENCE = re.compile(r"(?:[^.!?。！？\n;；]|[.](?=\w))+[.!?。！？;；]?")


def claims_in(message: str) -> list[Claim]:
    """What a person's message says about them, each thing once. Never raises, whatever the text."""
    if len(message) > _LONGEST_MESSAGE:
        return []
    found: dict[tuple[str, str], Claim] = {}
    for sentence in _sentences(message):
        for claim in _claims(sentence):
            found.setdefault((claim.relation, claim.object.casefold()), claim)
    return list(found.values())


def _sentences(message: str) -> Iterator[str]:
    plain = _ABBREVIATED.sub(r"\1 ", _QUOTED.sub(" ", message))
    for sentence in _SENTENCE.findall(plain):
        bare = sentence.strip()
        if bare and not bare.endswith(("?", "？")):
            yield bare


def _claims(sentence: str) -> list[Claim]:
    """The claims of a sentence; where nothing else fits, what the person asks outright to be remembered."""
    found = [claim for saying in SAYINGS for claim in _said(saying, sentence)]
    told = REMEMBER.search(sentence)
    if told is not None and not found and not NOT_OWN.search(sentence[: told.start()]):
        text = told["o"].strip(" .!。！")
        if text:
            found.append(Claim("note", text, _capital(text)))
    return found


def _said(saying: Saying, sentence: str) -> Iterator[Claim]:
    for match in saying.expression.finditer(sentence):
        thing = match["o"].strip(" .'’-")
        first = thing.casefold().split()[:1]
        if not first or first[0] in UNNAMED or NOT_OWN.search(sentence[: match.start()]):
            continue
        kind = match["k"].casefold() if "k" in match.groupdict() else ""
        relation = saying.relation.format(k=kind)
        text = _capital(saying.text.format(k=kind, o=thing))
        yield Claim(_narrowed(relation, thing), thing, text, relation in STANDING)


def _narrowed(relation: str, thing: str) -> str:
    """Preferences contradict each other only about the same kind of thing: short and long *answers*."""
    if relation != "prefers":
        return relation
    head = re.split(r"\s+(?:to|over|than|when|for|a|que)\s+", thing.casefold())[0].split()
    return f"prefers {head[-1] if head else ''}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
