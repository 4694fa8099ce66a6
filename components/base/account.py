"""The AWS provider: the one identity through which everything in AWS is made.

Which account, and as whom: the `aws:` settings of the stack file.
"""

from __future__ import annotations

import pulumi_aws as aws

from trainyard.plans.access import AccessPlan


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
