"""The AWS provider: the one identity through which everything in AWS is made.

Which account, and as whom: the `aws:` settings of the stack file.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from trainyard.plans.access import AccessPlan

OTHER_ACCOUNT = "AWS account ID not allowed: "
"""Text of the AWS provider for credentials of an account that the stack file keeps out; the number follows."""


def aws_provider(name: str, plan: AccessPlan) -> aws.Provider:
    """The provider refuses an account that is not allowed when it is configured, before anything is
    made."""
    return aws.Provider(
        name,
        region=plan.region,
        profile=plan.profile,
        assume_roles=[
            aws.ProviderAssumeRoleArgs(
                role_arn=role.arn,
                session_name=role.session_name,
                external_id=role.external_id,
                duration=role.duration,
            )
            for role in plan.roles
        ]
        or None,
        allowed_account_ids=list(plan.allowed_account_ids) or None,
        forbidden_account_ids=list(plan.forbidden_account_ids) or None,
        default_tags=aws.ProviderDefaultTagsArgs(tags=dict(plan.default_tags))
        if plan.default_tags
        else None,
    )


def caller_identity(ask: pulumi.InvokeOptions) -> aws.GetCallerIdentityResult:
    """The account and the role of the credentials. Raises RunError where the stack file keeps the account out."""
    try:
        return aws.get_caller_identity(opts=ask)
    except Exception as error:  # the SDK has no type for what a provider answers
        _, other, number = str(error).partition(OTHER_ACCOUNT)
        if not other:
            raise
        raise pulumi.RunError(
            "aws:allowedAccountIds: must list the account of the credentials, and aws:forbiddenAccountIds must not; "
            f"got {number[:12]}. Fix: take the credentials of another account, such as AWS_PROFILE=<profile>; or"
            " correct the list"
        ) from None
