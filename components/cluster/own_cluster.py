"""The EKS control plane that the stack makes, and who may enter it.

Version, endpoint and admins: `cluster` in the stack file.
"""

from __future__ import annotations

from collections.abc import Callable

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from components.base.log_group import log_group
from components.base.role import role
from components.cluster.cluster import Cluster, ClusterCoordinates
from components.network.network import Network
from trainyard.objects.iam.policies import trust
from trainyard.plans.access import AccessPlan
from trainyard.plans.clusters import OwnClusterPlan

CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"


class OwnCluster(Cluster):
    """A control plane with nothing on it; add-ons and nodes come with their own components."""

    def __init__(
        self,
        name: str,
        plan: OwnClusterPlan,
        *,
        network: Network,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:Cluster", name, None, opts)
        service, attached = self._service_role(plan)
        control_plane = eks.Cluster(
            name,
            name=plan.name,
            version=plan.version,
            vpc_id=network.vpc_id,
            public_subnet_ids=network.public_subnet_ids,
            private_subnet_ids=network.private_subnet_ids,
            authentication_mode=eks.AuthenticationMode.API,
            endpoint_private_access=True,
            endpoint_public_access=plan.public,
            public_access_cidrs=list(plan.public_access_cidrs) or None,
            kubernetes_service_ip_address_range=network.service_cidr,
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
                transforms=[_scaled(plan.scaling_tier)] if plan.scaling_tier else None,
            ),
        )
        made = control_plane.eks_cluster
        for admin in plan.admins:
            self.admin(f"{name}-{admin.name}", plan.identity, made.name, admin.arn)

        self.coordinates = _coordinates(made, plan.access)
        self.security_group_id = control_plane.cluster_security_group_id.apply(
            lambda group: group or ""
        )
        self.service_cidr, self.add_ons = network.service_cidr, {}
        self.kubernetes = self.coordinates.provider(name, opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({"name": made.name, "endpoint": made.endpoint})

    def _log_group(self, name: str, plan: OwnClusterPlan) -> list[pulumi.Resource]:
        """The log group of the control plane, where EKS must not make it."""
        if plan.log_days is None:
            return []
        return [log_group(self, f"{name}-logs", plan.identity, plan.log_group, plan.log_days)]

    def _service_role(
        self, plan: OwnClusterPlan
    ) -> tuple[aws.iam.Role | None, list[pulumi.Resource]]:
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


def _scaled(
    tier: str,
) -> Callable[[pulumi.ResourceTransformArgs], pulumi.ResourceTransformResult | None]:
    """Gives the control plane its tier: eks.Cluster has no argument for it (pulumi-eks 4.4.0), and
    makes an aws.eks.Cluster, which has one."""

    def scale(args: pulumi.ResourceTransformArgs) -> pulumi.ResourceTransformResult | None:
        if args.type_ != "aws:eks/cluster:Cluster":
            return None
        props = {**args.props, "controlPlaneScalingConfig": {"tier": tier}}
        return pulumi.ResourceTransformResult(props, args.opts)

    return scale


def _coordinates(made: pulumi.Output[aws.eks.Cluster], access: AccessPlan) -> ClusterCoordinates:
    return ClusterCoordinates(
        name=made.name,
        arn=made.arn,
        endpoint=made.endpoint,
        certificate_authority=made.certificate_authority.data.apply(lambda data: data or ""),
        access=access,
    )
