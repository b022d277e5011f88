"""A tool's JSON schema from its function's types, and arguments checked against it."""

import inspect
import types
import typing
from collections.abc import Callable
from typing import Annotated, Any, Literal

from infra.kit.errors import AlcoveError

_TYPES: dict[type, str] = {str: "string", int: "integer", float: "number", bool: "boolean"}


def schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The schema of a function's keyword-only parameters, which are what the model may give.

    `Annotated[str, "what it is"]` becomes a description, `Literal` an enumeration, a default or
    `| None` an optional field. Raises TypeError for a type that has no place here.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    properties: dict[str, Any] = {}
    required: list[str] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            continue
        properties[name] = _field(hints[name])
        if parameter.default is inspect.Parameter.empty:
            required.append(name)
    return {
        "type": "object", "properties": properties, "required": required, "additionalProperties": False,
    }  # fmt: skip


def _field(hint: Any) -> dict[str, Any]:
    if typing.get_origin(hint) is Annotated:
        inner, description = typing.get_args(hint)[:2]
        return {**_field(inner), "description": description}
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        inner = [one for one in typing.get_args(hint) if one is not types.NoneType]
        return _field(inner[0])
    if typing.get_origin(hint) is Literal:
        return {"type": "string", "enum": list(typing.get_args(hint))}
    if hint not in _TYPES:
        raise TypeError(f"a tool cannot take {hint!r}")
    return {"type": _TYPES[hint]}


def checked(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments as the schema wants them; a number written as text is read, where nothing is lost.

    Raises `invalid`, naming every problem in words that help the model to mend the call.
    """
    properties: dict[str, Any] = schema["properties"]
    problems: list[str] = []
    if unknown := sorted(set(arguments) - set(properties)):
        problems.append(
            f"unknown argument {', '.join(unknown)}; known: {', '.join(properties) or 'none'}"
        )
    given = {k: v for k, v in arguments.items() if k in properties and v is not None}
    problems.extend(f"{name} is missing" for name in schema["required"] if name not in given)
    fit: dict[str, Any] = {}
    for name, value in given.items():
        try:
            fit[name] = _fit(properties[name], value)
        except ValueError as error:
            problems.append(f"{name} {error}")
    if problems:
        raise AlcoveError("invalid", "; ".join(problems))
    return fit


def _fit(field: dict[str, Any], value: Any) -> Any:
    kind = field["type"]
    fitted = _coerced(kind, value)
    if "enum" in field and fitted not in field["enum"]:
        raise ValueError(f"must be one of {', '.join(field['enum'])}")
    return fitted


def _coerced(kind: str, value: Any) -> Any:
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if kind == "boolean":
        if isinstance(value, bool):
            return value
        if value in ("true", "false"):
            return value == "true"
    if kind in ("integer", "number") and not isinstance(value, bool):
        number = _number(value)
        if number is not None and (kind == "number" or number == int(number)):
            return int(number) if kind == "integer" else number
    raise ValueError(f"must be of type {kind}")


def _number(value: Any) -> float | int | None:
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if abs(value) < 1e300 else None
    try:
        return int(value) if isinstance(value, str) else None
    except ValueError:
        try:
            number = float(value)
        except ValueError:
            return None
        return number if abs(number) < 1e300 else None
