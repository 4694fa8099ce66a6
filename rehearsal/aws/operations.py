"""Functions that deal with operations: the account's whole routing table, filled when its modules
load.

@answers("eks", "CreateCluster")      ours; moto is not asked
refuses("ec2", "DeleteSubnet", …)     AWS's no, as a row: code, message, when
@follows("ec2", "CreateNatGateway")   after it was done; may change the answer in place
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from moto.core.exceptions import ServiceException

from rehearsal.aws import backends

Fields = dict[str, Any]

LOCK = threading.RLock()
"""moto is not safe for threads, and what was checked must still hold when the thing is done."""


class Refused(ServiceException):
    """AWS's own no: its error code, and a message that names the thing."""

    def __init__(self, code: str, message: str, *, status: int | None = None) -> None:
        super().__init__(code, message)
        self.status = status


def refuse(when: Any, code: str, message: str) -> None:
    """Refused, if that is so."""
    if when:
        raise Refused(code, message)


class NotBuilt(Refused):
    """AWS could, the rehearsal's account cannot."""

    def __init__(self, what: str) -> None:
        super().__init__(
            "NotImplemented", f"the rehearsal's account does not implement {what}", status=501
        )


@dataclass(frozen=True, kw_only=True)
class Principal:
    """Caller of an operation."""

    arn: str
    """ARN of the user, or of the role's session."""
    entity: str
    """ARN of the user or role: what an access entry names."""
    session: str | None = None
    """The role session's name; None for a user."""


@dataclass(kw_only=True)
class Call:
    """One request, understood. call["Field"] is the field's value, None where it is not given."""

    service: str
    """botocore's name of the service."""
    prefix: str
    """The service's name in IAM actions, which is the one it signs with."""
    operation: Any
    """botocore's model of it."""
    protocol: str
    region: str
    key: str
    """Access key id."""
    token: str | None
    """Session token."""
    params: Fields
    principal: Principal = Principal(arn="", entity="")

    def __getitem__(self, name: str) -> Any:
        return self.params.get(name)

    @property
    def action(self) -> str:
        return str(self.operation.name)

    @property
    def name(self) -> str:
        return f"{self.prefix}:{self.action}"

    @property
    def ec2(self) -> Any:
        return backends.ec2(self.region)


F = TypeVar("F", bound=Callable[..., Any])

ANSWERS: dict[tuple[str, str], Callable[[Call], Any]] = {}
CHECKS: dict[tuple[str, str], list[Callable[[Call], None]]] = defaultdict(list)
FOLLOWS: dict[tuple[str, str], Callable[[Call, Fields], None]] = {}


def _into(table: dict[tuple[str, str], Any]) -> Callable[..., Callable[[F], F]]:
    def register(service: str, *actions: str) -> Callable[[F], F]:
        return lambda function: (
            table.update({(service, action): function for action in actions}) or function
        )

    return register


answers = _into(ANSWERS)
"""The function answers these operations of the service with the fields of their output."""
follows = _into(FOLLOWS)
"""The function goes on where the answer ended."""


def refuses(
    service: str,
    actions: str,
    code: str,
    message: str,
    when: Callable[[Call], Any],
    *,
    status: int | None = None,
    first: bool = False,
) -> None:
    """Refuse the operations when that is true. In the message, {Field} is the request's and {hit}
    what `when` said. `first`: before whatever else would refuse them."""

    def check(call: Call) -> None:
        if hit := when(call):
            raise Refused(
                code,
                message.format_map(defaultdict(str, call.params | {"hit": hit})),
                status=status,
            )

    for action in actions.split():
        checks = CHECKS[service, action]
        checks.insert(0 if first else len(checks), check)
