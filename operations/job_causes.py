"""What of a job itself keeps it from its end: pods without a node, pods that do not start, ranks
that do not meet."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from catalog.prices import price
from operations.snapshot import Job, Object, Snapshot, about, containers, full_name
from operations.symptoms import EXITS, GRACE_SECONDS, MEETING, PENDING, WAITING, Finding, read

MANY_RESTARTS = 3
"""Fewer may be nodes that were lost."""
NO_PODS = ("TrainJobResourcesCreationFailed", "FailedCreate", "FailedCreatePod")
"""Reasons of events: of the Trainer, of a Job, of the training-operator v1.8.1 (its
pod_control.go)."""


def silent_ranks(snapshot: Snapshot) -> Iterator[Finding]:
    """Commands that make ranks wait at different places, or for more ranks than there are."""
    for job in _under_way(snapshot):
        command = job.command.replace("\\\n", " ")
        alone = re.search(
            r"(?s)torchrun\b.*(--standalone\b|--rdzv[_-]backend[= ]+(?!static))", command
        )
        if job.nodes > 1 and alone and not re.search(r"rdzv[_-]endpoint|master[_-]addr=", command):
            yield Finding(
                what=f"{job}: every node waits for the others at its own address",
                why="its torchrun has no --rdzv_endpoint",
                do="--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}",
            )
        if (asked := re.search(r"--nnodes[= ]+(\d+)(?![\d:])", command)) and int(
            asked[1]
        ) != job.nodes:
            yield Finding(
                what=f"{job}: its torchrun waits for {asked[1]} nodes, and it has {job.nodes}",
                why="the ranks never meet",
                do="leave --nnodes out: PET_NNODES is the job's own number",
            )


def failed(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs that failed, that fail again and again, or that never made pods."""
    for job in _under_way(snapshot):
        if job.state == "Failed":
            yield Finding(
                what=f"{job} failed: {job.said}",
                why=_last_words(snapshot, job),
                do="mend it and count jobs.<name>.run up: the same run does not start again",
            )
        elif job.restarts >= MANY_RESTARTS:
            yield Finding(
                what=f"{job} crashes again and again: {job.restarts} restarts",
                why=_last_words(snapshot, job),
                do=(
                    f"kubectl -n {job.namespace} logs -l {job.selector} --prefix --tail=40"
                    " (--previous)"
                ),
            )
    empty = tuple(job.name for job in _under_way(snapshot) if not job.pods)
    said = {
        about(event): event["message"]
        for event in snapshot.of("events")
        if event.get("reason") in NO_PODS
    }
    for name in (name for name in said if name.startswith(empty)):
        yield Finding(
            what=f"{name} makes no pods",
            why=said[name],
            do=(
                "compare with runtime, quota and pod-security label: kubectl get namespaces"
                " --show-labels"
            ),
        )


def meeting(snapshot: Snapshot) -> Iterator[Finding]:
    """Ranks that say that they do not reach each other: the first of each job."""
    for job in _under_way(snapshot):
        for pod in job.pods:
            why, do = read(
                MEETING,
                snapshot.logs.get(full_name(pod), ""),
                "",
                space=job.namespace,
                job=job.selector,
            )
            if do:
                yield Finding(
                    what=f"{job}: its ranks do not meet, says {pod['metadata']['name']}",
                    why=why,
                    do=do,
                )
                break


def gangs(snapshot: Snapshot) -> Iterator[Finding]:
    """A job of which a part runs, or nothing at all: what is missing, since when, and what the idle
    part costs."""
    for job in _going(snapshot):
        pods = [pod for pod in job.pods if pod["status"].get("phase") != "Failed"]
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        placed = [pod for pod in pods if pod not in waiting]
        since = max(map(snapshot.age, waiting), default=0)
        if since < GRACE_SECONDS:
            continue
        why, do = read(
            PENDING,
            _what_karpenter_said(snapshot, waiting),
            "kubectl describe nodepools",
            space=job.namespace,
        )
        yield Finding(
            what=(
                f"{job} misses {len(waiting)} of {len(pods)} nodes since"
                f" {snapshot.at - timedelta(seconds=since):%H:%M:%S} ({since} s)"
            )
            + (
                f"; the {len(placed)} it has wait idle, {_cost(snapshot, placed)}" if placed else ""
            ),
            why=why,
            do=f"{do}; to give up: kubectl -n {job.namespace} delete {job.kind.lower()} {job.name}",
        )


def starting(snapshot: Snapshot) -> Iterator[Finding]:
    """Pods that have their node and do not start."""
    for job in _going(snapshot):
        for pod in sorted(job.pods, key=_prepares):
            if (
                pod["status"].get("phase") == "Pending"
                and pod["spec"].get("nodeName")
                and (age := snapshot.age(pod)) >= GRACE_SECONDS
            ):
                name = pod["metadata"]["name"]
                why, do = read(
                    WAITING,
                    _what_the_kubelet_said(snapshot, pod),
                    f"kubectl -n {job.namespace} describe pod {name}",
                    space=job.namespace,
                    job=job.selector,
                )
                yield Finding(what=f"pod {name} is Pending for {age} s", why=why, do=do)


