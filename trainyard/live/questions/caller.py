"""Calls to an AWS account: with which identity, how long, and all pages of an answer. The
questions: account.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from threading import Lock
from typing import Any, TypeVar

from trainyard.derive.credentials import aws_session
from trainyard.plans.access import AccessPlan

TIMEOUTS = {
    "connect_timeout": 2,
    "read_timeout": 3,
    "retries": {"total_max_attempts": 3, "mode": "standard"},
}
"""Seconds, and two retries: a page of an answer takes at most 18 seconds."""
CLIENTS = (
    "sts",
    "ce",
    "cloudwatch",
    "ec2",
    "ecr",
    "eks",
    "iam",
    "kms",
    "logs",
    "secretsmanager",
    "service-quotas",
    "ssm",
    "fsx",
    "s3",
)
"""By the prefix of their IAM actions, as botocore calls them."""
Filters = dict[str, Sequence[str]]
T = TypeVar("T")


class NotAnswered(Exception):
    """A call that was denied or failed: its name, and the reason."""


def once(ask: Callable[[], T]) -> Callable[[], T]:
    """A question of several checks, which run at once: the first of them asks, and the others wait for
    its answer. A question that failed is asked again."""
    lock, remembered = Lock(), cache(ask)

    def answer() -> T:
        with lock:
            return remembered()

    return answer


class Caller:
    """Identity that asks: as the AWS CLI (AWS_PROFILE, AWS_ENDPOINT_URL), or with the profile and
    the roles of the stack file."""

    def __init__(self, access: AccessPlan) -> None:
        self._access = access

    def _ask(
        self,
        action: str,
        *,
        filters: Filters | None = None,
        unless: str | tuple[str, ...] = "-",
        **asked: Any,
    ) -> dict[str, Any]:
        """All pages of the answer; empty where the refusal's code begins with `unless`, or with one of
        them."""
        from botocore import exceptions, xform_name

        service, _, operation = action.partition(":")
        if filters:
            asked["Filters"] = [
                {"Name": name, "Values": [*values]} for name, values in filters.items()
            ]
        try:
            client, method = self._clients[service], xform_name(operation)
            if client.can_paginate(method):
                return client.get_paginator(method).paginate(**asked).build_full_result()
            return getattr(client, method)(**asked)
        except (exceptions.BotoCoreError, exceptions.ClientError) as error:
            why = (
                error.response["Error"]["Code"]
                if isinstance(error, exceptions.ClientError)
                else str(error)
            )
            if why.startswith(unless):
                return {}
            raise NotAnswered(f"{action}: {why}") from error

    @cached_property
    def _session(self) -> Any:
        """A botocore session; NotAssumed where AWS refuses a role of the stack file."""
        from botocore import config

        return aws_session(self._access, config.Config(**TIMEOUTS))

    @cached_property
    def _clients(self) -> dict[str, Any]:
        """By IAM prefix; made by the first question, before there are threads: botocore is slow to
        load."""
        from botocore import config

        settings = config.Config(**TIMEOUTS)
        make = self._session.create_client
        return {
            name.replace("-", ""): make(name, self._access.region, config=settings)
            for name in CLIENTS
        } | {"elasticfilesystem": make("efs", self._access.region, config=settings)}
