"""How many tokens the input of a request can be at most, and about how many it is.

A byte-level tokenizer makes at most one token of a byte, and the JSON around a text is longer than what a
provider puts around it. So the body's bytes bound its text; images count by a bound of their own, and what
is not in the body (files, URLs, documents) is bounded by the context window alone. Only what stands where a
provider looks for it is an image: the same words inside a tool's arguments are text.
"""

from dataclasses import dataclass
from typing import Any

from metering_proxy.wires import members

_TOOL_TOKENS = 64  # each tool's frame beyond its own JSON
_TOOLS_TOKENS = 1_024  # the provider's instructions once there are tools
_BYTES_A_TOKEN = 4
# Parts whose tokens are all in the body. What has any other type, known or not, may be a file, a URL or something
# that the provider keeps: the result of a search, a picture that it made, an item by its id.
_TEXT = frozenset(
    ("text", "refusal", "thinking", "redacted_thinking", "tool_use", "server_tool_use", "tool_result",
     "input_text", "output_text", "summary_text", "reasoning_text", "message", "function", "function_call",
     "function_call_output", "custom", "custom_tool_call", "custom_tool_call_output", "computer_call",
     "computer_call_output", "local_shell_call", "local_shell_call_output", "apply_patch_call",
     "apply_patch_call_output", "input_audio")
)  # fmt: skip
# Members that bring something from elsewhere, or a picture or sound, to a part that says no type.
_MEDIA = frozenset(
    ("image_url", "audio_url", "video_url", "input_audio", "image_embeds", "audio_embeds", "file", "file_id",
     "files", "images", "videos")
)  # fmt: skip
_SAYS_MORE = frozenset(("role", "name", "response"))  # a message, or the result of a function
_FROM_GEMINI = frozenset(("fileData", "file_data", "inlineData", "inline_data"))
_IMAGES = frozenset(("image", "image_url", "input_image", "computer_screenshot"))
# Where parts stand inside of parts. Arguments of calls and schemas are text, whatever they look like.
_INSIDE = ("content", "parts", "output", "functionResponse", "function_response")
_NAMES = frozenset(
    (
        *_MEDIA,
        *_FROM_GEMINI,
        *_INSIDE,
        "type",
        "role",
        "text",
        "audio",
        "source",
        "cache_control",
        "encrypted_content",
    )
)
_FOLDED = frozenset(name.casefold() for name in _NAMES)


@dataclass(slots=True)
class Survey:
    """What was found in a body. Bytes are those of the body without the data of images."""

    text_bytes: int
    images: int = 0
    image_bytes: int = 0
    tools: int = 0
    opaque: bool = False
    audio: bool = False
    cached: bool = False
    cached_1h: bool = False

    def bound(self, *, context: int, image_tokens: int | None) -> int:
        """The most input tokens. `context`: the model's window; `image_tokens`: the most that one image counts."""
        if self.opaque or (self.images and image_tokens is None):
            return context
        images = self.images * (image_tokens or 0)
        tools = _TOOLS_TOKENS + _TOOL_TOKENS * self.tools if self.tools else 0
        return min(context, self.text_bytes + images + tools)

    def estimate(self, *, context: int, image_tokens: int | None) -> int:
        """About how many input tokens, for a call whose provider never said."""
        images = self.images * min(image_tokens or 1_600, 1_600)
        return min(context, max(1, self.text_bytes // _BYTES_A_TOKEN) + images)


def survey(body_bytes: int, parts: list[Any], tools: Any) -> Survey:
    """Looks through `parts` (messages, system) wherever parts may stand, and at `tools`.

    Raises `invalid` for another case of a name that counts.
    """
    found = Survey(body_bytes)
    offered = tools if isinstance(tools, list) else []
    found.tools = len(offered)
    for tool in offered:
        if isinstance(tool, dict):
            members.check_case(tool, _NAMES, _FOLDED)
            _cache(tool, found)
    waiting = list(parts)
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(value)
        elif isinstance(value, dict):
            _look(value, found)
            waiting.extend(value[name] for name in _INSIDE if name in value)
    found.text_bytes = max(0, found.text_bytes - found.image_bytes)
    return found


def _look(value: dict[str, Any], found: Survey) -> None:
    kind = value.get("type")
    if kind is None:
        by_its_id = "id" in value and _SAYS_MORE.isdisjoint(value)
        found.opaque = found.opaque or by_its_id or not _MEDIA.isdisjoint(value)
    elif not isinstance(kind, str):
        found.opaque = True
    elif kind in _IMAGES:
        _image(_image_data(value), found)
    elif kind not in _TEXT and not (kind == "reasoning" and value.get("encrypted_content")):
        found.opaque = True
    if kind == "input_audio":
        found.audio = True
    elif value.get("audio") is not None:  # an earlier answer's, by its id
        found.opaque = found.audio = True
    if not _FROM_GEMINI.isdisjoint(value):
        _gemini(value, found)
    if not value.keys() <= _NAMES:
        members.check_case(value, _NAMES, _FOLDED)
    _cache(value, found)


def _cache(value: dict[str, Any], found: Survey) -> None:
    cache = value.get("cache_control")
    if isinstance(cache, dict):
        found.cached = True
        found.cached_1h = found.cached_1h or cache.get("ttl") == "1h"


def _image(data: str | None, found: Survey) -> None:
    found.images += 1
    found.image_bytes += len(data or "")


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


def _gemini(value: dict[str, Any], found: Survey) -> None:
    """Gemini's parts have no type: their member says what they are."""
    if value.get("fileData") is not None or value.get("file_data") is not None:
        found.opaque = found.audio = True  # it may be a film
    data = value.get("inlineData") or value.get("inline_data")
    if not isinstance(data, dict):
        return
    kind = data.get("mimeType") or data.get("mime_type")
    content = data.get("data")
    if isinstance(kind, str) and kind.lower().startswith("image/"):
        _image(content if isinstance(content, str) else None, found)
    else:
        found.opaque = found.audio = True
