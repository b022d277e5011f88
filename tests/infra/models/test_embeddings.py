import base64
import json
import struct
from collections.abc import Sequence

import pytest

from infra.models import embeddings
from infra.models.embeddings import DIMENSIONS, TOKENS_A_TEXT, Question, Refused, answer, read


class Counting:
    """A model whose vectors say how much text it was given, a token a word."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def encode(self, texts: list[str], is_query: bool) -> Sequence[Sequence[float]]:
        self.seen += texts
        return [[float(len(text)), float(is_query)] for text in texts]

    def token_count(self, text: str, is_query: bool) -> int:
        return len(text.split())


def body(**fields: object) -> bytes:
    return json.dumps({"input": "hello", **fields}).encode()


def test_answer_keeps_order_and_counts_tokens_when_given_several_texts() -> None:
    result = json.loads(answer(Counting(), read(body(input=["one two", "three"]))))
    assert [item["index"] for item in result["data"]] == [0, 1]
    assert [item["embedding"][0] for item in result["data"]] == [7.0, 5.0]
    assert result["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


def test_answer_is_little_endian_float32_when_base64_is_asked() -> None:
    result = json.loads(answer(Counting(), read(body(encoding_format="base64"))))
    raw = base64.b64decode(result["data"][0]["embedding"])
    assert struct.unpack("<2f", raw) == (5.0, 0.0)


def test_text_is_cut_to_what_the_model_reads_when_too_long() -> None:
    model = Counting()
    long = "ab " * 600
    result = json.loads(answer(model, Question([long], is_query=False, as_base64=False)))
    assert model.token_count(model.seen[0], False) == TOKENS_A_TEXT
    assert long.startswith(model.seen[0])
    assert result["usage"]["prompt_tokens"] == TOKENS_A_TEXT


@pytest.mark.parametrize(
    "refused",
    [
        b"",
        b"[]",
        b"{}",
        body(input=[1, 2]),
        body(input=[]),
        body(input=["x"] * 257),
        body(dimensions=DIMENSIONS + 1),
        body(encoding_format="int8"),
        body(input_type="document"),
    ],
)
def test_question_is_refused_when_it_is_not_openai_form(refused: bytes) -> None:
    with pytest.raises(Refused) as caught:
        read(refused)
    assert caught.value.status == 400


def test_body_limit_holds_more_than_the_largest_sensible_call() -> None:
    assert embeddings.BODY_BYTES >= 8192 * 256
