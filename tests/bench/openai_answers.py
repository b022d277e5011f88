"""What is asked and answered in `bench-meter`: OpenAI chat completions, made once and written many times."""

import re
from dataclasses import dataclass
from typing import Self

import orjson

MODEL = "bench"
REQUEST_BYTES = 1_500
CHUNKS = 100
_HEAD = {"id": "chatcmpl-bench", "created": 1_767_225_600, "model": MODEL}
_USAGE = {"prompt_tokens": 380, "completion_tokens": CHUNKS, "total_tokens": 380 + CHUNKS}
# `seed` passes every gateway unchanged, so it says how many slow events are wanted.
_SEED = re.compile(rb'"seed": ?(\d+)')
_STREAM = re.compile(rb'"stream": ?true')


@dataclass(frozen=True, slots=True)
class Asked:
    """What of a request the answer depends on."""

    stream: bool
    slow_events: int

    @classmethod
    def read(cls, body: bytes) -> Self:
        """Looks for it as text: a parser would cost more than the answer."""
        seed = _SEED.search(body)
        return cls(_STREAM.search(body) is not None, int(seed.group(1)) if seed else 0)


def request(*, stream: bool, slow_events: int = 0, model: str = MODEL) -> bytes:
    """A request of `REQUEST_BYTES`. A stream asks for its usage, as clients that count do."""
    asked: dict[str, object] = {"model": model, "max_tokens": 256, "temperature": 0.7}
    if stream:
        asked |= {"stream": True, "stream_options": {"include_usage": True}}
    if slow_events:
        asked["seed"] = slow_events
    room = REQUEST_BYTES - len(orjson.dumps({**asked, "messages": [_message("")]}))
    return orjson.dumps({**asked, "messages": [_message(("a word or two " * 120)[:room])]})


def _message(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def chunked(data: bytes) -> bytes:
    """One chunk of a chunked body."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def _event(**fields: object) -> bytes:
    told = orjson.dumps({**_HEAD, "object": "chat.completion.chunk", **fields})
    return b"data: %b\n\n" % told


def _word(text: str) -> list[dict[str, object]]:
    return [{"index": 0, "delta": {"content": text}, "finish_reason": None}]


_STOP = [{"index": 0, "delta": {}, "finish_reason": "stop"}]
LAST_EVENTS = _event(choices=_STOP) + _event(choices=[], usage=_USAGE) + b"data: [DONE]\n\n"
STREAM = [
    *(chunked(_event(choices=_word(f"word{n} "))) for n in range(CHUNKS)),
    chunked(LAST_EVENTS) + b"0\r\n\r\n",
]
# An event that says when it was written: `% (left, nanoseconds)`.
TIMED_CHUNK = orjson.dumps(
    {**_HEAD, "object": "chat.completion.chunk", "choices": _word("left %d written_ns %d")}
)
_WHOLE = orjson.dumps(
    {
        **_HEAD,
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "a word or two " * 28},
                "finish_reason": "stop",
            }
        ],
        "usage": _USAGE,
    }
)
WHOLE = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (
    len(_WHOLE),
    _WHOLE,
)
