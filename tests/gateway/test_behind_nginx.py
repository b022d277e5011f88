"""A real nginx in front with nothing said about buffering: words come through it as they are written.

That answers also tell proxies so, for those that would hold them back, is tested without one.
"""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from infra.kit import ids
from metering_proxy import wire
from tests import scripted as s
from tests.gateway.browser import HOST, Browser
from tests.gateway.conftest import Gateway, Serve, settings_for
from tests.metering_proxy.house import MODEL, a_house
from tests.missing import lacks
from tests.scripted import ScriptedProvider
from tests.waiting import until

pytestmark = pytest.mark.nginx
Front = Callable[[Gateway], Awaitable[str]]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def _nginx(home: Path, upstream: str) -> AsyncIterator[str]:
    binary = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if binary is None:
        lacks("no nginx", "apt-get install nginx-light")
    port = _free_port()
    places = "".join(
        f"{name}_temp_path {home}/{name};"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = home / "nginx.conf"
    config.write_text(
        f"""worker_processes 1; daemon off; pid {home}/pid; error_log {home}/log;
        events {{}}
        http {{ access_log off; {places}
          server {{ listen 127.0.0.1:{port};
            location / {{ proxy_pass {upstream}; proxy_set_header Host $host; }} }} }}"""
    )
    process = await asyncio.create_subprocess_exec(
        binary, "-c", str(config), "-p", str(home), "-e", f"{home}/log"
    )
    url = f"http://127.0.0.1:{port}"

    async def answers() -> bool:
        async with aiohttp.ClientSession() as session:
            try:
                async with session.get(f"{url}/livez", headers={"host": HOST}) as answer:
                    return answer.status == 200
            except aiohttp.ClientError:
                return False

    try:
        await until(answers, what="nginx")
        yield url
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    """Puts an nginx before a gateway; its address."""
    async with AsyncExitStack() as stack:

        async def put(gateway: Gateway) -> str:
            home = tmp_path / "nginx"
            home.mkdir()
            return await stack.enter_async_context(_nginx(home, gateway.url))

        yield put


async def test_words_arrive_one_by_one_through_nginx_as_it_comes(
    gateway: Gateway, front: Front
) -> None:
    gateway.spawner.waking = "at once"
    browser = Browser(await front(gateway))
    gateway.browsers.append(browser)
    await browser.sign_up("ada@example.org")
    await browser.api("POST", "/api/wake", {"reason": "page"})
    async with browser.stream() as stream:
        await until(lambda: stream.named("quota"), what="the first states")
        await browser.post("hello", ids.ulid(), ids.ulid())
        await until(lambda: "RUN_FINISHED" in stream.types(), what="the answer")
        assert not stream.ended, "all of it came while the stream was open"


async def test_programs_answer_arrives_while_it_is_written(
    serve: Serve, front: Front, tmp_path: Path, scripted: ScriptedProvider
) -> None:
    root = tmp_path / "m"
    root.mkdir()
    url = f"unix://{root}/programs.sock"
    first, second = s.Gate(), s.Gate()
    scripted.then(reply=s.text("one ", first, "two ", second, "three").using(10, 5))
    async with a_house(root, f"sqlite:///{root}/meter.db", programs_listen=url) as house:
        await house.connect(scripted)
        gateway = await serve(settings=settings_for(tmp_path, meter_programs_url=url))
        key = await house.client.create_api_key(ids.tenant_id(), wire.ApiKeyRequest(name="x"))
        body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "stream": True}
        shown = {"authorization": f"Bearer {key.key}", "host": HOST}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                f"{await front(gateway)}/v1/chat/completions", json=body, headers=shown
            ) as answer,
        ):
            # The first words may come with the head, which is never held back.
            for word, gate in ((b"one", first), (b"two", second)):
                async with asyncio.timeout(10):
                    while word not in await answer.content.readuntil(b"\n\n"):
                        pass
                gate.open()
            assert b"three" in await answer.content.read()
