"""Why a job does not run: pure functions from a snapshot to findings, the likeliest cause first.

A new symptom is a new function in CAUSES; each looks at one thing and says what was seen and what to do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal

from catalog.prices import price
from operations.snapshot import Object, Snapshot

REQUIRED = {
    "trainjobs": ("kubeflow-trainer", "Trainer"), "jobsets": ("kubeflow-trainer", "JobSet"),
    "nodepools": ("karpenter-crd", "Karpenter's CRDs"), "ec2nodeclasses": ("karpenter-crd", "Karpenter's CRDs"),
}
"""Kind → the release that brings it, and what it is."""
CONTROLLERS = {"karpenter": "launches nodes", "jobset-controller": "makes pods", "kubeflow-trainer": "starts jobs"}
"""Part of a Deployment's name → what it does."""
JOBSET = "jobset.sigs.k8s.io/jobset-name"
GRACE_SECONDS = 20
"""How long something may take before it is worth a word."""
RBAC = re.compile(r'User "([^"]+)" cannot (\w+) resource "([^"]+)"')
IAM = re.compile(r"(UnauthorizedOperation|AccessDenied\w*|not authorized to perform)[^\n]{0,160}")


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something seen, why it matters, and what to do."""

    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.why}\n    → {self.do}"


def diagnose(snapshot: Snapshot, now: datetime | None = None) -> list[Finding]:
    """Everything that stands between the jobs and their end, the cause before its consequences."""
    at = now or datetime.now(UTC)
    if "trainjobs" not in snapshot.unserved and not _waiting_jobs(snapshot):
        return []
    return [finding for cause in CAUSES for finding in cause(snapshot, at)]


def _unserved(snapshot: Snapshot, _: datetime) -> Iterator[Finding]:
    releases = {REQUIRED[kind] for kind in snapshot.unserved if kind in REQUIRED}
    for release, what in sorted(releases):
        yield Finding(what=f"the API server does not know {what}", why=f"release {release} is not installed",
                      do="pulumi up: the release is part of the environment's graph")


def _controllers(snapshot: Snapshot, _: datetime) -> Iterator[Finding]:
    for part, task in CONTROLLERS.items():
        found = [d for d in snapshot.of("deployments") if part in d["metadata"]["name"]]
        ready = sum(d.get("status", {}).get("availableReplicas") or 0 for d in found)
        if not found:
            yield Finding(what=f"nothing {task}", why=f"there is no Deployment of {part}: its chart is not installed",
                          do="pulumi up, and see that the release is in the stack")
        elif not ready:
            yield Finding(what=f"nothing {task}", why=f"{found[0]['metadata']['name']} has no available pod",
                          do=f"kubectl -n {found[0]['metadata']['namespace']} describe pods")


def _forbidden(snapshot: Snapshot, _: datetime) -> Iterator[Finding]:
    said = dict(snapshot.logs)
    said |= {f"event of {_about(event)}": event.get("message", "") for event in snapshot.of("events")}
    seen: set[str] = set()
    for where, text in said.items():
        for who, verb, resource in RBAC.findall(text.replace('\\"', '"')):
            if f"{verb} {resource}" not in seen:
                seen.add(f"{verb} {resource}")
                yield Finding(what=f"{where}: {who} may not {verb} {resource}", why="its Role is too narrow",
                              do="compare the ClusterRole with the chart's: kubectl auth can-i --list")
        denied = IAM.search(text)
        if denied and denied[1] not in seen:
            seen.add(denied[1])
            yield Finding(what=f"{where}: AWS refused a call ({denied[1]})", why=denied[0],
                          do="compare the role's policy with components/policies.py")


def _conditions(snapshot: Snapshot, _: datetime) -> Iterator[Finding]:
    for kind in ("ec2nodeclasses", "nodepools"):
        for obj in snapshot.of(kind):
            for condition in obj.get("status", {}).get("conditions", []):
                if condition["status"] == "False" and condition["type"] != "Ready":
                    yield Finding(what=f"{obj['kind']} {obj['metadata']['name']}: {condition['type']} is False",
                                  why=condition.get("message") or condition.get("reason", ""),
                                  do=f"kubectl describe {obj['kind'].lower()} {obj['metadata']['name']}")


def _claims_of_nodes(snapshot: Snapshot, now: datetime) -> Iterator[Finding]:
    for claim in snapshot.of("nodeclaims"):
        state = {c["type"]: c for c in claim.get("status", {}).get("conditions", [])}
        name, age = claim["metadata"]["name"], _age(claim, now)
        if age < GRACE_SECONDS:
            continue
        if state.get("Launched", {}).get("status") != "True":
            yield Finding(what=f"NodeClaim {name} is not launched after {age} s",
                          why=state.get("Launched", {}).get("message", "no capacity, no quota or no permission"),
                          do="kubectl -n kube-system logs -l app.kubernetes.io/name=karpenter --tail=50")
        elif state.get("Registered", {}).get("status") != "True":
            yield Finding(
                what=f"the instance of NodeClaim {name} runs for {age} s and has not joined",
                why="the cluster does not let it in: its role needs an access entry of type EC2_LINUX, its subnet a way"
                    " to the API server",
                do="aws eks list-access-entries --cluster-name <cluster>, and compare with the node role")
        elif state.get("Initialized", {}).get("status") != "True":
            yield Finding(what=f"NodeClaim {name} is not initialized: {state['Initialized'].get('message', '')}",
                          why="a resource its pods ask for has not appeared on the node: the device plugin is missing"
                              " or does not run there",
                          do="kubectl -n kube-system get daemonsets")


def _gangs(snapshot: Snapshot, now: datetime) -> Iterator[Finding]:
    """A job of which a part runs, or nothing at all: what is missing, since when, and what the idle part costs."""
    for job in _waiting_jobs(snapshot):
        name = job["metadata"]["name"]
        pods = [p for p in _job_pods(snapshot) if p["metadata"]["labels"][JOBSET] == name and _phase(p) != "Failed"]
        waiting = [pod for pod in pods if not pod["spec"].get("nodeName")]
        since = max((_age(pod, now) for pod in waiting), default=0)
        if since < GRACE_SECONDS:
            continue
        placed = [str(pod["spec"]["nodeName"]) for pod in pods if pod["spec"].get("nodeName")]
        start = now - timedelta(seconds=since)
        yield Finding(
            what=f"TrainJob {name} misses {len(waiting)} of {len(pods)} nodes since {start:%H:%M:%S} ({since} s)"
                 + (f"; {_idle(snapshot, placed)}" if placed else ""),
            why=_what_karpenter_said(snapshot, waiting),
            do="wait (Karpenter tries again every 3 minutes), take a reservation or fewer nodes, or give up what idles:"
               f" kubectl -n {job['metadata']['namespace']} delete trainjob {name}")


def _idle(snapshot: Snapshot, names: list[str]) -> str:
    """What the nodes that wait for the others cost."""
    labels = [node["metadata"]["labels"] for node in snapshot.of("nodes") if node["metadata"]["name"] in names]
    prices = [price("ec2", at.get("node.kubernetes.io/instance-type", ""),
                    at.get("topology.kubernetes.io/region", "")) for at in labels]
    usd = sum((found.usd for found in prices if found), Decimal())
    cost = f"{usd:.2f} USD" if prices and all(prices) else "no price known"
    return f"the {len(names)} it has wait idle, {cost} an hour"


def _what_karpenter_said(snapshot: Snapshot, waiting: list[Object]) -> str:
    """Its last word about these pods or about a node for them; the scheduler's where it said nothing."""
    names = {pod["metadata"]["name"] for pod in waiting}
    said = [e for e in snapshot.of("events") if e.get("type") == "Warning"
            and (_about(e) in names or e.get("involvedObject", {}).get("kind") in ("NodeClaim", "NodePool"))]
    said.sort(key=lambda e: e.get("lastTimestamp") or e.get("eventTime") or "")
    ours = [e for e in said if "karpenter" in json.dumps([e.get("source"), e.get("reportingComponent")])]
    short = [e for e in ours if e.get("reason") == "InsufficientCapacityError"]
    return (short or ours or said or [{"message": "nobody says why"}])[-1]["message"]


