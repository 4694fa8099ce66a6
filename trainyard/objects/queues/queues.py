"""Queues, which decide whose job goes first: what Kueue is told of pools, teams and urgencies.

Fields and their meaning: Kueue 0.16.2, apis/kueue/v1beta2 and apis/config/v1beta2; what Kueue does with
them: tests/controllers/test_kueue.py. Components make objects of it: components/jobs/queues.py and
components/teams/team_queue.py.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trainyard.catalog.fabric import LAYER
from trainyard.catalog.limits import BACKOFF_SECONDS
from trainyard.objects.jobs.pod_template import EFA, GPU, POOL, TAINT_VALUE, TOLERATIONS
from trainyard.plans.controllers import ChartPlan
from trainyard.plans.jobs import TEAM, Spec

API = "kueue.x-k8s.io/v1beta2"
KUEUE = "kueue"
"""Name of the chart's release."""
NAMESPACE, CONTROLLER = "kueue-system", "kueue-controller-manager"
"""Where the chart's controller runs, and its service account."""
REPLICAS = 2
"""Number of pods of the controller: its webhooks refuse every job while none runs."""
DISPATCHER = "kueue.x-k8s.io/multikueue"
"""Starter of a job in another cluster: the controller of an AdmissionCheck, and `managedBy` of a
TrainJob, which the Trainer then leaves alone (2.3.0)."""
MANAGERS = "trainyard:queue-managers"
"""Kubernetes group of the environment that hands its jobs to this one."""
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"
URGENCY_LABEL = "kueue.x-k8s.io/priority-class"
COHORT = "environment"
"""All teams of an environment share one: what one of them leaves idle, the others borrow."""

TOPOLOGY = "network"
_NEAREST = 3
"""Layer of the network with the nearest nodes; types with four are together there, too."""

Urgency = Literal["low", "normal", "high"]
URGENCIES: Mapping[Urgency, int] = {"low": 100, "normal": 500, "high": 900}
"""Urgency of a job → the value of its WorkloadPriorityClass. A job without one has 0."""
Preemption = Literal["urgency_and_guarantees", "guarantees", "never"]

FRAMEWORKS = {
    "TrainJob": "trainer.kubeflow.org/trainjob",
    "PyTorchJob": "kubeflow.org/pytorchjob",
}
"""Kind of job → what Kueue calls it."""
_JOBSET = "jobset.x-k8s.io/jobset"
"""Name that Kueue has for the JobSet of a TrainJob. Kueue follows the owner of a JobSet only if it
knows JobSets."""
_NOT_COUNTED = ["cpu", "memory", "ephemeral-storage", "hugepages-", EFA]
"""Resources without a quota. They come with the nodes, and a quota counts GPUs. Kueue never starts a
job that requests a resource which is neither counted nor listed here."""
_OWN_JOBS_ONLY = {"policy": "LowerPriority", "maxPriorityThreshold": -1}
"""Lets a borrowing job preempt lower-priority jobs of its own team only: no job of another team has a
priority below 0. `Never` would forbid that too (Kueue 0.16.2, flavorassigner.go,
canPreemptWhileBorrowing). Kueue takes no such policy with fair sharing, which does not need it."""
_FAIR = ["LessThanOrEqualToFinalShare", "LessThanInitialShare"]
"""Kueue's default preemption strategies for fair sharing."""


@dataclass(frozen=True, kw_only=True)
class FlavorPlan:
    """The nodes of a pool with GPUs, as quotas count them."""

    pool: str
    gpus: int
    """GPUs of a node."""
    nodes: int
    """That jobs can have at most."""
    free_nodes: int
    """Nobody's guarantee."""
    by_topology: bool = False
    """Its nodes are chosen by their place in the network."""


@dataclass(frozen=True, kw_only=True)
class QueuesPlan:
    """Kueue in an environment."""

    version: str
    chart: ChartPlan
    flavors: tuple[FlavorPlan, ...]
    job_kinds: tuple[str, ...]
    """Kinds of jobs whose controllers the environment has."""
    fair_sharing: bool
    ready_minutes: int
    """A gang whose pods are not all ready after this time gives its nodes back."""
    recovery_minutes: int
    """A gang that was complete and has lost a pod, perhaps with its node, gives the others back after this time."""
    fetch_minutes: int
    """Minutes of both for a runtime that fetches its model; 0: none does."""
    longest_backoff_seconds: int
    """Most between two attempts of such a gang."""
    origin: str | None = None
    """Kueue's `multiKueue.origin`: marks this environment's jobs in its workers' clusters. None: it has
    no workers."""
    manager: str | None = None
    """ARN of the role with which another environment hands its jobs to this one."""


@dataclass(frozen=True, kw_only=True)
class PoolShare:
    """Share that a team has of a pool, in nodes."""

    pool: str
    gpus: int
    """GPUs of a node."""
    guaranteed: int
    ceiling: int | None
    """Most that its jobs can have together; None: no limit of its own."""
    possible: int
    """Nodes that its jobs get when no other team wants one."""


@dataclass(frozen=True, kw_only=True)
class TeamQueuePlan:
    """The queue of a team, which has the team's name."""

    team: str
    shares: tuple[PoolShare, ...]
    lends: bool
    """Other teams use its guaranteed nodes while they are idle."""
    preemption: Preemption
    fair_sharing: bool
    max_urgency: Urgency
    """Highest that its jobs can have."""
    check: str | None = None
    """Name of the AdmissionCheck that its jobs pass before they start."""

    @property
    def possible_gpus(self) -> int:
        """GPUs of jobs that can run at once."""
        return sum(share.possible * share.gpus for share in self.shares)


