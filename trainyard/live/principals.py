"""IAM roles that a stack file lets into the cluster: whether the account has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainyard.live.questions.account import Account
from trainyard.problems import InputError, InputWarning
from trainyard.rules.principals import (
    deployer_errors,
    entering,
    foreign_warnings,
    principal_errors,
)
from trainyard.settings.environment import EnvironmentConfig


def principal_checks(
    account: Account, wanted: EnvironmentConfig, caller: str
) -> Mapping[str, Callable[[], Iterator[InputError | InputWarning]]]:
    """A question for each role of the caller's account, and what must be known of roles of other accounts, which
    cannot be asked for."""
    own = caller.split(":")[4]

    def of_others() -> Iterator[InputError | InputWarning]:
        yield from deployer_errors(wanted, {own})
        yield from foreign_warnings(wanted, {own})

    return {"roles of other accounts": of_others} | {
        f"role {each.name}": lambda each=each: principal_errors(each, account.role_arn(each.name))
        for each in entering(wanted)
        if each.account == own
    }
