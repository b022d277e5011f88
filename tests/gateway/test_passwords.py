"""Which passwords are taken."""

import pytest

from gateway.accounts import passwords
from gateway.accounts.addresses import clean, key
from infra.kit.errors import AlcoveError
from tests.gateway.conftest import fast_passwords

EMAIL = "ada.lovelace@example.org"


@pytest.mark.parametrize(
    "password",
    [
        "correct horse battery staple",
        "tangerine9",
        "übermütige Ziege",
        "        8 blanks and words",
        "a" * 7 + "bcd" * 20,
        "密码很长很长很长",
        "alcove keeps my twelve secrets",
        "nocapitalsnodigits",
    ],
)
def test_password_is_good_when_it_is_long_enough_and_not_common(password: str) -> None:
    assert passwords.problem(password, EMAIL) is None


@pytest.mark.parametrize(
    "password",
    [
        "",
        "short77",
        "password",
        "Password1!",
        "PASSWORD123",
        "12345678",
        "87654321",
        "abcdefgh",
        "zzzzzzzzzz",
        "qwertyuiop",
        "letmein123",
        "alcove12",
        "MyAlcove!",
        EMAIL,
        "ada.lovelace1",
        "x" * 1025,
    ],
)
def test_password_is_refused_when_anybody_could_guess_it(password: str) -> None:
    assert passwords.problem(password, EMAIL)


async def test_verify_takes_the_whole_password_in_any_unicode_form() -> None:
    keep = fast_passwords()
    stored = await keep.hash("é" * 80 + "end")
    assert await keep.verify(stored, "e\u0301" * 80 + "end")
    assert not await keep.verify(stored, "é" * 80 + "en")
    assert not await keep.verify(None, "nobody signs in with this")
    assert not await keep.verify("no hash at all", "x")


@pytest.mark.parametrize(
    "email",
    [
        "",
        "a",
        "a@b",
        "a@@b.example",
        "a b@c.example",
        "a@b..example",
        "a\n@b.example",
        "@b.example",
    ],
)
def test_address_is_refused_when_it_is_none(email: str) -> None:
    with pytest.raises(AlcoveError):
        clean(email)


def test_two_spellings_are_one_address() -> None:
    assert key("Ada@Example.org ") == key("ada@example.ORG")
    assert key("ａda@example.org") == key("ada@example.org")
