"""An agent that its tenant has made hostile. Runs inside a real tenant's container, named by what it does.

Only the standard library. The image's command is this file: it becomes the real agent unless the tenant's
data says another thing (`/data/kind`), as a tenant can who writes in its own directory.
"""

import contextlib
import http.server
import json
import os
import socket
import socketserver
import threading
import time
from collections.abc import Callable
from pathlib import Path

DATA = Path(os.environ.get("ALCOVE_AGENT_DATA_DIR", "/data"))
AGENT, METER = Path("/run/alcove/agent"), Path("/run/alcove/meter")
GENERATION = int(os.environ.get("ALCOVE_AGENT_GENERATION", "0"))
CONVERSATION = "0" * 26  # a test puts a neighbour's there, in /data/neighbour
EVENTS = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"


class Hostile(http.server.BaseHTTPRequestHandler):
    """Healthy to whoever asks for its health; each kind overrides what it says of chats and of its log."""

    protocol_version = "HTTP/1.1"

    def handle_one_request(self) -> None:
        self.close_connection = True
        super().handle_one_request()

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self.json({"ok": True, "generation": GENERATION})
        elif self.path == "/status":
            self.json({"in_flight": 0})
        elif self.path.startswith("/api/events"):
            self.wfile.write(EVENTS)
            self.events()
        else:
            self.chat()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        self.chat()

    do_PUT = do_DELETE = do_POST

    def chat(self) -> None:
        self.raw(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{")

    def events(self) -> None:
        self.forever(frame(1, "RUN_STARTED"))

    def json(self, body: object) -> None:
        raw = json.dumps(body).encode()
        self.raw(
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n" % len(raw) + raw
        )

    def raw(self, data: bytes) -> None:
        self.wfile.write(data)

    def forever(self, data: bytes) -> None:
        while True:
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def frame(seq: int, kind: str, **fields: object) -> bytes:
    """A frame that looks right."""
    body = {"type": kind, "seq": seq, "at": 1, "turn_id": "t", **fields}
    return f"id: {seq}\ndata: {json.dumps(body)}\n\n".encode()


RESET = frame(0, "CUSTOM", name="log.reset", epoch="hostile")


class Garbage(Hostile):
    """Neither HTTP nor JSON."""

    def chat(self) -> None:
        self.raw(os.urandom(65536))

    def events(self) -> None:
        self.forever(os.urandom(65536))


class EndlessHead(Hostile):
    """Headers without end."""

    def chat(self) -> None:
        self.raw(b"HTTP/1.1 200 OK\r\n")
        self.forever(b"x-a: " + b"b" * 1000 + b"\r\n")

    events = chat


class EndlessEvents(Hostile):
    """Real events without end, as fast as it can."""

    def events(self) -> None:
        self.raw(RESET)
        seq = 1
        while True:
            batch = b"".join(
                frame(seq + n, "TEXT_MESSAGE_CONTENT", conversation_id=CONVERSATION, delta="x")
                for n in range(500)
            )
            self.raw(batch)
            seq += 500


class Forger(Hostile):
    """Frames of another's conversation, and states that only the gateway may tell."""

    def events(self) -> None:
        theirs = (DATA / "neighbour").read_text().strip()
        self.raw(RESET)
        self.raw(frame(1, "TEXT_MESSAGE_CONTENT", conversation_id=theirs, delta="FORGED", offset=0))
        self.raw(frame(2, "RUN_FINISHED", conversation_id=theirs, outcome="complete"))
        for seq, name in enumerate(("signed_out", "quota", "instance", "pending"), start=3):
            self.raw(frame(seq, "CUSTOM", name=name, reason="FORGED", messages=[]))
        time.sleep(3600)


class HugeFrames(Hostile):
    """Frames of three million characters."""

    def events(self) -> None:
        self.raw(RESET)
        seq = 1
        while True:
            self.raw(frame(seq, "TEXT_MESSAGE_CONTENT", delta="x" * 3_000_000))
            seq += 1


class Heavy(Hostile):
    """8 MiB of JSON in values as small as can be, and frames of the same."""

    def chat(self) -> None:
        body = b"[" + b"[]," * (8 * 1024 * 1024 // 3 - 2) + b"1]"
        head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
        self.raw(head % len(body) + body)

    def events(self) -> None:
        self.raw(RESET)
        seq = 1
        while True:
            inner = "[]," * 600_000 + "1"
            self.raw(
                f'id: {seq}\ndata: {{"type":"RUN_STARTED","seq":{seq},"x":[{inner}]}}\n\n'.encode()
            )
            seq += 1


class Silent(Hostile):
    """Healthy, and never answers a chat."""

    def chat(self) -> None:
        time.sleep(3600)

    events = chat


class Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        pass


def serve(handler: type[Hostile] = Silent) -> None:
    os.chdir(AGENT)
    with Server("agent.sock", handler) as server:
        os.chmod("agent.sock", 0o660)
        server.serve_forever(poll_interval=0.05)


def beside(work: Callable[[], None], handler: type[Hostile] = Silent) -> None:
    """Does harm in a thread, and is healthy meanwhile."""
    threading.Thread(target=work, daemon=True).start()
    serve(handler)


def never_reads() -> None:
    """Its listener's queue is full, and nobody takes a connection once it is ready."""
    listener = socket.socket(socket.AF_UNIX)
    os.chdir(AGENT)
    listener.bind("agent.sock")
    os.chmod("agent.sock", 0o660)
    listener.listen(1)
    answer = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n"
    body = json.dumps({"ok": True, "generation": GENERATION}).encode()
    taken, _ = listener.accept()
    taken.recv(65536)
    taken.sendall(answer + b"content-length: %d\r\n\r\n" % len(body) + body)
    while True:
        time.sleep(3600)


def connects() -> None:
    """500 connections to its meter that say nothing, as many as it may have, again and again."""
    held = []
    while True:
        try:
            for _ in range(500):
                client = socket.socket(socket.AF_UNIX)
                client.settimeout(1)
                client.connect(str(METER / "meter.sock"))
                held.append(client)
        except OSError:
            time.sleep(0.05)
            for client in held[:100]:
                client.close()
            del held[:100]


def forks() -> None:
    """As many processes as it may have, each busy, in each of which the same begins; once it is ready."""
    while os.access(AGENT, os.W_OK):
        time.sleep(0.05)
    while True:
        try:
            if os.fork() == 0:
                while True:
                    try:
                        os.fork()
                    except OSError:
                        sum(range(100_000))
        except OSError:
            time.sleep(0.01)


def fills() -> None:
    """Writes until nothing more goes."""
    piece = b"x" * (1 << 20)
    with (DATA / "much").open("wb", buffering=0) as file:
        while True:
            try:
                file.write(piece)
                time.sleep(0.005)  # 200 MB a second would only slow the test's own disk
            except OSError:
                time.sleep(0.1)


def litters() -> None:
    """Links, pipes and sockets wherever it may write."""
    for place in (DATA, AGENT):
        for name, make in (
            ("link", lambda path: path.symlink_to("/etc")),
            ("loop", lambda path: path.symlink_to(path)),
            ("up", lambda path: path.symlink_to("../../../../control/spawner.sock")),
            ("pipe", os.mkfifo),
            ("process.json", os.mkfifo),
        ):
            with contextlib.suppress(OSError):
                make(place / name)
        with contextlib.suppress(OSError):
            socket.socket(socket.AF_UNIX).bind(str(place / "other.sock"))


KINDS: dict[str, Callable[[], None]] = {
    "garbage": lambda: serve(Garbage),
    "endless head": lambda: serve(EndlessHead),
    "endless events": lambda: serve(EndlessEvents),
    "forged frames": lambda: serve(Forger),
    "huge frames": lambda: serve(HugeFrames),
    "heavy json": lambda: serve(Heavy),
    "silence": lambda: serve(Silent),
    "never reads": never_reads,
    "500 connections": lambda: beside(connects),
    "fork bomb": lambda: beside(forks),
    "full volume": lambda: beside(fills),
    "litter": lambda: (litters(), serve(EndlessEvents))[1],
}


if __name__ == "__main__":
    told = DATA / "kind"
    if told.exists():
        KINDS[told.read_text().strip()]()
    else:
        os.execvp("python", ["python", "-m", "agent"])
