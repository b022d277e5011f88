"""Headers that every answer carries, whoever made it."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_CSP = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'; object-src 'none'"
)
_TRUSTED_TYPES = "; require-trusted-types-for 'script'; trusted-types dompurify"
# `same-origin` and not `no-referrer`: under the latter browsers send `Origin: null` with our own
# forms (https://fetch.spec.whatwg.org/#append-a-request-origin-header), and the origin check fails.
_ALWAYS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"same-origin",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"permissions-policy": b"camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}


class SecurityHeaders:
    """Adds them; `cache-control: no-store` where the answer does not say better."""

    def __init__(self, app: ASGIApp, *, is_https: bool) -> None:
        self._app = app
        self._fixed = dict(_ALWAYS)
        if is_https:
            self._fixed[b"strict-transport-security"] = b"max-age=31536000; includeSubDomains"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                ours = self._for(scope["path"])
                kept = [(k, v) for k, v in message["headers"] if k.lower() not in ours]
                if not any(k.lower() == b"cache-control" for k, _ in kept):
                    kept.append((b"cache-control", b"no-store"))
                message["headers"] = [*kept, *ours.items()]
            await send(message)

        await self._app(scope, receive, send_with_headers)

    def _for(self, path: str) -> dict[bytes, bytes]:
        chat = path == "/chat" or path.startswith("/chat/")
        policy = _CSP + _TRUSTED_TYPES if chat else _CSP
        return {**self._fixed, b"content-security-policy": policy.encode()}
