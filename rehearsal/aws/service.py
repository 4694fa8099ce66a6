"""Row of a service of AWS, in its own file: all that the rest of the account asks of it.

A service is such a file in own/. Whatever the row leaves out is as with a service that
moto answers, whose calls ask for any resource and which makes nothing that lasts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any

from rehearsal.aws.operations import Call

Passed = tuple[str, str]
"""Name or ARN of a role, and the service of AWS that gets it."""
Row = tuple[str, str, str, Any, Any]
"""Type, id, name, state, tags in any of AWS's forms."""


def _nothing(*_: Any) -> tuple[()]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Use:
    """Question that a call of a service puts to KMS."""

    key: Callable[[Call], str | None]
    """ARN of the key; None where the call names none."""
    via: str
    """The service, as kms:ViaService names it."""
    actions: tuple[str, ...]
    service: str = ""
    """Service that asks KMS, where the caller does not; {region} is filled in."""
    code: str = "AccessDeniedException"


@dataclass(frozen=True, kw_only=True)
class Service:
    """One service."""

    name: str
    """botocore's."""
    signs_as: str = ""
    """The name that it signs with, where that is another one."""
    ours: bool = False
    """True where moto is not asked: a call without an answer of ours is not implemented."""
    actions: Mapping[str, str] = field(default_factory=dict)
    """Call → the action that a policy names for it, where the two differ (Service Authorization
    Reference)."""
    arns: Callable[[Call], Iterable[str]] = _nothing
    """The ARNs that a call names."""
    tags: Callable[[Call], Mapping[str, str]] = lambda call: {}
    """The tags of what a call names."""
    passes: Callable[[Call], Iterable[Passed]] = _nothing
    """The roles that a call hands to a service of AWS."""
    keys: Mapping[str, Use] = field(default_factory=dict)
    """Call → what it asks KMS."""
    things: Callable[[], Iterable[Row]] = _nothing
    """Things of the service that cost money or are in somebody's way."""
    kept: MutableMapping[str, Any] = field(default_factory=dict)
    """All that it remembers."""


SERVICES: dict[str, Service] = {}
"""Name → service."""


def register(service: Service) -> Service:
    """Let the account know the service."""
    SERVICES[service.name] = service
    return service