def flavor_spec(plan: FlavorPlan) -> Spec:
    """ResourceFlavor.spec: label and taint of the NodePool's template. The tolerations are those of
    our pods: what Kueue adds changes nothing."""
    return {
        "nodeLabels": {POOL: plan.pool},
        "nodeTaints": [{"key": GPU, "value": TAINT_VALUE, "effect": "NoSchedule"}],
        "tolerations": TOLERATIONS,
        **({"topologyName": TOPOLOGY} if plan.by_topology else {}),
    }


def topology_spec() -> Spec:
    """Topology.spec: the layers that all types have, the widest first."""
    return {"levels": [{"nodeLabel": LAYER.format(layer)} for layer in range(1, _NEAREST + 1)]}


def near(runtime: Spec) -> Spec:
    """A runtime whose nodes Kueue chooses from one part of the network where it can. Jobs name the
    runtime, also those of the SDK, and no job changes."""
    template = runtime["template"]
    jobs = [
        _near(job) if job["name"] == "node" else job for job in template["spec"]["replicatedJobs"]
    ]
    return {
        **runtime,
        "template": {**template, "spec": {**template["spec"], "replicatedJobs": jobs}},
    }


def _near(job: Spec) -> Spec:
    made = copy.deepcopy(job)
    pod = made["template"]["spec"]["template"]
    annotations = pod.setdefault("metadata", {}).setdefault("annotations", {})
    annotations["kueue.x-k8s.io/podset-preferred-topology"] = LAYER.format(_NEAREST)
    return made


def cohort_spec(flavors: Sequence[FlavorPlan]) -> Spec:
    """Cohort.spec: the nodes that are nobody's guarantee."""
    return _group([_quota(each.pool, each.free_nodes * each.gpus) for each in flavors])


def cluster_queue_spec(plan: TeamQueuePlan) -> Spec:
    """ClusterQueue.spec: what a team is guaranteed, borrows and lends."""
    by_urgency = plan.preemption == "urgency_and_guarantees"
    return {
        "cohortName": COHORT,
        "namespaceSelector": {"matchLabels": {TEAM: plan.team}},
        "queueingStrategy": "BestEffortFIFO",
        "preemption": {
            "withinClusterQueue": "LowerPriority" if by_urgency else "Never",
            "reclaimWithinCohort": "Never" if plan.preemption == "never" else "Any",
            "borrowWithinCohort": (
                _OWN_JOBS_ONLY if by_urgency and not plan.fair_sharing else {"policy": "Never"}
            ),
        },
        **(
            {"admissionChecksStrategy": {"admissionChecks": [{"name": plan.check}]}}
            if plan.check
            else {}
        ),
        **_group([_share(share, lends=plan.lends) for share in plan.shares]),
    }


def _share(share: PoolShare, *, lends: bool) -> Spec:
    more: dict[str, int] = {}
    if share.ceiling is not None:
        more["borrowingLimit"] = (share.ceiling - share.guaranteed) * share.gpus
    if not lends:
        more["lendingLimit"] = 0
    return _quota(share.pool, share.guaranteed * share.gpus, **more)


def _quota(pool: str, gpus: int, **limits: int) -> Spec:
    """Quantities are text, as the API server returns them."""
    amounts = {"nominalQuota": gpus, **limits}
    return {
        "name": pool,
        "resources": [{"name": GPU, **{key: str(value) for key, value in amounts.items()}}],
    }


def _group(flavors: list[Spec]) -> Spec:
    return {"resourceGroups": [{"coveredResources": [GPU], "flavors": flavors}]}


def configuration(plan: QueuesPlan) -> dict[str, Any]:
    """Kueue's own configuration. waitForPodsReady is one for the whole cluster. It counts from the admission of a job,
    and its recoveryTimeout from the loss of a pod."""
    return {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": ":8081"},
        "metrics": {"bindAddress": ":8443", "enableClusterQueueResources": True},
        "webhook": {"port": 9443},
        "leaderElection": {"leaderElect": True, "resourceName": "c1f6bfd2.kueue.x-k8s.io"},
        "manageJobsWithoutQueueName": True,
        "managedJobsNamespaceSelector": {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]},
        "integrations": {"frameworks": [*(FRAMEWORKS[kind] for kind in plan.job_kinds), _JOBSET]},
        "resources": {"excludeResourcePrefixes": _NOT_COUNTED},
        "waitForPodsReady": {
            "timeout": f"{plan.ready_minutes}m",
            "recoveryTimeout": f"{plan.recovery_minutes}m",
            "blockAdmission": False,
            "requeuingStrategy": {
                "timestamp": "Eviction",
                "backoffBaseSeconds": BACKOFF_SECONDS,
                "backoffMaxSeconds": plan.longest_backoff_seconds,
            },
        },
        "clientConnection": {"qps": 50, "burst": 100},
        **({"fairSharing": {"preemptionStrategies": _FAIR}} if plan.fair_sharing else {}),
        **({"multiKueue": {"origin": plan.origin}} if plan.origin else {}),
    }


def job_labels(team: str, urgency: Urgency | None, most: Urgency = "high") -> dict[str, str]:
    """Labels of a job in the queue of a team. `most`: its highest urgency."""
    return {QUEUE_LABEL: team, URGENCY_LABEL: urgency or usual_urgency(most)}


def usual_urgency(most: Urgency) -> Urgency:
    """The urgency of a job that says none: `normal`, or `most` where that is lower, because the namespace
    admits no other."""
    return min("normal", most, key=URGENCIES.__getitem__)


def urgencies_up_to(most: Urgency) -> tuple[Urgency, ...]:
    """The urgencies that are not higher."""
    return tuple(each for each, value in URGENCIES.items() if value <= URGENCIES[most])
