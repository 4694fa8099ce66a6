"""The VPC of a stack: public and private subnets in each zone, NAT gateways, and S3 without them; or
private subnets only, with endpoints of AWS APIs.

Its range: `network.cidr` in the stack file. Where NAT gateways are: `network.nat`; whether there are
any: `network.internet`. How it is divided: trainyard/derive/network.py. Which endpoints:
trainyard/derive/called_apis.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.network.flow_logs import record
from components.network.network import Network, private_endpoints, s3_endpoint
from components.network.node_security_group import node_security_group
from trainyard.plans.identity import cluster_tag
from trainyard.plans.networks import NODES, OwnNetworkPlan, ZonePlan

Subnets = Mapping[str, aws.ec2.Subnet]
"""By their zone."""


@dataclass(frozen=True, kw_only=True)
class _Ways:
    """Routes that private subnets follow."""

    public: list[aws.ec2.Subnet]
    tables: list[pulumi.Output[str]]
    """Ids of the route tables of private subnets."""
    edges: list[pulumi.Resource]
    """In place while private subnets follow them."""


class OwnNetwork(Network):
    """A network that the stack makes; the first zone of the plan is the training zone."""

    def __init__(
        self, name: str, plan: OwnNetworkPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:network:Network", name, None, opts)
        self._plan = plan
        vpc = self._vpc(name)
        private = {
            zone.name: self._subnet(f"{name}-private-{zone.letter}", vpc, zone, public=False)
            for zone in plan.zones
        }
        lead = self._lead_out if plan.ways_out else self._stay_inside
        ways = lead(name, vpc, private)
        s3 = s3_endpoint(self, name, plan.identity, vpc.id, ways.tables)
        apis = self._private_endpoints(name, vpc, private)
        nodes, self.node_rules = node_security_group(
            self, plan.identity, vpc.id, plan.identity.tags(NODES)
        )

        if plan.flow_logs:
            record(self, f"{name}-flow-logs", plan.identity, plan.flow_logs, vpc.id, vpc.owner_id)

        self.vpc_id, self.account_id = vpc.id, vpc.owner_id
        self.public_subnet_ids = [subnet.id for subnet in ways.public]
        self.private_subnet_ids = [subnet.id for subnet in private.values()]
        self.training_subnet_id = private[plan.training_zone.name].id
        self.subnet_in = {zone: subnet.id for zone, subnet in private.items()}
        self.cidr_in = {zone.name: zone.private_cidr for zone in plan.zones}
        self.cidrs, self.service_cidr = (plan.cidr,), plan.service_cidr
        self.node_security_group_id, self.node_group_name = nodes.id, plan.identity.name(NODES)
        # A way to the internet leads to S3, too.
        self.egress = [*ways.edges, *apis, *([] if plan.ways_out else [s3])]
        self.register_outputs({"vpc_id": vpc.id, "training_subnet_id": self.training_subnet_id})

    def _vpc(self, name: str) -> aws.ec2.Vpc:
        return aws.ec2.Vpc(
            name,
            cidr_block=self._plan.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _internet_gateway(self, name: str, vpc: aws.ec2.Vpc) -> aws.ec2.InternetGateway:
        return aws.ec2.InternetGateway(
            name,
            vpc_id=vpc.id,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _subnet(
        self, name: str, vpc: aws.ec2.Vpc, zone: ZonePlan, *, public: bool
    ) -> aws.ec2.Subnet:
        role = "kubernetes.io/role/elb" if public else "kubernetes.io/role/internal-elb"
        return aws.ec2.Subnet(
            name,
            vpc_id=vpc.id,
            availability_zone=zone.name,
            cidr_block=zone.public_cidr if public else zone.private_cidr,
            map_public_ip_on_launch=False,
            tags=self._plan.identity.tags(
                name, **{role: "1", cluster_tag(self._plan.cluster_name): "shared"}
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _nat_gateway(
        self, name: str, subnet: aws.ec2.Subnet, gateway: aws.ec2.InternetGateway
    ) -> aws.ec2.NatGateway:
        """Called by its zone: in another, the new one stands before routes leave the old."""
        address = aws.ec2.Eip(
            name,
            domain="vpc",
            tags=self._plan.identity.tags(name),
            # An address can only be mapped, and the gateway only leave, in this order.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[gateway]),
        )
        return aws.ec2.NatGateway(
            name,
            subnet_id=subnet.id,
            allocation_id=address.id,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _lead_out(self, name: str, vpc: aws.ec2.Vpc, private: Subnets) -> _Ways:
        """Public subnets with an internet gateway, and NAT gateways for the private ones."""
        gateway = self._internet_gateway(name, vpc)
        public = {
            zone.name: self._subnet(f"{name}-public-{zone.letter}", vpc, zone, public=True)
            for zone in self._plan.zones
        }
        table, followed = self._route_table(f"{name}-public", vpc, f"{name}-public", public)
        out = self._default_route(f"{name}-public", table, gateway_id=gateway.id)
        ways: list[aws.ec2.Route] = []
        for way in self._plan.ways_out:
            at = public[way.zone.name]
            nat = self._nat_gateway(f"{name}-nat-{way.zone.letter}", at, gateway)
            subnets = {zone.name: private[zone.name] for zone in way.zones}
            called = f"{name}-{way.table}"
            table, follow = self._route_table(called, vpc, f"{name}-private", subnets)
            ways.append(self._default_route(called, table, nat_gateway_id=nat.id))
            followed += follow
        return _Ways(
            public=[*public.values()],
            tables=[way.route_table_id for way in ways],
            edges=[out, *ways, *followed],
        )

    def _stay_inside(self, name: str, vpc: aws.ec2.Vpc, private: Subnets) -> _Ways:
        """One route table for all subnets, without a default route."""
        called = f"{name}-private"
        table, followed = self._route_table(called, vpc, called, private)
        return _Ways(public=[], tables=[table.id], edges=followed)

    def _private_endpoints(
        self, name: str, vpc: aws.ec2.Vpc, private: Subnets
    ) -> list[pulumi.Resource]:
        if self._plan.endpoints is None:
            return []
        return private_endpoints(
            self,
            name,
            self._plan.identity,
            self._plan.endpoints,
            vpc_id=vpc.id,
            cidrs=[self._plan.cidr],
            subnet_ids=[subnet.id for subnet in private.values()],
        )

    def _route_table(
        self, name: str, vpc: aws.ec2.Vpc, side: str, subnets: Subnets
    ) -> tuple[aws.ec2.RouteTable, list[pulumi.Resource]]:
        """A route table, and what makes the subnets follow it. `side`: what the subnets are called
        by."""
        table = aws.ec2.RouteTable(
            name,
            vpc_id=vpc.id,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return table, [
            aws.ec2.RouteTableAssociation(
                f"{side}-{zone.letter}",
                subnet_id=subnets[zone.name].id,
                route_table_id=table.id,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for zone in self._plan.zones
            if zone.name in subnets
        ]

    def _default_route(
        self, name: str, table: aws.ec2.RouteTable, **target: pulumi.Input[str]
    ) -> aws.ec2.Route:
        return aws.ec2.Route(
            name,
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            **target,
            opts=pulumi.ResourceOptions(parent=self),
        )
