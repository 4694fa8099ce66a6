"""The AWS identity of the pods of a namespace: of a team, or of the environment's own jobs. What it
may do: trainyard/objects/teams/team_identity.py."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi

from components.base.role import role, together
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.iam.policies import Document, as_text, document, trusted_account
from trainyard.objects.iam.secrets import secret_statements
from trainyard.objects.teams.team_identity import SERVICE_ACCOUNT, TeamIdentityPlan


class TeamIdentity(pulumi.ComponentResource):
    """A role, and what gives it to the pods."""

    ready: pulumi.Resource
    """Pods that start before it have no identity."""

    def __init__(
        self,
        name: str,
        plan: TeamIdentityPlan,
        *,
        cluster: ClusterAccess,
        mounts: Sequence[pulumi.Output[list[Document]]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`mounts`: statements that let the team's pods mount its stores."""
        super().__init__("trainyard:teams:Identity", name, None, opts)
        pods, attached = role(
            self,
            f"{name}-pods",
            cluster.identity,
            plan.role_name,
            cluster.trust_for(plan.namespace, SERVICE_ACCOUNT),
            inline=_policies(plan, mounts, cluster),
        )
        self.ready = cluster.association(
            self,
            f"{name}-pods",
            pods,
            namespace=plan.namespace,
            service_account=SERVICE_ACCOUNT,
            attached=attached,
        )
        self.register_outputs({})


def _policies(
    plan: TeamIdentityPlan,
    mounts: Sequence[pulumi.Output[list[Document]]],
    cluster: ClusterAccess,
) -> dict[str, pulumi.Input[str]]:
    """Name → document of each policy of the role."""
    found: dict[str, pulumi.Input[str]] = {}
    if plan.statements:
        found["s3"] = as_text(document(*plan.statements))
    if plan.secrets:
        found["secrets"] = cluster.trusts.apply(
            lambda trust: as_text(
                document(
                    *secret_statements(
                        plan.secrets,
                        plan.secret_keys,
                        region=cluster.identity.region,
                        account=trusted_account(trust),
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
