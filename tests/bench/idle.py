"""Event streams that are open and say nothing: what do they weigh?"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from urllib.parse import urlsplit


@contextmanager
def streams(url: str, count: int, headers: Mapping[str, str]) -> Iterator[None]:
    """`count` open streams, each past its first word, while the block runs."""
    where = urlsplit(url)
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    head = f"GET /idle HTTP/1.1\r\nhost: {where.netloc}\r\n{lines}\r\n".encode()
    with ExitStack() as opened:
        for _ in range(count):
            client = opened.enter_context(
                socket.create_connection((where.hostname or "", where.port or 0), timeout=30)
            )
            client.sendall(head)
            seen = b""
            while b": open\n\n" not in seen:
                more = client.recv(4096)
                if not more:
                    raise RuntimeError(f"{url} closed an idle stream: {seen[:200]!r}")
                seen += more
        yield
