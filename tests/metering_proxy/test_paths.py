"""What exists at a tenant's socket: paths that have a meter, models by their name, and nothing else."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

from metering_proxy.wires import paths
from tests import draws
from tests import scripted as s
from tests.metering_proxy.house import MODEL, House, Tenant, a_house
from tests.scripted import ScriptedProvider

_WORDS = [
    "v1",
    "v1beta",
    "v2",
    "openai",
    "anthropic",
    "api",
    "chat",
    "completions",
    "messages",
    "responses",
    "embeddings",
    "models",
    "files",
    "batches",
    "count_tokens",
    "images",
    "generations",
    "edits",
    "audio",
    "speech",
    "translations",
    "realtime",
    "fine_tuning",
    "jobs",
    "assistants",
    "threads",
    "moderations",
    "rerank",
    "proxy",
    "passthrough",
    "admin",
    "keys",
    "livez",
    "metrics",
    "..",
    ".",
    "%2e%2e",
    "%2f",
    ":generateContent",
]
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def _walk(chance: random.Random, steps: int) -> list[tuple[str, str]]:
    """Methods and paths, each made of words that proxies have paths of; never one that has a meter."""
    found: list[tuple[str, str]] = []
    while len(found) < steps:
        path = "/" + "/".join(chance.choices(_WORDS, k=chance.randint(1, 5)))
        method = chance.choice(_METHODS)
        path += chance.choice(["", "", "/", "?x=1", "//", ";a", "%00"])
        bare = path.partition("?")[0]
        metered = paths.find(bare) is not None and method == "POST"
        if not metered and (method, bare) != ("GET", "/v1/models"):
            found.append((method, path))
    return found


async def test_five_hundred_random_paths_reach_nobody(
    house: House, tenant: Tenant, scripted: ScriptedProvider
) -> None:
    shown = {"authorization": f"Bearer {tenant.key}", "content-type": "application/json"}
    body = json.dumps({"model": MODEL, "messages": [{"role": "user", "content": "x"}]}).encode()

    for method, path in _walk(draws.chance("paths"), 500):
        url = URL(f"http://localhost{path}", encoded=True)
        async with tenant.session.request(method, url, data=body, headers=shown) as answer:
            assert answer.status in (400, 404), (method, path)
    assert scripted.requests == []
    assert await house.rows("SELECT request_id FROM reservation") == []


@pytest.mark.parametrize(
    ("path", "member"),
    [
        ("/v1/nothing", "error.code"),
        ("/v1/messages/batches", "error.alcove_reason"),
        ("/v1beta/models/x:countTokens", "error.details.0.reason"),
    ],
)
async def test_refusal_has_the_shape_of_the_wire_that_was_meant(
    tenant: Tenant, path: str, member: str
) -> None:
    answer = await tenant.post(path, {})
    found: Any = json.loads(answer.body)
    for name in member.split("."):
        found = found[int(name)] if name.isdigit() else found[name]
    assert (answer.status, found.lower()) == (404, "no_such_path")


_LOOK_ALIKES = [
    MODEL.replace("o", "о"),
    MODEL.replace("c", "ϲ"),
    MODEL.replace("-", "‐"),
    MODEL + "\u200b",
]
_CASES = ["SCRIPTED-MODEL", "Scripted-Model", "sCRIPTED-mODEL", "scripted-MODEL"]
_PREFIXED = [
    f"{prefix}{MODEL}"
    for prefix in (
        "scripted/", "Scripted/", "SCRIPTED/", "models/", "Models/", "scripted//", "/", "openai/", "x/scripted/",
        "scripted/models/", "publishers/google/models/", "us.", "ft:", "scripted:", "~", "./", "../scripted/",
    )
]  # fmt: skip
_SUFFIXED = [
    f"{MODEL}{suffix}"
    for suffix in (
        "@20250929", "-20250929", ":free", ":thinking", "-latest", " ", "\n", "\t", "/", "?", "#x", "%20",
        "\u0000", "@", ":", "[1m]", "-v1:0", "&x=1",
    )
]  # fmt: skip
SPELLINGS = [*_LOOK_ALIKES, *_CASES, *_PREFIXED, *_SUFFIXED]


async def test_any_spelling_of_a_model_is_that_model_or_refused(
    house: House, scripted: ScriptedProvider
) -> None:
    assert len(SPELLINGS) >= 40
    await house.connect(scripted)
    tenant = await house.tenant("plus", charge_month_nanos=None)
    scripted.always(s.model_is(MODEL), reply=s.text("x").using(10, 1))
    answered = 0
    for spelling in SPELLINGS[:40]:
        status = (await tenant.chat(model=spelling)).status
        assert status in (200, 400, 404), spelling
        answered += status == 200
    assert answered == len(_CASES) + 3  # in any case, with its provider before it or without
    entries = await house.entries(tenant, answered)
    assert {(e["model"], e["cost_nanos"]) for e in entries} == {(f"scripted/{MODEL}", 12_000)}
    scripted.verify()


@pytest.mark.parametrize("spelling", SPELLINGS[40:])
async def test_more_spellings_are_refused_before_anything_is_held(
    house: House, tenant: Tenant, scripted: ScriptedProvider, spelling: str
) -> None:
    assert (await tenant.chat(model=spelling)).status == 400
    assert scripted.requests == []


_PLANS = """
[[plan]]
name = "free"
title = "Free"
concurrent = 2
models = ["scripted/*"]
"""


async def test_key_sees_and_calls_the_models_of_its_plan_alone(
    tmp_path: Path, scripted: ScriptedProvider
) -> None:
    plans_file = tmp_path / "plans.toml"
    plans_file.write_text(_PLANS)
    url = f"sqlite:///{tmp_path}/m.db"
    async with a_house(tmp_path, url, plans_file=plans_file) as house:
        await house.connect(scripted)
        await house.connect(scripted, "mistral")
        tenant = await house.tenant()
        shown = {"authorization": f"Bearer {tenant.key}"}
        async with tenant.session.get("http://localhost/v1/models", headers=shown) as listed:
            names = [row["id"] for row in (await listed.json())["data"]]
        assert names == [f"scripted/{MODEL}"]
        for spelling in (f"mistral/{MODEL}", f"MISTRAL/{MODEL}"):
            refused = await tenant.chat(model=spelling)
            assert (refused.status, refused.headers["x-alcove-reason"]) == (
                403,
                "model_not_allowed",
            )
        assert scripted.requests == []
        scripted.then(reply=s.text("x"))
        assert (await tenant.chat(model=MODEL)).status == 200
