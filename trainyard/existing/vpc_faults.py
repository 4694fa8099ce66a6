"""Requirements for an existing VPC, and errors about one that does not meet them.

The component asks in every preview, `trainyard check --live` before it; both judge by this file. Sources:
EKS user guide, network-reqs (two zones, DNS hostnames and resolution); VPC user guide,
VPC_Internet_Gateway (a subnet is public by its route) and vpc-share-limitations (what an account may
do in a VPC that another one shares with it); EC2 API, RunInstances (public addresses are for launches
with one interface).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from trainyard.catalog.aws.zones import WITHOUT_EKS
from trainyard.plans.networks import (
    SERVICE_CIDRS,
    AnyNetworkPlan,
    ExistingNetworkPlan,
    ExistingZonePlan,
    room,
    service_cidr,
)
from trainyard.problems import At, InputError

AT = "environment.network"
EVERYWHERE = "0.0.0.0/0"
"""Destination of a default route."""
INTERNET_GATEWAY = "igw-"
"""Begins the id of one."""


@dataclass(frozen=True, kw_only=True)
class SubnetFound:
    """A subnet as EC2 describes it."""

    vpc_id: str
    zone: str
    zone_id: str
    cidr: str
    public_addresses: bool
    """An interface launched in it gets a public address."""
    way_out: str
    """Target of the default route that holds for it; empty without one."""


@dataclass(frozen=True, kw_only=True)
class VpcFound:
    """A VPC as EC2 describes it."""

    shared_by: str
    """Account that owns it and shares its subnets by AWS RAM; empty where it is the caller's own."""
    cidrs: tuple[str, ...]
    dns_support: bool
    dns_hostnames: bool
    subnets: Mapping[str, SubnetFound]
    """By id; those of the plan that exist, in whichever VPC."""


def faults(plan: ExistingNetworkPlan, found: VpcFound | None) -> Iterator[InputError]:
    """Everything that is wrong. `found`: None where the region has no such VPC."""
    if found is None:
        yield At(f"{AT}.vpc_id").must(
            f"be a VPC of this account, or shared with it, in {plan.identity.region}",
            got=plan.vpc_id,
            fix="write the id that `aws ec2 describe-vpcs` prints, or log in to its account",
        )
        return
    yield from _endpoints(plan, found)
    yield from _dns(plan, found)
    if plan.makes_cluster and service_cidr(found.cidrs, plan.service_cidr) is None:
        yield _service_range(plan, found)
    for zone in plan.zones:
        yield from _subnet(plan, zone, found)


def _service_range(plan: ExistingNetworkPlan, found: VpcFound) -> InputError:
    """A range of services that overlaps with the VPC, which EKS refuses."""
    if plan.service_cidr is None:
        return At(f"{AT}.vpc_id").must(
            f"leave one of {' and '.join(SERVICE_CIDRS)} to Kubernetes services",
            got=", ".join(found.cidrs),
            fix="write a range that is free everywhere as cluster.service_cidr: 192.168.64.0/18, for"
            " example",
        )
    return At("environment.cluster.service_cidr").must(
        f"overlap with no range of {plan.vpc_id}, which has {', '.join(found.cidrs)}",
        got=plan.service_cidr,
        fix="write a range that neither the VPC nor a network that it reaches has",
    )


def owner_must(found: VpcFound) -> str:
    """How a fix begins that changes the VPC or a subnet, which only their owner can."""
    return f"let account {found.shared_by} " if found.shared_by else ""


def _endpoints(plan: ExistingNetworkPlan, found: VpcFound) -> Iterator[InputError]:
    """Endpoints that the stack would make: EC2 refuses CreateVpcEndpoint to all but the owner."""
    settings = {
        "s3_endpoint": (plan.s3_endpoint, "true", "a gateway endpoint for S3"),
        "endpoints": (plan.endpoints, "private", "an endpoint with private DNS for each AWS API"),
    }
    for name, (makes, value, what) in settings.items():
        if found.shared_by and makes:
            yield At(f"{AT}.{name}").must(
                f"not be {value}: only the account that owns a VPC makes endpoints in it",
                got=f"{value}, and {plan.vpc_id} belongs to account {found.shared_by}",
                fix=f"delete it, and {owner_must(found)}make {what}",
            )


