"""The type of a section of a stack file: settings that need not be there, and cannot be empty."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import pydantic
from pydantic_core import CoreSchema

T = TypeVar("T")


class _NeverEmpty:
    """Refuses null, which would otherwise mean the same as no section: whoever writes `history:` with
    nothing behind it wants the history, with the defaults of its settings."""

    def __get_pydantic_core_schema__(
        self, source: Any, handler: pydantic.GetCoreSchemaHandler
    ) -> CoreSchema:
        schema = handler(source)
        assert schema["type"] == "nullable"
        return schema["schema"]


Section = Annotated[T | None, _NeverEmpty()]
"""`Section[X] = None`: an X, or no such section in the file."""
