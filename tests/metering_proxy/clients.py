"""The official clients at a tenant's own socket, as they are; each notes the paths that it asks for."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
from google import genai
from google.genai import types

from tests.metering_proxy.house import Tenant


@contextmanager
def _short(tenant: Tenant) -> Iterator[str]:
    """A short way to the socket: the path that a client connects to may have 108 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        link = Path(folder) / "m.sock"
        link.symlink_to(tenant.socket)
        yield str(link)


def _hooks(tried: list[str]) -> dict[str, Any]:
    async def note(request: Any) -> None:
        tried.append(request.url.path)

    return {"request": [note]}


@asynccontextmanager
async def openai_client(tenant: Tenant, tried: list[str]) -> AsyncIterator[openai.AsyncOpenAI]:
    """OpenAI's client with the tenant's key."""
    with _short(tenant) as uds:
        transport = httpx.AsyncHTTPTransport(uds=uds)
        http = httpx.AsyncClient(transport=transport, event_hooks=_hooks(tried))
        async with openai.AsyncOpenAI(
            api_key=tenant.key, base_url="http://m/v1", http_client=http
        ) as client:
            yield client


@asynccontextmanager
async def anthropic_client(
    tenant: Tenant, tried: list[str]
) -> AsyncIterator[anthropic.AsyncAnthropic]:
    """Anthropic's client with the tenant's key."""
    with _short(tenant) as uds:
        transport = httpx2.AsyncHTTPTransport(uds=uds)
        http = httpx2.AsyncClient(transport=transport, event_hooks=_hooks(tried))
        async with anthropic.AsyncAnthropic(
            api_key=tenant.key, base_url="http://m", http_client=http
        ) as client:
            yield client


@asynccontextmanager
async def google_client(
    tenant: Tenant, tried: list[str], retries: types.HttpRetryOptions | None = None
) -> AsyncIterator[genai.client.AsyncClient]:
    """Google's client with the tenant's key."""
    with _short(tenant) as uds:
        transport = httpx.AsyncHTTPTransport(uds=uds)
        async with httpx.AsyncClient(transport=transport, event_hooks=_hooks(tried)) as http:
            options = types.HttpOptions(
                base_url="http://m", httpx_async_client=http, retry_options=retries
            )
            client = genai.Client(api_key=tenant.key, http_options=options)
            yield client.aio
            client.close()
