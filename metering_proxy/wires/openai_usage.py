"""Usage as OpenAI and those who speak its wire report it (wires facts 2.2, 2.3 and 2.5), read by a dialect.

The input includes what was cached and heard, the output includes reasoning, unless the total says that it does
not. What is repeated in every chunk is cumulative: the last one counts.
"""

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


@value
class Names:
    """What one of OpenAI's operations calls its numbers. `output` empty: it has none."""

    input: str
    output: str
    input_details: str
    output_details: str


CHAT = Names(
    "prompt_tokens", "completion_tokens", "prompt_tokens_details", "completion_tokens_details"
)
EMBEDDINGS = Names("prompt_tokens", "", "prompt_tokens_details", "")
RESPONSES = Names("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details")
# Servers behind one operation that speak of their numbers as in the other.
_EITHER_WAY = (
    ("prompt_tokens", "input_tokens"),
    ("completion_tokens", "output_tokens"),
    ("prompt_tokens_details", "input_tokens_details"),
    ("completion_tokens_details", "output_tokens_details"),
)
# Responses has one place for each number, whoever answers.
RESPONSES_DIALECT = Dialect(
    cached_at=("input_tokens_details.cached_tokens",),
    written_at="input_tokens_details.cache_write_tokens",
)
# Where a server tells its cache as Anthropic does, beside the input.
_BESIDE = ("cache_read_input_tokens", "cache_creation_input_tokens")


@value
class Reading:
    """Usage in buckets that do not overlap. `doubt`: what the numbers leave open, decided for the dearer."""

    usage: Usage
    doubt: str | None = None


def find(answer: dict[str, Any], dialect: Dialect = PLAIN) -> dict[str, Any] | None:
    """The usage object of an answer or a chunk, wherever the provider puts it."""
    for place in dialect.usage_at:
        usage = at(answer, place)
        if isinstance(usage, dict) and usage:
            return usage
    return None


def read(
    usage: dict[str, Any], tier: str | None, dialect: Dialect = PLAIN, names: Names = CHAT
) -> Reading | None:
    """What a usage object says; None where its input or its output cannot be read, so that it says nothing."""
    usage = _filled(usage, names)
    prompt = reported(usage.get(names.input))
    if prompt is None or (names.output and reported(usage.get(names.output)) is None):
        return None
    inside, outside = at(usage, names.input_details), at(usage, names.output_details)
    cached = min(prompt, max((natural(at(usage, place)) for place in dialect.cached_at), default=0))
    left = prompt - cached
    audio_in = min(left, _uncached(inside, "audio_tokens"))
    audio_cached = min(cached, max(0, natural(at(inside, "audio_tokens")) - audio_in))
    images_in = min(left - audio_in, _uncached(inside, "image_tokens"))
    written = min(left - audio_in - images_in, natural(at(usage, dialect.written_at)))
    completion, reasoning, doubt = _output(usage, prompt, natural(at(outside, "reasoning_tokens")),
                                           dialect, names)  # fmt: skip
    audio_out = min(completion, natural(at(outside, "audio_tokens")))
    images_out = min(completion - audio_out, natural(at(outside, "image_tokens")))
    found = Usage(
        input=left - audio_in - images_in - written,
        cache_read=cached - audio_cached,
        audio_cache_read=audio_cached,
        cache_write_5m=written,
        output=completion - audio_out - images_out,
        reasoning=reasoning,
        audio_input=audio_in,
        audio_output=audio_out,
        image_input=images_in,
        image_output=images_out,
        tier=tier,
    )
    return Reading(found, doubt)


def _filled(usage: dict[str, Any], names: Names) -> dict[str, Any]:
    """The same with numbers of the operation that stand there under other names, or only in the total."""
    missing = {
        mine: usage[theirs]
        for pair in _EITHER_WAY
        for mine, theirs in (pair, pair[::-1])
        if usage.get(mine) is None and usage.get(theirs) is not None
    }
    if missing:
        usage = {**usage, **missing}
    total, prompt = reported(usage.get("total_tokens")), natural(usage.get(names.input))
    if not names.output:
        lacks = usage.get(names.input) is None and total is not None
        return {**usage, names.input: total} if lacks else usage
    if usage.get(names.output) is None:
        return usage if total is None else {**usage, names.output: max(0, total - prompt)}
    read, written = (natural(usage.get(name)) for name in _BESIDE)
    cached, both = read + written, prompt + natural(usage.get(names.output))
    if cached and (total == both + cached or cached > prompt):
        cache = {"cached_tokens": read, "cache_write_tokens": written}
        return {**usage, names.input: prompt + cached, names.input_details: cache}
    return usage


def written(usage: dict[str, Any], names: Names) -> int:
    """How much of the output is told to be text, where that is told."""
    return natural(at(_filled(usage, names), f"{names.output_details}.text_tokens"))


def _uncached(details: Any, kind: str) -> int:
    """Input tokens of one kind without those of them that were cached, where that is told."""
    cached = natural(at(details, f"cached_tokens_details.{kind}"))
    return max(0, natural(at(details, kind)) - cached)


def is_garbled(usage: dict[str, Any], names: Names = CHAT) -> bool:
    """Whether it says something that is no count, so that nothing said before it holds either."""
    return numbers.nonsense(usage.get(names.input)) or numbers.nonsense(usage.get(names.output))


def stated_cost(usage: dict[str, Any], dialect: Dialect) -> Fraction | None:
    """The cost in nano-USD that a provider states, exactly as written; None where it states none above nothing,
    or one that no call has."""
    if not dialect.cost_at:
        return None
    stated = _amount(at(usage, dialect.cost_at))
    if dialect.cost_added_if and at(usage, dialect.cost_added_if) is True:
        stated += _amount(at(usage, dialect.cost_added_at))
    nanos = stated * money.NANOS_PER_USD / dialect.cost_per_usd
    return nanos if 0 < nanos <= _MOST_STATED_NANOS else None


def _amount(value: Any) -> Fraction:
    """A number as it was written: the shortest text of a float is the one that was sent."""
    if type(value) not in (int, float) or not 0 <= value < 2**53:
        return Fraction(0)
    return Fraction(repr(value))


def _output(
    usage: dict[str, Any], prompt: int, reasoning: int, dialect: Dialect, names: Names
) -> tuple[int, int, str | None]:
    """Output with its reasoning in it, that reasoning, and what is doubtful. The total tells which was meant.

    Where it is more than all that was told, the rest was reasoning that nobody mentions.
    """
    completion, total = natural(usage.get(names.output)), natural(usage.get("total_tokens"))
    beside = completion + reasoning
    if reasoning > completion:
        return beside, reasoning, None
    if dialect.reasoning == "inside":
        return completion, reasoning, None
    if not reasoning:
        silent = max(0, total - prompt - completion) if names.output else 0
        return completion + silent, silent, None
    if dialect.reasoning == "outside" or total == prompt + beside:
        return beside, reasoning, None
    if total == prompt + completion or dialect.reasoning_unsure == "inside":
        return completion, reasoning, None
    return beside, reasoning, "reasoning"
