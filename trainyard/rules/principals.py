"""IAM roles that a stack file lets into the cluster and that must be there before: EKS refuses the access
entry of a role that does not exist, after minutes of an update.

An access entry of type STANDARD can name a role of another account than the cluster's (EKS user guide,
creating-access-entries). A team's deployer cannot be one: it reads the contract in the SSM of its own account.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from trainyard.derive.cluster import named_roles
from trainyard.derive.teams import principals, setting_of
from trainyard.plans.access import Entrant
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.aws import arn_of
from trainyard.settings.environment import EnvironmentConfig

SSO = ":role/aws-reserved/sso.amazonaws.com/"
"""Part of the ARN of a role that IAM Identity Center makes, and nobody else (IAM Identity Center user guide,
permission sets)."""


@dataclass(frozen=True, kw_only=True)
class Principal:
    """A role that enters the cluster."""

    path: str
    """The setting that names it."""
    arn: str

    @property
    def account(self) -> str:
        return self.arn.split(":")[4]

    @property
    def name(self) -> str:
        """Its name without its path, which IAM asks for."""
        return self.arn.rpartition("/")[2]


HOLDERS = ("environment.cluster.admins", "environment.cluster.viewers", "environment.teams")
"""Settings that name roles which enter the cluster."""


def entering(wanted: EnvironmentConfig) -> Iterator[Principal]:
    """Every role of a stack file that enters the cluster."""
    for role in named_roles(wanted.cluster):
        yield Principal(path=f"{role.path}.role_arn", arn=role.arn)
    for name, entry in wanted.teams.items():
        for role, arn in principals(entry):
            yield Principal(path=setting_of(name, role), arn=arn)


def entrants(wanted: EnvironmentConfig) -> tuple[Entrant, ...]:
    """The roles for the plan, each once."""
    told = {
        each.arn: Entrant(
            arn=each.arn,
            account=each.account,
            name=each.name,
            refusal="\n".join(map(str, principal_errors(each, None))),
        )
        for each in entering(wanted)
    }
    return tuple(told.values())


def principal_errors(principal: Principal, found: str | None) -> Iterator[InputError]:
    """Nothing where the account has the role. `found`: the ARN of its role of that name; None where it has
    none."""
    if found is not None and found != principal.arn:
        yield At(principal.path).must(
            "have the path of its role: EKS refuses the access entry of an ARN that no role has",
            got=principal.arn,
            write=found,
        )
    if found is None:
        made = f"run `{creation(principal)}`"
        if SSO in principal.arn:
            made = "assign the permission set to a group of this account in IAM Identity Center"
        yield InputError(
            path=principal.path,
            must="be a role that exists: EKS refuses the access entry of another one",
            got=principal.arn,
            fix=f"{made}, or name the role that your team has",
        )


def sso_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Roles of IAM Identity Center without their path. An access entry has the whole ARN (EKS user guide,
    creating-access-entries); sessions and other tools show it without."""
    for each in entering(wanted):
        if each.name.startswith("AWSReservedSSO_") and SSO not in each.arn:
            yield At(each.path).must(
                "have the path that IAM Identity Center gives its roles",
                got=each.arn,
                fix=f"write the ARN that `{arn_of(each.name)}` prints",
            )


def deployer_errors(wanted: EnvironmentConfig, ours: Collection[str]) -> Iterator[InputError]:
    """Deployers of teams that are not in the environment's account. `ours`: the accounts in which the
    environment can be; empty where nobody knows."""
    for name, entry in wanted.teams.items():
        deployer = Principal(path=setting_of(name, "deployer"), arn=entry.deployer)
        if ours and deployer.account not in ours:
            ids, own = " or ".join(sorted(ours)), min(ours)
            yield At(deployer.path).must(
                f"be a role of the environment's account, {ids}: the deployer reads the team's contract in"
                " Parameter Store of its own account",
                got=deployer.arn,
                fix=(
                    f"write {deployer.arn.replace(deployer.account, own, 1)}, and name {deployer.arn} in"
                    " the trust policy of that role if it must assume it"
                ),
            )


def foreign_warnings(wanted: EnvironmentConfig, ours: Collection[str]) -> Iterator[InputWarning]:
    """Roles of other accounts, which EKS admits. `ours`: as of deployer_errors()."""
    for each in entering(wanted):
        if ours and each.account not in ours and not each.path.endswith(".deployer"):
            yield At(each.path).warning(
                f"{each.arn} is a role of account {each.account} and not of the environment's,"
                f" {' or '.join(sorted(ours))}: EKS admits it, but trainyard check --live cannot ask"
                " whether it exists, and its people need the kubeconfig from you, because"
                " `aws eks update-kubeconfig` looks for the cluster in their own account"
            )


def creation(principal: Principal) -> str:
    """The command that makes a role which every identity of its account may assume that has a policy for
    it. Its path, such as that of IAM Identity Center, cannot be chosen."""
    partition = principal.arn.split(":")[1]
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"AWS": f"arn:{partition}:iam::{principal.account}:root"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    said = json.dumps(trust, separators=(",", ":"))
    return (
        f"aws iam create-role --role-name {principal.name} --assume-role-policy-document '{said}'"
    )


def creations_in(message: str) -> list[str]:
    """Commands that make the roles which a message of `principal_errors` misses."""
    return re.findall(r"run `(aws iam create-role [^`]*)`", message)


def unasked(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """A warning at the admins and one at the teams, each with its roles, for a check that does not ask the account."""
    found: dict[str, list[str]] = {}
    for each in entering(wanted):
        holder = next(it for it in HOLDERS if each.path.startswith(f"{it}."))
        found.setdefault(holder, []).append(each.name)
    for path, names in found.items():
        roles = [*dict.fromkeys(names)]
        yield InputWarning(
            path=path,
            text=(
                f"the IAM role{'s' * (len(roles) > 1)} {', '.join(roles)} must exist before `pulumi up`;"
                " trainyard check --live asks for each, and prints the command that makes one"
            ),
        )
