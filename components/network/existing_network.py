"""An existing VPC: looked up, judged, and left as it is.

Its ids: `network.vpc_id` and `network.private_subnets` in the stack file. What it must be:
trainyard/existing/vpc_faults.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws

from components.base.account import caller_identity
from components.network.network import Network, private_endpoints, s3_endpoint
from components.network.node_security_group import node_security_group
from trainyard.existing.vpc_faults import EVERYWHERE, SubnetFound, VpcFound, faults
from trainyard.plans.networks import NODES, ExistingNetworkPlan, service_cidr

Tables = Mapping[str, aws.ec2.GetRouteTableResult | None]
CLUSTER_TAG = "trainyard:cluster"
"""Tag of the nodes' group that names the cluster: by it trainyard/operations/recovery/interfaces.py finds what the VPC
CNI left in subnets that are not of the stack."""


class ExistingNetwork(Network):
    """An existing VPC with its subnets. What is wrong with them ends the program in a preview, and
    before anything is made: each look-up is answered before the next line runs."""

    def __init__(
        self, name: str, plan: ExistingNetworkPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        # The type token stays: deployed state names it.
        super().__init__("trainyard:network:BroughtNetwork", name, None, opts)
        self._plan, self._ask = plan, pulumi.InvokeOptions(parent=self)
        own = caller_identity(self._ask).account_id
        tables = self._route_tables()
        found = self._found(tables, own)
        wrong = [*faults(plan, found)]
        if wrong or not found:
            raise pulumi.RunError("\n".join(["the VPC cannot be used", *map(str, wrong)]))
        self.account_id = own
        if plan.s3_endpoint:
            ids = sorted({table.route_table_id for table in tables.values() if table})
            s3_endpoint(self, name, plan.identity, plan.vpc_id, ids)
        tags = plan.identity.tags(NODES, **{CLUSTER_TAG: plan.cluster_name})
        nodes, self.node_rules = node_security_group(self, plan.identity, plan.vpc_id, tags)

        self.vpc_id, self.cidrs = plan.vpc_id, found.cidrs
        self.service_cidr = service_cidr(found.cidrs, plan.service_cidr) or ""
        self.subnet_in = {zone.name: zone.subnet_id for zone in plan.zones}
        self.cidr_in = {zone: found.subnets[id_].cidr for zone, id_ in self.subnet_in.items()}
        self.public_subnet_ids = []
        self.private_subnet_ids = [*self.subnet_in.values()]
        self.training_subnet_id = plan.training_zone.subnet_id
        self.node_security_group_id, self.node_group_name = nodes.id, plan.identity.name(NODES)
        self.egress = self._endpoints(name, found)
        self.register_outputs({"vpc_id": plan.vpc_id})

    def _endpoints(self, name: str, found: VpcFound) -> list[pulumi.Resource]:
        """Make the endpoints of AWS APIs that the plan asks for."""
        if self._plan.endpoints is None:
            return []
        return private_endpoints(
            self,
            name,
            self._plan.identity,
            self._plan.endpoints,
            vpc_id=self._plan.vpc_id,
            cidrs=found.cidrs,
            subnet_ids=[zone.subnet_id for zone in self._plan.zones],
        )

    def _found(self, tables: Tables, caller: str) -> VpcFound | None:
        """The VPC and its subnets; None where there is no such VPC. A look-up by filter finds
        nothing where one by id ends the program. `caller`: the account that asks."""
        vpcs = aws.ec2.get_vpcs(filters=[_filter("vpc-id", self._plan.vpc_id)], opts=self._ask)
        if not vpcs.ids:
            return None
        vpc = aws.ec2.get_vpc(id=self._plan.vpc_id, opts=self._ask)
        wanted = [zone.subnet_id for zone in self._plan.zones]
        known = aws.ec2.get_subnets(filters=[_filter("subnet-id", *wanted)], opts=self._ask).ids
        return VpcFound(
            shared_by="" if vpc.owner_id == caller else vpc.owner_id,
            cidrs=tuple(one.cidr_block for one in vpc.cidr_block_associations),
            dns_support=vpc.enable_dns_support,
            dns_hostnames=vpc.enable_dns_hostnames,
            subnets={id_: self._subnet(id_, tables.get(id_)) for id_ in known},
        )

    def _subnet(self, id_: str, table: aws.ec2.GetRouteTableResult | None) -> SubnetFound:
        subnet = aws.ec2.get_subnet(id=id_, opts=self._ask)
        return SubnetFound(
            vpc_id=subnet.vpc_id,
            zone=subnet.availability_zone,
            zone_id=subnet.availability_zone_id,
            cidr=subnet.cidr_block,
            public_addresses=subnet.map_public_ip_on_launch,
            way_out=_way_out(table) if table else "",
        )

    def _route_tables(self) -> Tables:
        """Subnet → the route table that holds for it: its own, or the main one of the VPC."""
        vpc, subnets = self._plan.vpc_id, [zone.subnet_id for zone in self._plan.zones]
        filters = _filter("association.subnet-id", *subnets), _filter("association.main", "true")
        tables = [
            aws.ec2.get_route_table(route_table_id=id_, opts=self._ask)
            for one in filters
            for id_ in aws.ec2.get_route_tables(vpc_id=vpc, filters=[one], opts=self._ask).ids
        ]
        main = next((t for t in tables if any(one.main for one in t.associations)), None)
        own = {one.subnet_id: table for table in tables for one in table.associations}
        return {subnet: own.get(subnet, main) for subnet in subnets}


def _filter(name: str, *values: str) -> Any:
    """A filter of whichever look-up: the SDK has a type for each."""
    return {"name": name, "values": [*values]}


def _way_out(table: aws.ec2.GetRouteTableResult) -> str:
    """The target of the default route."""
    for route in table.routes:
        if route.cidr_block == EVERYWHERE:
            targets = (
                route.gateway_id,
                route.nat_gateway_id,
                route.transit_gateway_id,
                route.network_interface_id,
                route.vpc_endpoint_id,
                route.vpc_peering_connection_id,
                route.core_network_arn,
                route.instance_id,
            )
            return next((target for target in targets if target), "")
    return ""
