"""Addresses: two forms, and nothing else."""

import pytest

from infra.kit import address
from infra.kit.errors import AlcoveError


@pytest.mark.parametrize(
    "url", ["unix:///run/alcove/a.sock", "http://127.0.0.1:8000", "https://example.org:443"]
)
def test_address_reads_as_written_when_valid(url: str) -> None:
    assert str(address.parse(url)) == url
    assert address.parse(url).is_unix == url.startswith("unix")


def test_port_is_the_usual_one_when_none_is_written() -> None:
    assert address.parse("http://h").port == 80
    assert address.parse("https://h").port == 443


@pytest.mark.parametrize(
    "url", ["", "x", "/run/a.sock", "unix://host/a.sock", "unix:a", "ftp://h", "http://", "unix://"]
)
def test_address_is_refused_when_it_is_neither(url: str) -> None:
    with pytest.raises(AlcoveError) as caught:
        address.parse(url)
    assert caught.value.code == "invalid"
