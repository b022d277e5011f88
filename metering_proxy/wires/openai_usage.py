"""Usage as OpenAI and those who speak its wire report it (wires facts 2.2 and 2.5): one function, their oddities.

`prompt_tokens` includes cached and audio input; `completion_tokens` includes reasoning, unless the total
says that it does not. What is repeated in every chunk is cumulative: the last one counts.
"""

from typing import Any

from metering_proxy.pricing import Usage
from metering_proxy.wires.numbers import natural


def find(answer: dict[str, Any]) -> dict[str, Any] | None:
    """The usage object of an answer or a chunk, wherever the provider puts it."""
    usage = answer.get("usage")
    if isinstance(usage, dict):
        return usage
    choices = answer.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        usage = choices[0].get("usage")  # Moonshot
        if isinstance(usage, dict):
            return usage
    groq = answer.get("x_groq")
    if isinstance(groq, dict) and isinstance(groq.get("usage"), dict):
        found: dict[str, Any] = groq["usage"]
        return found
    return None


def buckets(usage: dict[str, Any], tier: str | None) -> Usage | None:
    """The usage in buckets that do not overlap; None where it says nothing."""
    if "prompt_tokens" not in usage and "completion_tokens" not in usage:
        return None
    prompt = natural(usage.get("prompt_tokens"))
    inside = _details(usage, "prompt_tokens_details")
    outside = _details(usage, "completion_tokens_details")
    read = min(prompt, _cached(usage, inside))
    audio_in = min(prompt - read, natural(inside.get("audio_tokens")))
    written = min(prompt - read - audio_in, natural(inside.get("cache_write_tokens")))
    completion, reasoning = _output(usage, prompt, outside)
    audio_out = min(completion, natural(outside.get("audio_tokens")))
    return Usage(
        input=prompt - read - audio_in - written,
        cache_read=read,
        cache_write_5m=written,
        output=completion - audio_out,
        reasoning=reasoning,
        audio_input=audio_in,
        audio_output=audio_out,
        tier=tier,
    )


def _details(usage: dict[str, Any], name: str) -> dict[str, Any]:
    details = usage.get(name)
    return details if isinstance(details, dict) else {}


def _cached(usage: dict[str, Any], inside: dict[str, Any]) -> int:
    """Cached input. DeepSeek has another name for it (or both: the same number), Moonshot says it on top."""
    return max(
        natural(inside.get("cached_tokens")),
        natural(usage.get("prompt_cache_hit_tokens")),
        natural(usage.get("cached_tokens")),
    )


def _output(usage: dict[str, Any], prompt: int, outside: dict[str, Any]) -> tuple[int, int]:
    """Output with its reasoning in it. xAI counts reasoning beside it; the total tells which was meant."""
    completion = natural(usage.get("completion_tokens"))
    reasoning = natural(outside.get("reasoning_tokens"))
    total = natural(usage.get("total_tokens"))
    if reasoning and total == prompt + completion + reasoning:
        return completion + reasoning, reasoning
    if reasoning > completion:
        return completion + reasoning, reasoning
    return completion, reasoning
