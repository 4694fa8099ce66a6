"""An existing cluster: looked up, judged, and left as it is.

Its name: `cluster.name` in the stack file. What it must be: trainyard/existing/cluster_faults.py.
"""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from components.base.account import caller_identity
from components.cluster.cluster import Cluster, ClusterCoordinates
from components.network.network import Network
from trainyard.existing.cluster_faults import AddOnFound, ClusterFound, faults, remarks
from trainyard.plans.clusters import ExistingClusterPlan

NOT_THERE = ("couldn't find resource", "ResourceNotFoundException")
"""Text of the AWS provider for an add-on or an access entry that does not exist."""


class ExistingCluster(Cluster):
    """An existing cluster. What is wrong with it ends the program in a preview, and before anything
    is made in it: each look-up is answered before the next line runs."""

    def __init__(
        self,
        name: str,
        plan: ExistingClusterPlan,
        *,
        network: Network,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        # The type token stays: deployed state names it.
        super().__init__("trainyard:cluster:BroughtCluster", name, None, opts)
        self._plan, self._ask = plan, pulumi.InvokeOptions(parent=self)
        known = aws.eks.get_clusters(opts=self._ask).names
        there = aws.eks.get_cluster(plan.name, opts=self._ask) if plan.name in known else None
        found = self._found(there) if there else None
        wrong = [*faults(plan, found)]
        if wrong or there is None:
            raise pulumi.RunError("\n".join(["the cluster cannot be used", *map(str, wrong)]))
        for warning in remarks(plan, found):
            pulumi.log.warn(str(warning), self)
        for admin in plan.admins:
            self.admin(f"{name}-{admin.name}", plan.identity, plan.name, admin.arn)

        self.coordinates = ClusterCoordinates(
            name=plan.name,
            arn=there.arn,
            endpoint=there.endpoint,
            certificate_authority=there.certificate_authorities[0].data,
            access=plan.access,
        )
        self.security_group_id = there.vpc_config.cluster_security_group_id
        self.known_groups = (there.vpc_config.cluster_security_group_id,)
        self.service_cidr = there.kubernetes_network_configs[0].service_ipv4_cidr
        self.add_ons = dict.fromkeys(plan.add_ons, self)
        self.kubernetes = self.coordinates.provider(name, opts=pulumi.ResourceOptions(parent=self))
        self.register_outputs({"name": plan.name, "endpoint": there.endpoint})

    def _found(self, there: aws.eks.GetClusterResult) -> ClusterFound:
        """The cluster, its add-ons, and whether it admits the deployer."""
        every = [*self._plan.add_ons, *self._plan.made_add_ons]
        add_ons = {name: self._add_on(name) for name in every}
        caller = self._caller()
        return ClusterFound(
            status=there.status,
            version=there.version,
            authentication_mode=there.access_configs[0].authentication_mode,
            vpc_id=there.vpc_config.vpc_id,
            public=there.vpc_config.endpoint_public_access,
            private=there.vpc_config.endpoint_private_access,
            public_ranges=tuple(there.vpc_config.public_access_cidrs),
            ip_family=there.kubernetes_network_configs[0].ip_family,
            auto_mode=any(one.enabled for one in there.compute_configs),
            add_ons={name: found for name, found in add_ons.items() if found},
            caller=caller,
            caller_enters=self._enters(caller),
        )

    def _add_on(self, name: str) -> AddOnFound | None:
        try:
            found = aws.eks.get_addon(addon_name=name, cluster_name=self._plan.name, opts=self._ask)
        except Exception as error:  # the SDK has no type for what a provider answers
            return _nothing(error)
        return AddOnFound(
            version=found.addon_version,
            configuration=found.configuration_values or "",
            tags=found.tags or {},
        )

    def _caller(self) -> str:
        """The role of the session that deploys, with its path, which the session's ARN lacks; or a
        user."""
        own = caller_identity(self._ask).arn
        return aws.iam.get_session_context(arn=own, opts=self._ask).issuer_arn

    def _enters(self, caller: str) -> bool:
        try:
            aws.eks.get_access_entry(
                cluster_name=self._plan.name, principal_arn=caller, opts=self._ask
            )
        except Exception as error:
            return _nothing(error) is not None
        return True


def _nothing(error: Exception) -> None:
    """None where the provider says that there is no such thing; any other error goes on."""
    if not any(words in str(error) for words in NOT_THERE):
        raise error
