"""How a provider's usage differs from OpenAI's own, as data (wires facts 2.5). Rows of it stand in providers.toml.

Places are dotted paths of members, `0` being the first of a list. The plain dialect looks wherever any provider is
known to put a number, so that a server nobody has described is read rightly too.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

Rule = Literal["inside", "outside", "by_total"]


@dataclass(frozen=True, slots=True)
class Dialect:
    """`usage_at`: where a usage object may be, the first that says more than nothing counts. `cached_at`,
    `written_at`: names, in the usage or in what it says about its input; the largest counts. `searches_at`: how
    many searches had a fee.

    `reasoning`: whether it is inside or outside of the output, or told by the total; `reasoning_unsure`: what is
    taken, and marked as doubtful, where the total fits neither. `cost_at`: where the provider states the cost, in
    `cost_per_usd` parts of a dollar, with `cost_added_at` on top where `cost_added_if` is true; `cost_use`:
    whether it is what is charged, or only checked against what the tokens cost. `tier_header`: where the service
    tier that was served stands beside the answer.
    """

    usage_at: Sequence[str] = ("usage", "choices.0.usage", "x_groq.usage")
    cached_at: Sequence[str] = (
        "cached_tokens",
        "cached_read_tokens",
        "prompt_cache_hit_tokens",
        "num_cached_tokens",
        "cache_read_input_tokens",
    )
    written_at: Sequence[str] = (
        "cache_write_tokens",
        "cached_write_tokens",
        "cache_creation_tokens",
        "cached_creation_tokens",
        "cache_creation_input_tokens",
    )
    searches_at: str = ""
    reasoning: Rule = "by_total"
    reasoning_unsure: Literal["inside", "outside"] = "inside"
    cost_at: str = ""
    cost_added_at: str = ""
    cost_added_if: str = ""
    cost_per_usd: int = 1
    cost_use: Literal["charge", "check"] = "check"
    tier_header: str = ""


PLAIN = Dialect()


def at(value: Any, place: str) -> Any:
    """What stands at a place; None where nothing does."""
    if "." not in place:
        return value.get(place) if isinstance(value, dict) else None
    for name in place.split("."):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and name == "0" and value:
            value = value[0]
        else:
            return None
    return value
