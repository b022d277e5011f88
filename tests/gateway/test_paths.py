"""Where `next` may lead: our own paths, whatever a browser makes of the rest."""

import pytest

from gateway.web.paths import DEFAULT, local

BAD = [
    "//evil.example",
    "///evil.example",
    "////evil.example/a",
    "/\\evil.example",
    "\\/evil.example",
    "\\\\evil.example",
    "/\\/evil.example",
    "//\\evil.example",
    "http://evil.example",
    "https://evil.example/chat",
    "HTTP://evil.example",
    "https:evil.example",
    "https:/evil.example",
    "http:\\\\evil.example",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "data:text/html,x",
    "vbscript:x",
    "mailto:a@b.example",
    "ftp://evil.example",
    "evil.example",
    "www.evil.example/chat",
    "chat",
    "./chat",
    "../chat",
    "?next=/chat",
    "#chat",
    "@evil.example",
    "/@evil.example\n",
    " /chat",
    "/chat ",
    "/ch at",
    "\t/chat",
    "/\t/evil.example",
    "/\n/evil.example",
    "/\r/evil.example",
    "/\x00/evil.example",
    "/chat\r\nSet-Cookie: a=b",
    "/%2f%2fevil.example/..",
    "/%2fevil.example",
    "/%2Fevil.example",
    "/%5cevil.example",
    "/%5Cevil.example",
    "/%09/evil.example",
    "/%0a/evil.example",
    "/%0d%0aLocation:%20//evil.example",
    "/%00/chat",
    "/%252fevil.example",
    "/%255cevil.example",
    "/../evil",
    "/chat/../../etc",
    "/chat/./x",
    "/%2e%2e/evil",
    "/%2e%2e%2fevil",
    "/chat/%2e./x",
    "/chat\\..\\x",
    "/\u2028/evil.example",
    "/\u3002evil",
    "／／evil.example",
    "/chat?\u202e",
    "",
    "/" + "a" * 600,
]
GOOD = [
    "/",
    "/chat",
    "/chat/0123456789abcdefghjkmnpqrs",
    "/usage?zone=Europe/Berlin",
    "/admin/tenants?q=a%40b.example&page=2",
    "/admin/tenants?next=//evil.example",
    "/account#sessions",
    "/chat?x=http://elsewhere.example",
]


def test_corpus_is_as_large_as_promised() -> None:
    assert len(set(BAD)) >= 60


@pytest.mark.parametrize("target", BAD)
def test_next_falls_back_when_it_is_not_a_path_of_ours(target: str) -> None:
    assert local(target) == DEFAULT


@pytest.mark.parametrize("target", GOOD)
def test_next_is_kept_when_it_is_a_path_of_ours(target: str) -> None:
    assert local(target) == target
