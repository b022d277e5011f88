"""What crosses the control listener is what it says: nothing is read as something near."""

from typing import Any

import pytest
from pydantic import ValidationError

from metering_proxy import wire
from metering_proxy.wire.shape import Shape


@pytest.mark.parametrize(
    ("shape", "said", "field"),
    [
        (wire.ProviderChange, {"enabled": 0}, "enabled"),
        (wire.ProviderChange, {"make_default": 1}, "make_default"),
        (wire.ProviderChange, {"enabled": "no"}, "enabled"),
        (wire.GrantRequest, {"amount_nanos": True}, "amount_nanos"),
        (wire.GrantRequest, {"amount_nanos": "5"}, "amount_nanos"),
        (wire.GrantRequest, {"amount_nanos": 5, "expires_at": False}, "expires_at"),
        (wire.GrantRequest, {"amount_nanos": 5, "note": "a\0b"}, "note"),
        (wire.GrantRequest, {"amount_nanos": 5, "remark": "x"}, "remark"),
    ],
)
def test_value_is_refused_when_it_is_only_near(
    shape: type[Shape], said: dict[str, Any], field: str
) -> None:
    with pytest.raises(ValidationError) as caught:
        shape.model_validate(said)
    assert [error["loc"] for error in caught.value.errors()] == [(field,)]


def test_null_stands_for_what_is_not_said() -> None:
    assert wire.ProviderChange(enabled=None).enabled is None
    assert wire.GrantRequest(amount_nanos=5, expires_at=None).expires_at is None
