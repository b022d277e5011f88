"""Base of the services' typed clients: one call, one coded error, the same over sockets and HTTP."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from aiohttp.client_exceptions import UnixClientConnectorError
from aiohttp.client_proto import ResponseHandler

from infra.kit import address, log, sse, tracing, unix
from infra.kit.errors import AlcoveError, from_response

_NO_TOTAL = aiohttp.ClientTimeout(total=None, connect=5, sock_read=45)


class UnixConnector(aiohttp.UnixConnector):
    """aiohttp over `infra.kit.unix`: the socket is checked before it is spoken to."""

    def __init__(self, path: str, *, owner_uid: int | None = None, **options: Any) -> None:
        super().__init__(path, **options)
        self._owner_uid = owner_uid

    async def _create_connection(self, req: Any, traces: Any, timeout: Any) -> ResponseHandler:
        try:
            sock = await unix.connect(
                Path(self.path),
                owner_uid=self._owner_uid,
                timeout_s=timeout.connect or timeout.sock_connect or 5.0,
            )
        except OSError as error:
            raise UnixClientConnectorError(self.path, req.connection_key, error) from error
        _, protocol = await self._loop.create_unix_connection(self._factory, sock=sock)
        return protocol


def session(
    url: str, *, owner_uid: int | None = None, limit: int = 100
) -> tuple[aiohttp.ClientSession, str]:
    """A session that speaks to `url`, and the base to put before paths. The caller closes it."""
    where = address.parse(url)
    connector: aiohttp.BaseConnector
    if where.is_unix:
        connector = UnixConnector(str(where.path), owner_uid=owner_uid, limit=limit)
        base = "http://localhost"
    else:
        connector = aiohttp.TCPConnector(limit=limit)
        base = url.rstrip("/")
    return (
        aiohttp.ClientSession(
            connector=connector,
            auto_decompress=True,
            cookie_jar=aiohttp.DummyCookieJar(),
            json_serialize=lambda value: orjson.dumps(value).decode(),
        ),
        base,
    )


@dataclass(frozen=True, slots=True)
class Patience:
    """How long an answer is waited for, and how long one that did not come is held against the service."""

    answer_s: float = 10.0
    hurried_s: float = 1.0
    grudge_s: float = 15.0


class ServiceClient:
    """Calls one service. Raises what the service raised; `unavailable` where nobody answers, `timeout`
    where the answer does not come.

    A page asks several things of a service. So that a hung one costs it one long wait and not five,
    the calls after one that was not answered wait for a moment only, until one is.
    """

    def __init__(
        self,
        url: str,
        secret: str,
        *,
        name: str,
        owner_uid: int | None = None,
        patience: Patience | None = None,
    ) -> None:
        self._url, self._secret, self._name, self._owner_uid = url, secret, name, owner_uid
        self._patience = patience or Patience()
        self._session: aiohttp.ClientSession | None = None
        self._base = ""
        self._silent_until_s = 0.0

    async def call(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        params: Mapping[str, str | int] | None = None,
        timeout_s: float | None = None,
    ) -> Any:
        """The JSON of the answer (None for 204). `timeout_s`: where the patience of all calls is not right."""
        timeout = aiohttp.ClientTimeout(total=timeout_s or self._patience_s(), connect=5)
        try:
            async with self._open().request(
                method,
                self._base + path,
                json=body,
                params=params,
                headers=self._headers(),
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                raw = await response.read()
                status = response.status
        except TimeoutError as error:
            now_s = asyncio.get_running_loop().time()
            self._silent_until_s = now_s + self._patience.grudge_s
            raise AlcoveError("timeout", f"the {self._name} did not answer in time") from error
        except aiohttp.ClientError as error:
            raise self._unreachable() from error
        self._silent_until_s = 0.0
        parsed = _parse(raw)
        if status >= 400:
            raise from_response(status, parsed)
        return parsed

    async def events(
        self, path: str, *, params: Mapping[str, str | int] | None = None
    ) -> AsyncIterator[sse.Event]:
        """The events of a stream until it ends; 45 s of silence (not even a heartbeat) is `timeout`."""
        parser = sse.Parser()
        async for chunk in self.chunks(path, params=params, accept="text/event-stream"):
            for event in parser.feed(chunk):
                yield event

    async def chunks(
        self, path: str, *, params: Mapping[str, str | int] | None = None, accept: str = "*/*"
    ) -> AsyncIterator[bytes]:
        """The bytes of an answer of any length, as they come; 45 s of silence is `timeout`."""
        try:
            async with self._open().get(
                self._base + path,
                params=params,
                headers=self._headers() | {"accept": accept},
                timeout=_NO_TOTAL,
            ) as response:
                if response.status >= 400:
                    raise from_response(response.status, _parse(await response.read()))
                async for chunk in response.content.iter_any():
                    yield chunk
        except TimeoutError as error:
            raise AlcoveError("timeout", f"the {self._name} fell silent") from error
        except aiohttp.ClientError as error:
            raise self._unreachable() from error

    async def close(self) -> None:
        """Closes the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _patience_s(self) -> float:
        silent = asyncio.get_running_loop().time() < self._silent_until_s
        return self._patience.hurried_s if silent else self._patience.answer_s

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session, self._base = session(self._url, owner_uid=self._owner_uid)
        return self._session

    def _headers(self) -> dict[str, str]:
        headers = {"authorization": f"Bearer {self._secret}", **tracing.headers()}
        request_id = log.context().get("request_id")
        if request_id:
            headers["x-request-id"] = request_id
        return headers

    def _unreachable(self) -> AlcoveError:
        return AlcoveError(
            "unavailable", f"the {self._name} cannot be reached", reason="unreachable"
        )


def _parse(raw: bytes) -> Any:
    try:
        return orjson.loads(raw) if raw else None
    except (orjson.JSONDecodeError, json.JSONDecodeError):
        return None