def _pods(snapshot: Snapshot, now: datetime) -> Iterator[Finding]:
    for pod in _job_pods(snapshot):
        name = pod["metadata"]["name"]
        if _phase(pod) == "Pending" and pod["spec"].get("nodeName") and _age(pod, now) >= GRACE_SECONDS:
            events = [e for e in snapshot.of("events") if _about(e) == name and e.get("type") == "Warning"]
            why = events[-1]["message"] if events else _waiting_reason(pod)
            yield Finding(what=f"pod {name} is Pending for {_age(pod, now)} s", why=why,
                          do=f"kubectl -n {pod['metadata']['namespace']} describe pod {name}")


def _silent_ranks(snapshot: Snapshot, now: datetime) -> Iterator[Finding]:
    for job in _waiting_jobs(snapshot):
        command = " ".join(job["spec"].get("trainer", {}).get("command") or []).replace("\\\n", " ")
        nodes = job["spec"].get("trainer", {}).get("numNodes", 1)
        name = job["metadata"]["name"]
        alone = re.search(r"torchrun\b.*(--standalone\b|--rdzv[_-]backend[= ]+(?!static))", command, re.DOTALL)
        if nodes > 1 and alone and not re.search(r"rdzv[_-]endpoint|master[_-]addr=", command):
            yield Finding(what=f"TrainJob {name}: every node waits for the others at its own address",
                          why="its torchrun has no --rdzv_endpoint",
                          do="--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}")


