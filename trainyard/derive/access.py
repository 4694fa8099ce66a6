"""Identities that call AWS and the cluster, and their accounts: what follows from the `aws:`
settings and from `deployer_role_arn`.

One identity does both: whoever makes a cluster is its admin, so the role that the AWS provider
assumes last is the role that the kubeconfig assumes (docs/decisions/0007).
"""

from __future__ import annotations

from trainyard.plans.access import AccessPlan, AssumedRole
from trainyard.settings.aws import AwsConfig
from trainyard.settings.cluster import ClusterConfig


def access_plan(
    region: str, aws: AwsConfig, cluster: ClusterConfig, team_deployer: str | None = None
) -> AccessPlan:
    """Plan of the identities that call AWS and the cluster. Roles in the stack file's own
    `aws:assumeRoles` replace the `deployer_role_arn` of the environment, and `team_deployer`, the
    role of a team that the environment lists. `cluster`: settings of the environment's cluster."""
    deployer = team_deployer or cluster.deployer_role_arn
    private = cluster.endpoint == "private"
    roles = tuple(
        AssumedRole(
            arn=role.roleArn,
            session_name=role.sessionName,
            external_id=role.externalId,
            duration=role.duration,
        )
        for role in aws.roles
    )
    return AccessPlan(
        region=region,
        profile=aws.profile,
        roles=roles or ((AssumedRole(arn=deployer),) if deployer else ()),
        allowed_account_ids=aws.allowedAccountIds,
        forbidden_account_ids=aws.forbiddenAccountIds,
        default_tags=tuple(sorted(aws.defaultTags.tags.items())) if aws.defaultTags else (),
        tunnel_port=cluster.tunnel_port if private else None,
        proxy_url=cluster.proxy_url,
    )
