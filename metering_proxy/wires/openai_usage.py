"""Usage as OpenAI and those who speak its wire report it (wires facts 2.2, 2.3 and 2.5), read by a dialect.

The input includes what was cached and heard, the output includes reasoning, unless the total says that it does
not. What is repeated in every chunk is cumulative: the last one counts.
"""

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from infra.kit import money
from infra.kit.value import value
from metering_proxy.pricing import Usage
from metering_proxy.wires import numbers
from metering_proxy.wires.dialect import PLAIN, Dialect, at
from metering_proxy.wires.numbers import natural, reported

# A million dollars: no call has cost as much, and what has so many digits is an error of somebody's.
_MOST_STATED_NANOS = 1_000_000 * money.NANOS_PER_USD
# Every count under the name that chats have for it, and under those that other operations and servers have.
_NAMES = (
    ("prompt_tokens", "input_tokens"),
    ("completion_tokens", "output_tokens"),
    ("prompt_tokens_details", "input_tokens_details"),
    ("prompt_tokens_details", "input_token_details"),
    ("prompt_tokens_details", "prompt_token_details"),
    ("completion_tokens_details", "output_tokens_details"),
)
_FOR_AN_HOUR = (
    "prompt_tokens_details.cache_creation_token_details.ephemeral_1h_input_tokens",
    "prompt_tokens_details.cache_creation.ephemeral_1h_input_tokens",
    "claude_cache_creation_1_h_tokens",
)
_SUMS = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens", "total_tokens")


@value
class Reading:
    """Usage in buckets that do not overlap. `doubt`: what the numbers leave open, decided for the dearer."""

    usage: Usage
    doubt: str | None = None


def find(answer: dict[str, Any], dialect: Dialect = PLAIN) -> dict[str, Any] | None:
    """The usage object of an answer or a chunk, wherever the provider puts it; one that nobody filled in last."""
    found: dict[str, Any] | None = None
    for place in dialect.usage_at:
        usage = at(answer, place)
        if isinstance(usage, dict) and usage:
            for name in _SUMS:
                if usage.get(name):
                    return usage
            found = found or usage
    return found


def read(
    usage: dict[str, Any], tier: str | None, dialect: Dialect = PLAIN, *, generates: bool = True
) -> Reading | None:
    """What a usage object says; None where its input or its output cannot be read, so that it says nothing.

    `generates`: whether the operation has an output.
    """
    usage = _filled(_named(usage), generates=generates)
    prompt, completion = (
        reported(usage.get("prompt_tokens")),
        reported(usage.get("completion_tokens")),
    )
    if prompt is None or (generates and completion is None):
        return None
    inside, outside = usage.get("prompt_tokens_details"), usage.get("completion_tokens_details")
    cached = _most(usage, inside, dialect.cached_at)
    written = _most(usage, inside, dialect.written_at)
    if cached or written:
        prompt += _beside(usage, cached + written)
    cached = min(prompt, cached)
    left = prompt - cached
    audio_in = min(left, _uncached(inside, "audio_tokens"))
    audio_cached = min(cached, max(0, natural(at(inside, "audio_tokens")) - audio_in))
    images_in = min(left - audio_in, _uncached(inside, "image_tokens"))
    written = min(left - audio_in - images_in, written)
    hour = min(written, _for_an_hour(usage)) if written else 0
    completion, reasoning, doubt = _output(usage, prompt, dialect) if generates else (0, 0, None)
    audio_out = min(completion, natural(at(outside, "audio_tokens")))
    images_out = min(completion - audio_out, natural(at(outside, "image_tokens")))
    found = Usage(
        input=left - audio_in - images_in - written,
        cache_read=cached - audio_cached,
        audio_cache_read=audio_cached,
        cache_write_5m=written - hour,
        cache_write_1h=hour,
        output=completion - audio_out - images_out,
        reasoning=reasoning,
        audio_input=audio_in,
        audio_output=audio_out,
        image_input=images_in,
        image_output=images_out,
        web_searches=natural(at(usage, dialect.searches_at)) if dialect.searches_at else 0,
        tier=tier,
    )
    return Reading(found, doubt)


def _named(usage: dict[str, Any]) -> dict[str, Any]:
    """The same with numbers under the names of chats, where those say nothing, or zero, and others more."""
    others = {
        mine: usage[theirs]
        for mine, theirs in _NAMES
        if usage.get(theirs) is not None and not usage.get(mine)
    }
    return {**usage, **others} if others else usage


