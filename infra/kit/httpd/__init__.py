"""A small, strict and fast HTTP/1.1 server for data paths; control routes stay on FastAPI.

    listener = await httpd.listen(unix.bind(path), handle, limits=httpd.Limits(), capacity=shared)

`handle(request)` is one coroutine: it reads the body if it wants it, answers with `respond`, or with
`start`, `write` … and returns. It is cancelled when the client leaves. Nothing that a client sends
reaches it unless it has exactly one meaning, and nothing that a client sends is answered with 500.

A second handler, `connect`, takes CONNECT: it refuses, or accepts with `request.tunnel()` and passes bytes.
"""

from infra.kit.httpd.limits import Capacity, Limits
from infra.kit.httpd.listener import Listener, listen
from infra.kit.httpd.owner import Handler
from infra.kit.httpd.request import Request
from infra.kit.httpd.tunnel import Tunnel

__all__ = ["Capacity", "Handler", "Limits", "Listener", "Request", "Tunnel", "listen"]
