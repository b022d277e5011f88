"""A tiny service for the supervisor's tests: answers on a unix socket, writes down when it starts and ends.

python fake_service.py NAME SOCKET JOURNAL [stubborn|slow|dying|bad-config|with-child]
"""

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path


def main() -> None:
    name, path, journal, *ways = sys.argv[1:]

    def note(what: str) -> None:
        with Path(journal).open("a") as file:
            file.write(f"{what} {name} {os.getpid()}\n")

    def end(*_: object) -> None:
        if "stubborn" in ways:
            note("ignored")
            return
        if "slow" in ways:
            time.sleep(1)
        note("stopped")
        Path(path).unlink(missing_ok=True)
        os._exit(0)

    signal.signal(signal.SIGTERM, end)
    if "bad-config" in ways:
        print("ALCOVE_FAKE_LISTEN: is required", file=sys.stderr)
        raise SystemExit(78)
    if "with-child" in ways:
        child = subprocess.Popen(["sleep", "600"])
        note(f"child-{child.pid}")
    Path(path).unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    note("started")
    if "dying" in ways:
        raise SystemExit(3)
    while True:
        client, _ = listener.accept()
        client.recv(4096)
        client.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}")
        client.close()


if __name__ == "__main__":
    main()
