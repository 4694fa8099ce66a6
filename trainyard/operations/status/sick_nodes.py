"""Nodes that are not Ready, and those whose hardware is broken: what the program that replaces them says, and what
nobody replaces."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from trainyard.catalog.logs.events import about
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.catalog.logs.waiting import goes_on
from trainyard.catalog.repair import CONDITIONS, EVENTS, LEFT_ALONE
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.objects.programs.repair import NOTE
from trainyard.operations.reach.snapshot import Object, Snapshot, condition_of
from trainyard.operations.status.finding import Finding

HELD = "not replaced"
"""Part of the note of a node that is left as it is: trainyard/in_cluster/repair."""
WAITED = "waited for"
"""Part of the note of a silent node that may speak again."""
NOTICES = {
    "InstanceUnhealthy": "AWS retires its instance or maintains it, on a day that EC2 names",
    "SpotInterrupted": "EC2 takes the spot instance back within two minutes",
    "CapacityReservationInstanceInterrupted": "its Capacity Block ends",
}
"""Reason of Karpenter's event on a node → what AWS has announced (karpenter-provider-aws 1.14.1,
pkg/controllers/interruption/events)."""


NO_NETWORK = "the VPC CNI does not run on the node, or its role may not assign addresses (AmazonEKS_CNI_Policy)"
FIND_NETWORK = (
    "kubectl -n kube-system logs daemonset/aws-node; aws eks list-pod-identity-associations"
    " --cluster-name <cluster>, and compare with the service account aws-node"
)
NO_CNI = "cni plugin not initialized"
"""Part of the message of a node without a network."""


def unready(snapshot: Snapshot) -> Iterator[Finding]:
    """Nodes of no pool that have not been Ready for a while: controllers and DNS run there. What keeps a node of a
    pool from its jobs stands at its NodeClaim."""
    for node in snapshot.of("nodes"):
        if node["metadata"].get("labels", {}).get(NODES_FOR) == "training":
            continue
        ready = condition_of(node, "Ready")
        if ready.get("status", "True") == "True":
            continue
        age = snapshot.taken_at - datetime.fromisoformat(ready["lastTransitionTime"])
        if age.total_seconds() < GRACE_SECONDS:
            continue
        name, said = node["metadata"]["name"], ready.get("message", "")
        yield Finding(
            what=f"node {name} is not Ready, and DNS and the controllers need such nodes",
            why=f"{NO_NETWORK}: {said}" if NO_CNI in said else said,
            do=FIND_NETWORK if NO_CNI in said else f"kubectl describe node {name}",
        )


def sick(snapshot: Snapshot) -> Iterator[Finding]:
    """Each sick node of a pool, and what becomes of it."""
    for node in snapshot.of("nodes"):
        name, meta = node["metadata"]["name"], node["metadata"]
        if meta.get("labels", {}).get(NODES_FOR) != "training":
            continue
        note = meta.get("annotations", {}).get(NOTE)
        if note:
            yield _noted(snapshot, name, note)
        elif broken := _broken(node):
            yield Finding(
                what=f"node {name} is sick",
                why=broken,
                do=f"{_by_hand(snapshot, name)}; environment.repair: {{}} does it by itself",
            )


def _noted(snapshot: Snapshot, node: str, note: str) -> Finding:
    if WAITED in note:
        do = f"{YET}: {_by_hand(snapshot, node)}"
        return Finding(what=f"node {node} is silent", why=note, do=do)
    do = _by_hand(snapshot, node) if HELD in note else NOTHING
    return Finding(what=f"node {node} is sick", why=note, do=do)


def warned(snapshot: Snapshot) -> Iterator[Finding]:
    """Nodes of jobs that started anew or failed, of which the node monitoring agent has said
    something that replaces no node."""
    troubled = {
        pod["spec"].get("nodeName")
        for job in snapshot.jobs()
        if job.restarts or job.state == "Failed"
        for pod in job.pods
    }
    told = {
        (about(event), event["message"]): None
        for event in snapshot.of("events")
        if event.get("type") == "Warning" and event.get("reason") in CONDITIONS
    }
    for name, message in told:
        if name in troubled and message.partition(":")[0] not in EVENTS:
            yield Finding(
                what=f"node {name} has warned, and a job on it has started anew",
                why=message,
                do=f"{LEFT_ALONE}: {_by_hand(snapshot, name)}",
            )


def leaving(snapshot: Snapshot) -> Iterator[Finding]:
    """Nodes that Karpenter deletes, and that pods of a run hold: it ends none that must not be
    disrupted, however the deletion began (its pkg/utils/pod)."""
    told = {
        about(event): NOTICES[event["reason"]]
        for event in snapshot.of("events")
        if event.get("reason") in NOTICES
    }
    for node in snapshot.of("nodes"):
        name, meta = node["metadata"]["name"], node["metadata"]
        pods = _ends(snapshot, name) if meta.get("deletionTimestamp") else ""
        if pods and NOTE not in meta.get("annotations", {}):
            yield Finding(
                what=f"node {name} leaves when its pods have ended, and takes no new ones",
                why=told.get(
                    name, "somebody has deleted its NodeClaim, or AWS has announced its end"
                ),
                do=(
                    "nothing, if the job ends before the node does. Else choose the moment, just after"
                    f" a checkpoint; the gang starts anew on other nodes: {pods}"
                ),
            )


YET = "wait: its runs go on, and the node is replaced when EC2 calls it dead. To replace it now"
NOTHING = "wait: Karpenter replaces the node, and its gangs start anew from their checkpoints"


def _by_hand(snapshot: Snapshot, node: str) -> str:
    """Commands that replace a node. Karpenter ends no pod of a run by itself, and waits for it: a
    container that keeps crashing stays. The node is cordoned first: training-operator makes a pod anew
    within a second, and Karpenter taints the node later, so that the new pod would start on the same
    node and hold it."""
    claims = (
        claim["metadata"]["name"]
        for claim in snapshot.of("nodeclaims")
        if claim.get("status", {}).get("nodeName") == node
    )
    claim = next(claims, f"the one of {node}")
    ends = _ends(snapshot, node)
    leaves = f"kubectl cordon {node}; kubectl delete nodeclaim {claim} --wait=false"
    return f"{leaves}; {ends}" if ends else leaves


def _ends(snapshot: Snapshot, node: str) -> str:
    """Commands that end the pods of runs on a node; empty where there are none."""
    return "; ".join(
        f"kubectl -n {pod['metadata']['namespace']} delete pod {pod['metadata']['name']}"
        for job in snapshot.jobs()
        if not job.complete
        for pod in job.pods
        if pod["spec"].get("nodeName") == node and goes_on(pod)
    )


def _broken(node: Object) -> str:
    """Message of the node monitoring agent, if it runs and something is broken."""
    for condition in node.get("status", {}).get("conditions", []):
        if condition["type"] in CONDITIONS and condition["status"] == "False":
            return f"{condition.get('reason')}: {condition.get('message', '')}"
    return ""