def _failed(snapshot: Snapshot, _: datetime) -> Iterator[Finding]:
    for job in snapshot.of("trainjobs"):
        for condition in job.get("status", {}).get("conditions", []):
            if condition["type"] == "Failed" and condition["status"] == "True":
                yield Finding(what=f"TrainJob {job['metadata']['name']} failed: {condition.get('reason')}",
                              why=condition.get("message", "") + _last_words(snapshot, job),
                              do="mend it and count jobs.<name>.run up: the same run does not start again")
    for event in snapshot.of("events"):
        if event.get("reason") == "TrainJobResourcesCreationFailed":
            yield Finding(what=f"TrainJob {_about(event)} makes no pods", why=event["message"],
                          do="kubectl describe trainjob, and compare with the runtime")


CAUSES: tuple[Callable[[Snapshot, datetime], Iterator[Finding]], ...] = (
    _unserved, _controllers, _forbidden, _conditions, _claims_of_nodes, _silent_ranks, _failed, _gangs, _pods)


def _waiting_jobs(snapshot: Snapshot) -> list[Object]:
    return [job for job in snapshot.of("trainjobs") if not any(
        c["type"] == "Complete" and c["status"] == "True" for c in job.get("status", {}).get("conditions", []))]


def _job_pods(snapshot: Snapshot) -> list[Object]:
    return [pod for pod in snapshot.of("pods") if JOBSET in pod["metadata"].get("labels", {})]


def _phase(pod: Object) -> str | None:
    return pod.get("status", {}).get("phase")


def _waiting_reason(pod: Object) -> str:
    for status in pod.get("status", {}).get("containerStatuses", []):
        if waiting := status.get("state", {}).get("waiting"):
            return f"{waiting.get('reason')}: {waiting.get('message', '')}"
    return "no event says why"


def _last_words(snapshot: Snapshot, job: Object) -> str:
    logs = [log for pod, log in snapshot.logs.items() if f"/{job['metadata']['name']}-" in pod and log.strip()]
    return f"; last words: {logs[0].strip().splitlines()[-1]}" if logs else ""


def _about(event: Object) -> str:
    """What an event is about; some are about nothing that has a name."""
    return event.get("involvedObject", {}).get("name", "")


def _age(obj: Object, now: datetime) -> int:
    return int((now - datetime.fromisoformat(obj["metadata"]["creationTimestamp"])).total_seconds())
