"""The scripted provider in the meter's place: the same script, with the meter's list of models."""

import json
from typing import Any

from tests.scripted import ScriptedProvider
from tests.scripted.connection import Connection
from tests.scripted.request import Request

DEMO_PROFILE = {"system_max_tokens": 400, "temperature": 0.2, "max_tokens": 300}


class ScriptedMeter(ScriptedProvider):
    """Answers `GET /v1/models` as docs/contracts.md has it, with what the test sets."""

    def __init__(self) -> None:
        super().__init__()
        self.model = "scripted/model-1"
        self.wire = "openai"
        self.tools = True
        self.context_tokens = 200_000
        self.profile: dict[str, Any] | None = None
        self.connected = True

    async def _answer(self, connection: Connection, request: Request) -> None:
        if request.wire != "models":
            await super()._answer(connection, request)
            return
        row = {
            "id": self.model,
            "object": "model",
            "owned_by": "scripted",
            "alcove": {
                "default": True,
                "wire": self.wire,
                "tools": self.tools,
                "context_tokens": self.context_tokens,
                "max_output_tokens": 8192,
                "demo": self.profile is not None,
                "profile": self.profile,
            },
        }
        body = json.dumps({"object": "list", "data": [row] if self.connected else []}).encode()
        await connection.head(200, length=len(body))
        await connection.body(body)
        await connection.end()
