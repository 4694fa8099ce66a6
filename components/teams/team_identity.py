"""The AWS identity of the pods of a namespace: of a team, or of the environment's own jobs. What it
may do: trainyard/objects/teams/team_identity.py."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.base.role import role, together
from trainyard.objects.iam.policies import Document, as_text, document, trusted_account
from trainyard.objects.iam.secrets import secret_statements
from trainyard.objects.teams.team_identity import SERVICE_ACCOUNT, TeamIdentityPlan, pod_trust
from trainyard.plans.parts import Identity


class TeamIdentity(pulumi.ComponentResource):
    """A role, and what gives it to the pods."""

    ready: pulumi.Resource
    """Pods that start before it have no identity."""

    def __init__(
        self,
        name: str,
        plan: TeamIdentityPlan,
        *,
        identity: Identity,
        cluster_name: pulumi.Input[str],
        trusts: pulumi.Output[Document],
        mounts: Sequence[pulumi.Output[list[Document]]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`trusts`: trust policy for roles that pods of this cluster get through EKS Pod Identity.
        `mounts`: statements that let the team's pods mount its stores."""
        super().__init__("trainyard:teams:Identity", name, None, opts)
        pods, attached = role(
            self,
            f"{name}-pods",
            identity,
            plan.role_name,
            trusts.apply(lambda cluster: pod_trust(cluster, plan.namespace)),
            inline=_policies(plan, mounts, identity.region, trusts),
        )
        self.ready = aws.eks.PodIdentityAssociation(
            f"{name}-pods",
            cluster_name=cluster_name,
            namespace=plan.namespace,
            service_account=SERVICE_ACCOUNT,
            role_arn=pods.arn,
            tags=identity.tags(f"{name}-pods"),
            # No data says that the role may do something by then.
            opts=pulumi.ResourceOptions(parent=self, depends_on=attached),
        )
        self.register_outputs({})


def _policies(
    plan: TeamIdentityPlan,
    mounts: Sequence[pulumi.Output[list[Document]]],
    region: str,
    trusts: pulumi.Output[Document],
) -> dict[str, pulumi.Input[str]]:
    """Name → document of each policy of the role."""
    found: dict[str, pulumi.Input[str]] = {}
    if plan.statements:
        found["s3"] = as_text(document(*plan.statements))
    if plan.secrets:
        found["secrets"] = trusts.apply(
            lambda cluster: as_text(
                document(
                    *secret_statements(
                        plan.secrets,
                        plan.secret_keys,
                        region=region,
                        account=trusted_account(cluster),
                    )
                )
            )
        )
    if mounts:
        found["stores"] = together(mounts).apply(
            # Each store has the same ids of statements, and a policy has an id once.
            lambda all_: as_text(
                document(
                    *({**each, "Sid": f"{each['Sid']}{number}"} for number, each in enumerate(all_))
                )
            )
        )
    return found
