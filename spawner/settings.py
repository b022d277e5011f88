"""Settings of the spawner: names and meanings stand in docs/configuration.md."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from infra.kit import address
from infra.kit.errors import AlcoveError
from infra.kit.settings import DatabaseUrl
from infra.kit.settings import Settings as Base


def _url(text: str) -> str:
    try:
        address.parse(text)
    except AlcoveError as error:
        raise ValueError(error.message) from error
    return text


def _secret(text: str) -> str:
    if len(text) < 32 or "change-me" in text:
        raise ValueError("must be a secret of at least 32 characters")
    return text


def _absolute(path: Path) -> Path:
    if not path.is_absolute():
        raise ValueError("must be an absolute path")
    return path


Url = Annotated[str, AfterValidator(_url)]
Secret = Annotated[str, AfterValidator(_secret)]
Absolute = Annotated[Path, AfterValidator(_absolute)]
Name = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]{0,31}$")]
Runtime = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class Settings(Base):
    """What one spawner needs to know. `_s` are seconds."""

    deployment: Name = Field(validation_alias="ALCOVE_DEPLOYMENT")
    service_secret: Secret = Field(validation_alias="ALCOVE_SERVICE_SECRET")
    deployment_secret: Secret = Field(validation_alias="ALCOVE_DEPLOYMENT_SECRET")
    database_url: DatabaseUrl = Field(validation_alias="ALCOVE_SPAWNER_DATABASE_URL")
    listen: Url = Field(validation_alias="ALCOVE_SPAWNER_LISTEN")
    meter_url: Url = Field(validation_alias="ALCOVE_METER_URL")
    sockets_dir: Absolute = Field(validation_alias="ALCOVE_SOCKETS_DIR")
    sockets_volume: str | None = Field(None, validation_alias="ALCOVE_SPAWNER_SOCKETS_VOLUME")
    tenants_dir: Absolute | None = Field(None, validation_alias="ALCOVE_SPAWNER_TENANTS_DIR")
    runtime: Literal["auto", "docker", "process"] = Field(
        "auto", validation_alias="ALCOVE_SPAWNER_RUNTIME"
    )
    container_runtime: Runtime | None = Field(None, validation_alias="ALCOVE_CONTAINER_RUNTIME")
    agent_image: str = Field("alcove-agent:local", validation_alias="ALCOVE_AGENT_IMAGE")
    agent_uid: int = Field(10001, ge=0, validation_alias="ALCOVE_AGENT_UID")
    agent_gid: int = Field(10001, ge=0, validation_alias="ALCOVE_AGENT_GID")
    docker_host: str = Field("unix:///var/run/docker.sock", validation_alias="DOCKER_HOST")
    stop_on_exit: bool = Field(False, validation_alias="ALCOVE_SPAWNER_STOP_ON_EXIT")
    concurrent_starts: int = Field(4, ge=1, validation_alias="ALCOVE_SPAWNER_CONCURRENT_STARTS")
    start_timeout_s: float = Field(60, gt=0, validation_alias="ALCOVE_SPAWNER_START_TIMEOUT_S")
    stop_grace_s: float = Field(5, ge=0, validation_alias="ALCOVE_SPAWNER_STOP_GRACE_S")
    poll_s: float = Field(10, gt=0, validation_alias="ALCOVE_SPAWNER_POLL_S")
    idle_s: float | None = Field(None, gt=0, validation_alias="ALCOVE_SPAWNER_IDLE_S")
    orphan_grace_s: float = Field(120, ge=0, validation_alias="ALCOVE_SPAWNER_ORPHAN_GRACE_S")
    otlp_endpoint: str | None = Field(None, validation_alias="OTEL_EXPORTER_OTLP_ENDPOINT")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", validation_alias="ALCOVE_LOG_LEVEL"
    )
    test: bool = Field(False, validation_alias="ALCOVE_TEST")
    fault: str | None = Field(None, validation_alias="ALCOVE_SPAWNER_FAULT")

    @model_validator(mode="after")
    def _processes_have_no_container_runtime(self) -> Self:
        if self.runtime == "process" and self.container_runtime is not None:
            raise ValueError(
                "ALCOVE_CONTAINER_RUNTIME asks for containers, ALCOVE_SPAWNER_RUNTIME=process for none"
            )
        return self
