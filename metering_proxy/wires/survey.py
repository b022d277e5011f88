"""How many tokens the input of a request can be at most, and about how many it is.

A byte-level tokenizer makes at most one token of a byte, and the JSON around a text is longer than what a
provider puts around it. So the body's bytes bound its text; images count by a bound of their own, and what
is not in the body (files, URLs, documents) is bounded by the context window alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_TOOL_TOKENS = 64  # each tool's frame beyond its own JSON
_TOOLS_TOKENS = 1_024  # the provider's instructions once there are tools
_BYTES_A_TOKEN = 4
_OPAQUE = frozenset(
    ("file", "document", "search_result", "container_upload", "input_file", "video", "video_url")
)
_IMAGES = frozenset(("image", "image_url", "input_image"))
_CONTAINERS = (None, "message", "tool_result")  # a message says no type, or that it is one


@dataclass(slots=True)
class Survey:
    """What was found in a body. Bytes are those of the body without the data of images."""

    text_bytes: int
    images: int = 0
    image_bytes: int = 0
    remote_images: int = 0
    tools: int = 0
    opaque: bool = False
    audio: bool = False
    cached: bool = False
    cached_1h: bool = False

    def bound(self, *, context: int, image_tokens: int | None) -> int:
        """The most input tokens. `context`: the model's window; `image_tokens`: the most that one image counts."""
        if self.opaque or (self.remote_images and image_tokens is None):
            return context
        images = self.image_bytes if image_tokens is None else self.images * image_tokens
        tools = _TOOLS_TOKENS + _TOOL_TOKENS * self.tools if self.tools else 0
        return min(context, self.text_bytes + images + tools)

    def estimate(self, *, context: int, image_tokens: int | None) -> int:
        """About how many input tokens, for a call whose provider never said."""
        images = self.images * min(image_tokens or 1_600, 1_600)
        return min(context, max(1, self.text_bytes // _BYTES_A_TOKEN) + images)


def survey(body_bytes: int, parts: list[Any], tools: Any) -> Survey:
    """Looks through `parts` (messages, system) and `tools` at every depth. It refuses nothing.

    An image counts as one where a provider takes it for one: in a list of content. Elsewhere (in the
    schema of a tool, in the arguments of a call) the same words are text, and are billed as text.
    """
    found = Survey(body_bytes)
    found.tools = len(tools) if isinstance(tools, list) else 0
    waiting: list[Any] = [*parts, tools]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            _look(value, found)
            waiting.extend(v for v in value.values() if isinstance(v, dict | list))
    for part in _content(parts):
        if _kind(part) in _IMAGES:
            _image(part, found)
    found.text_bytes = max(0, found.text_bytes - found.image_bytes)
    return found


def _content(parts: list[Any]) -> Iterator[dict[str, Any]]:
    """The parts of every message, and those of the results of tools among them."""
    waiting = list(parts)
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            yield value
            if _kind(value) in _CONTAINERS and isinstance(value.get("content"), list):
                waiting.append(value["content"])


def _look(value: dict[str, Any], found: Survey) -> None:
    kind = _kind(value)
    if kind in _OPAQUE:
        found.opaque = True
    elif kind == "input_audio":
        found.audio = True
    cache = value.get("cache_control")
    if isinstance(cache, dict):
        found.cached = True
        found.cached_1h = found.cached_1h or cache.get("ttl") == "1h"


def _kind(value: dict[str, Any]) -> str | None:
    """What a part says it is. The schema of a tool may list several types there, which makes it none of ours."""
    kind = value.get("type")
    return kind if isinstance(kind, str) else None if kind is None else ""


def _image(value: dict[str, Any], found: Survey) -> None:
    found.images += 1
    data = _image_data(value)
    if data is None:
        found.remote_images += 1
    else:
        found.image_bytes += len(data)


def _image_data(value: dict[str, Any]) -> str | None:
    """The image's data inside the body (Anthropic: source.data; OpenAI: a data: URL), else None."""
    source = value.get("source")
    if isinstance(source, dict):
        data = source.get("data")
        return data if isinstance(data, str) else None
    url = value.get("image_url")
    if isinstance(url, dict):
        url = url.get("url")
    return url if isinstance(url, str) and url.startswith("data:") else None
