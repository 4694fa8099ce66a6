"""Roles that enter a cluster: looked up before anything is made. EKS refuses the access entry of a role that
does not exist, in the middle of an update."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pulumi
import pulumi_aws as aws

from components.base.account import caller_identity
from trainyard.plans.access import Entrant

NOT_THERE = ("couldn't find resource", "NoSuchEntity", "ResourceNotFoundException")
"""Text of the AWS provider for a role, a cluster or an access entry that does not exist."""


def require(
    entrants: Sequence[Entrant], cluster_name: str, account: pulumi.ProviderResource
) -> None:
    """End an update with all roles that are missing, and warn of them in a preview: a role can be made until
    then. Roles of other accounts, and of an account that may not be asked, are left to EKS. So is a role
    that somebody has deleted since its access entry was made: the entry stays, and changes nothing."""
    if not entrants:
        return
    ask = pulumi.InvokeOptions(provider=account)
    own = caller_identity(ask).account_id
    missing = [
        each.refusal
        for each in entrants
        if each.account == own
        and _absent(lambda each=each: aws.iam.get_role(name=each.name, opts=ask))
        and _absent(
            lambda each=each: aws.eks.get_access_entry(
                cluster_name=cluster_name, principal_arn=each.arn, opts=ask
            )
        )
    ]
    if missing and pulumi.runtime.is_dry_run():
        for each in missing:
            pulumi.warn(each)
    elif missing:
        raise pulumi.RunError("\n".join(["roles are missing; nothing was changed", *missing]))


def _absent(look_up: Callable[[], object]) -> bool:
    """True where the provider says that there is no such thing. An error that says something else proves
    nothing."""
    try:
        look_up()
    except Exception as error:  # the SDK has no type for what a provider answers
        return any(words in str(error) for words in NOT_THERE)
    return False
