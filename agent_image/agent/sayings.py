"""The ways in which people say who they are, as patterns: English, Spanish, Chinese. Data, no rules.

The group `o` is what is said, `k` what kind of thing it is. A relation holds one object at a time,
but for those that `store.facts` names.
"""

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Saying:
    """One way of saying something. `relation` and `text` may use `{k}`, `text` also `{o}`."""

    expression: re.Pattern[str]
    relation: str
    text: str


_STOP = r"[,.!;:?()。！，；]"
_TURNS = (
    "and|but|now|so|because|since|with|which|where|from|instead|please|as of|these days|"
    "y|pero|porque|ahora|desde"
)
_END = rf"(?=\s+(?:{_TURNS})\b|{_STOP}|\s*$)"
_NAME = rf"(?P<o>[^\W\d_][\w'’.-]*(?-i:(?:\s+[A-ZÀ-Þ][\w'’.-]*){{0,3}})){_END}"
_PLACE = rf"(?P<o>[^\W\d_][^,.!;:?()。！，；]{{0,60}}?){_END}"
_THING = rf"(?P<o>[^\W_][^,.!;:?()。！，；]{{0,80}}?){_END}"
_FIRM = rf"(?P<o>(?-i:[A-Z])[^,.!;:?()。！，；]{{0,60}}?){_END}"
_DATE = rf"(?P<o>\w[\w ]{{2,24}}?){_END}"
_ZH = r"\s*(?P<o>[^\s,.!;，。！；、]{1,30}?)(?=[,.!;，。！；、]|但|而且|\s|$)"
_KIN = (
    r"(?P<k>wife|husband|partner|girlfriend|boyfriend|son|daughter|brother|sister|mother|father|mom|mum|"
    r"dad|dog|cat|boss|friend|teacher|doctor)"
)


def _s(lead: str, thing: str, relation: str, text: str) -> Saying:
    return Saying(re.compile(f"(?:{lead}){thing}", re.I), relation, text)


SAYINGS = (
    _s(r"\bmy (?:full |first )?name(?: is|'s|’s) ", _NAME, "name", "Name: {o}"),
    _s(
        r"(?<!not )(?<!n't )(?<!n’t )(?<!never )\bcall me ",
        _NAME,
        "called",
        "Wants to be called {o}",
    ),
    _s(r"\bi (?:now |currently )?live in ", _PLACE, "home", "Lives in {o}"),
    _s(r"\bi(?:'ve|’ve| have)?(?: just| recently)? moved to ", _PLACE, "home", "Lives in {o}"),
    _s(r"\bi work (?:at|for) ", _FIRM, "employer", "Works at {o}"),
    _s(r"\bi work as an? ", _THING, "job", "Works as {o}"),
    _s(r"\bmy birthday is (?:on )?(?:the )?", _DATE, "birthday", "Birthday: {o}"),
    _s(r"\bi(?:'m|’m| am) (?:a )?", r"(?P<o>vegan|vegetarian|pescatarian)\b", "diet", "Is {o}"),
    _s(r"\bi(?:'m|’m| am) allergic to ", _THING, "allergic", "Is allergic to {o}"),
    _s(r"\bi(?:'d|’d)? (?:really |much )?prefer ", _THING, "prefers", "Prefers {o}"),
    _s(r"\bmy (?P<k>favou?rite [^\W\d_]+(?: [^\W\d_]+)?) is (?:the )?", _THING, "{k}", "{k}: {o}"),
    _s(rf"\bmy {_KIN}(?:'s|’s) name is ", _NAME, "{k}'s name", "{k}'s name: {o}"),
    _s(rf"\bmy {_KIN} is (?:called|named) ", _NAME, "{k}'s name", "{k}'s name: {o}"),
    _s(r"\bi (?:really |also |do )?(?:like|love|enjoy) ", _THING, "likes", "Likes {o}"),
    _s(
        r"\bi (?:really )?(?:(?:don't|don’t|do not) like|dislike|hate) ",
        _THING,
        "dislikes",
        "Dislikes {o}",
    ),
    _s(r"\b(?:me llamo|mi nombre es) ", _NAME, "name", "Name: {o}"),
    _s(r"\bllámame ", _NAME, "called", "Wants to be called {o}"),
    _s(r"(?<!no )\b(?:vivo en|me mudé a|me he mudado a) ", _PLACE, "home", "Lives in {o}"),
    _s(r"(?<!no )\bprefiero ", _THING, "prefers", "Prefers {o}"),
    _s(r"(?<!no )\bme gustan? ", _THING, "likes", "Likes {o}"),
    _s(r"\bno me gustan? ", _THING, "dislikes", "Dislikes {o}"),
    _s(r"我叫(?![你他她它大])|我的名字[是叫]", _ZH, "name", "Name: {o}"),
    _s(r"(?<!不)叫我", _ZH, "called", "Wants to be called {o}"),
    _s(r"我(?:现在)?住在|我(?:已经)?搬到了?", _ZH, "home", "Lives in {o}"),
    _s(r"我(?:更喜欢|偏好)", _ZH, "prefers", "Prefers {o}"),
    _s(r"我(?:很|最)?喜欢", _ZH, "likes", "Likes {o}"),
    _s(r"我不喜欢", _ZH, "dislikes", "Dislikes {o}"),
)

# Worth knowing in every conversation, whatever it is about.
STANDING = frozenset({"name", "called", "home", "employer", "job", "diet", "allergic", "prefers"})

REMEMBER = re.compile(
    r"(?:\b(?:remember|keep in mind|don't forget|don’t forget|recuerda)(?:\s*:|,? that\s|,? que\s)"
    r"|(?:请?记住|别忘了)[:：,，]?)\s*(?P<o>.{2,300})$",
    re.I,
)

# Before a saying, in the same sentence: it is somebody else's, supposed, past, or text to work on.
NOT_OWN = re.compile(
    r"\b(?:if|suppose|imagine|pretend|say|says|said|told|tells|thinks?|wrote|translate|rewrite|write|story|"
    r"poem|example|would|used to|wish|when|si|imagina|supón|dice|dijo|traduce|escribe|cuando)\b"
    r"|如果|假如|假设|他说|她说|翻译|写",
    re.I,
)

_UNNAMED_WORDS = """
not no never back when at later tomorrow today if on please maybe a an the it this that these those you him
her them me us so how what to your one in by for as any some all more most
"""
# First words of what is no thing worth keeping: "call me back", "I like it", "my name is not Bob".
UNNAMED = frozenset(_UNNAMED_WORDS.split())
