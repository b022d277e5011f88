"""Our cookies: one policy for all, derived from PUBLIC_URL."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

THEME, ZONE = "alcove_theme", "alcove_zone"  # written by the page's script; no secrets


@dataclass(frozen=True, slots=True)
class Cookies:
    """The session's cookie and, for who is signed out, the one that ties forms to a browser.

    `__Host-` where people come by https: Secure, no Domain, path /
    (https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis).
    """

    secure: bool

    @property
    def session(self) -> str:
        """Name of the session's cookie."""
        return "__Host-alcove" if self.secure else "alcove"

    @property
    def anonymous(self) -> str:
        """Name of the cookie that forms of a signed-out browser are tied to."""
        return f"{self.session}-anon"

    def get(self, request: Request, name: str) -> str | None:
        """The cookie's value; None when absent or not of a length that we ever made."""
        value = request.cookies.get(name, "")
        return value if 20 <= len(value) <= 100 else None

    def set(self, response: Response, name: str, value: str, max_age_s: int) -> None:
        """Sets it: HttpOnly, SameSite=Lax, Secure by https."""
        response.set_cookie(
            name, value, max_age=max_age_s, secure=self.secure, httponly=True, samesite="lax"
        )

    def clear(self, response: Response, name: str) -> None:
        """Removes it."""
        response.delete_cookie(name, secure=self.secure, httponly=True, samesite="lax")
