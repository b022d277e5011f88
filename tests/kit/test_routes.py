"""Routes: what a signature asks for is checked, and what does not fit is told field by field."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Literal

import aiohttp
import pytest
from pydantic import BaseModel, ConfigDict, Field
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from infra.kit import client as kit_client
from infra.kit import service
from infra.kit.metrics import Metrics
from infra.kit.routes import Routes, said
from infra.kit.tracing import Tracing

SECRET = {"authorization": "Bearer s3cret"}
Id = Annotated[str, Field(pattern=r"^[a-z]{3}$")]


class Asked(BaseModel):
    model_config = ConfigDict(extra="forbid")

    size: int = Field(ge=0)
    note: str = ""


class Answered(BaseModel):
    id: str
    size: int = 0
    page: int = 1


class Sealed(Answered):
    secret: str = "never told"


def an_app(metrics: Metrics) -> Starlette:
    routes = Routes("/things")

    @routes.get("/{id}")
    async def one(
        id: Id, page: Annotated[int, Field(ge=1)] = 1, form: Literal["a", "b"] = "a"
    ) -> Answered:
        return Sealed(id=id, page=page)

    @routes.get("")
    async def needs(size: int) -> Answered:
        return Answered(id="xyz", size=size)

    @routes.put("/{id}", status=201, sparse=True)
    async def put(id: Id, asked: Asked) -> Answered:
        return Answered(id=id, size=asked.size)

    @routes.delete("/{id}", status=204)
    async def delete(id: Id) -> None:
        return None

    @routes.patch("/{name:path}")
    async def change(name: str, request: Request) -> Response:
        return said(Answered(id=f"{name} {request.headers['x-who']}"), 202)

    app = Starlette()
    service.install(app, metrics=metrics, tracing=Tracing("test"))
    app.routes.extend(routes.behind(service.require_secret("s3cret")))
    return app


@pytest.fixture
def metrics() -> Metrics:
    return Metrics("test")


@pytest.fixture
async def session(tmp_path: Path, metrics: Metrics) -> AsyncIterator[aiohttp.ClientSession]:
    async with service.serving(an_app(metrics), f"unix://{tmp_path}/s.sock") as url:
        session, _ = kit_client.session(url)
        session.headers.update(SECRET)
        async with session:
            yield session


async def test_answer_is_what_the_signature_says_when_the_function_gives_more(
    session: aiohttp.ClientSession,
) -> None:
    async with session.get("http://localhost/things/abc?page=2") as answer:
        assert answer.content_type == "application/json"
        assert await answer.json() == {"id": "abc", "size": 0, "page": 2}


async def test_what_was_not_set_is_left_out_when_an_answer_is_sparse(
    session: aiohttp.ClientSession,
) -> None:
    async with session.put("http://localhost/things/abc", json={"size": 3}) as answer:
        assert (answer.status, await answer.json()) == (201, {"id": "abc", "size": 3})


async def test_nothing_is_answered_when_there_is_nothing_to_say(
    session: aiohttp.ClientSession,
) -> None:
    async with session.delete("http://localhost/things/abc") as answer:
        assert (answer.status, await answer.read()) == (204, b"")


async def test_function_sees_the_request_and_chooses_the_status_when_it_asks_for_them(
    session: aiohttp.ClientSession,
) -> None:
    whole = "http://localhost/things/a/b"
    async with session.patch(whole, headers={"x-who": "me"}) as answer:
        assert (answer.status, (await answer.json())["id"]) == (202, "a/b me")


@pytest.mark.parametrize(
    ("method", "path", "body", "fields"),
    [
        ("GET", "/things/ABC?page=0&form=c", None, {"id", "page", "form"}),
        ("GET", "/things", None, {"size"}),
        ("GET", "/things?size=x", None, {"size"}),
        ("PUT", "/things/ABC", b'{"size": -1, "more": 1}', {"id", "size", "more"}),
        ("PUT", "/things/abc", b"{}", {"size"}),
        ("PUT", "/things/abc", b"[]", {""}),
        ("PUT", "/things/abc", b"{", {""}),
        ("PUT", "/things/abc", b"", {""}),
        ("PUT", "/things/abc", b'{"size": ' + b"[" * 10_000, {""}),
    ],
)
async def test_every_field_is_named_when_a_request_does_not_fit(
    session: aiohttp.ClientSession, method: str, path: str, body: bytes | None, fields: set[str]
) -> None:
    said = {"content-type": "application/json"}
    url = f"http://localhost{path}"
    async with session.request(method, url, data=body, headers=said) as answer:
        error = (await answer.json())["error"]
    assert (answer.status, error["code"]) == (400, "invalid")
    assert {one["field"] for one in error["details"]["fields"]} == fields
    assert all(one["problem"] for one in error["details"]["fields"])


async def test_body_is_refused_when_it_does_not_say_that_it_is_json(
    session: aiohttp.ClientSession,
) -> None:
    form = {"content-type": "text/plain"}
    async with session.put("http://localhost/things/abc", data=b"{}", headers=form) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "invalid")


async def test_guard_comes_before_the_form_when_a_stranger_sends_nonsense(
    session: aiohttp.ClientSession,
) -> None:
    stranger = {"authorization": "Bearer other"}
    async with session.get("http://localhost/things/ABC", headers=stranger) as answer:
        assert answer.status == 401


async def test_method_is_refused_when_a_path_has_another(session: aiohttp.ClientSession) -> None:
    async with session.post("http://localhost/things/abc") as answer:
        assert answer.status == 405


async def test_request_is_counted_under_its_template_when_it_is_answered(
    session: aiohttp.ClientSession, metrics: Metrics
) -> None:
    async with session.get("http://localhost/things/abc") as answer:
        assert answer.status == 200
    assert b'route="/things/{id}",status="200"} 1.0' in metrics.render()[0]
