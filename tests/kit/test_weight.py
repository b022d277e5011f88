"""How heavy a body is to parse: values count, marks inside texts do not."""

import json
import time

import pytest

from infra.kit.weight import too_heavy

MOST, MARKS = 1_000, 10_000


@pytest.mark.parametrize(
    ("body", "heavy"),
    [
        (json.dumps(list(range(900))), False),
        (json.dumps(list(range(1_100))), True),
        (json.dumps([[]] * 300), True),
        (json.dumps([{"a": 1}] * 150), False),
        (json.dumps("a, b [c] {d} " * 500), False),
        (json.dumps('say "no", [twice], ' * 200), False),
        (json.dumps(["\\"] * 1_100), True),
        (json.dumps("a,b" * 20_000), True),  # so many marks that telling them apart is not tried
        ("", False),
    ],
)
def test_values_are_counted_and_marks_in_texts_are_not(body: str, heavy: bool) -> None:
    assert too_heavy(body.encode(), MOST, most_marks=MARKS) is heavy


@pytest.mark.parametrize("unit", [b"[],", b'"",', b"1,", b'{"a":', b'"\\"', b'"a', b"\\"])
def test_weighing_is_quick_when_a_body_is_made_to_be_heavy(unit: bytes) -> None:
    body = b"[" + unit * (8 * 1024 * 1024 // len(unit))
    began_s = time.thread_time()
    too_heavy(body, 200_000, most_marks=1_000_000)
    assert time.thread_time() - began_s < 0.4
