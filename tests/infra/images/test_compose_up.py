"""An installation under Compose from cold: it comes up, loses nothing over down and up, and goes in order."""

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from infra.cli import compose
from tests.infra.images.installation import Installation

pytestmark = [pytest.mark.compose, pytest.mark.docker, pytest.mark.slow, pytest.mark.timeout(600)]


def test_installation_comes_up_is_found_again_and_goes_in_order(installation: Installation) -> None:
    installation.up()
    with urllib.request.urlopen(f"http://127.0.0.1:{installation.port}/readyz") as answer:
        assert answer.status == 200
    host = installation.spawner("GET", "/host")
    assert host["runtime"] == "docker"
    assert host["wall"] is True

    _provider_on_the_machine_answers(installation)

    before = installation.wake()
    (tenant,) = installation.containers()
    assert tenant.attrs["HostConfig"]["NetworkMode"] == "none"

    installation.compose("down")
    (still,) = installation.containers()
    assert (still.id, still.status) == (tenant.id, "running")

    installation.up()
    after = installation.wake()
    assert (after["state"], after["generation"]) == ("ready", before["generation"])
    (again,) = installation.containers()
    assert again.id == tenant.id

    volumes = installation.volumes()
    compose.down(installation.env_file)
    assert installation.containers() == []
    assert installation.volumes() == volumes
    assert any(installation.tenant in name for name in volumes)


class _Models(BaseHTTPRequestHandler):
    """Lists one model."""

    def do_GET(self) -> None:
        body = json.dumps({"data": [{"id": "llama"}]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests are quiet."""


@contextmanager
def _serving(address: str) -> Iterator[int]:
    """A model server of this machine at `address`; its port."""
    server = ThreadingHTTPServer((address, 0), _Models)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _provider_on_the_machine_answers(installation: Installation) -> None:
    """At the address that containers see, under the name that the test of a wrong one tells."""
    bridge = installation.client.networks.get("bridge").attrs["IPAM"]["Config"][0]["Gateway"]
    with _serving(bridge) as port:
        wrong = _probe(installation, f"http://127.0.0.1:{port}/v1")
        assert not wrong["ok"]
        told = wrong["detail"].split()[-2]
        assert told == f"http://host.docker.internal:{port}/v1"
        assert _probe(installation, told)["models"] == 1


def _probe(installation: Installation, url: str) -> dict[str, Any]:
    free = {"id": "llama", "input_nanos": 0, "output_nanos": 0}
    new = {"kind": "openai_compatible", "name": "Mine", "base_url": url, "models": [free]}
    made = installation.meter("POST", "/providers", new)
    return installation.meter("POST", f"/providers/{made['id']}/probes")
