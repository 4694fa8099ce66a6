"""Durations and refusals in what the engine and the cluster tell, as rows of trainyard/catalog/aws/latencies.py."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from trainyard.catalog.aws.latencies import add_on, lustre
from trainyard.operations.prove.record import Node, Seen, epoch, iso
from trainyard.plans.controllers import RELEASE

Object = dict[str, Any]
KARPENTER = "karpenter.sh/nodepool"
"""Label of a node that Karpenter made."""
GPUS, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
TYPE = "node.kubernetes.io/instance-type"
BEGINS, SUCCEEDS, FAILS = "resourcePreEvent", "resOutputsEvent", "resOpFailedEvent"
WORK = ("create", "delete")
NODE_GROUP = "eks.nodegroup"
_DELETES = {
    "aws:ec2/natGateway:NatGateway": "ec2.nat-gateway.delete",
    "aws:eks/cluster:Cluster": "eks.cluster.delete",
    "aws:eks/addon:Addon": "eks.addon.delete",
    "aws:eks/nodeGroup:NodeGroup": "eks.nodegroup.delete",
    "aws:efs/mountTarget:MountTarget": "efs.mount-target.delete",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx.lustre.delete",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": "fsx.association.delete",
}
"""Type of a resource → row of its deletion."""
_CREATES: Mapping[str, Callable[[Object], str]] = {
    "aws:ec2/vpc:Vpc": lambda _: "ec2.vpc",
    "aws:ec2/subnet:Subnet": lambda _: "ec2.subnet",
    "aws:ec2/natGateway:NatGateway": lambda _: "ec2.nat-gateway",
    "aws:ec2/vpcEndpoint:VpcEndpoint": lambda inputs: (
        "ec2.interface-endpoint"
        if inputs.get("vpcEndpointType") == "Interface"
        else "ec2.vpc-endpoint"
    ),
    "aws:eks/cluster:Cluster": lambda _: "eks.cluster",
    "aws:eks/nodeGroup:NodeGroup": lambda _: NODE_GROUP,
    "aws:eks/addon:Addon": lambda inputs: add_on(str(inputs.get("addonName"))),
    "aws:efs/fileSystem:FileSystem": lambda _: "efs.file-system",
    "aws:efs/mountTarget:MountTarget": lambda _: "efs.mount-target",
    "aws:fsx/lustreFileSystem:LustreFileSystem": lambda inputs: lustre(
        int(inputs.get("storageCapacity") or 0), efa=bool(inputs.get("efaEnabled"))
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": lambda _: "fsx.association",
    "aws:sqs/queue:Queue": lambda _: "sqs.queue",
    RELEASE: lambda inputs: _release(str(inputs.get("name"))),
}
"""Type of a resource → row of its creation, from its inputs. A security group has none: its row counts its
rules, too, which are resources of their own."""


def _release(name: str) -> str:
    """A release of CRDs or of a device plugin has no row: it takes a second or two."""
    if name == "karpenter":
        return "helm.karpenter"
    return "" if name.endswith(("-crd", "-crds", "plugin")) else "helm.controller"


def events_of(text: str) -> list[Object]:
    """Events of a log of the engine. A line that a killed engine has not ended is left out."""
    found = list[Object]()
    for line in text.splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def operations(events: Iterable[Object], step: str) -> Iterator[Seen]:
    """Creations and deletions that succeeded and that have a row."""
    begun: dict[tuple[str, str], float] = {}
    for event in events:
        kind = next((name for name in (BEGINS, SUCCEEDS) if name in event), None)
        if kind is None:
            continue
        step_of_engine = event[kind]["metadata"]
        key = (step_of_engine["urn"], step_of_engine["op"])
        if kind == BEGINS:
            begun[key] = float(event["timestamp"])
        elif (start := begun.pop(key, None)) is not None and (row := row_of(step_of_engine)):
            seconds = float(event["timestamp"]) - start
            yield Seen(row=row, step=step, start=iso(start), seconds=seconds)


def row_of(step_of_engine: Object) -> str:
    """Row of LATENCIES of a step of the engine; empty where it has none."""
    state = step_of_engine.get("new") or step_of_engine.get("old") or {}
    kind, what = str(state.get("type", step_of_engine.get("type"))), step_of_engine["op"]
    if what not in WORK:
        return ""
    if what == "delete":
        return _DELETES.get(kind, "")
    creates = _CREATES.get(kind)
    return creates(state.get("inputs") or {}) if creates else ""


def refusals(events: Iterable[Object]) -> list[str]:
    """Errors that the engine printed, word for word, each once."""
    found = (event.get("diagnosticEvent") or {} for event in events)
    said = [
        re.sub(r"<\{%\w*%\}>", "", each["message"]).strip()
        for each in found
        if each.get("severity") == "error"
    ]
    return list(dict.fromkeys(filter(None, said)))


def after_first_node(seen: Iterable[Seen], nodes: Iterable[Object]) -> list[Seen]:
    """The durations with those of releases counted from the first Ready node, for which they wait, and with
    the time until that node. `nodes`: all of the cluster; without one no release is counted."""
    found = list(seen)
    ready = [
        epoch(each["lastTransitionTime"])
        for node in nodes
        if KARPENTER not in node["metadata"].get("labels", {})
        for each in node["status"].get("conditions", [])
        if each["type"] == "Ready" and each["status"] == "True"
    ]
    if not ready:
        return [one for one in found if not one.row.startswith("helm.")]
    first = min(ready)
    for one in found:
        late = first - epoch(one.start)
        if one.row.startswith("helm.") and 0 < late < one.seconds:
            one.start, one.seconds = iso(first), one.seconds - late
    groups = [one for one in found if one.row == NODE_GROUP and epoch(one.start) <= first]
    return found + [
        Seen(
            row="eks.nodegroup.ready",
            step=group.step,
            start=group.start,
            seconds=first - epoch(group.start),
        )
        for group in groups[:1]
    ]


def boots(claims: Iterable[Object], step: str) -> Iterator[Seen]:
    """Starts of nodes: from a NodeClaim to a node in which pods can start."""
    for claim in claims:
        start = claim["metadata"]["creationTimestamp"]
        for each in claim.get("status", {}).get("conditions", []):
            if each["type"] == "Initialized" and each["status"] == "True":
                yield Seen(
                    row="ec2.instance-boot",
                    step=step,
                    start=start,
                    seconds=epoch(each["lastTransitionTime"]) - epoch(start),
                    instance_type=claim["metadata"].get("labels", {}).get(TYPE, ""),
                )


_PULLED = re.compile(
    r'Successfully pulled image "(?P<image>[^"]+)" in (?P<took>[\dhms.]+?)(?: \(|\.? |$)'
)
_PARTS = re.compile(r"([\d.]+)(h|ms|m|s)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def pulls(events: Iterable[Object], image: str, step: str) -> Iterator[Seen]:
    """Pulls of one image, from the events of pods."""
    for event in events:
        found = _PULLED.match(event.get("message") or "")
        if found and found["image"] == image:
            took = sum(
                float(number) * _SECONDS[unit] for number, unit in _PARTS.findall(found["took"])
            )
            at = event.get("firstTimestamp") or event.get("eventTime") or event["lastTimestamp"]
            yield Seen(
                row="job.image-pull", step=step, start=iso(epoch(at) - took), seconds=round(took, 1)
            )


def node_of(node: Object) -> Node:
    """A node as the file has it, without its name."""
    info, amounts = node["status"]["nodeInfo"], node["status"].get("allocatable", {})
    return Node(
        created=node["metadata"]["creationTimestamp"],
        instance_type=node["metadata"].get("labels", {}).get(TYPE, ""),
        system=info["osImage"],
        kernel=info["kernelVersion"],
        kubelet=info["kubeletVersion"],
        gpus=int(amounts.get(GPUS, 0)),
        efa=int(amounts.get(EFA, 0)),
    )


def added(known: list[Seen], more: Iterable[Seen]) -> list[Seen]:
    """The durations with those that are new, told by row and begin."""
    there = {(one.row, one.start, one.seconds) for one in known}
    return known + [one for one in more if (one.row, one.start, one.seconds) not in there]
