"""The VPC: public and private subnets in each zone, one NAT gateway, and S3 without it.

Its range: `network.cidr` in the stack file. How it is divided: stacks/derive/network.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws

from components.security_group import EVERYTHING, security_group, talk_to_itself
from frozen import dataclass
from plans.parts import NetworkPlan, ZonePlan


@dataclass(frozen=True, kw_only=True)
class StorePlace:
    """Where the component of a store is made, and who may reach it."""

    vpc_id: pulumi.Input[str]
    training_subnet_id: pulumi.Input[str]
    subnet_in: Mapping[str, pulumi.Input[str]]
    """Zone → its private subnet."""
    clients: pulumi.Input[str]
    """The security group of the nodes."""
    account_id: pulumi.Input[str]
    """For names that must be unique among all accounts."""


class Network(pulumi.ComponentResource):
    """Where everything lives; the first zone of the plan is the training zone."""

    vpc_id: pulumi.Output[str]
    public_subnet_ids: list[pulumi.Output[str]]
    private_subnet_ids: list[pulumi.Output[str]]
    training_subnet_id: pulumi.Output[str]
    """The private subnet of the training zone: GPU nodes and file systems."""
    subnet_in: dict[str, pulumi.Output[str]]
    """Zone → its private subnet."""
    node_security_group_id: pulumi.Output[str]
    """The GPU nodes' own group: EFA among themselves, and whom file systems let in."""
    node_rules: list[pulumi.Resource]
    """That group's rules: a gang needs them from its first step until its nodes are gone."""
    egress: list[pulumi.Resource]
    """In place while private subnets reach the internet: a booting node needs it, and so does one
    that drains."""

    def __init__(
        self, name: str, plan: NetworkPlan, opts: pulumi.ResourceOptions | None = None
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
        nat = self._nat_gateway(f"{name}-nat-{training.letter}", public[training.name], gateway)
        out, public_routes = self._route_table(
            f"{name}-public", vpc, [*public.values()], gateway_id=gateway.id
        )
        through, private_routes = self._route_table(
            f"{name}-private", vpc, [*private.values()], nat_gateway_id=nat.id
        )
        self._s3_endpoint(name, vpc, through)
        nodes, self.node_rules = self._node_security_group("nodes", vpc)

        self.vpc_id, self._account_id = vpc.id, vpc.owner_id
        self.public_subnet_ids = [subnet.id for subnet in public.values()]
        self.private_subnet_ids = [subnet.id for subnet in private.values()]
        self.training_subnet_id = private[training.name].id
        self.subnet_in = {zone: subnet.id for zone, subnet in private.items()}
        self.node_security_group_id = nodes.id
        self.egress = [out, through, *public_routes, *private_routes]
        self.register_outputs({"vpc_id": vpc.id, "training_subnet_id": self.training_subnet_id})

    def for_stores(self) -> StorePlace:
        """What every store is told about the network."""
        return StorePlace(
            vpc_id=self.vpc_id,
            training_subnet_id=self.training_subnet_id,
            subnet_in=self.subnet_in,
            clients=self.node_security_group_id,
            account_id=self._account_id,
        )

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
        """In the training zone, where the traffic is. Called by its zone: in another, the new one
        stands before routes leave the old."""
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
        subnets: list[aws.ec2.Subnet],
        **target: pulumi.Input[str],
    ) -> tuple[aws.ec2.Route, list[pulumi.Resource]]:
        """A default route, and what makes the subnets follow it."""
        table = aws.ec2.RouteTable(
            name,
            vpc_id=vpc.id,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        followed: list[pulumi.Resource] = [
            aws.ec2.RouteTableAssociation(
                f"{name}-{zone.letter}",
                subnet_id=subnet.id,
                route_table_id=table.id,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for subnet, zone in zip(subnets, self._plan.zones, strict=True)
        ]
        route = aws.ec2.Route(
            name,
            route_table_id=table.id,
            destination_cidr_block="0.0.0.0/0",
            **target,
            opts=pulumi.ResourceOptions(parent=self),
        )
        return route, followed

    def _s3_endpoint(
        self, name: str, vpc: aws.ec2.Vpc, private: aws.ec2.Route
    ) -> aws.ec2.VpcEndpoint:
        """Gateway endpoint: free, and data sets in S3 no longer pay the NAT gateway by the GB. Nor do
        layers of images in private ECR, which lie in S3; those of ECR Public come through the NAT
        gateway."""
        return aws.ec2.VpcEndpoint(
            f"{name}-s3",
            vpc_id=vpc.id,
            service_name=f"com.amazonaws.{self._plan.identity.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[private.route_table_id],
            tags=self._plan.identity.tags(f"{name}-s3"),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _node_security_group(
        self, name: str, vpc: aws.ec2.Vpc
    ) -> tuple[aws.ec2.SecurityGroup, list[pulumi.Resource]]:
        group = security_group(
            self, name, self._plan.identity, vpc.id, "GPU nodes: EFA among themselves"
        )
        rules = talk_to_itself(self, name, self._plan.identity, group.id)
        # This rule is also what lets nodes reach Lustre (988, 1018-1023) and EFS (2049): no store
        # makes an egress rule for its clients.
        out = aws.vpc.SecurityGroupEgressRule(
            f"{name}-out",
            security_group_id=group.id,
            ip_protocol=EVERYTHING,
            cidr_ipv4="0.0.0.0/0",
            description="images, packages and AWS APIs",
            tags=self._plan.identity.tags(f"{name}-out"),
            opts=pulumi.ResourceOptions(parent=self),
        )
        return group, [*rules, out]
