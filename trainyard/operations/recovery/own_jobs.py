"""Jobs of a stack among those of its cluster.

In an existing cluster (`cluster.name`) others have jobs too, also of kinds that the stack has nothing to do with: its
owner may have a training-operator of their own (trainyard/live/own_names.py claims the name only for a stack with one).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from trainyard.catalog.job_kinds import POOL
from trainyard.operations.reach.cluster import Entry
from trainyard.operations.reach.kubectl import Kubectl, Object
from trainyard.operations.reach.place import pods_of

CLUSTER = "aws:eks/cluster:Cluster"
NAMESPACE = ":Namespace"
RUNTIME = "ClusterTrainingRuntime"
Jobs = Sequence[tuple[str, Object]]
"""Jobs, each with its kind as kubectl calls it."""


@dataclass(frozen=True, kw_only=True)
class MadeByStack:
    """Objects that a stack has made in a cluster of somebody else, by which its jobs are known."""

    namespaces: frozenset[str]
    """The destroy deletes them with everything in them."""
    runtimes: frozenset[str]
    """ClusterTrainingRuntimes. The destroy waits for the TrainJobs that name one: it has the finalizer
    trainer.kubeflow.org/resource-in-use meanwhile (kubeflow/trainer #2625)."""


def made_in(state: Entry) -> MadeByStack | None:
    """Objects of a stack in a cluster that it has not made; None where the whole cluster is its own."""
    resources = state["deployment"].get("resources") or []
    if any(each["type"] == CLUSTER and not each.get("external") for each in resources):
        return None
    return MadeByStack(
        namespaces=frozenset(_names(resources, NAMESPACE)),
        runtimes=frozenset(_names(resources, f":{RUNTIME}")),
    )


def _names(resources: Sequence[Entry], kind: str) -> list[str]:
    """Names of the objects of the cluster of a kind, which ends the type of a resource."""
    return [
        each["inputs"]["metadata"]["name"]
        for each in resources
        if each["type"].startswith("kubernetes:") and each["type"].endswith(kind)
    ]


def split(kubectl: Kubectl, jobs: Jobs, made: MadeByStack | None) -> tuple[Jobs, Jobs]:
    """Jobs of the stack, and jobs that are to be left alone. RuntimeError where the cluster does not answer."""
    if made is None:
        return jobs, ()
    nodes = _nodes(kubectl) if jobs else frozenset[str]()
    own = [(kind, job) for kind, job in jobs if _is_own(kubectl, job, made, nodes)]
    return own, [each for each in jobs if each not in own]


def _nodes(kubectl: Kubectl) -> frozenset[str]:
    """Names of the nodes of all pools. Two stacks cannot have pools in one cluster: Karpenter's name is taken."""
    found = json.loads(kubectl("get", "nodes", f"--selector={POOL}", "--output=json"))["items"]
    return frozenset(each["metadata"]["name"] for each in found)


def _is_own(kubectl: Kubectl, job: Object, made: MadeByStack, nodes: frozenset[str]) -> bool:
    """True of a job that the destroy deletes, or would wait for."""
    spec = job.get("spec", {})
    if job["metadata"]["namespace"] in made.namespaces or _asks(spec):
        return True
    runtime = spec.get("runtimeRef", {})
    if runtime.get("kind", RUNTIME) == RUNTIME and runtime.get("name") in made.runtimes:
        return True
    pods = [pod["spec"] for pod in pods_of(kubectl, job)]
    return any(pod.get("nodeName") in nodes or _asks(pod) for pod in pods)


def _asks(spec: Object) -> bool:
    """True of a spec that selects nodes of a pool, or tolerates their taint."""
    return f'"{POOL}"' in json.dumps(spec)
