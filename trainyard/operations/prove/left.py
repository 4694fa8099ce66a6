"""Leftovers of a stack that is destroyed, asked for by the names and tags that its state had."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from trainyard.operations.prove.record import LOCAL, make_local
from trainyard.operations.reach.lookup import find
from trainyard.operations.reach.stack_account import session_of
from trainyard.operations.recovery import interfaces
from trainyard.plans.identity import cluster_tag
from trainyard.replacing.urn import name_of

STATE = LOCAL / "state.json"
"""State of the stack before it was destroyed."""
CLUSTER = "aws:eks/cluster:Cluster"
GONE = ("terminated", "shutting-down")
Object = dict[str, Any]


def keep(state: Object) -> None:
    """Keep the state on this machine, with what an earlier one had and this one has not."""
    before = kept()["deployment"]["resources"] if STATE.exists() else []
    every = {each["urn"]: each for each in [*before, *_resources(state)]}
    make_local()
    STATE.touch(mode=0o600)
    STATE.write_text(json.dumps({"deployment": {"resources": [*every.values()]}}))


def kept() -> Object:
    """The state that was kept."""
    return json.loads(STATE.read_text())


def _resources(state: Object) -> list[Object]:
    return state["deployment"].get("resources") or []


def left(state: Object, region: str) -> list[str]:
    """Lines about what is still there, and about questions that had no answer; no ids."""
    session, resources = session_of(state, region), _resources(state)
    made = [each for each in resources if each.get("custom") and each["type"].startswith("aws:")]
    clusters = [
        str((each.get("outputs") or each["inputs"]).get("name"))
        for each in made
        if each["type"] == CLUSTER
    ]
    return [
        *_asked("resources of the stack", lambda: _still_there(session, made)),
        *_asked(
            "network interfaces",
            lambda: [
                "network interface of the VPC CNI" for _ in interfaces.leaked(session, resources)
            ],
        ),
        *_asked("log groups", lambda: _log_groups(session, clusters)),
        *_asked("instances and volumes", lambda: _of_nodes(session, clusters)),
    ]


def _asked(what: str, question: Callable[[], Iterable[str]]) -> list[str]:
    """The answer, or a line where AWS does not answer."""
    try:
        return [*question()]
    except (BotoCoreError, ClientError) as error:
        return [f"not known of {what}: {error}"]


def _still_there(session: boto3.Session, made: Iterable[Object]) -> Iterator[str]:
    for each in made:
        try:
            found = find(session, each["type"], each["inputs"])
        except KeyError:  # it has no tags of ours: it is a part of another resource
            continue
        if found:
            yield f"{each['type'].rpartition(':')[2]} {name_of(each['urn'])}"


def _log_groups(session: boto3.Session, clusters: Iterable[str]) -> Iterator[str]:
    """Log groups that EKS makes again for lines that come late."""
    for name in clusters:
        prefix = f"/aws/eks/{name}/"
        answer = session.client("logs").describe_log_groups(logGroupNamePrefix=prefix)
        yield from (f"log group {each['logGroupName']}" for each in answer["logGroups"])


def _of_nodes(session: boto3.Session, clusters: Iterable[str]) -> Iterator[str]:
    """Instances of Karpenter and volumes of a cluster."""
    ec2 = session.client("ec2")
    for name in clusters:
        owned = [{"Name": "tag-key", "Values": [cluster_tag(name)]}]
        for reservation in ec2.describe_instances(Filters=owned)["Reservations"]:
            for instance in reservation["Instances"]:
                if instance["State"]["Name"] not in GONE:
                    yield f"instance {instance['InstanceType']}, {instance['State']['Name']}"
        for volume in ec2.describe_volumes(Filters=owned)["Volumes"]:
            yield f"volume of {volume['Size']} GiB, {volume['State']}"
