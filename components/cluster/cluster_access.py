"""The cluster as a component sees it that makes something there: how to find it, whose name things have,
which nodes pods run on, and how they get a role of AWS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.base.role import role
from components.cluster.cluster import ClusterCoordinates
from trainyard.objects.iam.policies import Document
from trainyard.objects.teams.team_identity import pod_trust
from trainyard.plans.identity import Identity


@dataclass(frozen=True, kw_only=True)
class ClusterAccess:
    """Everything that a component needs to make something in the cluster of an environment."""

    identity: Identity
    """Name and tags of everything that is made: those of the environment, or of one of its teams."""
    coordinates: ClusterCoordinates
    trusts: pulumi.Output[Document]
    """Trust policy for roles that pods of this cluster get through EKS Pod Identity."""
    nodes: Sequence[pulumi.Resource] = ()
    """Nodes that pods without GPUs run on; empty before there are any."""
    opts: pulumi.ResourceOptions
    """With the providers of AWS and of the cluster."""

    @property
    def name(self) -> pulumi.Input[str]:
        """Name of the cluster."""
        return self.coordinates.name

    def trust_for(self, namespace: pulumi.Input[str], account: str) -> pulumi.Output[Document]:
        """Trust policy of a role that pods of one service account get, and no other pods."""
        return pulumi.Output.all(self.trusts, namespace).apply(
            lambda found: pod_trust(found[0], found[1], account)
        )

    def pod_role(
        self,
        parent: pulumi.Resource,
        name: str,
        physical_name: str,
        trusts: pulumi.Output[Document],
        *,
        namespace: pulumi.Input[str],
        service_account: pulumi.Input[str],
        inline: Mapping[str, pulumi.Input[str]] | None = None,
    ) -> tuple[aws.iam.Role, list[pulumi.Resource]]:
        """The role of a service account's pods, and what must exist before they start: a pod gets its
        identity when it starts."""
        made, attached = role(parent, name, self.identity, physical_name, trusts, inline=inline)
        association = self.association(
            parent, name, made, namespace=namespace, service_account=service_account
        )
        return made, [*attached, association]

    def association(
        self,
        parent: pulumi.Resource,
        name: str,
        role: aws.iam.Role,
        *,
        namespace: pulumi.Input[str],
        service_account: pulumi.Input[str],
        attached: Sequence[pulumi.Resource] = (),
    ) -> aws.eks.PodIdentityAssociation:
        """Association that gives a role to the pods of a service account. `attached`: policies of the role, for pods
        that wait for the association alone."""
        return aws.eks.PodIdentityAssociation(
            name,
            cluster_name=self.name,
            namespace=namespace,
            service_account=service_account,
            role_arn=role.arn,
            tags=self.identity.tags(name),
            # No data says that the role may do something by then.
            opts=pulumi.ResourceOptions(parent=parent, depends_on=[*attached]),
        )
