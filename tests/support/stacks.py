"""Stacks that between them have every AWS resource of the program, and their recorded graphs."""

from __future__ import annotations

import functools
from typing import Any

from tests.support.existing_cluster import IN_CLUSTER, ExistingCluster
from tests.support.existing_vpc import EXISTING_VPC, ExistingVpc
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment_plan
from trainyard.plan import EnvironmentPlan

ROLE = "arn:aws:iam::123456789012:role/deployer"
BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"
MIRROR = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
RESERVED = {"id": "cr-0123456789abcdef0", "instances": 2}
BLOCK = RESERVED | {"starts": "2098-12-01T11:30:00Z", "ends": "2098-12-03T11:30:00Z"}
H100 = {"instance_types": ["p5.48xlarge"], "max_nodes": 2}


def _link(path: str) -> dict[str, str]:
    return {"s3": f"s3://my-sets/{path}/", "path": f"/{path}"}


def _lustre(**settings: Any) -> dict[str, Any]:
    speed = {"capacity_gib": 4800, "throughput_mbps_per_tib": 1000}
    return {"lustre": speed | settings, "data": "keep"}


STACKS: dict[str, tuple[Edit, ...]] = {
    "dev": (),
    "reservation in a placement group": (
        at(
            "pools.h100",
            H100 | {"capacity": "reservation", "reservation": RESERVED | {"placement_group": "g"}},
        ),
    ),
    "Capacity Block": (at("pools.h100", H100 | {"capacity": "block", "reservation": BLOCK}),),
    "static pool in a placement group": (
        at("pools.h100.replicas", 1),
        at("pools.h100.placement", "cluster"),
    ),
    "Lustre linked to S3": (
        at("storage.scratch.lustre.repositories", {"a": _link("a"), "b": _link("b")}),
        at("storage.fast", {"lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"}}),
    ),
    "Lustre over EFA": (at("storage.big", _lustre(efa=True)),),
    "registries, admins, operator, alerts and tags": (
        at("metrics", {"alerts": {"emails": ["gpu-oncall@example.com"]}}),
        at("registries", {"images": {"keep_images": 30}, "kept": {"data": "keep"}}),
        at("cluster.admins", {"ops": {"role_arn": ROLE}}),
        at("training_operator", {"version": "1.8.1"}),
        at("tags", {"cost-center": "17"}),
        at("cluster.tunnel_port", 8443),
        at("permissions_boundary", BOUNDARY),
    ),
    "teams": (at("teams", {"vision": {"deployer": ROLE, "members": [f"{ROLE}-2"]}}),),
    "directories of teams": (
        at("teams", {"vision": {"deployer": ROLE}}),
        at("storage.scratch.teams", "apart"),
        at("storage.home.teams", "apart"),
        at("storage.sets", {"s3": {"bucket": "our-sets", "writable": True}, "teams": "apart"}),
        at("storage.shared", {"efs": {}, "teams": "read_only"}),
    ),
    "spot pool and backups": (
        at("pools.h100.capacity", "spot"),
        at("storage.scratch.lustre.backup_days", 7),
    ),
    "a store of this cluster only": (
        at("storage.home.efs", {"only_this_cluster": True}),
        at("storage.home.teams", "apart"),
        at("storage.sets", {"s3": {"bucket": "our-sets"}}),
        at("storage.more", {"s3": {"bucket": "more-sets"}}),
        at("teams", {"vision": {"deployer": ROLE}}),
    ),
    "stores that age": (
        at("storage.home.efs", {"throughput": "provisioned", "throughput_mibps": 128}),
        at("storage.old", {"efs": {"lifecycle": {"infrequent_after_days": 30}}}),
        at("storage.scratch.lustre.maintenance_window", "sunday 16:30"),
    ),
    "no way to the internet": (
        at("network.internet", "none"),
        at("network.endpoints", "private"),
        at("artifacts.images", MIRROR),
        at(
            "metrics",
            {
                "alerts": {"emails": ["gpu-oncall@example.com"]},
                "push_gateway": True,
                "managed_prometheus": {"data": "delete"},
            },
        ),
        at("repair", {}),
        at("training_operator", {"version": "1.8.1"}),
        at("cluster.tunnel_port", 8443),
        at(
            "teams",
            {"vision": {"deployer": ROLE, "image_prefixes": ["registry.example.com/vision/"]}},
        ),
        at("storage.scratch.teams", "apart"),
    ),
    "NAT gateways in each zone": (at("network.nat", "each_zone"),),
    "a key of the company and logs": (
        at("kms_key_arn", KEY),
        at("cluster.log_retention_days", 90),
        at("cluster.deletion_protection", True),
        at("cluster.scaling_tier", "tier-xl"),
        at("network.flow_logs", {"days": 14}),
        at(
            "metrics",
            {"alerts": {"emails": ["gpu-oncall@example.com"]}, "managed_prometheus": {}},
        ),
    ),
    "existing VPC": (EXISTING_VPC, at("network.s3_endpoint", True)),
    "existing cluster": IN_CLUSTER,
    "broken nodes replaced": (at("repair", {}),),
    "runs recorded": (at("history", {}),),
    "logs of pods kept": (at("logs", {}),),
    "a budget": (at("budget", {"dollars_a_month": 900.5, "emails": ["a@example.com"]}),),
    "no store": (at("storage", {}), at("jobs", {})),
}
"""Name of a stack → the edits by which its environment differs from Pulumi.dev.yaml's."""


@functools.cache
def recorded(stack: str) -> Graph:
    """The graph of one of STACKS."""

    def changes(values: dict[str, Any]) -> None:
        for edit in STACKS[stack]:
            edit(values[ENVIRONMENT])

    existing = ExistingVpc() if EXISTING_VPC in STACKS[stack] else None
    there = ExistingCluster() if STACKS[stack] == IN_CLUSTER else existing
    return deploy("dev", changes, vpc=there)


@functools.cache
def planned(stack: str) -> EnvironmentPlan:
    """The plan of one of STACKS."""
    return environment_plan(*STACKS[stack])
