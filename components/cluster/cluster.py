"""A cluster as the rest of an environment sees it: its address, and the provider through which
everything in it is made. The stack makes the cluster (own_cluster.py), or it exists already
(existing_cluster.py).

Version, endpoint and admins: `cluster` in the stack file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from trainyard.objects.iam.policies import ADMIN_POLICY
from trainyard.plans.access import AccessPlan
from trainyard.plans.identity import Identity
from trainyard.plans.tunnel import host_and_port


@dataclass(frozen=True, kw_only=True)
class ClusterCoordinates:
    """Coordinates by which a cluster is found and addressed; nothing secret."""

    name: pulumi.Input[str]
    arn: pulumi.Input[str]
    endpoint: pulumi.Input[str]
    certificate_authority: pulumi.Input[str]
    """PEM, base64."""
    access: AccessPlan
    """Command that asks for a token, with its caller and region."""

    def kubeconfig(self) -> pulumi.Output[str]:
        """A kubeconfig without a secret: credentials come from `aws eks get-token` at the time of
        use, as the identity that made the cluster."""
        profile, role = self.access.profile, self.access.role_arn
        return pulumi.Output.json_dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [
                    {
                        "name": self.name,
                        "cluster": {
                            **self._way_in(),
                            "certificate-authority-data": self.certificate_authority,
                        },
                    }
                ],
                "users": [
                    {
                        "name": self.name,
                        "user": {
                            "exec": {
                                "apiVersion": "client.authentication.k8s.io/v1beta1",
                                "command": "aws",
                                "interactiveMode": "Never",
                                "args": [
                                    "eks",
                                    "get-token",
                                    "--cluster-name",
                                    self.name,
                                    "--region",
                                    self.access.region,
                                    *(["--profile", profile] if profile else []),
                                    *(["--role-arn", role] if role else []),
                                ],
                            }
                        },
                    }
                ],
                "contexts": [
                    {"name": self.name, "context": {"cluster": self.name, "user": self.name}}
                ],
                "current-context": self.name,
            }
        )

    def _way_in(self) -> dict[str, pulumi.Input[str]]:
        """The server of the kubeconfig: the endpoint, a proxy before it, or a tunnel, behind which
        the certificate is still that of the endpoint's host."""
        if port := self.access.tunnel_port:
            endpoint = pulumi.Output.from_input(self.endpoint)
            return {
                "server": f"https://127.0.0.1:{port}",
                "tls-server-name": endpoint.apply(lambda url: host_and_port(url)[0]),
            }
        proxy = self.access.proxy_url
        return {"server": self.endpoint, **({"proxy-url": proxy} if proxy else {})}

    def provider(self, name: str, opts: pulumi.ResourceOptions | None = None) -> k8s.Provider:
        """The Kubernetes provider. Its identity is the ARN: without it a changed kubeconfig would
        replace every object behind it (pulumi-kubernetes#4019)."""
        return k8s.Provider(
            name, kubeconfig=self.kubeconfig(), cluster_identifier=self.arn, opts=opts
        )


class Cluster(pulumi.ComponentResource):
    """A control plane. Which class it is follows from the type of the plan."""

    coordinates: ClusterCoordinates
    security_group_id: pulumi.Input[str]
    """The group EKS makes: control plane and nodes reach each other through it."""
    known_groups: tuple[str, ...] = ()
    """That group, where it exists before the stack."""
    service_cidr: str
    """Range of Kubernetes services."""
    add_ons: Mapping[str, pulumi.Resource]
    """Add-on → what waits for it, of those that are there before the stack."""
    kubernetes: k8s.Provider

    def admin(
        self, name: str, identity: Identity, cluster_name: pulumi.Input[str], role_arn: str
    ) -> None:
        """A role that may do everything in the cluster."""
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=cluster_name,
            principal_arn=role_arn,
            type="STANDARD",
            tags=identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        aws.eks.AccessPolicyAssociation(
            name,
            cluster_name=cluster_name,
            principal_arn=entry.principal_arn,
            policy_arn=ADMIN_POLICY,
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=pulumi.ResourceOptions(parent=self),
        )
