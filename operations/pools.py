"""Pools that cannot launch nodes: which condition of their NodePool or EC2NodeClass is False, or why
their instances end at launch."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operations.snapshot import Object, Snapshot, about
from operations.symptoms import Finding
from plans.pod_template import POOL

REFUSED = re.compile(
    r'"EC2NodeClass":\{"name":"([^"]+)"\}[^\n]*?api error ([^"\n]*?)(?: \(aws-error-code|"|\n)'
)
"""In Karpenter's log: the EC2NodeClass, and the error of AWS in a dry run of a launch."""
ENDING = ("InstanceTerminating", "TerminatingOnInterruption")
"""Reasons of events about a NodeClaim whose instance ends (karpenter-provider-aws 1.14,
pkg/controllers/interruption/events)."""
REGISTERED = "Registered"
"""Condition of a NodeClaim that has become a node, and reason of the event about it."""


def unready(snapshot: Snapshot, *, wanted: bool) -> Iterator[Finding]:
    """What pools lack: pools that a job may wait for if `wanted`, idle pools otherwise."""
    refused = {name: why for log in snapshot.logs.values() for name, why in REFUSED.findall(log)}
    for kind in ("ec2nodeclasses", "nodepools"):
        for obj in snapshot.of(kind):
            if _wanted(snapshot, obj) is not wanted:
                continue
            name = obj["metadata"]["name"]
            for condition in obj.get("status", {}).get("conditions", []):
                if condition["status"] == "False" and condition["type"] != "Ready":
                    message = condition.get("message") or condition.get("reason", "")
                    yield Finding(
                        what=f"{obj['kind']} {name}: {condition['type']} is False",
                        why=refused.get(_class(obj), message),
                        do=f"kubectl describe {obj['kind'].lower()} {name}",
                    )


def ended_at_launch(snapshot: Snapshot) -> Iterator[Finding]:
    """Pools that a job may wait for and whose instances end before they are nodes, with disks that a
    KMS key of the stack file encrypts. EC2 tells nobody why but whoever describes the instance, and
    Karpenter does not."""
    events = [
        e for e in snapshot.of("events") if e.get("involvedObject", {}).get("kind") == "NodeClaim"
    ]
    nodes = {about(event) for event in events if event.get("reason") == REGISTERED}
    ended = {about(event) for event in events if event.get("reason") in ENDING} - nodes
    keys = {obj["metadata"]["name"]: _key(obj) for obj in snapshot.of("ec2nodeclasses")}
    for pool in snapshot.of("nodepools"):
        name, key = pool["metadata"]["name"], keys.get(_class(pool))
        lost = [claim for claim in ended if claim.rpartition("-")[0] == name]
        if lost and key and _wanted(snapshot, pool):
            number = f"{len(lost)} instances" if len(lost) > 1 else "an instance"
            yield Finding(
                what=f"NodePool {name}: {number} ended before joining the cluster",
                why=(
                    "EC2 ends an instance with Client.InternalError where Karpenter's role may not use"
                    f" the KMS key of its disk, environment.kms_key_arn: {key}"
                ),
                do=(
                    "make check LIVE=1 says what the policy of the key lacks, and make policy KEY=1"
                    " prints it; Karpenter then launches again by itself"
                ),
            )


def _key(node_class: Object) -> str | None:
    """The KMS key of the disks of a node class; None where AWS encrypts them with its own."""
    disks = node_class.get("spec", {}).get("blockDeviceMappings", [])
    return next((disk["ebs"]["kmsKeyID"] for disk in disks if disk["ebs"].get("kmsKeyID")), None)


def _class(obj: Object) -> str:
    """The name of the EC2NodeClass that the object is or uses."""
    used = _template(obj).get("spec", {}).get("nodeClassRef", {})
    return used.get("name", obj["metadata"]["name"])


def _template(obj: Object) -> Object:
    return obj.get("spec", {}).get("template", {})


def _wanted(snapshot: Snapshot, obj: Object) -> bool:
    """Whether a job that has not ended may wait for the pool. A job without pods may wait for any
    pool, and so may a pod that selects no pool."""
    pools = {
        _template(pool).get("metadata", {}).get("labels", {}).get(POOL)
        for pool in snapshot.of("nodepools")
        if _class(pool) == _class(obj)
    }
    selected = {
        pod.get("spec", {}).get("nodeSelector", {}).get(POOL)
        for job in snapshot.jobs()
        if not job.ended
        for pod in job.pods or ({},)
    }
    return None in selected | pools or not pools or bool(selected & pools)
