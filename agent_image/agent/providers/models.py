"""Which model answers, and how it wants to be asked: the meter's list, asked anew for each turn."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from agent.errors import ModelError, refused
from agent.providers.http import Client


@dataclass(frozen=True, slots=True)
class Profile:
    """The short leash of a small demonstration model."""

    system_max_tokens: int
    temperature: float
    max_tokens: int


@dataclass(frozen=True, slots=True)
class Model:
    """One model as the meter describes it (docs/contracts.md, `GET /v1/models`)."""

    id: str
    wire: str
    tools: bool
    context_tokens: int
    max_output_tokens: int
    profile: Profile | None = None


class Models:
    """The models that this tenant may use."""

    def __init__(self, client: Client, key_file: Path) -> None:
        self._client = client
        self._key_file = key_file

    def key(self) -> str:
        """The instance key, read anew each time: the spawner may have replaced it."""
        return self._key_file.read_text().strip()

    async def default(self, headers: dict[str, str]) -> Model:
        """The model that answers when nobody chose one.

        Not kept: what an admin connects or disconnects counts from the next message. Raises
        ModelError: `unavailable` with reason `no_provider` where there is none.
        """
        asked = {**headers, "authorization": f"Bearer {self.key()}"}
        async with self._client.request("GET", "/v1/models", asked) as response:
            body = await response.body()
            if response.status != 200:
                raise refused(response.status, response.headers, body)
        rows = orjson.loads(body)["data"]
        if not rows:
            raise ModelError(
                "unavailable", "No model is connected to this service yet.", reason="no_provider"
            )
        chosen = [row for row in rows if (row.get("alcove") or {}).get("default")]
        return _model((chosen or rows)[0])


def _model(row: dict[str, Any]) -> Model:
    told = row.get("alcove") or {}
    profile = told.get("profile")
    return Model(
        id=row["id"],
        wire=told.get("wire") or "openai",
        tools=bool(told.get("tools")),
        context_tokens=int(told.get("context_tokens") or 8192),
        max_output_tokens=int(told.get("max_output_tokens") or 4096),
        profile=Profile(
            system_max_tokens=int(profile["system_max_tokens"]),
            temperature=float(profile["temperature"]),
            max_tokens=int(profile["max_tokens"]),
        )
        if profile
        else None,
    )
