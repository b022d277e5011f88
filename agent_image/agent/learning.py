"""What a person says about themselves, read from their own words by fixed patterns. No model, no storage.

Precision before recall: a question, a supposition, quoted or reported speech, code and pasted text
teach nothing. English, Spanish and Chinese.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent.store.facts import Claim

_LONGEST_MESSAGE = 2_000
_QUOTED = re.compile(
    r"```.*?(?:```|\Z)|`[^`]*`|\"[^\"]*\"|“[^”]*”|«[^»]*»|「[^」]*」|^>.*$", re.S | re.M
)
_SENTENCE = re.compile(r"[^.!?。！？\n;；]+(?:[.](?=\w)[^.!?。！？\n;；]*)*[.!?。！？;；]?")
_NOT_OWN = re.compile(
    r"\b(?:if|suppose|imagine|pretend|say|says|said|told|tells|thinks?|wrote|translate|rewrite|write|story|"
    r"poem|example|would|used to|wish|when|si|imagina|supón|dice|dijo|traduce|escribe|cuando)\b"
    r"|如果|假如|假设|他说|她说|翻译|写",
    re.I,
)
_END = r"(?=\s+(?:and|but|now|so|because|since|with|which|where|as of|these days|y|pero|porque|ahora|desde)\b|[,.!;:?()。！，；]|\s*$)"
_ZH_END = r"(?=[,.!;，。！；、]|但|而且|\s|$)"
_PLACE = rf"(?P<o>[^\W\d_][^,.!;:?()。！，；]{{0,60}}?){_END}"
_NAME = rf"(?P<o>[^\W\d_][\w'’.-]*(?:\s+[A-ZÀ-Þ][\w'’.-]*){{0,3}}){_END}"
_THING = rf"(?P<o>[^\W_][^,.!;:?()。！，；]{{0,80}}?){_END}"
_KIN = (
    "wife|husband|partner|girlfriend|boyfriend|son|daughter|brother|sister|mother|father|mom|mum|dad|"
    "dog|cat|boss|friend|teacher|doctor"
)
_NOBODY = frozenset(
    "not no never back when at later tomorrow today if on please maybe a an the it this that these those "
    "you him her them me us so how what to your one in by for as any some all more most".split()
)


@dataclass(frozen=True, slots=True)
class _Pattern:
    """`relation` and `text` take the match's groups `o` (the object) and `k` (what kind)."""

    expression: re.Pattern[str]
    relation: str
    text: str
    standing: bool = False
    refuse: frozenset[str] = _NOBODY


def _p(expression: str, relation: str, text: str, *, standing: bool = False) -> _Pattern:
    return _Pattern(re.compile(expression, re.I), relation, text, standing)


