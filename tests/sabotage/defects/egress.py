"""Defects of the ways out, and of what a caller may ask of the meter."""

from tests.sabotage.defect import Defect

_ADDRESSES = "tests/metering_proxy/egress/test_addresses.py"
_NAMES = "tests/metering_proxy/egress/test_names.py"
_TUNNELS = "tests/metering_proxy/egress/test_tunnels.py"
_LIMITS = "tests/metering_proxy/egress/test_tunnel_limits.py"
_CONNECTIONS = "tests/metering_proxy/egress/test_connections.py"
_BUDGET = "tests/metering_proxy/egress/test_budget.py"
_HEADS = "tests/metering_proxy/test_heads.py"
_BODIES = "tests/metering_proxy/test_hostile_bodies.py"

EGRESS = [
    Defect(
        name="judge-the-first-address-only",
        why="a name with a public and a private address would lead inside",
        file="metering_proxy/egress/outside.py",
        old="        for address in found:\n            self._judge(address)\n",
        new="        self._judge(found[0])\n",
        tests=(_TUNNELS,),
    ),
    Defect(
        name="dial-a-provider-wherever-its-name-leads",
        why="a record of a provider's name would lead to a cloud's metadata, key and all",
        file="metering_proxy/egress/addresses.py",
        old='return word if word in ("link_local", "metadata") else None',
        new="return None",
        tests=("tests/metering_proxy/test_dialling.py",),
    ),
    Defect(
        name="trust-the-peer",
        why="whatever the kernel connected to would be taken for what was judged",
        file="metering_proxy/egress/outside.py",
        old="            self._judge(ip_address(sock.getpeername()[0]))\n",
        new="",
        tests=(_TUNNELS,),
    ),
    Defect(
        name="look-into-no-translation",
        why="64:ff9b::7f00:1 is 127.0.0.1 wherever a network translates",
        file="metering_proxy/egress/addresses.py",
        old="            return self.refuses(inner)\n",
        new="            return None\n",
        tests=(_ADDRESSES,),
    ),
    Defect(
        name="share-the-carriers-net",
        why="100.64.0.0/10 is where providers keep their own machines",
        file="metering_proxy/egress/addresses.py",
        old='        ("100.64.0.0/10", "shared"),\n',
        new="",
        tests=(_ADDRESSES,),
    ),
    Defect(
        name="read-numbers-as-names",
        why="0x7f.1 is a name to us and 127.0.0.1 to a resolver",
        file="metering_proxy/egress/hosts.py",
        old="        or _NUMBER.fullmatch(labels[-1])\n",
        new="",
        tests=(_NAMES,),
    ),
    Defect(
        name="deny-a-provider-by-its-first-name-only",
        why="eu.api.openai.com answers models too, and nobody would meter it",
        file="metering_proxy/egress/names.py",
        old="    if _among(target.host, providers):\n",
        new="    if target.host in providers:\n",
        tests=(_NAMES,),
    ),
    Defect(
        name="open-until-closed",
        why="every account would be a way out before anybody knows who holds it",
        file="metering_proxy/egress/ways.py",
        old="        if anonymous and not standing.egress:\n",
        new="        if not anonymous and not standing.egress:\n",
        tests=(_LIMITS,),
    ),
    Defect(
        name="let-the-open-tunnel-stay",
        why="whoever is suspended would go on sending for as long as the tunnel lasts",
        file="metering_proxy/egress/tunnels.py",
        old="            self._ways.admit(tenant, anonymous=True)  #",
        new="            #",
        tests=(_LIMITS,),
    ),
    Defect(
        name="one-tunnel-more",
        why="limits that are off by one are how they begin to be no limits",
        file="metering_proxy/egress/ways.py",
        old="        if self._open[tenant] >= rules.at_once:\n",
        new="        if self._open[tenant] > rules.at_once:\n",
        tests=(_LIMITS,),
    ),
    Defect(
        name="lend-bytes-that-a-day-has-not",
        why="a budget that lends is none",
        file="metering_proxy/egress/budget.py",
        old="    granted = max(0, min(size, most - int(taken)))\n",
        new="    granted = size if int(taken) < most else 0\n",
        tests=(_BUDGET,),
    ),
    Defect(
        name="keep-what-did-not-pass",
        why="every tunnel would cost a day a quarter of a mebibyte",
        file="metering_proxy/egress/budget.py",
        old="            if left:\n",
        new="            if left < 0:\n",
        tests=(_BUDGET,),
    ),
    Defect(
        name="show-the-caller-to-the-service",
        why="the instance's key would lie in the logs of a stranger",
        file="metering_proxy/egress/forwarding.py",
        old=" and secret not in value\n",
        new="\n",
        tests=(_CONNECTIONS,),
    ),
    Defect(
        name="hand-on-cookies",
        why="a cookie is a credential too, and was meant for somebody else",
        file="metering_proxy/egress/forwarding.py",
        old='"api-key", "cookie",',
        new='"api-key",',
        tests=(_CONNECTIONS,),
    ),
    Defect(
        name="send-tokens-in-the-clear",
        why="whoever listens on the way would have them",
        file="metering_proxy/egress/connections.py",
        old='re.compile(r"https://',
        new='re.compile(r"https?://',
        tests=(_CONNECTIONS,),
    ),
    Defect(
        name="a-millisecond-more",
        why="a token that has ended would still be sent",
        file="metering_proxy/egress/connections.py",
        old="expires_at <= self._clock.now_at()",
        new="expires_at < self._clock.now_at()",
        tests=(_CONNECTIONS,),
    ),
    Defect(
        name="read-whatever-comes",
        why="thirty mebibytes of commas would take seconds, and the memory of fifty calls",
        file="metering_proxy/wires/document.py",
        old="    if too_heavy(body, _MOST_WEIGHT, most_marks=_MOST_MARKS):",
        new="    if not body:",
        tests=(_BODIES,),
    ),
    Defect(
        name="connect-to-port-zero",
        why="what is no port means something else to every machine",
        file="infra/kit/httpd/guard.py",
        old="not 0 < int(found[1]) < 65_536",
        new="not int(found[1]) < 65_536",
        tests=("tests/kit/httpd/test_tunnels.py",),
    ),
    Defect(
        name="tell-the-provider-what-the-caller-called-it",
        why="a body that is JSON to us and a form to a provider would name another model there",
        file="metering_proxy/tenant_side/headers.py",
        old='    found.append(("content-type", content_type))\n',
        new='    found.append(("content-type", exchange.header("content-type") or content_type))\n',
        tests=(_HEADS,),
    ),
    Defect(
        name="take-the-last-of-two-members",
        why="a server that takes the first would see a picture where we saw a text",
        file="metering_proxy/wires/document.py",
        old="    if len(found) != len(pairs):\n",
        new="    if len(found) > len(pairs):\n",
        tests=(_BODIES,),
    ),
    Defect(
        name="guess-a-missing-rate",
        why="a rate with a letter too many would make every token of a model free",
        file="metering_proxy/providers/known.py",
        old="    if missing := [name for name in _NEEDED.get(kind, ()) if name not in row]:\n",
        new="    if missing := [name for name in _NEEDED.get(kind, ()) if name in ()]:\n",
        tests=("tests/metering_proxy/test_price_file.py",),
    ),
]
