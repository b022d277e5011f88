"""The control listener against requests made up from its own description (schemathesis), on both databases.

Nothing that can be made up may end in a 500, and every answer is what the description says.
"""

import asyncio
import json
import re
import sys
from pathlib import Path

import pytest

from infra.kit import service
from metering_proxy import wire
from tests import scripted as s
from tests.metering_proxy.house import SECRET, House
from tests.scripted import ScriptedProvider

_CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,negative_data_rejection"
)


@pytest.mark.thorough
@pytest.mark.timeout(300)
async def test_no_request_that_can_be_made_up_breaks_the_admin_api(
    house: House, scripted: ScriptedProvider, tmp_path: Path
) -> None:
    await _check(house, scripted, tmp_path)


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_no_request_that_can_be_made_up_breaks_it_on_either_database(
    both: House, scripted: ScriptedProvider, tmp_path: Path
) -> None:
    await _check(both, scripted, tmp_path)


async def _check(house: House, scripted: ScriptedProvider, tmp_path: Path) -> None:
    await _lived_in(house, scripted)
    described = tmp_path / "openapi.json"
    described.write_text(json.dumps(house.meter.app.openapi()))
    async with service.serving(house.meter.app, "http://127.0.0.1:0") as url:
        code, output = await _schemathesis(described, url)
    assert code == 0, output[-8_000:]
    tested = re.search(r"Operations:\s+(\d+) selected", output)
    assert tested is not None, output[-2_000:]
    assert int(tested.group(1)) >= 25
    assert (await house.verdict()).whole


async def _lived_in(house: House, scripted: ScriptedProvider) -> None:
    """A meter that has seen a call, a grant and keys, so that there is something to break."""
    scripted.always(reply=s.text("x").using(1, 1))
    await house.connect(scripted)
    tenant = await house.tenant("plus")
    await tenant.chat()
    await house.entries(tenant)
    await house.client.put_grant(tenant.id, "g", wire.GrantRequest(amount_nanos=5))
    await house.client.create_api_key(tenant.id, wire.ApiKeyRequest(name="k"))


async def _schemathesis(described: Path, url: str) -> tuple[int, str]:
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "run", str(described), "--url", url),
        *("--header", f"Authorization: Bearer {SECRET}", "--checks", _CHECKS),
        *("--phases", "examples,coverage,fuzzing", "--max-examples", "12", "--no-color"),
        *("--seed", "1", "--request-timeout", "20", "--generation-database", "none"),
        # A probe calls out, and an address that was made up may take long to say no.
        *("--exclude-path", "/providers/{provider}/probes", "--warnings", "off"),
    ]
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=described.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        output, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode or 0, output.decode()
