"""The base of every shape."""

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """Base of every shape: an unknown field is refused, so that a slip of the pen is never silent."""

    model_config = ConfigDict(extra="forbid")
