"""Parameters that several routes take."""

from typing import Annotated

from fastapi import Depends, Path

from infra.kit import ids
from infra.kit.errors import AlcoveError


def _tenant(tenant: Annotated[str, Path()]) -> str:
    if not ids.is_tenant_id(tenant):
        raise AlcoveError("invalid", "a tenant's id is 16 characters of a-z2-7", reason="tenant")
    return tenant


Tenant = Annotated[str, Depends(_tenant)]
