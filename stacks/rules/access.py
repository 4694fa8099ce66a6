"""What is refused of the `aws:` settings and of `deployer_role_arn`. What follows from them:
stacks/derive/access.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from plans.parts import AccessPlan
from plans.policies import ADMIN_POLICY
from stacks.derive.credentials import NotAssumed
from stacks.rules.environment import TAGS, tag_errors
from stacks.settings.aws import AwsConfig
from stacks.settings.environment import ClusterConfig
from stacks.settings.problems import InputError, InputWarning


def access_errors(access: AccessPlan, aws: AwsConfig) -> Iterator[InputError]:
    """Settings of the account that contradict one another, in any stack file."""
    if aws.assumeRole and aws.assumeRoles:
        yield InputError(
            path="aws:assumeRole",
            must="not be set beside aws:assumeRoles",
            got=aws.assumeRole.roleArn,
            fix="put it into aws:assumeRoles, first the role that is assumed first",
        )
    if aws.allowedAccountIds and aws.forbiddenAccountIds:
        yield InputError(
            path="aws:forbiddenAccountIds",
            must="not be set beside aws:allowedAccountIds",
            got=", ".join(aws.forbiddenAccountIds),
            fix="drop it: an account that is not allowed is refused",
        )
    last = access.roles[-1] if access.roles else None
    if last and last.external_id:
        yield InputError(
            path="aws:assumeRoles",
            must="end with a role without externalId, as `aws eks get-token` can give none",
            got=last.arn,
            fix=(
                "put role_arn, source_profile and external_id into a profile of ~/.aws/config, and"
                " set aws:profile to it instead of this role"
            ),
        )
    if last and (why := access.refuses(account_of(last.arn))):
        yield InputError(
            path="aws:assumeRoles" if aws.roles else "environment.cluster.deployer_role_arn",
            must="lead into an account that the stack file allows",
            got=last.arn,
            fix=f"take a role of another account, or change {why}",
        )


def environment_access_errors(
    access: AccessPlan, aws: AwsConfig, cluster: ClusterConfig, tags: Mapping[str, str]
) -> Iterator[InputError]:
    """The same, where there is a cluster to make. `tags`: environment.tags."""
    yield from access_errors(access, aws)
    deployer = cluster.deployer_role_arn
    if deployer and access.role_arn and deployer != access.role_arn:
        yield InputError(
            path="environment.cluster.deployer_role_arn",
            must="be the last role of aws:assumeRoles, where both are set",
            got=deployer,
            fix=f"drop it: {access.role_arn} is assumed",
        )
    for name, admin in cluster.admins.items():
        if access.role_arn and admin.role_arn == access.role_arn:
            yield InputError(
                path=f"environment.cluster.admins.{name}",
                must=(
                    "be another role than the one that makes the cluster, which is an admin of"
                    " it: EKS answers 409 to a second access entry"
                ),
                got=admin.role_arn,
                fix="drop it",
            )
    default = dict(access.default_tags)
    yield from tag_errors("aws:defaultTags.tags", default)
    if default and len(default) <= TAGS < len({**default, **tags}):
        yield InputError(
            path="aws:defaultTags.tags",
            must=f"be at most {TAGS} together with environment.tags",
            got=str(len({**default, **tags})),
            fix="drop some",
        )


def team_access_errors(access: AccessPlan, aws: AwsConfig) -> Iterator[InputError]:
    """The same, where there is only a kubeconfig."""
    yield from access_errors(access, aws)
    if access.default_tags:
        yield InputError(
            path="aws:defaultTags",
            must="not be set in a team's stack file, which makes nothing in AWS",
            got=", ".join(dict(access.default_tags)),
            fix="drop it, or set it in the environment's stack file",
        )


def access_warnings(access: AccessPlan) -> Iterator[InputWarning]:
    """What works only if the account is as it must be."""
    if len(access.roles) > 1:
        yield InputWarning(
            path="aws:assumeRoles",
            text=(
                f"`aws eks get-token` assumes {access.role_arn} directly: it must trust the caller,"
                f" not only {access.roles[-2].arn}; if it does not, put the roles before it into a"
                " profile of ~/.aws/config (role_arn, source_profile) and set aws:profile to it"
            ),
        )


def account_findings(access: AccessPlan, caller: str) -> Iterator[InputError]:
    """The account, where the stack file does not allow it; the AWS provider refuses it then."""
    account = account_of(caller)
    if setting := access.refuses(account):
        yield InputError(
            path=setting,
            must="admit the account that answers",
            got=account,
            fix=f"log in to another account, or change {setting}",
        )


def role_finding(access: AccessPlan, refused: NotAssumed) -> InputError:
    """A role that AWS does not let the caller assume."""
    return InputError(
        path="aws:assumeRoles or environment.cluster.deployer_role_arn",
        must="be a role that the caller may assume",
        got=str(refused),
        fix=(
            "name the caller in the role's trust policy, log in as somebody else"
            f"{' by another aws:profile' if access.profile else ''}, or drop the role where the"
            " caller has it already"
        ),
    )


def entry_findings(region: str, cluster: str, role: str, may_enter: bool) -> Iterator[InputError]:
    """A cluster that somebody else has made does not know the role that is assumed now."""
    if not may_enter:
        of = f"--region {region} --cluster-name {cluster} --principal-arn {role}"
        yield InputError(
            path="environment.cluster",
            must="have an access entry for the role that is assumed now",
            got=f"none for {role} in {cluster}, which another identity has made",
            fix=(
                f"as an admin of it run `aws eks create-access-entry {of} && aws eks"
                f" associate-access-policy {of} --policy-arn {ADMIN_POLICY}"
                " --access-scope type=cluster`"
            ),
        )


def account_of(arn: str) -> str:
    """The account that an ARN of IAM, STS or EKS lies in."""
    return arn.split(":")[4]
