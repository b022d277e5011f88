"""Which paths exist at a tenant's socket, and which wire answers there. A path that is not here has no meter."""

import re
from urllib.parse import unquote

from metering_proxy.wires.anthropic_messages import AnthropicCount, AnthropicMessages
from metering_proxy.wires.gemini import Gemini
from metering_proxy.wires.openai_chat import OpenAiChat
from metering_proxy.wires.openai_embeddings import OpenAiEmbeddings
from metering_proxy.wires.openai_images import OpenAiImages
from metering_proxy.wires.openai_responses import OpenAiResponses
from metering_proxy.wires.openai_speech import OpenAiSpeech
from metering_proxy.wires.openai_transcriptions import OpenAiTranscriptions
from metering_proxy.wires.wire import Shape, Wire

_FIXED: dict[str, Wire] = {
    "/v1/chat/completions": OpenAiChat(),
    "/v1/responses": OpenAiResponses(),
    "/v1/embeddings": OpenAiEmbeddings(),
    "/v1/images/generations": OpenAiImages(),
    "/v1/audio/speech": OpenAiSpeech(),
    "/v1/audio/transcriptions": OpenAiTranscriptions(),
    "/v1/messages": AnthropicMessages(),
    "/v1/messages/count_tokens": AnthropicCount(),
}
_GEMINI = re.compile(r"/v1(?:beta)?/models/([^?#]+):(generateContent|streamGenerateContent)")
_BY_METHOD: dict[str, Wire] = {
    "generateContent": Gemini("gemini_generate", stream=False),
    "streamGenerateContent": Gemini("gemini_stream", stream=True),
}
WIRES: dict[str, Wire] = {wire.name: wire for wire in (*_FIXED.values(), *_BY_METHOD.values())}


def find(path: str) -> tuple[Wire, str] | None:
    """The wire of a path, and the model that the path names (empty where the body does)."""
    wire = _FIXED.get(path)
    if wire is not None:
        return wire, ""
    found = _GEMINI.fullmatch(path)
    return None if found is None else (_BY_METHOD[found.group(2)], unquote(found.group(1)))


def shape(path: str) -> Shape:
    """How whoever calls a path wants to be refused, whether or not it exists."""
    if path.startswith("/v1beta/") or _GEMINI.fullmatch(path):
        return "gemini"
    return "anthropic" if path.startswith("/v1/messages") else "openai"
