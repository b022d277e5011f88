"""What may stand in a path or in a query of the control listener, as types."""

from typing import Annotated

from fastapi import Path, Query

TenantId = Annotated[str, Path(pattern=r"^[a-z2-7]{16}$")]
Name = Annotated[str, Path(pattern=r"^[A-Za-z0-9_.:-]{1,64}$")]
ModelName = Annotated[str, Path(pattern=r"^[^\x00-\x1f\x7f]{1,264}$")]
Moment = Annotated[int, Query(ge=0, le=2**53)]
Whose = Annotated[str | None, Query(pattern=r"^[a-z2-7]{16}$")]
