"""Causes why a job does not run: pure functions from a snapshot to findings, the likeliest cause
first.

A new symptom is a row in symptoms.py where a log or an event shows it, else a function in CAUSES.
Functions about the cluster stand here, functions about a job in job_causes.py, about a queue in
queue_causes.py. A function looks at one cause, and its finding tells what to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import timedelta

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.logs.events import about
from trainyard.catalog.logs.not_ready import why_not_ready
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.operations.reach.snapshot import Object, Snapshot, condition_of
from trainyard.operations.status import job_causes, pools, queue_causes, shares, sick_nodes, upgrade
from trainyard.operations.status.finding import Finding

REQUIRED = {
    "trainjobs": "kubeflow-trainer-crds",
    "jobsets": "kubeflow-trainer-crds",
    "nodepools": "karpenter-crd",
    "ec2nodeclasses": "karpenter-crd",
}
"""Kind → the Helm release that installs it."""
CONTROLLERS = {
    "karpenter": ("launches nodes", None),
    "jobset-controller": ("makes pods", "Trainer"),
    "kubeflow-trainer": ("starts jobs", "Trainer"),
    "training-operator": ("starts jobs", "training-operator"),
    "kueue-controller-manager": ("admits the jobs of queues", "Kueue"),
}
"""Part of a Deployment's name → what it does, and the controller of the jobs that need it; None for all jobs."""
RBAC = re.compile(r'User "([^"]+)" cannot (\w+) resource "([^"]+)"')
IAM = re.compile(r"(UnauthorizedOperation|AccessDenied\w*|not authorized to perform)[^\n]{0,160}")
STEPS = {
    "Launched": (
        "is not launched",
        "AWS has no capacity, the account lacks quota or permission, or Karpenter has no way to EC2",
        "kubectl -n kube-system logs -l app.kubernetes.io/name=karpenter --tail=50",
    ),
    "Registered": (
        "has an instance that has not joined",
        (
            "the cluster does not admit it, or it cannot boot: its role needs an access entry of type"
            " EC2_LINUX and AmazonEKSWorkerNodePolicy, its subnet a route to a NAT gateway, its security"
            " groups a rule to the API server"
        ),
        "pulumi refresh{of_stack}, which names what is gone, and pulumi up{of_stack}; aws eks list-access-entries"
        " --cluster-name <cluster>, and compare with the node role",
    ),
    "Initialized": (
        "is not initialized",
        (
            "the node lacks a resource that its pods request: the device plugin is missing or does"
            " not run there"
        ),
        "kubectl -n kube-system get daemonsets",
    ),
}
"""Condition of a NodeClaim, in order → what it means where the condition is not True, why that may
be, what to do."""
SILENCE = timedelta(minutes=5)
"""Longer than a step or a checkpoint, and shorter than the 10 minutes after which torch ends a
collective operation of NCCL that hangs."""


def diagnose(snapshot: Snapshot, silence: timedelta | None = SILENCE) -> list[Finding]:
    """Everything that keeps the jobs from their end, causes before consequences. `silence`: after which
    a job that logs nothing hangs; None where the snapshot has no logs."""
    always = [
        *(upgrade.unreadable(snapshot) if upgrade.stuck(snapshot) else []),
        *job_causes.leaked_pods(snapshot),
    ]
    if "trainjobs" not in snapshot.unserved and all(job.complete for job in snapshot.jobs()):
        return always
    findings = [finding for cause in CAUSES for finding in cause(snapshot)]
    hung = job_causes.hung_jobs(snapshot, silence) if silence is not None else ()
    return [*always, *findings, *hung]


def _unserved(snapshot: Snapshot) -> Iterator[Finding]:
    for kind in sorted(snapshot.unserved & REQUIRED.keys()):
        yield Finding(
            what=f"the API server does not serve {kind}",
            why=f"release {REQUIRED[kind]} is not installed",
            do=f"run pulumi up{snapshot.of_environment}: it installs the release",
        )


def _controllers(snapshot: Snapshot) -> Iterator[Finding]:
    if "deployments" in snapshot.unseen:
        return
    needed = _needed(snapshot)
    for part, task in ((part, task) for part, (task, of) in CONTROLLERS.items() if of in needed):
        deployments = [d for d in snapshot.of("deployments") if part in d["metadata"]["name"]]
        ready = sum(d.get("status", {}).get("availableReplicas") or 0 for d in deployments)
        if not deployments:
            yield Finding(
                what=f"nothing {task}",
                why=f"no Deployment is named {part}: its chart is not installed",
                do=f"run pulumi up{snapshot.of_environment}, and check that the stack contains the release",
            )
        elif not ready:
            yield Finding(
                what=f"nothing {task}",
                why=(
                    f"Deployment {deployments[0]['metadata']['name']} has no available pod"
                    f"{_of_its_pods(snapshot, deployments[0])}"
                ),
                do=f"kubectl -n {deployments[0]['metadata']['namespace']} describe pods",
            )


