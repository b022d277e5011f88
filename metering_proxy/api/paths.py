"""What may stand in a path or in a query of the control listener, as types."""

from typing import Annotated

from pydantic import Field

TenantId = Annotated[str, Field(pattern=r"^[a-z2-7]{16}$")]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
Moment = Annotated[int, Field(ge=0, le=2**53)]
Whose = Annotated[str | None, Field(pattern=r"^[a-z2-7]{16}$")]
