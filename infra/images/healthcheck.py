"""A health check in a few milliseconds of CPU: `python -I -S healthcheck.py URL PATH`; exit 0 when it says 200.

Plain sockets and no import of ours, because Docker runs this every few seconds in every service.
It asks only the service of its own container, in a directory no tenant is given.
"""

import socket
import sys


def healthy(url: str, path: str) -> bool:
    """Whether `GET path` at `url` (unix:///path or http://host:port) is answered with 200 within 3 s."""
    scheme, _, rest = url.partition("://")
    if scheme == "unix":
        client, where = socket.socket(socket.AF_UNIX), rest
    else:
        host, _, port = rest.rpartition(":")
        client, where = socket.socket(), (host, int(port))  # type: ignore[assignment]
    client.settimeout(3)
    try:
        client.connect(where)
        client.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode()
        )
        return client.recv(64).startswith(b"HTTP/1.1 200")
    except OSError:
        return False
    finally:
        client.close()


if __name__ == "__main__":
    sys.exit(0 if healthy(*sys.argv[1:3]) else 1)