def _needed(snapshot: Snapshot) -> set[str | None]:
    """Controllers that jobs which have not ended need; None for what all need."""
    jobs = [job for job in snapshot.jobs() if not job.ended]
    queued = (QUEUE_LABEL in (job.body["metadata"].get("labels") or {}) for job in jobs)
    controllers = {JOB_KINDS[job.kind].controller for job in jobs}
    return {None, *controllers, *(["Kueue"] if any(queued) else [])}


def _of_its_pods(snapshot: Snapshot, deployment: Object) -> str:
    """The reason why the first of its pods is not ready; empty where nothing tells it."""
    lines = why_not_ready(deployment, snapshot.of("pods"), snapshot.of("events"))
    return next((f": {line}" for line in lines), "")


def _forbidden(snapshot: Snapshot) -> Iterator[Finding]:
    """Calls that the API server or AWS refused for lack of permission, each only once."""
    texts = dict(snapshot.logs)
    texts |= {
        f"event of {about(event)}": event.get("message", "") for event in snapshot.of("events")
    }
    reported: set[str] = set()
    for source, text in texts.items():
        for user, verb, resource in RBAC.findall(text.replace('\\"', '"')):
            if f"{verb} {resource}" not in reported:
                reported.add(f"{verb} {resource}")
                yield Finding(
                    what=f"{source}: {user} cannot {verb} {resource}",
                    why="its Role is too narrow, or the API server had just started and did not know it yet",
                    do=(
                        f"kubectl auth can-i {verb} {resource} --as={user} --all-namespaces: where it answers no,"
                        " compare its ClusterRole with the chart's; where it answers yes, the line is over"
                    ),
                )
        denied = IAM.search(text)
        if denied and denied[1] not in reported:
            reported.add(denied[1])
            yield Finding(
                what=f"{source}: AWS refused a call ({denied[1]})",
                why=denied[0],
                do=(
                    f"trainyard drift{snapshot.of_environment}, which says whether somebody has changed its role; else"
                    " a policy of the organization or a permissions boundary refuses the call"
                ),
            )


def _pools(snapshot: Snapshot) -> Iterator[Finding]:
    yield from pools.unready(snapshot, wanted=True)
    yield from pools.ended_at_launch(snapshot)


def _node_claims(snapshot: Snapshot) -> Iterator[Finding]:
    for claim in snapshot.of("nodeclaims"):
        state = {c["type"]: c for c in claim.get("status", {}).get("conditions", [])}
        missing = [step for step in STEPS if state.get(step, {}).get("status") != "True"]
        if missing and snapshot.age(claim) >= GRACE_SECONDS:
            what, why, do = STEPS[missing[0]]
            do = do.format(of_stack=snapshot.of_environment)
            message = state.get(missing[0], {}).get("message")
            if lacks := _network_of(snapshot, claim):
                why, do, message = sick_nodes.NO_NETWORK, sick_nodes.FIND_NETWORK, lacks
            yield Finding(
                what=f"NodeClaim {claim['metadata']['name']} {what} after {snapshot.age(claim)} s",
                why=f"{why}: {message}" if message else why,
                do=do,
            )


def _network_of(snapshot: Snapshot, claim: Object) -> str:
    """Message of the claim's node where it has no network."""
    name = claim.get("status", {}).get("nodeName")
    nodes = [node for node in snapshot.of("nodes") if node["metadata"]["name"] == name]
    said = [condition_of(node, "Ready").get("message", "") for node in nodes]
    return next((message for message in said if sick_nodes.NO_CNI in message), "")


CAUSES: tuple[Callable[[Snapshot], Iterator[Finding]], ...] = (
    _unserved,
    _controllers,
    _forbidden,
    sick_nodes.unready,
    sick_nodes.sick,
    sick_nodes.leaving,
    sick_nodes.warned,
    _pools,
    _node_claims,
    upgrade.left_behind,
    job_causes.torchrun_mismatch,
    job_causes.failed_jobs,
    shares.exceeded,
    job_causes.rendezvous_failures,
    queue_causes.waiting_jobs,
    job_causes.pending_gangs,
    job_causes.stuck_containers,
)
