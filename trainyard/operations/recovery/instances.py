"""Instances that Karpenter launched and that run on after somebody has deleted their cluster: Karpenter was in it, and
no state has them (aws/karpenter-provider-aws#1955).

They have the tags of their EC2NodeClass, which name the stack, and those of Karpenter (1.14, pkg/cloudprovider,
getTags). What others have launched in the same VPC or cluster is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainyard.catalog.aws.prices import price
from trainyard.derive.credentials import NotAssumed
from trainyard.operations.reach.stack_account import session_of
from trainyard.operations.recovery.interfaces import exists, places
from trainyard.plans.identity import cluster_tag
from trainyard.replacing.urn import stack_of

BY_KARPENTER = "karpenter.sh/nodepool"
NOT_ENDED = ["pending", "running", "stopping", "stopped"]
"""States of an instance that nobody has terminated."""
Object = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class LeftInstance:
    """An instance whose cluster is gone."""

    id: str
    type: str
    cost: str
    """Dollars an hour, in words."""

    def __str__(self) -> str:
        return f"instance {self.id}, {self.type}, {self.cost}: its cluster is gone, and nobody else ends it"


def left(session: boto3.Session, resources: list[Object]) -> list[LeftInstance]:
    """Instances of the pools of a stack whose cluster is gone. Empty while the cluster exists, or the stack has
    neither subnet nor group."""
    stacks = sorted({stack_of(each["urn"]) for each in resources})
    return [
        LeftInstance(
            id=one["InstanceId"],
            type=one["InstanceType"],
            cost=_cost(one, str(session.region_name)),
        )
        for name, place in sorted(places(resources).items())
        if not exists(session, name)
        for page in session.client("ec2")
        .get_paginator("describe_instances")
        .paginate(
            Filters=[
                {"Name": f"tag:{cluster_tag(name)}", "Values": ["owned"]},
                {"Name": "tag:trainyard:stack", "Values": stacks},
                {"Name": "tag-key", "Values": [BY_KARPENTER]},
                {"Name": "instance-state-name", "Values": NOT_ENDED},
                place,
            ]
        )
        for reservation in page["Reservations"]
        for one in reservation["Instances"]
    ]


def end(session: boto3.Session, found: Iterable[LeftInstance]) -> None:
    """Terminate them. AWS takes minutes for it, in which they hold their subnets."""
    session.client("ec2").terminate_instances(InstanceIds=[each.id for each in found])


def named(stack: str, state: Object) -> list[str]:
    """A line for each instance that is left, and the commands that end them; a line where AWS does not answer."""
    resources = state["deployment"].get("resources") or []
    if not places(resources):
        return []
    try:
        session = session_of(state)
        found = left(session, resources)
    except (BotoCoreError, ClientError, NotAssumed) as error:
        return [f"where the cluster is gone, its nodes may run on: AWS was asked, and said {error}"]
    if not found:
        return []
    ids = " ".join(each.id for each in found)
    return [
        *(f"still runs: {each}" for each in found),
        f"`trainyard repair --stack {stack}` ends these after a question; or type aws ec2 terminate-instances"
        f" --region {session.region_name} --instance-ids {ids}",
    ]


def _cost(instance: Object, region: str) -> str:
    """The price on demand, which is the most that spot costs."""
    found = price("ec2", instance["InstanceType"], region)
    if found is None:
        return f"whose price in {region} is not known here"
    most = "at most" if instance.get("InstanceLifecycle") == "spot" else "about"
    return f"{most} ${found.usd:,.2f}/hour"
