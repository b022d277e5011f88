"""The first line of an answer."""

from http import HTTPStatus

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}


def status_line(status: int) -> str:
    """`HTTP/1.1 200 OK`; a status without a known phrase goes without one."""
    return _LINES.get(status) or f"HTTP/1.1 {status} "
