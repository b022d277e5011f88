"""Sealing: what is stored opens only where it belongs, only with a key that is here, only unchanged."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit.errors import AlcoveError
from infra.kit.seal import Sealer

SEALER = Sealer.from_secrets("current" * 8)


@given(st.text(), st.text())
def test_text_is_the_same_when_opened_in_its_context(text: str, context: str) -> None:
    assert SEALER.open(SEALER.seal(text, context), context) == text


def test_sealed_text_shows_nothing_and_never_repeats() -> None:
    first, second = SEALER.seal("sk-secret", "c"), SEALER.seal("sk-secret", "c")
    assert first != second
    assert "sk-secret" not in first
    assert b"sk-secret" not in base64.urlsafe_b64decode(first.split(".")[2])


def test_value_does_not_open_when_moved_to_another_row() -> None:
    with pytest.raises(AlcoveError, match="changed or moved"):
        SEALER.open(SEALER.seal("x", "provider:1"), "provider:2")


def test_value_does_not_open_when_any_byte_was_changed() -> None:
    version, key, body = SEALER.seal("secret", "c").split(".")
    raw = base64.urlsafe_b64decode(body)
    for at in range(len(raw)):
        bad = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
        with pytest.raises(AlcoveError, match="changed or moved"):
            SEALER.open(f"{version}.{key}.{base64.urlsafe_b64encode(bad).decode()}", "c")


@pytest.mark.parametrize(
    "sealed",
    ["", "plain", "v1", "v1.beef.AAAA", "v2.beef.AAAA", "v1.{key}.", "v1.{key}.!", "v1.{key}.AAAA"],
)
def test_value_is_an_error_with_a_code_when_it_is_no_sealed_value(sealed: str) -> None:
    key = SEALER.seal("x", "c").split(".")[1]
    with pytest.raises(AlcoveError) as caught:
        SEALER.open(sealed.format(key=key), "c")
    assert caught.value.code == "internal"


def test_old_values_open_and_ask_for_renewal_when_the_key_was_rotated() -> None:
    old = Sealer.from_secrets("old" * 16)
    both = Sealer.from_secrets("new" * 16, "old" * 16)
    sealed = old.seal("kept", "c")
    assert both.open(sealed, "c") == "kept"
    assert not both.is_current(sealed)
    assert both.is_current(both.seal("kept", "c"))
    with pytest.raises(AlcoveError, match="not here"):
        Sealer.from_secrets("new" * 16).open(sealed, "c")
