"""A refusal as the form that was sent says it: a sentence under the field that it is about."""

from collections.abc import Collection

from gateway.words import sentence
from infra.kit.errors import AlcoveError

_SAID = ("invalid", "conflict", "rate_limited", "unavailable", "timeout")


def errors_of(error: AlcoveError, otherwise: str, known: Collection[str] = ()) -> dict[str, str]:
    """*errors* of the templates. `known`: those of the form's fields that the meter knows by the same names;
    what names none of them stands at `otherwise`. Raises what no form can say.
    """
    if error.code not in _SAID:
        raise error
    found: dict[str, str] = {}
    fields = error.details.get("fields")
    for item in fields if isinstance(fields, list) else []:
        if isinstance(item, dict):
            name = str(item.get("field", "")).split(".")[0]
            problem = str(item.get("problem", error.message))
            found[name if name in known else otherwise] = sentence(problem)
    return found or {str(error.details.get("field", otherwise)): sentence(error.message)}
