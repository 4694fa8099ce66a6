"""IAM roles that a stack file lets into the cluster: whether the account has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from trainyard.live.questions.account import Account
from trainyard.problems import InputError
from trainyard.rules.principals import entering, principal_errors
from trainyard.settings.environment import EnvironmentConfig


def principal_checks(
    account: Account, wanted: EnvironmentConfig, caller: str
) -> Mapping[str, Callable[[], Iterator[InputError]]]:
    """A question for each role of the caller's account. Roles of other accounts cannot be asked for."""
    own = caller.split(":")[4]
    return {
        f"role {each.name}": lambda each=each: principal_errors(each, account.has_role(each.name))
        for each in entering(wanted)
        if each.account == own
    }