def standstill(snapshot: Snapshot, silence: timedelta) -> Iterator[Finding]:
    """Every rank runs and none says anything any more."""
    for job in _going(snapshot):
        spoke = sorted(
            (snapshot.spoke[name], name)
            for name in map(full_name, job.pods)
            if name in snapshot.spoke
        )
        if not spoke or len(spoke) < len(job.pods) or snapshot.at - spoke[-1][0] < silence:
            continue
        (first, name), (last, _) = (spoke[0][0], spoke[0][1].partition("/")[2]), spoke[-1]
        of, load = (
            f"kubectl -n {job.namespace}",
            "nvidia-smi" if "nvidia.com/gpu" in str(job.pods) else "uptime",
        )
        yield Finding(
            what=(
                f"{job} stands still: its ranks run, and none has said a word since {last:%H:%M:%S}"
                f" ({int((snapshot.at - last).total_seconds())} s);"
                f" {_cost(snapshot, list(job.pods))}"
            ),
            why=(
                f"the first to fall silent was {name} at {first:%H:%M:%S}: look there, unless one"
                " rank speaks for all"
            ),
            do=(
                f"{of} logs {name} --tail=20; {of} exec {name} -- {load} (busy: it waits for a"
                f" rank; idle: for data); {of} delete pod {name} starts all anew"
            ),
        )


def left_behind(snapshot: Snapshot) -> Iterator[Finding]:
    """Runs that have ended and whose pods have not: others wait for their GPUs, which are paid for.
    A worker that has not begun looks for its master 100 times every 2 s (init container of
    training-operator v1.8.1), others for ever."""
    for job in snapshot.jobs():
        over = (snapshot.at - job.since).total_seconds() if job.ended and job.since else 0
        pods = [pod for pod in job.pods if pod["status"].get("phase") in ("Pending", "Running")]
        if pods and over >= GRACE_SECONDS:
            yield Finding(
                what=(
                    f"{job} ended {over:.0f} s ago, and its"
                    f" {', '.join(pod['metadata']['name'] for pod in pods)} has not:"
                    f" {_cost(snapshot, pods)}"
                ),
                why="its cleanPodPolicy leaves pods alone, or one of them does not end",
                do=(
                    f"kubectl -n {job.namespace} delete {job.kind.lower()} {job.name}, or pods -l"
                    f" {job.selector}; next time pytorch_job.clean_pods: running"
                ),
            )


def _under_way(snapshot: Snapshot) -> list[Job]:
    """Failed ones, too: why they failed is still to be seen."""
    return [job for job in snapshot.jobs() if not job.complete]


def _going(snapshot: Snapshot) -> list[Job]:
    return [job for job in snapshot.jobs() if not job.ended]


def _cost(snapshot: Snapshot, pods: list[Object]) -> str:
    """What the nodes of these pods cost."""
    names = {pod["spec"].get("nodeName") for pod in pods}
    labels = [
        node["metadata"]["labels"]
        for node in snapshot.of("nodes")
        if node["metadata"]["name"] in names
    ]
    prices = [
        price(
            "ec2",
            at.get("node.kubernetes.io/instance-type", ""),
            at.get("topology.kubernetes.io/region", ""),
        )
        for at in labels
    ]
    usd = sum((found.usd for found in prices if found), Decimal())
    return (f"{usd:.2f} USD" if prices and all(prices) else "no price known") + " an hour"


def _what_karpenter_said(snapshot: Snapshot, waiting: list[Object]) -> str:
    """Its last word about these pods or about a node for them; the scheduler's where it said
    nothing."""
    names = {pod["metadata"]["name"] for pod in waiting}
    said = [
        e
        for e in snapshot.of("events")
        if e.get("type") == "Warning"
        and (
            about(e) in names
            or e.get("involvedObject", {}).get("kind") in ("NodeClaim", "NodePool")
        )
    ]
    said.sort(key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or "")
    ours = [
        e for e in said if "karpenter" in json.dumps([e.get("source"), e.get("reportingComponent")])
    ]
    short = [e for e in ours if e.get("reason") == "InsufficientCapacityError"]
    return (short or ours or said or [{"message": "nobody says why"}])[-1]["message"]


def _what_the_kubelet_said(snapshot: Snapshot, pod: Object) -> str:
    """Why its containers wait, else what prepares it, else the last warning about it."""
    waiting = [c.get("state", {}).get("waiting", {}) for c in containers(pod)]
    said = [f"{w['reason']}: {w['message']}" for w in waiting if w.get("message")]
    told = [
        e["message"]
        for e in snapshot.of("events")
        if about(e) == pod["metadata"]["name"] and e.get("type") == "Warning"
    ]
    return (said or _prepares(pod) or told[-1:] or ["no event says why"])[0]


def _prepares(pod: Object) -> list[str]:
    """What a pod does itself before it starts: often it waits for another, which is then the
    cause."""
    return [
        f"init container {container['name']} still runs"
        for container in pod["status"].get("initContainerStatuses", [])
        if "running" in container["state"]
    ]


def _last_words(snapshot: Snapshot, job: Job) -> str:
    """How its pods ended, as far as anybody knows."""
    ends = [
        state["terminated"]["exitCode"]
        for pod in job.pods
        for container in containers(pod)
        for state in (container["state"], container.get("lastState", {}))
        if "terminated" in state
    ]
    logs = [snapshot.logs.get(full_name(pod), "").strip() for pod in job.pods]
    deleted = [
        event["message"]
        for event in snapshot.of("events")
        if event.get("reason") == "ExitedWithCode" and about(event) == job.name
    ]
    ends += [int(message.rpartition(" ")[2]) for message in deleted[-1:]]
    code = [f"exit code {code}: {EXITS.get(code, 'an error of its own')}" for code in ends if code][
        :1
    ]
    return (
        "; ".join(code + [f"last words: {log.splitlines()[-1]}" for log in logs if log][:1])
        or "nobody says why"
    )