def _dns(plan: ExistingNetworkPlan, found: VpcFound) -> Iterator[InputError]:
    """Nodes find the cluster's endpoint, and stores, by names that only the VPC resolves."""
    attributes = {
        "enableDnsSupport": (found.dns_support, "--enable-dns-support"),
        "enableDnsHostnames": (found.dns_hostnames, "--enable-dns-hostnames"),
    }
    for name, (on, option) in attributes.items():
        if not on:
            yield At(f"{AT}.vpc_id").must(
                f"be a VPC with {name}",
                got=f"{plan.vpc_id} without it",
                fix=f"{owner_must(found)}run `aws ec2 modify-vpc-attribute --vpc-id {plan.vpc_id} {option}`",
            )


def _subnet(
    plan: ExistingNetworkPlan, zone: ExistingZonePlan, vpc: VpcFound
) -> Iterator[InputError]:
    """What is wrong with the subnet of one zone."""
    path, id_ = f"{AT}.private_subnets.{zone.name}", zone.subnet_id
    found, owner = vpc.subnets.get(id_), owner_must(vpc)
    if found is None or found.vpc_id != plan.vpc_id:
        absent = "does not exist or is not shared with this account" if owner else "does not exist"
        yield At(path).must(
            f"be a subnet of {plan.vpc_id}",
            got=f"{id_}, which {absent}" if found is None else f"{id_} of {found.vpc_id}",
            fix=f"write one that `aws ec2 describe-subnets --filters Name=vpc-id,Values={plan.vpc_id}`"
            " prints" + f", or {owner}share it" * bool(owner),
        )
        return
    if found.zone != zone.name:
        yield At(path).must(
            f"be a subnet in {zone.name}",
            got=f"{id_}, which is in {found.zone}",
            fix=f"write it under {found.zone}, or another subnet here",
        )
    yield from _zone_id(plan, zone, found)
    yield from _private(path, id_, found, isolated=plan.isolated, owner=owner)
    use = plan.addresses[zone.name]
    if room(found.cidr) < use.total:
        yield At(path).must(
            f"have {use.total} addresses in {zone.name}: {use.told}",
            got=f"{id_} with {found.cidr}, which has {room(found.cidr)}",
            fix=f"write a larger subnet of {zone.name}{fewer_nodes(plan, zone.name)}",
        )


def fewer_nodes(plan: AnyNetworkPlan, zone: str) -> str:
    """End of a fix for a subnet that is too small; empty where no pool may launch nodes in it."""
    pools = ", ".join(plan.addresses[zone].pools)
    if not pools:
        return ""
    away = "" if zone == plan.training_zone.name else f", or take {zone} out of its fallback_zones"
    return f", or lower max_nodes of {pools}{away}"


def _zone_id(
    plan: ExistingNetworkPlan, zone: ExistingZonePlan, found: SubnetFound
) -> Iterator[InputError]:
    """A zone's name means another zone in another account; its id says which."""
    if found.zone_id in WITHOUT_EKS:
        yield At(f"{AT}.private_subnets.{zone.name}").must(
            "be in a zone in which EKS places control planes",
            got=f"{zone.subnet_id} in {found.zone_id}",
            fix="write a subnet of another zone",
        )
    if zone == plan.training_zone and plan.zone_id and plan.zone_id != found.zone_id:
        yield At("environment.zone_id").must(
            f"be the id of the zone of {zone.subnet_id}",
            got=plan.zone_id,
            fix=f"write {found.zone_id}, or the subnet of {plan.zone_id}",
        )


def _private(
    path: str, id_: str, found: SubnetFound, *, isolated: bool, owner: str
) -> Iterator[InputError]:
    """Nodes have private addresses, and reach registries and AWS APIs by a default route, unless they
    reach them by endpoints. `owner`: of owner_must."""
    if found.way_out.startswith(INTERNET_GATEWAY):
        yield At(path).must(
            "be private",
            got=f"{id_}, whose default route leads to {found.way_out}",
            fix="write a subnet whose default route leads to a NAT gateway or a transit gateway",
        )
    if not found.way_out and not isolated:
        yield At(path).must(
            f"have a route to {EVERYWHERE}: nodes pull images of public registries",
            got=f"{id_} without one",
            fix=f"{owner}add a route to a NAT gateway or a transit gateway to its route table, or write"
            " internet: none with artifacts.images",
        )
    if found.public_addresses:
        yield At(path).must(
            "give no public addresses: EC2 refuses them to nodes with several interfaces",
            got=f"{id_}, which does",
            fix=f"{owner}run `aws ec2 modify-subnet-attribute --subnet-id {id_}"
            " --no-map-public-ip-on-launch`, or write another subnet",
        )
