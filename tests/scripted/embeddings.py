"""What the scripted provider answers without a step: its list of models, and honest embeddings.

An embedding here is a bag of hashed words, so that texts that share words are near each other.
"""

import hashlib
import math
from typing import Any

from tests.scripted.request import Request

DIMENSIONS = 384


def vector(text: str) -> list[float]:
    """The unit vector of `text`: the same text always gives the same one."""
    found = [0.0] * DIMENSIONS
    for word in text.lower().split():
        number = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
        found[number % DIMENSIONS] += 1.0
    length = math.sqrt(sum(x * x for x in found)) or 1.0
    return [x / length for x in found]


def answer(request: Request) -> dict[str, Any]:
    """The body for `/v1/embeddings`, with the words counted as tokens."""
    given = request.json.get("input", [])
    texts = [given] if isinstance(given, str) else [str(text) for text in given]
    words = sum(len(text.split()) for text in texts)
    return {
        "object": "list",
        "model": request.model,
        "data": [
            {"object": "embedding", "index": n, "embedding": vector(text)}
            for n, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }


def models_page(models: tuple[str, ...]) -> dict[str, Any]:
    """The body for `/v1/models`, in a shape that both wires' clients read."""
    rows = [
        {
            "id": name,
            "object": "model",
            "type": "model",
            "display_name": name,
            "owned_by": "scripted",
        }
        for name in models
    ]
    return {"object": "list", "data": rows, "has_more": False}
