"""Built assets: files whose name changes with their content, so that a browser keeps them for good."""

from pathlib import Path

from fastapi import APIRouter, Response
from starlette.responses import FileResponse

from gateway.pages.environment import favicon
from infra.kit.errors import AlcoveError

_FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
    ".woff2": "font/woff2",
}


def router(dist: Path) -> APIRouter:
    """Routes for what lies in `dist` now. A name that is not there is 404; no path is ever joined."""
    files = {
        path.relative_to(dist).as_posix(): path
        for path in dist.rglob("*")
        if path.is_file() and path.suffix in _TYPES
    }
    icon = files.get(favicon(dist))
    made = APIRouter()

    @made.get("/static/{name:path}", include_in_schema=False)
    async def asset(name: str) -> Response:
        path = files.get(name)
        if path is None:
            raise AlcoveError("not_found", "There is no such file.")
        headers = {} if path.suffix == ".txt" else _FOREVER  # licences: the one name without a hash
        return FileResponse(path, headers=headers, media_type=_TYPES[path.suffix])

    @made.get("/favicon.svg", include_in_schema=False)
    async def favicon_file() -> Response:
        if icon is None:
            raise AlcoveError("not_found", "There is no such file.")
        return FileResponse(icon, media_type=_TYPES[".svg"])

    return made
