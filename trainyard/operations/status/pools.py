"""Pools that cannot launch nodes: which condition of their NodePool or EC2NodeClass is False, or why
their instances end at launch."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from trainyard.catalog.logs.events import about, is_about, is_of_karpenter, time_of
from trainyard.objects.jobs.pod_template import POOL
from trainyard.operations.reach.snapshot import Object, Snapshot, condition_of
from trainyard.operations.status.finding import Finding

REFUSED = re.compile(
    r'"EC2NodeClass":\{"name":"([^"]+)"\}[^\n]*?api error ([^"\n]*?)(?: \(aws-error-code|"|\n)'
)
"""In Karpenter's log: the EC2NodeClass, and the error of AWS in a dry run of a launch."""
ENDING = ("InstanceTerminating", "TerminatingOnInterruption")
"""Reasons of events about a NodeClaim whose instance ends (karpenter-provider-aws 1.14,
pkg/controllers/interruption/events)."""
JOINS_SECONDS = 180
"""From the launch of an instance to its node: 79 s were measured, and one in ten takes 140."""
SOON_SECONDS = 300
"""From a launch to the end of an instance whose disk EC2 cannot make: it takes seconds. Karpenter ends an instance that
does not join after 15 minutes."""
VALIDATED = "ValidationSucceeded"
"""Condition of an EC2NodeClass whose dry run AWS has allowed."""
ALLOWED_AGAIN = (
    "mend the permissions that it names, then kubectl -n kube-system rollout restart deployment/karpenter:"
    " Karpenter keeps the refusal for up to 30 minutes"
)
"""karpenter-provider-aws 1.14.1, pkg/cache/cache.go, ValidationTTL; a new pod asks at once."""
LAUNCHED, REGISTERED = "Launched", "Registered"
"""Conditions of a NodeClaim that has an instance, and that has become a node; also reasons of the events about
that (awslabs/operatorpkg, status/controller.go)."""


def unready(snapshot: Snapshot, *, wanted: bool) -> Iterator[Finding]:
    """Findings about what pools lack: pools that a job may wait for if `wanted`, idle pools
    otherwise."""
    refused = {name: why for log in snapshot.logs.values() for name, why in REFUSED.findall(log)}
    classes = {each["metadata"]["name"]: each for each in snapshot.of("ec2nodeclasses")}
    for kind in ("ec2nodeclasses", "nodepools"):
        for obj in snapshot.of(kind):
            if _wanted(snapshot, obj) is not wanted:
                continue
            name = obj["metadata"]["name"]
            yield from _unreserved(snapshot, obj)
            for condition in _lacking(obj, classes):
                message = condition.get("message") or condition.get("reason", "")
                describe = f"kubectl describe {obj['kind'].lower()} {name}"
                yield Finding(
                    what=f"{obj['kind']} {name}: {condition['type']} is False",
                    why=refused.get(_class(obj), message),
                    do=ALLOWED_AGAIN if condition["type"] == VALIDATED else describe,
                )


def _lacking(obj: Object, classes: Mapping[str, Object]) -> list[Object]:
    """Its conditions that are False. What its EC2NodeClass lacks a NodePool does not say again."""
    of_class = _failed(classes.get(_class(obj), {})) if obj["kind"] == "NodePool" else []
    return [each for each in _failed(obj) if not of_class or each["type"] != "NodeClassReady"]


def _failed(obj: Object) -> list[Object]:
    """Conditions that are False, but the one that sums them up."""
    found = obj.get("status", {}).get("conditions", [])
    return [each for each in found if each["status"] == "False" and each["type"] != "Ready"]


def _unreserved(snapshot: Snapshot, node_class: Object) -> Iterator[Finding]:
    """A node class whose reservations Karpenter has looked for in vain: it takes active ones only, and
    says nothing else of one that does not exist (karpenter-provider-aws 1.14, nodeclass/capacityreservation.go)."""
    terms = node_class.get("spec", {}).get("capacityReservationSelectorTerms") or []
    looked = condition_of(node_class, "CapacityReservationsReady").get("status") == "True"
    if terms and looked and not node_class.get("status", {}).get("capacityReservations"):
        ids = ", ".join(term.get("id", "one that its tags name") for term in terms)
        yield Finding(
            what=f"EC2NodeClass {node_class['metadata']['name']}: no reservation is active: {ids}",
            why="it has not begun, it has ended or was cancelled, or this account does not know it",
            do=f"trainyard check --live{snapshot.of_environment} says what EC2 says of it",
        )


def silent_reservation(snapshot: Snapshot, waiting: Sequence[Object]) -> tuple[str, str] | None:
    """Cause and next command of pods that wait for nodes of a reservation; None where Karpenter wrote an event
    about them, or their pool has no reservation. Karpenter 1.15.0 writes none while all instances of the reservation
    are in use (kubernetes-sigs/karpenter 1.15.0, scheduling/scheduler.go, Results.Record). By its notes 1.15.1
    changed that (karpenter#3456), and its source could not be had."""
    selected = {pod["spec"].get("nodeSelector", {}).get(POOL) for pod in waiting}
    classes = {
        _class(pool)
        for pool in snapshot.of("nodepools")
        if _template(pool).get("metadata", {}).get("labels", {}).get(POOL) in selected
    }
    ids = sorted(
        reservation["id"]
        for node_class in snapshot.of("ec2nodeclasses")
        if node_class["metadata"]["name"] in classes
        for reservation in node_class.get("status", {}).get("capacityReservations", [])
    )
    of_karpenter = [each for each in snapshot.of("events") if is_of_karpenter(each)]
    if not ids or any(is_about(each, pod) for each in of_karpenter for pod in waiting):
        return None
    return (
        f"capacity: Karpenter says nothing, as it does while all instances of {', '.join(ids)} are in use",
        "wait until another job ends: aws ec2 describe-capacity-reservations"
        f" --capacity-reservation-ids {' '.join(ids)} prints AvailableInstanceCount",
    )


