"""One refusal of pydantic, and how its place and its value are shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.problems import InputError


@dataclass(frozen=True, kw_only=True)
class Mistake:
    """One error of pydantic."""

    steps: tuple[str, ...]
    """The path to the value."""
    type: str
    """Pydantic's name for what is wrong."""
    value: Any
    limits: Mapping[str, Any]
    """The bound, pattern or choices that the value breaks."""
    is_key: bool
    """The last step is itself what is wrong: the name of a pool, for example."""
    in_manifest: bool
    """The setting stands in a job that is a YAML file."""
    written: str
    """The value's characters in the stack file, where they are known and it is no text."""

    @property
    def path(self) -> str:
        return path_of(self.steps)

    @property
    def text(self) -> str:
        """The value as the file writes it; a text without its quotes."""
        return self.value if isinstance(self.value, str) else self.written or shown(self.value)

    @property
    def key(self) -> str:
        return self.steps[-1]

    def error(self, must: str, fix: str, write: Any = None) -> InputError:
        return InputError(
            path=self.path, must=must, got=self.written or shown(self.value), fix=fix, write=write
        )


def path_of(steps: Sequence[Any]) -> str:
    """aws:assumeRoles.0.roleArn, as the stack file writes it; or environment.zone."""
    first, *rest = map(str, steps)
    if first == "region":
        return "aws:region"
    return f"aws:{'.'.join(rest)}" if first == "aws" else ".".join((first, *rest))


def shown(value: Any) -> str:
    """A value as JSON, cut to 80 characters, without what is encrypted in it."""
    return json.dumps(_without_secrets(value), default=str)[:80]


def _without_secrets(value: Any) -> Any:
    if isinstance(value, dict):
        if "secure" in value:
            return "a secret"
        return {str(key): _without_secrets(item) for key, item in value.items()}
    return [_without_secrets(item) for item in value] if isinstance(value, list) else value
