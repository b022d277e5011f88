"""What a control listener's routes ask and answer, as OpenAPI 3.1 (https://spec.openapis.org/oas/v3.1.0)."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from infra.kit.routes import REQUIRED, Endpoint, Parameter

_CODED: dict[str, Any] = {
    "type": "object",
    "description": "One of infra.kit.errors' codes, a sentence, and details for a machine.",
    "properties": {
        "code": {"type": "string"},
        "message": {"type": "string"},
        "details": {"type": "object"},
        "request_id": {"type": "string"},
    },
    "required": ["code", "message"],
}
_PROBLEM: dict[str, Any] = {
    "type": "object",
    "properties": {"error": _CODED},
    "required": ["error"],
}
_WHEN = {
    400: "It makes no sense (`invalid`).",
    401: "The service secret is missing (`unauthorized`).",
    403: "Not for this tenant (`forbidden`).",
    404: "There is no such thing (`not_found`).",
    409: "It stands against what is there (`conflict`).",
    502: "A provider answered with nonsense (`bad_gateway`).",
    503: "Not at this moment (`unavailable`).",
    504: "A provider did not answer in time (`timeout`).",
}
_CONVERTER = re.compile(r":\w+\}")
_Schemas = dict[tuple[type[BaseModel], JsonSchemaMode], dict[str, Any]]


def described(title: str, endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The document."""
    endpoints = list(endpoints)
    asked: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        (one.body[1], "validation") for one in endpoints if one.body is not None
    ]
    said: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        (one.answer, "serialization") for one in endpoints if one.answer is not None
    ]
    schemas, shared = models_json_schema(
        [*asked, *said], ref_template="#/components/schemas/{model}"
    )
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
        [method] = one.methods or ()
        path = paths.setdefault(_CONVERTER.sub("}", one.path), {})
        path[method.lower()] = _operation(one, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": "1"},
        "paths": paths,
        "components": {"schemas": shared["$defs"]},
    }


def _operation(one: Endpoint, schemas: _Schemas) -> dict[str, Any]:
    answer: dict[str, Any] = {"description": "It is done."}
    if one.answer is not None:
        answer["content"] = _json(schemas[one.answer, "serialization"])
    refusals = {
        str(status): {"description": when, "content": _json(_PROBLEM)}
        for status, when in _WHEN.items()
    }
    operation: dict[str, Any] = {
        "parameters": [_parameter(parameter) for parameter in one.parameters],
        "responses": {str(one.status): answer, **refusals},
    }
    if one.body is not None:
        content = _json(schemas[one.body[1], "validation"])
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameter(one: Parameter) -> dict[str, Any]:
    return {
        "name": one.name,
        "in": one.place,
        "required": one.place == "path" or one.default is REQUIRED,
        "schema": one.check.json_schema(),
    }


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}
