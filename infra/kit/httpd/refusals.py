"""Answers that are given before, or instead of, a handler; each one ends its connection.

Who asked for a head, or may have, is told by the head alone: what followed would be read as the next answer.
"""

import httptools
import orjson

from infra.kit.errors import AlcoveError
from infra.kit.http1.heads import Malformed, write_head
from infra.kit.httpd.status import status_line


class Refusal(Exception):
    """Why a connection is not served further. Raised where bytes are judged, answered in their turn.

    `unheard`: it comes before the method is known.
    """

    def __init__(self, status: int, code: str, message: str, *, unheard: bool = False) -> None:
        super().__init__(message)
        self.status, self.error = status, AlcoveError(code, message)
        self._unheard = unheard

    def answer(self, *, head_only: bool = False) -> bytes:
        """The whole answer. `head_only`: to a HEAD."""
        body = b"" if head_only or self._unheard else orjson.dumps(self.error.body())
        headers = [
            ("content-type", "application/json"),
            ("content-length", str(len(body))),
            ("connection", "close"),
        ]
        return write_head(status_line(self.status), headers) + body

    @classmethod
    def of(cls, error: Exception) -> "Refusal":
        """What the parser's complaint means to the client: it is always the client's fault."""
        cause = error.__context__ if isinstance(error.__context__, Exception) else error
        if isinstance(cause, Refusal):
            return cause
        if isinstance(cause, Malformed | httptools.HttpParserError):
            return cls(400, "invalid", f"the request is not sound HTTP: {cause}")
        raise error

    @classmethod
    def head_too_long(cls) -> "Refusal":
        """Too many headers, or too long ones."""
        return cls(431, "invalid", "the request's headers are too long, or too many")

    @classmethod
    def too_slow(cls) -> "Refusal":
        """The head did not arrive in time."""
        return cls(408, "invalid", "the request did not arrive in time", unheard=True)

    @classmethod
    def too_many(cls) -> "Refusal":
        """More requests than answers."""
        return cls(429, "rate_limited", "too many requests were sent ahead of their answers")

    @classmethod
    def not_implemented(cls) -> "Refusal":
        """A method that is not offered."""
        return cls(501, "invalid", "this method is not offered here")

    @classmethod
    def no_room(cls) -> "Refusal":
        """Too many connections."""
        return cls(503, "unavailable", "too many connections at once", unheard=True)
