"""Questions of `trainyard check --live` about the policy that limits every role of a stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trainyard.live.questions.account import Account
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError
from trainyard.rules.access import account_of


def boundary_checks(
    account: Account, plan: EnvironmentPlan, caller: str
) -> dict[str, Callable[[], Iterable[InputError]]]:
    """The question about the permissions boundary, where the stack file has one."""
    boundary = plan.identity.permissions_boundary
    if boundary is None:
        return {}
    return {
        "permissions boundary": lambda: boundary_errors(
            boundary, account_of(caller), account.has_policy(boundary)
        )
    }


def boundary_errors(boundary: str, account: str, exists: bool) -> Iterator[InputError]:
    """A policy that IAM takes for no role of `account`: it must be there, and be the account's own or
    one of AWS (IAM User Guide, access_policies_boundaries)."""
    owner = account_of(boundary)
    if exists and owner in (account, "aws"):
        return
    yield InputError(
        path="environment.permissions_boundary",
        must=f"be an IAM policy of account {account}, or one of AWS",
        got=f"{boundary}, which does not exist" if owner in (account, "aws") else boundary,
        fix="create it, or write the ARN of one that exists",
    )
