"""LIGHT. Addresses of services: `unix:///path` or `http(s)://host:port`. Parsed here and nowhere else."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from infra.kit.errors import AlcoveError


@dataclass(frozen=True, slots=True)
class Address:
    """Where a service answers: a unix socket (`path`) or a host with a port."""

    scheme: str
    path: Path | None = None
    host: str | None = None
    port: int | None = None

    @property
    def is_unix(self) -> bool:
        """Whether it is a unix socket."""
        return self.scheme == "unix"

    def __str__(self) -> str:
        return f"unix://{self.path}" if self.is_unix else f"{self.scheme}://{self.host}:{self.port}"


def parse(url: str) -> Address:
    """The address that `url` names. Raises `invalid` for anything else than the two forms."""
    parts = urlsplit(url)
    if parts.scheme == "unix":
        if parts.netloc or not parts.path.startswith("/"):
            raise AlcoveError("invalid", f"{url!r}: a unix address is unix:///absolute/path")
        return Address("unix", path=Path(parts.path))
    if parts.scheme in ("http", "https") and parts.hostname:
        default = 443 if parts.scheme == "https" else 80
        port = default if parts.port is None else parts.port  # 0: any free one, for a listener
        return Address(parts.scheme, host=parts.hostname, port=port)
    raise AlcoveError("invalid", f"{url!r} is neither unix:///path nor http(s)://host:port")
