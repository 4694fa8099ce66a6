"""Values that reach a plan in clear and must leave it otherwise: as secrets, or as not known yet.

A plan is made from plain values. So whatever it writes is looked through: a text with a secret in it becomes
a secret of the engine, and in a preview a text with a stand-in in it is not known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pulumi
from pulumi import _types
from pulumi.output import UNKNOWN

from package.arguments import NOT_KNOWN

HIDDEN = "[secret]"


@dataclass(frozen=True, kw_only=True)
class Shadows:
    """Texts to look for."""

    secrets: frozenset[str]
    stood_in: bool
    """Something stands in for a text that is not known yet."""

    def __bool__(self) -> bool:
        return bool(self.secrets) or self.stood_in

    def without(self, text: str) -> str:
        """A text without secrets, for people."""
        for secret in self.secrets:
            text = text.replace(secret, HIDDEN)
        return text

    def over(self, value: Any) -> Any:
        """A value, with outputs in the place of texts that must not leave in clear."""
        if not self:
            return value
        if isinstance(value, pulumi.Output):
            return value.apply(lambda known: pulumi.Output.from_input(self.over(known)))
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, Mapping):
            return {key: self.over(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.over(each) for each in value]
        if _types.is_input_type(type(value)):
            return type(value)(**{key: self.over(each) for key, each in vars(value).items()})
        return value

    def _text(self, text: str) -> Any:
        if self.stood_in and NOT_KNOWN in text:
            return pulumi.Output.from_input(UNKNOWN)
        if any(secret in text for secret in self.secrets):
            return pulumi.Output.secret(text)
        return text
