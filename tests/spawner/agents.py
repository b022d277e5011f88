"""Stand-ins for the agent, named by how they misbehave. Run as a program, in a process or a container.

Only the standard library: it runs where nothing else is installed. Each leaves a line in `starts.log` of
its data directory, so that a test can tell a restart from a survival; `status.json` there, if a test puts
one, is what `/status` says.
"""

import http.server
import json
import os
import signal
import socket
import socketserver
import sys
import time
from collections.abc import Callable
from pathlib import Path

DATA = Path(os.environ.get("ALCOVE_AGENT_DATA_DIR", "/data"))
SOCKET = Path(os.environ.get("ALCOVE_AGENT_SOCKET", "/run/alcove/agent/agent.sock"))
GENERATION = int(os.environ.get("ALCOVE_AGENT_GENERATION", "0"))
BUSY = {
    "in_flight": 0,
    "waiting": 0,
    "busy_until_at": None,
    "next_schedule_at": None,
    "unread": 0,
    "oom_kills": 0,
    "epoch": "e",
    "last_seq": 0,
}


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers as docs/contracts.md says; a misbehaving one overrides what it gets wrong."""

    protocol_version = "HTTP/1.1"
    generation = GENERATION

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self.answer(200, {"ok": True, "generation": self.generation})
        elif self.path == "/status" or self.path.startswith("/spans?after="):
            secret = Path(os.environ["ALCOVE_AGENT_SECRET_FILE"]).read_text()
            if self.headers.get("authorization") != f"Bearer {secret}":
                self.answer(401, {"error": {"code": "unauthorized", "message": "no"}})
                return
            told = DATA / ("status.json" if self.path == "/status" else "spans.json")
            more = json.loads(told.read_text()) if told.exists() else {}
            usual = BUSY if self.path == "/status" else {"last": 0, "resourceSpans": []}
            self.answer(200, {**usual, **more})
        else:
            self.answer(404, {})

    def answer(self, status: int, body: object) -> None:
        raw = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def address_string(self) -> str:
        return "unix"

    def log_message(self, format: str, *args: object) -> None:
        pass


class WrongGeneration(Handler):
    """An agent of another start answers."""

    generation = GENERATION + 1


class Endless(Handler):
    """Its answer never ends, to fill the memory of whoever reads it."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-length", str(1 << 40))
        self.end_headers()
        while True:
            self.wfile.write(b" " * 65536)


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def serve(handler: type[Handler] = Handler) -> None:
    os.chdir(SOCKET.parent)  # a relative name has no 108-byte limit
    Path("agent.sock").unlink(missing_ok=True)
    with Server("agent.sock", handler) as server:
        os.chmod("agent.sock", 0o660)
        server.serve_forever(poll_interval=0.05)


def slow() -> None:
    """Takes its time before it answers."""
    time.sleep(0.4)
    serve()


def never() -> None:
    """Never answers."""
    while True:
        signal.pause()


def dying() -> None:
    """Ends before it answers."""
    sys.exit(3)


def stubborn() -> None:
    """Does not hear SIGTERM, and has a child that does not either."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        never()
    serve()


def symlink() -> None:
    """Puts a link to somebody else's socket where its own should be."""
    SOCKET.symlink_to(os.environ.get("ALCOVE_TEST_TARGET", "/run/alcove/meter/meter.sock"))
    never()


def stranger() -> None:
    """The socket belongs to somebody else (only root can give it away)."""
    if os.fork() == 0:
        listener = socket.socket(socket.AF_UNIX)
        os.chdir(SOCKET.parent)
        listener.bind("agent.sock")
        os.chown("agent.sock", 12345, 12345)
        listener.listen()
        never()
    never()


KINDS: dict[str, Callable[[], None]] = {
    "good": serve,
    "slow": slow,
    "never": never,
    "dying": dying,
    "stubborn": stubborn,
    "symlink": symlink,
    "stranger": stranger,
    "wrong_generation": lambda: serve(WrongGeneration),
    "endless": lambda: serve(Endless),
}


def main(kind: str) -> None:
    with (DATA / "starts.log").open("a") as log:
        log.write(f"{GENERATION} {os.getpid()}\n")
    told = DATA / "kind"  # a test may change what the next start is
    KINDS[told.read_text().strip() if told.exists() else kind]()


if __name__ == "__main__":
    if sys.argv[1] != "stubborn":
        signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    main(sys.argv[1])
