"""One request and its answer as the door and the call see them, on top of infra.kit.httpd.

A call outlives its caller: when the caller leaves, `gone` is true, and who still reads the provider's answer
writes to nobody.
"""

from collections.abc import Sequence

from infra.kit.httpd import Request, Tunnel

EVERYBODY = ""


class Exchange:
    """A request that has come in at a tenant's socket. `tenant`, `generation`: whose socket it is.

    At the door of programs `tenant` is EVERYBODY until a key has said whose call it is.
    """

    def __init__(self, request: Request, tenant: str, generation: int) -> None:
        self._request = request
        self.tenant, self.generation = tenant, generation

    @property
    def at_the_door_of_programs(self) -> bool:
        """Whether it came in where the key says whose it is, and not at a tenant's own socket."""
        return self.generation == 0

    @property
    def gone(self) -> bool:
        """Whether the caller has left."""
        return self._request.gone

    def outlive(self) -> None:
        """From here on the caller's leaving ends nothing; before, it cancels whoever works for it."""
        self._request.outlive()

    @property
    def method(self) -> str:
        """The request's method."""
        return self._request.method

    @property
    def target(self) -> str:
        """Path and query, byte for byte; of a CONNECT, host and port."""
        return self._request.target

    @property
    def every_header(self) -> Sequence[tuple[str, str]]:
        """All headers, names in small letters."""
        return self._request.headers

    @property
    def path(self) -> str:
        """The request's path as it came, without its query."""
        return self._request.target.partition("?")[0]

    @property
    def query(self) -> str:
        """Its query, empty where it has none."""
        return self._request.target.partition("?")[2]

    @property
    def started(self) -> bool:
        """Whether an answer has begun."""
        return self._request.started

    def headers(self, name: str) -> list[str]:
        """The values of a header, as often as it stands there. `name` in small letters."""
        return self._request.values(name)

    def header(self, name: str) -> str | None:
        """The first value of a header."""
        return self._request.value(name)

    def trust(self) -> None:
        """The caller has shown a key: its connection counts no longer among strangers'."""
        self._request.trust()

    async def body(self) -> bytes:
        """The whole body. Raises `too_large`, `unavailable` (reason `busy`), `invalid`."""
        return await self._request.body()

    def let_body_go(self) -> None:
        """The body's bytes are needed no more: others may have their room."""
        self._request.release()

    async def respond(self, status: int, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """A whole answer at once."""
        if not self.gone:
            await self._request.respond(status, headers, body)

    async def start(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Begins an answer."""
        if not self.gone:
            await self._request.start(status, headers)

    async def write(self, data: bytes) -> None:
        """Sends a part of the answer; waits while the caller is slower than we are."""
        if data and not self.gone:
            await self._request.write(data)

    def write_now(self, data: bytes) -> bool:
        """Sends a part of the answer. False: the caller is slower than we are, so wait for `drained`, or gone."""
        request = self._request
        return not request.gone and request.write_now(data)

    async def drained(self) -> None:
        """Returns once the caller has taken most of what was written."""
        if not self.gone:
            await self._request.drained()

    def tunnel(self, headers: Sequence[tuple[str, str]]) -> Tunnel:
        """Accepts a CONNECT: see `Request.tunnel`."""
        return self._request.tunnel(headers)

    def end(self) -> None:
        """Ends the answer."""
        if not self.gone:
            self._request.end()
