"""Every route of the app, for tests that walk them all."""

from collections.abc import Iterator

from fastapi import FastAPI


def walk(app: FastAPI) -> Iterator[tuple[str, str]]:
    """Method and path template of each route, HEAD and OPTIONS left out."""
    for entry in app.routes:
        inner = getattr(entry, "original_router", None)
        for route in inner.routes if inner is not None else [entry]:
            for method in sorted(getattr(route, "methods", None) or ()):
                if method not in ("HEAD", "OPTIONS"):
                    yield method, route.path
