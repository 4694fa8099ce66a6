"""The VPC of a stack: public and private subnets in each zone, NAT gateways, and S3 without them.

Its range: `network.cidr` in the stack file. Where NAT gateways are: `network.nat`. How it is divided:
stacks/derive/network.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.flow_logs import record
from components.network import Network, node_security_group, s3_endpoint
from plans.networks import NODES, OwnNetworkPlan, ZonePlan


class OwnNetwork(Network):
    """A network that the stack makes; the first zone of the plan is the training zone."""

    def __init__(
        self, name: str, plan: OwnNetworkPlan, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__("trainyard:network:Network", name, None, opts)
        self._plan = plan
        vpc = self._vpc(name)
        gateway = self._internet_gateway(name, vpc)
        public = {
            zone.name: self._subnet(f"{name}-public-{zone.letter}", vpc, zone, public=True)
            for zone in plan.zones
        }
        private = {
            zone.name: self._subnet(f"{name}-private-{zone.letter}", vpc, zone, public=False)
            for zone in plan.zones
        }
        training = plan.training_zone
        out, followed = self._route_table(
            f"{name}-public", vpc, f"{name}-public", public, gateway_id=gateway.id
        )
        ways: list[aws.ec2.Route] = []
        for way in plan.ways_out:
            at = public[way.zone.name]
            nat = self._nat_gateway(f"{name}-nat-{way.zone.letter}", at, gateway)
            subnets = {zone.name: private[zone.name] for zone in way.zones}
            through, follow = self._route_table(
                f"{name}-{way.table}", vpc, f"{name}-private", subnets, nat_gateway_id=nat.id
            )
            ways.append(through)
            followed += follow
        s3_endpoint(self, name, plan.identity, vpc.id, [way.route_table_id for way in ways])
        nodes, self.node_rules = node_security_group(
            self, plan.identity, vpc.id, plan.identity.tags(NODES)
        )

        if plan.flow_logs:
            record(self, f"{name}-flow-logs", plan.identity, plan.flow_logs, vpc.id, vpc.owner_id)

        self.vpc_id, self.account_id = vpc.id, vpc.owner_id
        self.public_subnet_ids = [subnet.id for subnet in public.values()]
        self.private_subnet_ids = [subnet.id for subnet in private.values()]
        self.training_subnet_id = private[training.name].id
        self.subnet_in = {zone: subnet.id for zone, subnet in private.items()}
        self.cidr_in = {zone.name: zone.private_cidr for zone in plan.zones}
        self.cidrs, self.service_cidr = (plan.cidr,), plan.service_cidr
        self.node_security_group_id, self.node_group_name = nodes.id, plan.identity.name(NODES)
        self.egress = [out, *ways, *followed]
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
                name, **{role: "1", f"kubernetes.io/cluster/{self._plan.cluster_name}": "shared"}
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

    def _route_table(
        self,
        name: str,
        vpc: aws.ec2.Vpc,
        side: str,
        subnets: Mapping[str, aws.ec2.Subnet],
        **target: pulumi.Input[str],
    ) -> tuple[aws.ec2.Route, list[pulumi.Resource]]:
        """A default route, and what makes the subnets follow it. `side`: what the subnets are called
        by. `subnets`: by their zone."""
        table = aws.ec2.RouteTable(
            name,
            vpc_id=vpc.id,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        followed: list[pulumi.Resource] = [
            aws.ec2.RouteTableAssociation(
                f"{side}-{zone.letter}",
                subnet_id=subnets[zone.name].id,
                route_table_id=table.id,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for zone in self._plan.zones
            if zone.name in subnets
        ]
        route = aws.ec2.Route(
            name,
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            **target,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return route, followed
