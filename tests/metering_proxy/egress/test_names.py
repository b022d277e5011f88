"""Which hosts may be asked for, by name and port."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.kit.errors import AlcoveError
from metering_proxy.egress.names import check, parse
from metering_proxy.egress.rules import Rules, rules

ODD = (
    "2130706433:80", "127.1:80", "127.0.1:80", "0177.0.0.1:80", "0x7f.0.0.1:80", "0x7f000001:80",
    "127.0.0.01:80", "127.0.0.1.1:80", "1.2.3.4.5:80", "256.0.0.1:80", "a.1:80", "a.0x:80", "00:80",
    "[127.0.0.1]:80", "[fe80::1::1]:80", "[a.example]:80", "::1:80", "-a.example:80", "a-.example:80",
    "a..example:80", ".example:80", "a.example..:80", f"{'a' * 64}.example:80", "a" * 254 + ":80",
    "ex\u00e1mple.org:80", "xn--:80", "ex%61mple.org:80", "a.example:80:80", "1.2.3:80", "1.2.3.0x4:80", "a.08:80",
    "[::1%25lo]:80", "[::1%lo]:80", "[fe80::1%1]:80", "[2606:4700::1%eth0]:80", "[1::2::3]:80", "[12345::]:80",
    "--:80", "a.-b:80", "a.b-.c:80", "\uff11\uff12\uff17.0.0.1:80", "127\u30020\u30020\u30021:80",
)  # fmt: skip


@pytest.mark.parametrize("authority", ODD)
def test_host_is_refused_when_its_spelling_is_odd(authority: str) -> None:
    with pytest.raises(AlcoveError) as caught:
        parse(authority)
    assert (caught.value.code, caught.value.reason) == ("invalid", "egress_odd_host")


@pytest.mark.parametrize(
    ("authority", "host"),
    [
        ("Example.COM:443", "example.com"),
        ("example.com.:443", "example.com"),
        ("93.184.216.34:443", "93.184.216.34"),
        ("127.0.0.1.:443", "127.0.0.1"),
        ("[2606:4700::1111]:443", "2606:4700::1111"),
        ("[2606:4700:0:0:0:0:0:1111]:443", "2606:4700::1111"),
        ("[2606:4700::ABCD]:443", "2606:4700::abcd"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example"),
        ("under_score.example:443", "under_score.example"),
        ("127.0.0.1.nip.io:443", "127.0.0.1.nip.io"),
    ],
)
def test_host_is_read_in_one_way(authority: str, host: str) -> None:
    target = parse(authority)
    assert (target.host, target.port) == (host, 443)
    assert (target.address is None) == (not host.replace(".", "").isdigit() and ":" not in host)


@given(st.text("0123456789abcdefx.-_[]:%", max_size=40))
def test_host_that_a_resolver_might_read_as_a_number_is_an_address_or_refused(host: str) -> None:
    try:
        target = parse(f"{host}:80")
    except AlcoveError as error:
        assert error.code == "invalid"
        return
    last = target.host.rpartition(".")[2]
    assert target.address is not None or not last[:1].isdigit() or not last.isdigit()


@pytest.mark.parametrize(
    ("authority", "reason"),
    [
        ("ok.example:22", "egress_port"),
        ("ok.example:8443", "egress_port"),
        ("localhost:443", "egress_private_name"),
        ("gateway:443", "egress_private_name"),
        ("a.localhost:443", "egress_private_name"),
        ("metadata.google.internal:80", "egress_private_name"),
        ("printer.local:80", "egress_private_name"),
        ("1.0.0.127.in-addr.arpa:80", "egress_private_name"),
        ("api.model.example:443", "egress_provider"),
        ("eu.API.model.example.:443", "egress_provider"),
        ("denied.example:443", "egress_denied"),
        ("www.denied.example:443", "egress_denied"),
        ("93.184.216.34:443", "egress_provider"),
        ("93.184.216.34.:443", "egress_provider"),
        ("[64:ff9b::5db8:d822]:443", "egress_provider"),
        ("[64:ff9b::93.184.216.34]:443", "egress_provider"),
        ("[64:ff9b:0:0:0:0:5DB8:D822]:443", "egress_provider"),
        ("LOCALHOST.:443", "egress_private_name"),
        ("foo.home.arpa:443", "egress_private_name"),
        ("x.onion:443", "egress_private_name"),
    ],
)
def test_host_is_refused_with_its_reason(authority: str, reason: str) -> None:
    plan = Rules(deny=frozenset(("denied.example",)))
    with pytest.raises(AlcoveError) as caught:
        check(parse(authority), plan, {"api.model.example", "93.184.216.34"})
    assert (caught.value.code, caught.value.reason) == ("forbidden", reason)


def test_plan_with_a_list_lets_through_what_it_names_and_nothing_else() -> None:
    plan = Rules(allow=frozenset(("good.example",)))
    check(parse("good.example:443"), plan, ())
    check(parse("www.good.example:443"), plan, ())
    for other in ("notgood.example:443", "example:443", "93.184.216.34:443"):
        with pytest.raises(AlcoveError):
            check(parse(other), plan, ())


@pytest.mark.parametrize(
    "table",
    [
        {"at_once": 0},
        {"at_once": "8"},
        {"bytes_day": -1},
        {"bytes_day": True},
        {"ways_day": 1.5},
        {"ports": [0]},
        {"ports": [65_536]},
        {"allow": "good.example"},
        {"deny": [1]},
        {"denied": []},
        # Entries that no host is ever equal to: they would deny, or allow, nothing, and nobody would know.
        {"deny": ["*.example.org"]},
        {"deny": ["sub.*.example.org"]},
        {"allow": ["*"]},
        {"deny": ["https://example.org/"]},
        {"deny": ["example.org:443"]},
        {"deny": ["example.org/path"]},
        {"deny": [" example.org"]},
        {"deny": [""]},
        {"deny": ["10.0.0.0/8"]},
        {"deny": ["2001:db8::/32"]},
        {"deny": ["1.2.3.4.5"]},
        {"deny": ["0x7f.1"]},
        {"deny": ["bücher.example"]},
    ],
)
def test_rules_are_refused_when_a_value_makes_no_sense(table: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="egress"):
        rules(table)


@pytest.mark.parametrize(
    ("entry", "authority"),
    [
        ("EXAMPLE.org.", "www.example.ORG:443"),
        (".example.org", "a.b.example.org:443"),
        ("xn--bcher-kva.example", "XN--BCHER-KVA.example:443"),
        ("93.184.216.34", "93.184.216.34.:443"),
        ("93.184.216.34", "[64:ff9b::5db8:d822]:443"),
        ("2606:4700::1111", "[2606:4700:0:0:0:0:0:1111]:443"),
        ("2606:4700:0::1111", "[2606:4700::1111]:443"),
        ("[2606:4700::ABCD]", "[2606:4700::abcd]:443"),
    ],
)
def test_host_is_denied_however_it_and_its_rule_are_spelled(entry: str, authority: str) -> None:
    with pytest.raises(AlcoveError) as caught:
        check(parse(authority), rules({"deny": [entry]}), ())
    assert caught.value.reason == "egress_denied"
