"""How calls of models end, and why they fail, as an admin reads it. The meter's words are in its wire."""

import re

OUTCOMES = {
    "complete": "Complete",
    "left": "Caller left",
    "cut": "Broke off",
    "error": "Error",
    "no_answer": "No answer",
    "provider_error": "Refused",
    "not_sent": "Not sent",
    "lost": "Lost",
}
GOOD_OUTCOMES = ("complete", "left")
_WORDS = {
    "unreachable": "could not be reached",
    "first_byte": "gave no answer in time",
    "idle": "fell silent",
    "broken": "broke the connection",
    "closed": "closed the connection",
    "cut": "broke off in mid-answer",
    "malformed": "gave an answer that cannot be read",
    "saturated": "had no free connection from here",
    "error": "gave an error in place of an answer",
    "error_answer": "gave an error in place of an answer",
}
_STATUSES = {
    401: "refuses our key",
    402: "wants to be paid",
    403: "refuses our key or this model",
    404: "does not know this model",
    429: "takes no more calls just now",
    529: "is overloaded",
}
_HTTP = re.compile(r"http_([1-9][0-9]{2})")


def failure(word: str) -> str:
    """What a provider did when a call failed, to be read behind its name: `could not be reached`."""
    status = _HTTP.fullmatch(word)
    if status is None:
        return _WORDS.get(word, f"said {word}")
    number = int(status[1])
    what = _STATUSES.get(number)
    return f"answered HTTP {number}" if what is None else f"{what} (HTTP {number})"
