"""The base of every shape."""

import re
from typing import get_args

from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator

# No database takes these: a zero byte (PostgreSQL), half of a surrogate pair, which JSON can spell (any).
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class Shape(BaseModel):
    """Base of every shape: an unknown field is refused, so that a slip of the pen is never silent.

    So is `false` for 0, `"5"` for 5 and 1 for true: nothing is read as something near.
    """

    model_config = ConfigDict(extra="forbid")

    @field_validator("*", mode="before")
    @classmethod
    def _as_it_is(cls, value: object, info: ValidationInfo) -> object:
        wanted = cls.model_fields[info.field_name or ""].annotation
        kinds = (wanted, *get_args(wanted))
        if int in kinds and str not in kinds and isinstance(value, bool | str):
            raise ValueError("must be a whole number")
        if bool in kinds and value is not None and not isinstance(value, bool):
            raise ValueError("must be true or false")
        return value

    @field_validator("*")
    @classmethod
    def _can_be_stored(cls, value: object) -> object:
        texts = value if isinstance(value, list) else [value]
        if any(isinstance(text, str) and _UNSTORABLE.search(text) for text in texts):
            raise ValueError("a text has no zero byte and no half of a character in it")
        return value