def ended_at_launch(snapshot: Snapshot) -> Iterator[Finding]:
    """Pools that a job may wait for and whose instances end before they are nodes. EC2 says why only to whoever
    describes the instance, and Karpenter does not. Where Karpenter cannot read its queue either, which a KMS key of the
    stack file encrypts, too, it waits for the node. Without such a key, only claims whose end came soon after their
    launch: an instance that cannot join is ended by Karpenter later, and Spot takes one back at any time."""
    keys = {obj["metadata"]["name"]: _key(obj) for obj in snapshot.of("ec2nodeclasses")}
    ended = _ended(snapshot)
    lost, seen = {*ended, *_missing(snapshot)}, ended & _ended_soon(snapshot)
    for pool in snapshot.of("nodepools"):
        name, key = pool["metadata"]["name"], keys.get(_class(pool))
        claims = sorted(
            claim for claim in (lost if key else seen) if claim.rpartition("-")[0] == name
        )
        if claims and _wanted(snapshot, pool):
            stack = snapshot.of_environment
            why, do = _of_the_key(key, stack) if key else _of_the_account(name, stack)
            yield Finding(
                what=f"NodePool {name}: what Karpenter launched did not join: {', '.join(claims)}",
                why=why,
                do=f"{do}; Karpenter then launches again within 15 minutes, and at once after"
                f" kubectl delete nodeclaims {' '.join(claims)}",
            )


def _of_the_key(key: str, stack: str) -> tuple[str, str]:
    """Cause and what to do where the stack file names the key of the disks. `stack`: option that names it."""
    return (
        "EC2 ends an instance with Client.InternalError where Karpenter's role may not use"
        f" the KMS key of its disk, environment.kms_key_arn: {key}",
        f"trainyard check --live{stack} says what the policy of the key lacks, and trainyard policy --key{stack}"
        " prints it",
    )


def _of_the_account(pool: str, stack: str) -> tuple[str, str]:
    """Causes and what to do where the disks have the account's default key (EC2 API, StateReason)."""
    return (
        "EC2 ends an instance with Client.InternalError where Karpenter's role may not use the key of its disk,"
        " here the account's default key of EBS, and with Client.VolumeLimitExceeded where the account has no room"
        " for the disk",
        f"aws ec2 describe-instances --filters Name=tag:karpenter.sh/nodepool,Values={pool}"
        " --query 'Reservations[].Instances[].StateReason' prints which, and"
        f" trainyard check --live{stack} asks about both",
    )


def _ended(snapshot: Snapshot) -> set[str]:
    """NodeClaims whose instance ended before it was a node."""
    return _with_event(snapshot, *ENDING) - _with_event(snapshot, REGISTERED)


def _ended_soon(snapshot: Snapshot) -> set[str]:
    """NodeClaims whose instance ended by itself within minutes of its launch."""
    launched, ended = _moments(snapshot, LAUNCHED), _moments(snapshot, ENDING[0])
    return {
        claim
        for claim, at in ended.items()
        if claim in launched and (at - launched[claim]).total_seconds() <= SOON_SECONDS
    }


def _moments(snapshot: Snapshot, reason: str) -> dict[str, datetime]:
    """NodeClaim → when the last event with this reason was."""
    found = (
        (about(event), time_of(event))
        for event in snapshot.of("events")
        if event.get("involvedObject", {}).get("kind") == "NodeClaim"
        and event.get("reason") == reason
    )
    return {claim: datetime.fromisoformat(at) for claim, at in sorted(found) if at}


def _with_event(snapshot: Snapshot, *reasons: str) -> set[str]:
    """NodeClaims about which there is an event with one of the reasons."""
    return {
        about(event)
        for event in snapshot.of("events")
        if event.get("involvedObject", {}).get("kind") == "NodeClaim"
        and event.get("reason") in reasons
    }


def _missing(snapshot: Snapshot) -> Iterator[str]:
    """NodeClaims that were launched long ago and are no nodes."""
    for claim in snapshot.of("nodeclaims"):
        launched, joined = (
            condition_of(claim, kind).get("status") == "True" for kind in (LAUNCHED, REGISTERED)
        )
        if launched and not joined and snapshot.age(claim) > JOINS_SECONDS:
            yield claim["metadata"]["name"]


def _key(node_class: Object) -> str | None:
    """The KMS key that a node class names for its disks; None where they get the account's default key."""
    disks = node_class.get("spec", {}).get("blockDeviceMappings", [])
    return next((disk["ebs"]["kmsKeyID"] for disk in disks if disk["ebs"].get("kmsKeyID")), None)


def _class(obj: Object) -> str:
    """The name of the EC2NodeClass that the object is or uses."""
    used = _template(obj).get("spec", {}).get("nodeClassRef", {})
    return used.get("name", obj["metadata"]["name"])


def _template(obj: Object) -> Object:
    return obj.get("spec", {}).get("template", {})


def _wanted(snapshot: Snapshot, obj: Object) -> bool:
    """True where a job that has not ended may wait for the pool. A job without pods may wait for
    any pool, and so may a pod that selects no pool."""
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