def _filled(usage: dict[str, Any], *, generates: bool) -> dict[str, Any]:
    """The same with a number that stands there only in the total."""
    total, prompt = reported(usage.get("total_tokens")), usage.get("prompt_tokens")
    if total is None:
        return usage
    if not generates:
        return usage if prompt else {**usage, "prompt_tokens": total}
    if usage.get("completion_tokens") is not None:
        return usage
    return {**usage, "completion_tokens": max(0, total - natural(prompt))}


def _most(usage: dict[str, Any], inside: Any, names: Sequence[str]) -> int:
    """The largest of what stands under these names in a usage, or in what it says about its input."""
    most = 0
    for place in (usage, inside) if isinstance(inside, dict) else (usage,):
        for name in names:
            if value := place.get(name):
                most = max(most, natural(value))
    return most


def _beside(usage: dict[str, Any], cached: int) -> int:
    """Of input that was cached, what stands beside the input and not in it, as Anthropic tells it: all or nothing.

    The total shows it, unless it shows thoughts beside the output, or that the input is less.
    """
    prompt, total = natural(usage["prompt_tokens"]), natural(usage.get("total_tokens"))
    more = total - prompt - natural(usage.get("completion_tokens"))
    shown = more == cached and more != _thoughts(usage)
    return cached if shown or cached > prompt else 0


def _thoughts(usage: dict[str, Any]) -> int:
    outside = usage.get("completion_tokens_details")
    inside = outside.get("reasoning_tokens") if isinstance(outside, dict) else None
    return natural(inside) or natural(usage.get("reasoning_tokens"))


def text_output(usage: dict[str, Any]) -> int:
    """How much of the output is told to be text, where that is told."""
    return natural(at(_named(usage), "completion_tokens_details.text_tokens"))


def _for_an_hour(usage: dict[str, Any]) -> int:
    """How much of what was written to the cache lives there for an hour."""
    return max(natural(at(usage, place)) for place in _FOR_AN_HOUR)


def _uncached(details: Any, kind: str) -> int:
    """Input tokens of one kind without those of them that were cached, where that is told."""
    cached = natural(at(details, f"cached_tokens_details.{kind}"))
    return max(0, natural(at(details, kind)) - cached)


def is_garbled(usage: dict[str, Any]) -> bool:
    """Whether it says something that is no count, so that nothing said before it holds either."""
    return any(numbers.nonsense(usage.get(name)) for name in ("prompt_tokens", "completion_tokens"))


def stated_cost(usage: dict[str, Any], dialect: Dialect) -> Fraction | None:
    """The cost in nano-USD that a provider states, exactly as written; None where it states none, or one that no
    call has. Nothing is a cost only where it also says that nobody else was paid."""
    if not dialect.cost_at:
        return None
    cost, added = at(usage, dialect.cost_at), at(usage, dialect.cost_added_if)
    stated = _amount(cost) + (_amount(at(usage, dialect.cost_added_at)) if added is True else 0)
    nanos = stated * money.NANOS_PER_USD / dialect.cost_per_usd
    is_free = added is False and type(cost) in (int, float) and cost == 0
    return nanos if is_free or 0 < nanos <= _MOST_STATED_NANOS else None


def _amount(value: Any) -> Fraction:
    """A number as it was written: the shortest text of a float is the one that was sent."""
    if type(value) not in (int, float) or not 0 <= value < 2**53:
        return Fraction(0)
    return Fraction(repr(value))


def _output(usage: dict[str, Any], prompt: int, dialect: Dialect) -> tuple[int, int, str | None]:
    """Output with its reasoning in it, that reasoning, and what is doubtful. The total tells which was meant.

    Where it is more than all that was told, the rest was reasoning that nobody mentions.
    """
    completion, total = natural(usage["completion_tokens"]), natural(usage.get("total_tokens"))
    reasoning = _thoughts(usage)
    beside = completion + reasoning
    if reasoning > completion:
        return beside, reasoning, None
    if dialect.reasoning == "inside":
        return completion, reasoning, None
    if not reasoning:
        silent = max(0, total - prompt - completion)
        return completion + silent, silent, None
    if dialect.reasoning == "outside" or total == prompt + beside:
        return beside, reasoning, None
    if total == prompt + completion or dialect.reasoning_unsure == "inside":
        return completion, reasoning, None
    return beside, reasoning, "reasoning"
