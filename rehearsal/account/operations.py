"""Which function deals with which operation: the account's whole routing table, filled when its modules load.

    @answers("eks", "CreateCluster")      ours; moto is not asked
    refuses("ec2", "DeleteSubnet", …)     AWS's no, as a row: code, message, when
    @checks("ec2", "CreateRoute")         the same, where a row is too small: raises Refused
    @follows("ec2", "CreateNatGateway")   after it was done; may change the answer in place
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from moto.core.exceptions import ServiceException

from rehearsal.account import backends

Fields = dict[str, Any]

LOCK = threading.RLock()
"""moto is not safe for threads, and what was checked must still hold when the thing is done."""


class Refused(ServiceException):
    """AWS's own no: its error code, and a message that names the thing."""

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(code, message)
        self.status = status


class NotBuilt(Refused):
    """AWS could, the rehearsal's account cannot."""

    def __init__(self, what: str) -> None:
        super().__init__("NotImplemented", f"the rehearsal's account does not implement {what}", status=501)


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Who calls."""

    arn: str
    """Of the user, or of the role's session."""
    entity: str
    """ARN of the user or role: what an access entry names."""
    session: str | None = None
    """The role session's name; None for a user."""


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request, understood. call["Field"] is the field's value, None where it is not given."""

    service: str
    """botocore's name of the service."""
    prefix: str
    """The service's name in IAM actions, which is the one it signs with."""
    action: str
    region: str
    key: str
    """Access key id."""
    token: str | None
    """Session token."""
    params: Fields
    principal: Principal = field(default_factory=lambda: Principal(arn="", entity=""))

    def __getitem__(self, name: str) -> Any:
        return self.params.get(name)

    @property
    def name(self) -> str:
        return f"{self.prefix}:{self.action}"

    @property
    def ec2(self) -> Any:
        return backends.ec2(self.region)


F = TypeVar("F", bound=Callable[..., Any])

ANSWERS: dict[tuple[str, str], Callable[[Call], Any]] = {}
CHECKS: dict[tuple[str, str], list[Callable[[Call], None]]] = defaultdict(list)
FOLLOWS: dict[tuple[str, str], list[Callable[[Call, Fields], None]]] = defaultdict(list)


def answers(service: str, *actions: str) -> Callable[[F], F]:
    """The function answers these operations with the fields of their output."""
    def register(function: F) -> F:
        ANSWERS.update({(service, action): function for action in actions})
        return function
    return register


def checks(service: str, *actions: str) -> Callable[[F], F]:
    """The function may refuse these operations."""
    def register(function: F) -> F:
        for action in actions:
            CHECKS[service, action].append(function)
        return function
    return register


def follows(service: str, action: str) -> Callable[[F], F]:
    """The function goes on where the answer ended."""
    def register(function: F) -> F:
        FOLLOWS[service, action].append(function)
        return function
    return register


def refuses(service: str, actions: str, code: str, message: str, when: Callable[[Call], Any], *,
            status: int | None = None) -> None:
    """Refuse the operations when that is true. In the message, {Field} is the request's and {hit} what `when` said."""
    def check(call: Call) -> None:
        if hit := when(call):
            raise Refused(code, message.format_map(defaultdict(str, call.params | {"hit": hit})), status=status)

    checks(service, *actions.split())(check)
