"""Settings from the environment: typed, every secret also as NAME_FILE, all errors told at once."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

S = TypeVar("S", bound="Settings")


def _database(text: str) -> str:
    is_file = text.startswith("sqlite:////")
    is_server = text.startswith(("postgresql://", "postgres://")) and urlsplit(text).path.strip("/")
    if not is_file and not is_server:
        raise ValueError("is sqlite:////absolute/path.db or postgresql://user:password@host/name")
    return text


DatabaseUrl = Annotated[str, AfterValidator(_database)]


class Settings(BaseModel):
    """Base of each service's settings. Unknown fields are refused, defaults are checked like what is given.

    A field's variable is its `validation_alias`, else its name behind `prefix`, in capitals.
    """

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, validate_default=True
    )
    prefix: ClassVar[str] = ""


def load(kind: type[S], environ: dict[str, str] | None = None, **overrides: Any) -> S:
    """The settings of this process, or an exit with every problem listed, one a line.

    `NAME_FILE=/path` gives the content of that file for NAME, without its last newline.
    """
    env = dict(os.environ) if environ is None else environ
    problems: list[str] = []
    values = _from_environment(kind, env, problems)
    values.update(overrides)
    try:
        settings = kind(**values)
    except ValidationError as error:
        problems.extend(_sentence(kind, item) for item in error.errors())
    else:
        if not problems:
            return settings
    print(f"{len(problems)} configuration problem(s):", file=sys.stderr)  # noqa: T201
    for problem in problems:
        print(f"  - {problem}", file=sys.stderr)  # noqa: T201
    raise SystemExit(78)  # EX_CONFIG of sysexits.h


def _variable(kind: type[Settings], field: str) -> str:
    alias = kind.model_fields[field].validation_alias
    return str(alias) if isinstance(alias, str) else f"{kind.prefix}{field}".upper()


def _from_environment(
    kind: type[Settings], env: dict[str, str], problems: list[str]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for field in kind.model_fields:
        name = _variable(kind, field)
        if env.get(f"{name}_FILE"):
            if env.get(name):
                problems.append(f"{name} and {name}_FILE are both set; keep one of them")
            try:
                values[field] = Path(env[f"{name}_FILE"]).read_text().rstrip("\n")
            except OSError as error:
                problems.append(f"{name}_FILE: {error.strerror}: {env[f'{name}_FILE']}")
                values[field] = "-"
            except UnicodeDecodeError:
                problems.append(f"{name}_FILE: not a text file: {env[f'{name}_FILE']}")
                values[field] = "-"
        elif name in env and env[name] != "":
            values[field] = env[name]
    return values


def _sentence(kind: type[Settings], item: Any) -> str:
    field = str(item["loc"][0]) if item["loc"] else ""
    name = _variable(kind, field) if field in kind.model_fields else field
    what = "is required" if item["type"] == "missing" else item["msg"]
    return f"{name}: {what}"