_PATTERNS = (
    _p(rf"\bmy (?:full |first )?name(?: is|'s|’s) {_NAME}", "name", "Name: {o}", standing=True),
    _p(rf"\b(?:please )?call me {_NAME}", "called", "Wants to be called {o}", standing=True),
    _p(rf"\bi (?:now |currently )?live in {_PLACE}", "home", "Lives in {o}", standing=True),
    _p(rf"\bi(?:'ve|’ve| have)?(?: just| recently)? moved to {_PLACE}", "home", "Lives in {o}", standing=True),
    _p(rf"\bi work (?:at|for) (?-i:(?=[A-Z])){_PLACE}", "employer", "Works at {o}", standing=True),
    _p(rf"\bi work as an? {_THING}", "job", "Works as {o}", standing=True),
    _p(rf"\bmy birthday is (?:on )?(?:the )?(?P<o>\w[\w ]{{2,24}}?){_END}", "birthday", "Birthday: {o}"),
    _p(r"\bi(?:'m|’m| am) (?:a )?(?P<o>vegan|vegetarian|pescatarian)\b", "diet", "Is {o}", standing=True),
    _p(rf"\bi(?:'m|’m| am) allergic to {_THING}", "allergic", "Is allergic to {o}", standing=True),
    _p(rf"\bi(?:'d|’d| would)? (?:really |much )?prefer {_THING}", "prefers", "Prefers {o}", standing=True),
    _p(
        rf"\bmy (?P<k>favou?rite [^\W\d_]+(?: [^\W\d_]+)?) is (?:the )?{_THING}", "{k}", "{k}: {o}"
    ),
    _p(
        rf"\bmy (?P<k>{_KIN})(?:'s|’s) name is {_NAME}|\bmy (?P<k2>{_KIN}) is (?:called|named) "
        + _NAME.replace("(?P<o>", "(?P<o2>"),
        "{k}'s name",
        "{k}'s name: {o}",
    ),
    _p(rf"\bi (?:really |also |do )?(?:like|love|enjoy) {_THING}", "likes", "Likes {o}"),
    _p(rf"\bi (?:really )?(?:don't like|don’t like|do not like|dislike|hate) {_THING}", "dislikes", "Dislikes {o}"),
    _p(rf"\b(?:me llamo|mi nombre es) {_NAME}", "name", "Name: {o}", standing=True),
    _p(rf"\bllámame {_NAME}", "called", "Wants to be called {o}", standing=True),
    _p(rf"(?<!no )\b(?:vivo en|me mudé a|me he mudado a) {_PLACE}", "home", "Lives in {o}", standing=True),
    _p(rf"(?<!no )\bprefiero {_THING}", "prefers", "Prefers {o}", standing=True),
    _p(rf"(?<!no )\bme gustan? {_THING}", "likes", "Likes {o}"),
    _p(rf"\bno me gustan? {_THING}", "dislikes", "Dislikes {o}"),
    _p(rf"(?:我叫|我的名字[是叫])\s*(?P<o>[^\s,.!，。！；、]{{1,20}}?){_ZH_END}", "name", "Name: {o}", standing=True),
    _p(rf"(?<!不)叫我\s*(?P<o>[^\s,.!，。！；、]{{1,12}}?){_ZH_END}", "called", "Wants to be called {o}", standing=True),
    _p(rf"(?:我(?:现在)?住在|我(?:已经)?搬到了?)\s*(?P<o>[^\s,.!，。！；、]{{1,20}}?){_ZH_END}", "home", "Lives in {o}", standing=True),
    _p(rf"我(?:更喜欢|偏好)\s*(?P<o>[^\s,.!，。！；、]{{1,30}}?){_ZH_END}", "prefers", "Prefers {o}", standing=True),
    _p(rf"我(?:很|最)?喜欢\s*(?P<o>[^\s,.!，。！；、]{{1,30}}?){_ZH_END}", "likes", "Likes {o}"),
    _p(rf"我不喜欢\s*(?P<o>[^\s,.!，。！；、]{{1,30}}?){_ZH_END}", "dislikes", "Dislikes {o}"),
)  # fmt: skip
_REMEMBER = re.compile(
    r"\b(?:remember|keep in mind|don't forget|don’t forget|recuerda)(?:\s*:|,? that|,? que)\s+(?P<o>.{3,300})$"
    r"|(?:请?记住|别忘了)[:：,，]?\s*(?P<z>.{2,200})$",
    re.I,
)  # fmt: skip


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
    for sentence in _SENTENCE.findall(_QUOTED.sub(" ", message)):
        bare = sentence.strip()
        if bare and not bare.endswith(("?", "？")):
            yield bare


def _claims(sentence: str) -> list[Claim]:
    found = [claim for pattern in _PATTERNS for claim in _matches(pattern, sentence)]
    told = _REMEMBER.search(sentence)
    if told is not None and not found and not _NOT_OWN.search(sentence[: told.start()]):
        text = (told["o"] or told["z"]).strip(" .!。！")
        found.append(Claim("note", text, text[:1].upper() + text[1:]))
    return found


def _matches(pattern: _Pattern, sentence: str) -> Iterator[Claim]:
    for match in pattern.expression.finditer(sentence):
        groups = match.groupdict()
        thing = (groups.get("o") or groups.get("o2") or "").strip(" .'’-")
        kind = (groups.get("k") or groups.get("k2") or "").casefold()
        first = thing.split()[0].casefold() if thing.split() else ""
        if not first or first in pattern.refuse or _NOT_OWN.search(sentence[: match.start()]):
            continue
        relation = pattern.relation.format(k=kind)
        text = pattern.text.format(k=kind, o=thing)
        yield Claim(
            _narrowed(relation, thing), thing, text[:1].upper() + text[1:], pattern.standing
        )


def _narrowed(relation: str, thing: str) -> str:
    """Preferences contradict each other only about the same kind of thing: short and long *answers*."""
    if relation != "prefers":
        return relation
    head = re.split(r"\s+(?:to|over|than|when|for|a|que)\s+", thing.casefold())[0].split()
    return f"prefers {head[-1] if head else ''}"
