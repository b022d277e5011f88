"""What the spawner tells an agent by environment, read once at the edge. No default hides a missing value."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infra.kit import address
from infra.kit.errors import AlcoveError

_PREFIX = "ALCOVE_AGENT_"
_REQUIRED = ("SOCKET", "METER_URL", "KEY_FILE", "SECRET_FILE", "DATA_DIR", "TENANT", "GENERATION")


@dataclass(frozen=True, slots=True)
class Settings:
    """One instance's settings (docs/contracts.md, "Agent")."""

    socket: Path
    meter: address.Address
    key_file: Path
    secret_file: Path
    data_dir: Path
    tenant: str
    generation: int
    log_level: str = "info"
    fault: str | None = None


def from_environment(environment: Mapping[str, str]) -> Settings:
    """The settings in `environment`. Raises `invalid`, naming every problem at once."""
    value = {name: environment.get(_PREFIX + name, "") for name in _REQUIRED}
    problems = [f"{_PREFIX}{name} is not set" for name, text in value.items() if not text]
    meter = address.Address("unix")
    if value["METER_URL"]:
        try:
            meter = address.parse(value["METER_URL"])
        except AlcoveError as error:
            problems.append(f"{_PREFIX}METER_URL: {error.message}")
    if value["GENERATION"] and not (
        value["GENERATION"].isascii() and value["GENERATION"].isdigit()
    ):
        problems.append(f"{_PREFIX}GENERATION is not a number")
    if problems:
        raise AlcoveError("invalid", "; ".join(problems))
    testing = environment.get("ALCOVE_TEST") == "1"
    return Settings(
        socket=Path(value["SOCKET"]),
        meter=meter,
        key_file=Path(value["KEY_FILE"]),
        secret_file=Path(value["SECRET_FILE"]),
        data_dir=Path(value["DATA_DIR"]),
        tenant=value["TENANT"],
        generation=int(value["GENERATION"]),
        log_level=environment.get(_PREFIX + "LOG_LEVEL", "info"),
        fault=environment.get(_PREFIX + "FAULT") if testing else None,
    )
