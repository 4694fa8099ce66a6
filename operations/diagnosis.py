"""Why a job does not run: pure functions from a snapshot to findings, the likeliest cause first.

A new symptom is a row in symptoms.py where somebody says it, else a function in CAUSES: here what of
the cluster keeps jobs from running, in job_causes.py what of a job itself. Each looks at one thing
and says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from operations import job_causes, pools, upgrade
from operations.snapshot import Snapshot, about
from operations.symptoms import GRACE_SECONDS, Finding

REQUIRED = {
    "trainjobs": "kubeflow-trainer-crds",
    "jobsets": "kubeflow-trainer-crds",
    "nodepools": "karpenter-crd",
    "ec2nodeclasses": "karpenter-crd",
}
"""Kind → the release that brings it."""
CONTROLLERS = {
    "karpenter": ("launches nodes", ""),
    "jobset-controller": ("makes pods", "TrainJob"),
    "kubeflow-trainer": ("starts jobs", "TrainJob"),
    "training-operator": ("starts jobs", "PyTorchJob"),
}
"""Part of a Deployment's name → what it does, and for which kind of job if not for all."""
RBAC = re.compile(r'User "([^"]+)" cannot (\w+) resource "([^"]+)"')
IAM = re.compile(r"(UnauthorizedOperation|AccessDenied\w*|not authorized to perform)[^\n]{0,160}")
STEPS = {
    "Launched": (
        "is not launched",
        "no capacity, no quota or no permission:",
        "kubectl -n kube-system logs -l app.kubernetes.io/name=karpenter --tail=50",
    ),
    "Registered": (
        "has an instance that has not joined",
        (
            "the cluster does not let it in: its role needs an access"
            " entry of type EC2_LINUX, its subnet a way to the API server."
        ),
        "aws eks list-access-entries --cluster-name <cluster>, and compare with the node role",
    ),
    "Initialized": (
        "is not initialized",
        (
            "a resource its pods ask for has not appeared on the node: the device plugin"
            " is missing or does not run there."
        ),
        "kubectl -n kube-system get daemonsets",
    ),
}
"""Condition of a NodeClaim, in order → what it means that it does not hold, why that may be, what
to do."""
SILENCE = timedelta(minutes=5)
"""Longer than a step or a checkpoint, shorter than the 10 minutes after which torch gives a
collective of NCCL up."""


def diagnose(snapshot: Snapshot, silence: timedelta = SILENCE) -> list[Finding]:
    """Everything that stands between the jobs and their end, the cause before its consequences."""
    always = [
        *(upgrade.unreadable(snapshot) if upgrade.stuck(snapshot) else []),
        *job_causes.left_behind(snapshot),
    ]
    if "trainjobs" not in snapshot.unserved and all(job.complete for job in snapshot.jobs()):
        return always
    found = [finding for cause in CAUSES for finding in cause(snapshot)]
    return [*always, *found, *job_causes.standstill(snapshot, silence)]


def _unserved(snapshot: Snapshot) -> Iterator[Finding]:
    for kind in sorted(snapshot.unserved & REQUIRED.keys()):
        yield Finding(
            what=f"the API server does not know {kind}",
            why=f"release {REQUIRED[kind]} is not installed",
            do="pulumi up: the release is part of the environment's graph",
        )


def _controllers(snapshot: Snapshot) -> Iterator[Finding]:
    kinds = {"", *(job.kind for job in snapshot.jobs())}
    for part, task in ((part, task) for part, (task, kind) in CONTROLLERS.items() if kind in kinds):
        found = [d for d in snapshot.of("deployments") if part in d["metadata"]["name"]]
        ready = sum(d.get("status", {}).get("availableReplicas") or 0 for d in found)
        if not found:
            yield Finding(
                what=f"nothing {task}",
                why=f"there is no Deployment of {part}: its chart is not installed",
                do="pulumi up, and see that the release is in the stack",
            )
        elif not ready:
            yield Finding(
                what=f"nothing {task}",
                why=f"{found[0]['metadata']['name']} has no available pod",
                do=f"kubectl -n {found[0]['metadata']['namespace']} describe pods",
            )


def _forbidden(snapshot: Snapshot) -> Iterator[Finding]:
    said = dict(snapshot.logs)
    said |= {
        f"event of {about(event)}": event.get("message", "") for event in snapshot.of("events")
    }
    seen: set[str] = set()
    for where, text in said.items():
        for who, verb, resource in RBAC.findall(text.replace('\\"', '"')):
            if f"{verb} {resource}" not in seen:
                seen.add(f"{verb} {resource}")
                yield Finding(
                    what=f"{where}: {who} may not {verb} {resource}",
                    why="its Role is too narrow",
                    do="compare the ClusterRole with the chart's: kubectl auth can-i --list",
                )
        denied = IAM.search(text)
        if denied and denied[1] not in seen:
            seen.add(denied[1])
            yield Finding(
                what=f"{where}: AWS refused a call ({denied[1]})",
                why=denied[0],
                do="compare the role's policy with plans/policies.py",
            )


def _pools(snapshot: Snapshot) -> Iterator[Finding]:
    return pools.unready(snapshot, wanted=True)


def _nodes_to_come(snapshot: Snapshot) -> Iterator[Finding]:
    for claim in snapshot.of("nodeclaims"):
        state = {c["type"]: c for c in claim.get("status", {}).get("conditions", [])}
        missing = [step for step in STEPS if state.get(step, {}).get("status") != "True"]
        if missing and snapshot.age(claim) >= GRACE_SECONDS:
            what, why, do = STEPS[missing[0]]
            yield Finding(
                what=f"NodeClaim {claim['metadata']['name']} {what} after {snapshot.age(claim)} s",
                why=f"{why} {state.get(missing[0], {}).get('message', '')}".strip(),
                do=do,
            )


CAUSES: tuple[Callable[[Snapshot], Iterator[Finding]], ...] = (
    _unserved,
    _controllers,
    _forbidden,
    _pools,
    _nodes_to_come,
    job_causes.silent_ranks,
    job_causes.failed,
    job_causes.meeting,
    job_causes.gangs,
    job_causes.starting,
)
