"""The three services, as `alcove run` meets them: their verbs, their readiness, their end.

A line in FAKE_JOURNAL for everything that happens. FAKE_TROUBLE makes one of them misbehave:
`migrate:SERVICE` fails its migration, `stubborn:SERVICE` ignores SIGTERM, `silent:SERVICE` is never ready.
"""

import json
import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

LISTEN = {
    "gateway": "ALCOVE_GATEWAY_LISTEN",
    "spawner": "ALCOVE_SPAWNER_LISTEN",
    "metering_proxy": "ALCOVE_METER_LISTEN",
}
HOST = {
    "runtime": "process",
    "wall": False,
    "probes": [{"name": "engine", "ok": False, "detail": "forbidden here", "remedy": "allow it"}],
    "instances": {},
}


def main(service: str) -> None:
    """Do what the command line says."""
    verb = sys.argv[1] if len(sys.argv) > 1 else "serve"
    note(f"{verb} {service}")
    if verb == "migrate" and trouble("migrate", service):
        print("the database is from the future")
        raise SystemExit(1)
    if verb == "admin-link":
        print(json.dumps({"admin": False, "url": f"{os.environ['ALCOVE_PUBLIC_URL']}/first/abc"}))
    if verb == "serve":
        serve(service)


def note(text: str) -> None:
    """Write a line to the journal."""
    with Path(os.environ["FAKE_JOURNAL"]).open("a") as file:
        file.write(text + "\n")


def trouble(kind: str, service: str) -> bool:
    """Whether this service is to misbehave in this way."""
    return f"{kind}:{service}" in os.environ.get("FAKE_TROUBLE", "")


def serve(service: str) -> None:
    """Answer until SIGTERM."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps(HOST if self.path == "/host" else {"status": "ok"}).encode()
            self.send_response(503 if trouble("silent", service) else 200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def address_string(self) -> str:
            return "client"

    def end(*_: object) -> None:
        if trouble("stubborn", service):
            note(f"ignored {service}")
            return
        note(f"stopped {service}")
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    url = urlsplit(os.environ[LISTEN[service]])
    if url.scheme == "unix":
        import socket

        ThreadingHTTPServer.address_family = socket.AF_UNIX
        server = ThreadingHTTPServer(url.path, Handler, bind_and_activate=False)  # type: ignore[arg-type]
        Path(url.path).unlink(missing_ok=True)
        server.socket.bind(url.path)
        server.server_activate()
    else:
        server = ThreadingHTTPServer((url.hostname or "", url.port or 0), Handler)
    server.serve_forever()
