"""What the meter reads from its environment (docs/configuration.md). Nothing else is read."""

import re
from pathlib import Path
from typing import Literal

from pydantic import Field, field_validator

from infra.kit import address
from infra.kit.errors import AlcoveError
from infra.kit.seal import Sealer
from infra.kit.settings import DatabaseUrl, Settings
from metering_proxy import plans
from metering_proxy.providers import price_file

_SEALING_KEY = re.compile(r"[0-9a-fA-F]{64}")


class MeterSettings(Settings):
    """Addresses are URLs, secrets may come as NAME_FILE, durations are seconds (`_s`)."""

    deployment: str = Field(
        validation_alias="ALCOVE_DEPLOYMENT", pattern=r"^[a-z0-9][a-z0-9-]{0,31}$"
    )
    service_secret: str = Field(validation_alias="ALCOVE_SERVICE_SECRET", min_length=32, repr=False)
    sealing_key: str = Field(
        validation_alias="ALCOVE_SEALING_KEY", pattern=r"^[0-9a-fA-F]{64}$", repr=False
    )
    database_url: DatabaseUrl = Field(validation_alias="ALCOVE_METER_DATABASE_URL", repr=False)
    listen: str = Field(validation_alias="ALCOVE_METER_LISTEN")
    programs_listen: str | None = Field(None, validation_alias="ALCOVE_METER_PROGRAMS_LISTEN")
    sockets_dir: Path = Field(validation_alias="ALCOVE_SOCKETS_DIR")
    local_model_url: str | None = Field(None, validation_alias="ALCOVE_METER_LOCAL_MODEL_URL")
    embeddings_url: str | None = Field(None, validation_alias="ALCOVE_METER_EMBEDDINGS_URL")
    loopback_providers: tuple[str, ...] = Field(
        ("http://127.0.0.1:11434", "http://127.0.0.1:1234"),
        validation_alias="ALCOVE_METER_LOOPBACK_PROVIDERS",
    )
    host_name: str | None = Field(
        None, validation_alias="ALCOVE_METER_HOST_NAME", pattern=r"^[a-z0-9.-]{1,253}$"
    )
    sealing_keys_old: tuple[str, ...] = Field(
        (), validation_alias="ALCOVE_SEALING_KEYS_OLD", repr=False
    )
    plans_file: Path = Field(plans.FILE, validation_alias="ALCOVE_METER_PLANS_FILE")
    prices_file: Path = Field(price_file.FILE, validation_alias="ALCOVE_METER_PRICES_FILE")
    lease_s: float = Field(60, validation_alias="ALCOVE_METER_LEASE_S", ge=1, le=3600)
    stream_grace_s: int = Field(30, validation_alias="ALCOVE_METER_STREAM_GRACE_S", ge=0, le=3600)
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", validation_alias="ALCOVE_LOG_LEVEL"
    )

    @property
    def sealer(self) -> Sealer:
        """Seals with the current key, opens with that and the old ones."""
        return Sealer.from_secrets(self.sealing_key, *self.sealing_keys_old)

    @field_validator("listen", "programs_listen", "local_model_url", "embeddings_url")
    @classmethod
    def _an_address(cls, value: str | None) -> str | None:
        return value if value is None else _checked(value)

    @field_validator("loopback_providers", mode="before")
    @classmethod
    def _a_list(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        return tuple(_checked(part.strip()) for part in value.split(",") if part.strip())

    @field_validator("sealing_keys_old", mode="before")
    @classmethod
    def _sealing_keys(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        keys = tuple(part.strip() for part in value.split(",") if part.strip())
        if not all(_SEALING_KEY.fullmatch(key) for key in keys):
            raise ValueError("each is 64 hexadecimal characters")
        return keys

    @field_validator("service_secret")
    @classmethod
    def _chosen(cls, value: str) -> str:
        if "change-me" in value:
            raise ValueError("still says change-me")
        return value


def _checked(url: str) -> str:
    try:
        address.parse(url)
    except AlcoveError as error:
        raise ValueError(error.message) from error
    return url
