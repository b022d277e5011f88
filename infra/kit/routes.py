"""Routes of a control listener: functions whose signatures say what is asked, and what is answered.

What the path names and the query says is checked as its type says; a body is one pydantic model, and so is an
answer. FastAPI does this and far more, and keeps a copy of each model for each of its routes: ten megabytes.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, Protocol, TypeGuard, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from infra.kit.errors import AlcoveError

Guard = Callable[[Request], Awaitable[None]]
Function = TypeVar("Function", bound=Callable[..., Awaitable[object]])
REQUIRED = inspect.Parameter.empty


class Decorator(Protocol):
    """Makes a route of a function, and leaves the function as it is."""

    def __call__(self, function: Function, /) -> Function:
        """See above."""
        ...


_check = cache(TypeAdapter)  # routes share the types of what they are asked


@dataclass(frozen=True, slots=True)
class Parameter:
    """Something that the path or the query says. `default`: REQUIRED where it has to."""

    name: str
    place: Literal["path", "query"]
    check: TypeAdapter[Any]
    default: Any


class Endpoint(Route):
    """One method of one path. `body` with the name that its function knows it by, and `answer`: None where
    there is none, or none that is a model."""

    def __init__(
        self,
        method: str,
        path: str,
        function: Callable[..., Awaitable[object]],
        *,
        status: int = 200,
        sparse: bool = False,
    ) -> None:
        super().__init__(path, self._answer, methods=[method], name=function.__name__)
        self.methods = {method}  # Starlette would answer a HEAD as well
        self.guard: Guard | None = None
        self.status, self._function, self._sparse = status, function, sparse
        self.parameters: list[Parameter] = []
        self.body: tuple[str, type[BaseModel]] | None = None
        self._request: str | None = None
        signature = inspect.signature(function)
        for one in signature.parameters.values():
            self._take(one)
        said = signature.return_annotation
        self.answer = said if _is_model(said) else None

    def _take(self, one: inspect.Parameter) -> None:
        if one.annotation is Request:
            self._request = one.name
        elif _is_model(one.annotation):
            self.body = one.name, one.annotation
        else:
            place: Literal["path", "query"] = (
                "path" if one.name in self.param_convertors else "query"
            )
            self.parameters.append(Parameter(one.name, place, _check(one.annotation), one.default))

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """See Route. Who counts requests finds in the scope which one it was."""
        scope["route"] = self
        await super().handle(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        """Raises `invalid` with `fields` for a request that does not fit, once the guard has let it in."""
        if self.guard is not None:
            await self.guard(request)
        found = await self._function(**await self._given(request))
        if isinstance(found, Response):
            return found
        if self.answer is None:
            return Response(status_code=self.status)
        # As the signature says it: what a function gives may be a model of more.
        body = self.answer.__pydantic_serializer__.to_json(found, exclude_unset=self._sparse)
        return _json(body, self.status)

    async def _given(self, request: Request) -> dict[str, Any]:
        given: dict[str, Any] = {}
        problems: list[dict[str, str]] = []
        for one in self.parameters:
            asked = request.path_params if one.place == "path" else request.query_params
            if one.name in asked:
                try:
                    given[one.name] = one.check.validate_python(asked[one.name])
                except ValidationError as error:
                    problems += _told(error, one.name)
            elif one.default is REQUIRED:
                problems.append({"field": one.name, "problem": "Field required"})
            else:
                given[one.name] = one.default
        if self.body is not None:
            name, model = self.body
            try:
                given[name] = model.model_validate_json(await _body(request))
            except ValidationError as error:
                problems += _told(error)
        if problems:
            message = "the request is not of the expected form"
            raise AlcoveError("invalid", message, fields=problems)
        return given if self._request is None else {**given, self._request: request}


class Routes:
    """The routes of a listener, or of a part of it, gathered by decorators. `sparse`: what an answer's model was
    not given is left out of it."""

    def __init__(self, prefix: str = "") -> None:
        self._prefix = prefix
        self.all: list[Endpoint] = []

    def behind(self, guard: Guard) -> list[Endpoint]:
        """All of them, open to whom `guard` lets in: it raises where somebody may not."""
        for one in self.all:
            one.guard = guard
        return self.all

    def get(self, path: str) -> Decorator:
        """Reads."""
        return self._on("GET", path)

    def put(self, path: str, *, status: int = 200, sparse: bool = False) -> Decorator:
        """Sets."""
        return self._on("PUT", path, status, sparse=sparse)

    def post(self, path: str, *, status: int = 200) -> Decorator:
        """Makes, or asks for what an address cannot hold."""
        return self._on("POST", path, status)

    def patch(self, path: str) -> Decorator:
        """Changes a part."""
        return self._on("PATCH", path)

    def delete(self, path: str, *, status: int = 200) -> Decorator:
        """Ends."""
        return self._on("DELETE", path, status)

    def _on(self, method: str, path: str, status: int = 200, *, sparse: bool = False) -> Decorator:
        def add(function: Function) -> Function:
            made = Endpoint(method, self._prefix + path, function, status=status, sparse=sparse)
            self.all.append(made)
            return function

        return add


def said(model: BaseModel, status: int = 200) -> Response:
    """The answer of a function that says itself with which status."""
    return _json(model.model_dump_json().encode(), status)


def _json(body: bytes, status: int) -> Response:
    return Response(body, status, media_type="application/json")


async def _body(request: Request) -> bytes:
    """The body. Raises `invalid` where it does not say that it is JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise AlcoveError("invalid", "the body must be application/json", reason="content_type")
    return await request.body()


def _told(error: ValidationError, name: str = "") -> Iterator[dict[str, str]]:
    for item in error.errors(include_url=False, include_input=False, include_context=False):
        field = ".".join([*filter(None, [name]), *map(str, item["loc"])])
        yield {"field": field, "problem": item["msg"]}


def _is_model(annotation: Any) -> TypeGuard[type[BaseModel]]:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)
