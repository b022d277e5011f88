"""The gateway's settings. docs/configuration.md is their reference; nothing else is read."""

from typing import ClassVar, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, field_validator, model_validator

from infra.kit import address
from infra.kit.errors import AlcoveError
from infra.kit.settings import DatabaseUrl, Settings

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
_DEFAULT_PORTS = {"http": 80, "https": 443}


class GatewaySettings(Settings):
    """What the gateway is told by its environment."""

    prefix: ClassVar[str] = "ALCOVE_"

    deployment: str = Field(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")
    service_secret: str
    deployment_secret: str
    sealing_key: str = Field(pattern=r"^[0-9a-fA-F]{64}$")
    agent_uid: int = Field(default=10001, ge=0)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    gateway_database_url: DatabaseUrl
    gateway_listen: str = "http://127.0.0.1:8000"
    gateway_control: str | None = None
    public_url: str
    spawner_url: str
    meter_url: str
    meter_programs_url: str | None = None
    gateway_trusted_proxies: str = ""
    gateway_signup: Literal["open", "closed"] = "open"

    @field_validator("service_secret", "deployment_secret")
    @classmethod
    def _long_enough(cls, value: str) -> str:
        if len(value) < 32 or "change-me" in value:
            raise ValueError("needs at least 32 characters of its own")
        return value

    @field_validator(
        "gateway_listen", "gateway_control", "spawner_url", "meter_url", "meter_programs_url"
    )
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        try:
            if value is not None:
                address.parse(value)
        except AlcoveError as error:
            raise ValueError(error.message) from None
        return value

    @field_validator("public_url")
    @classmethod
    def _an_origin(cls, value: str) -> str:
        parts = urlsplit(value)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path.strip("/"):
            raise ValueError("is an origin such as https://alcove.example, without a path")
        return value.rstrip("/")

    @model_validator(mode="after")
    def _secrets_differ(self) -> Self:
        if self.service_secret == self.deployment_secret:
            raise ValueError("ALCOVE_SERVICE_SECRET and ALCOVE_DEPLOYMENT_SECRET must differ")
        return self

    @property
    def is_https(self) -> bool:
        """Whether people come by https: cookies are Secure then, and HSTS is sent."""
        return self.public_url.startswith("https://")

    @property
    def origins(self) -> frozenset[str]:
        """The origins that are ours: PUBLIC_URL, and for a loopback one its other loopback names."""
        parts = urlsplit(self.public_url)
        port = parts.port or _DEFAULT_PORTS[parts.scheme]
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else (parts.hostname or "")
        hosts = _LOOPBACK if host in _LOOPBACK else (host,)
        suffix = "" if port == _DEFAULT_PORTS[parts.scheme] else f":{port}"
        return frozenset(f"{parts.scheme}://{name}{suffix}" for name in hosts)

    @property
    def hosts(self) -> frozenset[str]:
        """The values of `Host` that are ours."""
        return frozenset(origin.split("://", 1)[1] for origin in self.origins)

    @property
    def trusted_proxies(self) -> str | None:
        """What the server is given as its trusted proxies; None when nobody is trusted."""
        named = [part.strip() for part in self.gateway_trusted_proxies.split(",") if part.strip()]
        return ",".join(named) or None
