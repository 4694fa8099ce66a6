"""A resource as a policy sees it, whether the engine asks or a test does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

Props = Mapping[str, Any]
Config = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Resource:
    """One resource of the stack, with the inputs that its provider gets."""

    type: str
    """aws:s3/bucket:Bucket."""
    name: str
    urn: str
    props: Props
    protect: bool = False
    default_tags: Mapping[str, str] = field(default_factory=dict)
    """Tags that its provider sets on everything."""
    needs: frozenset[str] = frozenset()
    """URNs of the resources whose outputs are among its inputs."""

    def part(self, *path: str) -> Any:
        """The value at a path; None where one of its keys is missing."""
        value: Any = self.props
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    @property
    def is_kubernetes(self) -> bool:
        return self.type.startswith("kubernetes:")

    def statements(self, field_name: str) -> list[Props]:
        """Statements of the IAM document in a property, which is JSON."""
        document = self.part(field_name)
        return as_list(json.loads(document).get("Statement")) if isinstance(document, str) else []


def default_tags(provider: Props) -> Mapping[str, str]:
    """Tags that an AWS provider sets on everything. The engine has what is nested in a provider's inputs as JSON."""
    given = provider.get("defaultTags") or "{}"
    return (json.loads(given) if isinstance(given, str) else given).get("tags") or {}


Check = Callable[[Resource, Config], Iterator[str]]
StackCheck = Callable[[list[Resource], Config], Iterator[tuple[str, str]]]
"""Yields the URN of a resource, and what is wrong with it."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One policy. A violation is a sentence that begins with "must"."""

    name: str
    description: str
    fix: str
    """Remedy for a violation: a setting of the stack file, where one does it."""
    check: Check | None = None
    """Check of each resource by itself."""
    stack_check: StackCheck | None = None
    """Check of all resources together."""
    advisory: bool = False
    """A violation is a warning, unless the configuration says "mandatory"."""
    config: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """JSON schema of each setting of a security team, with one example: a number or a list of texts. A
    setting without a default is required where the policy is on."""

    @property
    def needs_config(self) -> tuple[str, ...]:
        return tuple(key for key, schema in self.config.items() if "default" not in schema)


def as_list(value: Any) -> list[Any]:
    """IAM takes one thing where it takes a list."""
    if value is None:
        return []
    return [*value] if isinstance(value, Sequence) and not isinstance(value, str) else [value]
