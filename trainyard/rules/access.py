"""Errors about `aws:` settings and a `deployer_role_arn` that cannot work. Their plan:
trainyard/derive/access.py."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trainyard.derive.cluster import named_roles
from trainyard.derive.credentials import NotAssumed
from trainyard.objects.iam.policies import ADMIN_POLICY
from trainyard.plans.access import AccessPlan
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.rules.environment import TAGS, tag_errors
from trainyard.settings.aws import AwsConfig
from trainyard.settings.cluster import ClusterConfig


def access_errors(access: AccessPlan, aws: AwsConfig) -> Iterator[InputError]:
    """Settings of the account that contradict one another, in any stack file."""
    if aws.assumeRole and aws.assumeRoles:
        yield At("aws:assumeRole").must(
            "not be set beside aws:assumeRoles",
            got=aws.assumeRole.roleArn,
            fix="delete it, and list the role in aws:assumeRoles, in the order of assumption",
            write=REMOVE,
        )
    if aws.allowedAccountIds and aws.forbiddenAccountIds:
        yield At("aws:forbiddenAccountIds").must(
            "not be set beside aws:allowedAccountIds",
            got=", ".join(aws.forbiddenAccountIds),
            fix="delete it: an account that is not allowed is refused anyway",
            write=REMOVE,
        )
    yield from _durations(aws)
    last = access.roles[-1] if access.roles else None
    if last and last.external_id:
        yield At("aws:assumeRoles").must(
            "end with a role without externalId, because `aws eks get-token` cannot pass one",
            got=last.arn,
            fix="delete the role here, write role_arn, source_profile and external_id into a profile"
            " of ~/.aws/config, and name that profile in aws:profile",
        )
    if last and (why := access.refuses(account_of(last.arn))):
        yield At("aws:assumeRoles" if aws.roles else "environment.cluster.deployer_role_arn").must(
            "end in an account that the stack file allows",
            got=last.arn,
            fix=f"name a role of another account, or change {why}",
        )


SESSION_MINUTES = range(15, 12 * 60 + 1)
"""Length of a session that STS gives (AssumeRole, DurationSeconds)."""


def _durations(aws: AwsConfig) -> Iterator[InputError]:
    for role in aws.roles:
        units = {"h": 60.0, "m": 1.0, "s": 1 / 60}
        parts = re.findall(r"(\d+)([hms])", role.duration or "")
        minutes = sum(int(number) * units[unit] for number, unit in parts)
        if parts and not SESSION_MINUTES[0] <= minutes <= SESSION_MINUTES[-1]:
            at = "aws:assumeRole.duration" if aws.assumeRole else "aws:assumeRoles"
            nearest = "15m" if minutes < SESSION_MINUTES[0] else "12h"
            yield At(at).must(
                "be from 15m to 12h, as STS gives sessions",
                got=role.duration,
                fix=f"write {nearest}",
            )


def environment_access_errors(
    access: AccessPlan, aws: AwsConfig, cluster: ClusterConfig, tags: Mapping[str, str]
) -> Iterator[InputError]:
    """Errors about the access of an environment, which creates a cluster. `tags`:
    environment.tags."""
    yield from access_errors(access, aws)
    deployer = cluster.deployer_role_arn
    if deployer and access.role_arn and deployer != access.role_arn:
        yield At("environment.cluster.deployer_role_arn").must(
            "be the last role of aws:assumeRoles, where both are set",
            got=deployer,
            fix=f"delete it: {access.role_arn} is assumed",
            write=REMOVE,
        )
    for role in named_roles(cluster):
        if access.role_arn and role.arn == access.role_arn:
            yield At(role.path).must(
                "not be the role that creates the cluster: EKS makes it an admin, and answers"
                " 409 to a second access entry",
                got=role.arn,
                write=REMOVE,
            )
    default = dict(access.default_tags)
    yield from tag_errors("aws:defaultTags.tags", default)
    if default and len(default) <= TAGS < len({**default, **tags}):
        yield At("aws:defaultTags.tags").must(
            f"have at most {TAGS} tags together with environment.tags",
            got=len({**default, **tags}),
            fix=f"delete {len({**default, **tags}) - TAGS} of them",
        )


def team_access_errors(
    access: AccessPlan, aws: AwsConfig, deployer: str | None
) -> Iterator[InputError]:
    """Errors about the access of a team, which has a kubeconfig and creates nothing in AWS.
    `deployer`: the role that the environment lists for it; None where it lists none."""
    yield from access_errors(access, aws)
    if deployer and aws.roles and access.role_arn != deployer:
        yield At("aws:assumeRole" if aws.assumeRole else "aws:assumeRoles").must(
            "end in the deployer that the environment names for the team",
            got=access.role_arn,
            fix=f"delete it: {deployer} is assumed",
            write=REMOVE,
        )
    if access.default_tags:
        yield At("aws:defaultTags").not_set(
            "in a team's stack file, which creates nothing in AWS",
            got=", ".join(dict(access.default_tags)),
            instead="move it into the environment's stack file",
        )


def access_warnings(access: AccessPlan) -> Iterator[InputWarning]:
    """Settings that work only with the right trust policies."""
    if len(access.roles) > 1:
        yield At("aws:assumeRoles").warning(
            f"`aws eks get-token` assumes {access.role_arn} directly. That role must trust the"
            f" caller, not only {access.roles[-2].arn}; if it does not, write the roles before it"
            " into a profile of ~/.aws/config (role_arn, source_profile) and name that profile"
            " in aws:profile"
        )


def account_findings(access: AccessPlan, caller: str) -> Iterator[InputError]:
    """An account that the stack file does not allow; the AWS provider refuses it too."""
    account = account_of(caller)
    if setting := access.refuses(account):
        listed = access.forbidden_account_ids or access.allowed_account_ids
        yield At(setting).must(
            f"allow the account of the caller, {account}",
            got=", ".join(listed),
            fix=f"log in to another account, or change {setting}",
        )


def role_finding(access: AccessPlan, refused: NotAssumed) -> InputError:
    """A role that AWS does not let the caller assume."""
    return At("aws:assumeRoles or environment.cluster.deployer_role_arn").must(
        "be a role that the caller may assume",
        got=refused,
        fix="name the caller in the role's trust policy, log in as somebody else"
        f"{' by another aws:profile' if access.profile else ''}, or delete the role here if the"
        " caller has it already",
    )


def entry_findings(region: str, cluster: str, role: str, may_enter: bool) -> Iterator[InputError]:
    """A cluster that another identity created and that does not admit the role."""
    if not may_enter:
        of = f"--region {region} --cluster-name {cluster} --principal-arn {role}"
        yield At("environment.cluster").must(
            "have an access entry for the role that the stack assumes",
            got=f"none for {role} in {cluster}, which another identity created",
            fix=f"run `aws eks create-access-entry {of} && aws eks"
            f" associate-access-policy {of} --policy-arn {ADMIN_POLICY}"
            " --access-scope type=cluster` as an admin of the cluster",
        )


def account_of(arn: str) -> str:
    """The account that an ARN of IAM, STS or EKS lies in."""
    return arn.split(":")[4]
