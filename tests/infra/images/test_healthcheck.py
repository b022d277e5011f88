import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "infra" / "images" / "healthcheck.py"


@contextmanager
def answering(status: int) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.send_response(status if self.path == "/readyz" else 404)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def check(url: str, path: str = "/readyz") -> int:
    return subprocess.run([sys.executable, "-I", "-S", str(SCRIPT), url, path]).returncode


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1), (500, 1)])
def test_healthcheck_tells_ready_from_not_ready(status: int, code: int) -> None:
    with answering(status) as url:
        assert check(url) == code


def test_healthcheck_fails_when_nobody_listens(tmp_path: Path) -> None:
    assert check(f"unix://{tmp_path}/absent.sock") == 1
    assert check("http://127.0.0.1:9") == 1
