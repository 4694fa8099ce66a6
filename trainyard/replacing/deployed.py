"""Resources that a stack has since its last update, as the engine knows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

Outputs = Mapping[str, Any]


class UnknownStackError(LookupError):
    """The engine's backend has no stack of this name."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Resources of a stack, as far as somebody asks for them."""

    resources: Mapping[tuple[str, str], Outputs] = field(default_factory=dict)
    """(type, logical name) → outputs, without the id."""

    def names(self, *types: str) -> set[str]:
        """Logical names of the resources of these types."""
        return {name for kind, name in self.resources if kind in types}

    def output(self, kind: str, name: str, path: str) -> Any:
        """One output, by its path such as vpcConfig.vpcId; None where there is none."""
        found: Any = self.resources.get((kind, name))
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found


Ask = Callable[[Collection[str], str | None], Deployed]
"""Ask the engine: types of resources, and a stack of this project, by default the one that is updated →
what it holds. Raises UnknownStackError where there is no such stack."""
