"""The EKS control plane, who may enter it, and the provider through which everything in it is made.

Version, endpoint and admins: `cluster` in the stack file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as k8s

from components.log_group import log_group
from components.role import role
from frozen import dataclass
from plans.access import AccessPlan
from plans.parts import ClusterPlan
from plans.policies import ADMIN_POLICY, trust
from plans.tunnel import host_and_port

CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"


@dataclass(frozen=True, kw_only=True)
class ClusterCoordinates:
    """How to find and address a cluster; nothing secret."""

    name: pulumi.Input[str]
    arn: pulumi.Input[str]
    endpoint: pulumi.Input[str]
    certificate_authority: pulumi.Input[str]
    """PEM, base64."""
    access: AccessPlan
    """Who asks for a token, and in which region."""

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
    """A control plane with nothing on it; add-ons and nodes come with their own components."""

    coordinates: ClusterCoordinates
    security_group_id: pulumi.Output[str]
    """The group EKS makes: control plane and nodes reach each other through it."""
    kubernetes: k8s.Provider

    def __init__(
        self,
        name: str,
        plan: ClusterPlan,
        *,
        vpc_id: pulumi.Input[str],
        public_subnet_ids: Sequence[pulumi.Input[str]],
        private_subnet_ids: Sequence[pulumi.Input[str]],
        service_cidr: str,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:Cluster", name, None, opts)
        service, attached = self._service_role(plan)
        control_plane = eks.Cluster(
            name,
            name=plan.name,
            version=plan.version,
            vpc_id=vpc_id,
            public_subnet_ids=public_subnet_ids,
            private_subnet_ids=private_subnet_ids,
            authentication_mode=eks.AuthenticationMode.API,
            endpoint_private_access=True,
            endpoint_public_access=plan.public,
            public_access_cidrs=list(plan.public_access_cidrs) or None,
            kubernetes_service_ip_address_range=service_cidr,
            enabled_cluster_log_types=list(plan.logs),
            encryption_config_key_arn=plan.identity.kms_key_arn,
            deletion_protection=plan.deletion_protection,
            upgrade_policy=aws.eks.ClusterUpgradePolicyArgs(
                support_type=plan.upgrade_policy.upper()
            ),
            skip_default_node_group=True,
            skip_default_security_groups=True,
            create_oidc_provider=False,
            # EKS's own unmanaged copies of the add-ons would only have to be overwritten by ours.
            bootstrap_self_managed_addons=False,
            use_default_vpc_cni=True,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            service_role=service,
            tags=plan.identity.tags(name),
            # Without its policy, the role cannot make a control plane, nor delete its interfaces. EKS
            # makes the log group itself where there is none, and again while it still writes to it.
            # Protected, `pulumi destroy` ends before it has deleted nodes and jobs.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*attached, *self._log_group(name, plan)],
                protect=plan.deletion_protection,
            ),
        )
        made = control_plane.eks_cluster
        for admin, role_arn in plan.admins:
            self._admin(f"{name}-{admin}", plan, made.name, role_arn)

        self.coordinates = _coordinates(made, plan.access)
        self.security_group_id = control_plane.cluster_security_group_id.apply(
            lambda group: group or ""
        )
        self.kubernetes = self.coordinates.provider(name, opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({"name": made.name, "endpoint": made.endpoint})

    def _log_group(self, name: str, plan: ClusterPlan) -> list[pulumi.Resource]:
        """The log group of the control plane, where EKS must not make it. EKS knows it by its name (EKS
        user guide, control-plane-logs)."""
        if plan.log_days is None:
            return []
        group = f"/aws/eks/{plan.name}/cluster"
        return [log_group(self, f"{name}-logs", plan.identity, group, plan.log_days)]

    def _service_role(self, plan: ClusterPlan) -> tuple[aws.iam.Role | None, list[pulumi.Resource]]:
        """The role that EKS works with, where pulumi-eks must not make it."""
        if plan.role_name is None:
            return None, []
        return role(
            self,
            "control-plane",
            plan.identity,
            plan.role_name,
            trust("eks.amazonaws.com", "sts:TagSession"),
            managed=[CLUSTER_POLICY],
        )

    def _admin(
        self, name: str, plan: ClusterPlan, cluster_name: pulumi.Input[str], role_arn: str
    ) -> None:
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=cluster_name,
            principal_arn=role_arn,
            type="STANDARD",
            tags=plan.identity.tags(name),
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


def _coordinates(made: pulumi.Output[aws.eks.Cluster], access: AccessPlan) -> ClusterCoordinates:
    return ClusterCoordinates(
        name=made.name,
        arn=made.arn,
        endpoint=made.endpoint,
        certificate_authority=made.certificate_authority.data.apply(lambda data: data or ""),
        access=access,
    )
