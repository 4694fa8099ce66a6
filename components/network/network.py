"""A network as the rest of an environment sees it: the stack makes it (own_network.py), or it
exists already (existing_network.py). In both cases the stack makes the endpoints of AWS APIs, and
the group of the GPU nodes (node_security_group.py)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.base.security_group import allow, security_group
from trainyard.catalog.aws.endpoints import S3, service_name
from trainyard.plans.identity import Identity
from trainyard.plans.networks import ENDPOINTS, EndpointsPlan

HTTPS = 443


@dataclass(frozen=True, kw_only=True)
class StorePlace:
    """Where the component of a store is made, and who may reach it."""

    vpc_id: pulumi.Input[str]
    training_subnet_id: pulumi.Input[str]
    subnet_in: Mapping[str, pulumi.Input[str]]
    """Zone → its private subnet."""
    cidr_in: Mapping[str, str]
    """Zone → range of its private subnet."""
    clients: pulumi.Input[str]
    """The security group of the nodes."""
    clients_name: str
    """Its name, by which it is looked up before it exists."""
    carried: tuple[str, ...]
    """Security groups of all nodes that exist before the stack."""
    account_id: pulumi.Input[str]
    """For names that must be unique among all accounts."""


class Network(pulumi.ComponentResource):
    """Network in which everything lives. Its class follows from the type of the plan."""

    vpc_id: pulumi.Input[str]
    account_id: pulumi.Input[str]
    """Account in which the stack is made. An existing VPC can belong to another account."""
    public_subnet_ids: Sequence[pulumi.Input[str]]
    private_subnet_ids: Sequence[pulumi.Input[str]]
    training_subnet_id: pulumi.Input[str]
    """The private subnet of the training zone: GPU nodes and file systems."""
    subnet_in: Mapping[str, pulumi.Input[str]]
    """Zone → its private subnet."""
    cidr_in: Mapping[str, str]
    """Zone → range of its private subnet."""
    cidrs: tuple[str, ...]
    """Ranges of the VPC."""
    service_cidr: str
    """Range of Kubernetes services, apart from those of the VPC."""
    node_security_group_id: pulumi.Output[str]
    """Security group of GPU nodes. It carries EFA; file systems admit it."""
    node_group_name: str
    """Its name."""
    node_rules: list[pulumi.Resource]
    """That group's rules: a gang needs them from its first step until its nodes are gone."""
    egress: list[pulumi.Resource]
    """In place while private subnets reach the internet, or the endpoints of AWS APIs: a booting node
    needs it, and so does one that drains."""

    def for_stores(self, carried: tuple[str, ...]) -> StorePlace:
        """Place of every store in the network. `carried`: security groups of all nodes that exist before the
        stack."""
        return StorePlace(
            vpc_id=self.vpc_id,
            training_subnet_id=self.training_subnet_id,
            subnet_in=self.subnet_in,
            cidr_in=self.cidr_in,
            clients=self.node_security_group_id,
            clients_name=self.node_group_name,
            carried=carried,
            account_id=self.account_id,
        )


def s3_endpoint(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    vpc_id: pulumi.Input[str],
    route_table_ids: Sequence[pulumi.Input[str]],
) -> aws.ec2.VpcEndpoint:
    """Gateway endpoint: free, and data sets in S3 no longer pay the NAT gateway by the GB. Nor do
    layers of images in private ECR, which lie in S3; those of ECR Public come through the NAT
    gateway."""
    return aws.ec2.VpcEndpoint(
        f"{name}-s3",
        vpc_id=vpc_id,
        service_name=service_name(identity.region, S3),
        vpc_endpoint_type="Gateway",
        route_table_ids=route_table_ids,
        tags=identity.tags(f"{name}-s3"),
        opts=pulumi.ResourceOptions(parent=parent),
    )


def private_endpoints(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    plan: EndpointsPlan,
    *,
    vpc_id: pulumi.Input[str],
    cidrs: Sequence[str],
    subnet_ids: Sequence[pulumi.Input[str]],
) -> list[pulumi.Resource]:
    """An interface endpoint for each API, with the API's public name inside the VPC, and one group that
    lets the ranges of the VPC in."""
    group = security_group(parent, ENDPOINTS, identity, vpc_id, "AWS APIs inside the VPC")
    rules = [
        allow(
            parent,
            f"{ENDPOINTS}-from-{cidr}" if number else f"{ENDPOINTS}-from-vpc",
            identity,
            group.id,
            source_cidr=cidr,
            ports=(HTTPS, HTTPS),
        )
        for number, cidr in enumerate(cidrs)
    ]
    made = [
        aws.ec2.VpcEndpoint(
            called := f"{name}-{api.replace('.', '-')}",
            vpc_id=vpc_id,
            service_name=service_name(identity.region, api),
            vpc_endpoint_type="Interface",
            subnet_ids=subnet_ids,
            security_group_ids=[group.id],
            private_dns_enabled=True,
            tags=identity.tags(called),
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for api in plan.apis
    ]
    return [*rules, *made]
