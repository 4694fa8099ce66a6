"""Policies about who reaches what: `private` and `no-public-ingress`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from policy_pack.kinds import (
    ADDRESSES,
    BUCKET_BLOCK,
    CLUSTER,
    INGRESSES,
    INSTANCES,
    NODE_CLASS,
    OLD_RULE,
    RULES_IN,
    SECURITY_GROUPS,
    SERVICE,
    SUBNETS,
    TEMPLATE,
    TRUE,
)
from policy_pack.resource import Config, Resource, as_list
from trainyard.catalog.aws.address_ranges import is_internet

PUBLISHED = ("LoadBalancer", "NodePort")
BLOCKED = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


def private(resource: Resource, _: Config) -> Iterator[str]:
    """No bucket, node, endpoint or Service that strangers reach."""
    if resource.type == BUCKET_BLOCK:
        yield from (f"must set {key}" for key in BLOCKED if resource.part(key) is not True)
    if _has_public_address(resource):
        yield "must not give a node a public address"
    if resource.type in SUBNETS and _gives_addresses(resource):
        yield "must not give public addresses to what is launched in it (mapPublicIpOnLaunch)"
    if resource.type == SERVICE and resource.part("spec", "type") in PUBLISHED:
        yield f"must not be a Service of type {resource.part('spec', 'type')}"
    if resource.type in INGRESSES:
        yield "must not be an Ingress: it publishes a Service"
    yield from _open_endpoint(resource)


def _has_public_address(resource: Resource) -> bool:
    """An address that a node is launched with, or that is given to one. Those of NAT gateways belong
    to no instance."""
    if resource.type == TEMPLATE:
        interfaces = as_list(resource.part("networkInterfaces"))
        return any(one.get("associatePublicIpAddress") in TRUE for one in interfaces)
    if resource.type in INSTANCES:
        return resource.part("associatePublicIpAddress") in TRUE
    if resource.type in ADDRESSES:
        given = ("instance", "instanceId", "networkInterface", "networkInterfaceId")
        return any(key in resource.props for key in given)
    return resource.type == NODE_CLASS and bool(resource.part("spec", "associatePublicIPAddress"))


def _gives_addresses(subnet: Resource) -> bool:
    """A default subnet gives addresses unless it is told not to."""
    return subnet.props.get("mapPublicIpOnLaunch", SUBNETS[subnet.type]) in TRUE


def _open_endpoint(resource: Resource) -> Iterator[str]:
    """An API server that the whole internet reaches. The engine shows what pulumi-eks makes, and not
    what it was told."""
    access = resource.part("vpcConfig") or {}
    if resource.type != CLUSTER or not access.get("endpointPublicAccess", True):
        return
    ranges = as_list(access.get("publicAccessCidrs"))
    if not ranges or any(map(is_internet, ranges)):
        yield "must limit the public endpoint of the API server to ranges of your own"


def no_public_ingress(resource: Resource, _: Config) -> Iterator[str]:
    """No rule of a security group that lets the whole internet in."""
    for source in _sources(resource):
        if source and is_internet(source):
            yield f"must not let {source} in"


def _sources(resource: Resource) -> list[Any]:
    """Ranges from which a security group, or a rule of one, lets in."""
    if resource.type == RULES_IN:
        return [resource.part("cidrIpv4"), resource.part("cidrIpv6")]
    if resource.type == OLD_RULE:
        rules = [resource.props] if resource.part("type") == "ingress" else []
    elif resource.type in SECURITY_GROUPS:
        rules = as_list(resource.part("ingress"))
    else:
        return []
    return [
        source
        for rule in rules
        for key in ("cidrBlocks", "ipv6CidrBlocks")
        for source in as_list(rule.get(key))
    ]
