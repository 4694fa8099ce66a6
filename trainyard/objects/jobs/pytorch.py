"""The training-operator's PyTorchJob as plain data. Pure: what reaches the API server can be tested
without it.

What the operator makes of each field: its source at v1.8.1, pkg/controller.v1, read 2026-11-21. It
appends its variables to a container's own, and so wins where both set one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainyard.objects.jobs import pytorch_coordinator
from trainyard.objects.jobs.pod_template import (
    GPU,
    Training,
    env,
    pod_metadata,
    pod_spec,
    resources,
    starts,
    volume_mounts,
)
from trainyard.objects.jobs.rendezvous import MASTER_PORT
from trainyard.plans.jobs import Spec

CONTAINER = "pytorch"
"""The webhook refuses a replica without a container of this name."""
RESTARTS_PER_GANG_RESTART = 2
"""Restarts that count for each pod when one rank fails: every pod restarts, and the first one back usually
fails once more, because its peers are not there yet. Seen with the operator itself: three restarts of
two pods, 2026-11-21."""
LABELS = "metadata.labels['training.kubeflow.org/{}']"


@dataclass(frozen=True, kw_only=True)
class PyTorchJobSettings:
    """Settings of a PyTorchJob beside the training itself."""

    clean_pods: Literal["None", "Running", "All"] = "Running"
    """Pods that are deleted when the job has ended. With None the peers of a failed pod go on, and
    are paid for."""
    restarts: int = 0
    """Number of times that the whole gang may start again."""
    coordinator: bool = False
    """The Master has no devices and trains nothing: every node is a Worker."""
    elastic: tuple[int, int] | None = None
    """Fewest and most nodes. There is no Master then: the first Worker hosts the rendezvous."""
    priority: str | None = None
    """A PriorityClass."""
    pull_policy: str | None = None
    """Pull policy of every container. None: the default of Kubernetes."""
    role_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Master or Worker → labels of its pods beside those of the job."""


def pytorch_job_spec(training: Training, *, operator: PyTorchJobSettings) -> Spec:
    """PyTorchJob.spec of the run that train_job_spec describes for the Trainer."""
    if operator.elastic and operator.coordinator:
        raise ValueError("an elastic job has no Master that could coordinate it")
    replicas = _replicas(training, operator)
    made: Spec = {
        "nprocPerNode": _processes(training),
        "runPolicy": _run_policy(
            training, operator, pods=sum(replica["replicas"] for replica in replicas.values())
        ),
        "pytorchReplicaSpecs": replicas,
    }
    if operator.elastic:
        fewest, most = operator.elastic
        made["elasticPolicy"] = {
            "rdzvBackend": "c10d",
            "minReplicas": fewest,
            "maxReplicas": most,
            "maxRestarts": operator.restarts,
        }
    return made


def _processes(training: Training) -> str:
    """A number wherever there is one: of `auto` the operator makes 1 when it computes
    WORLD_SIZE."""
    if training.processes_per_node == "auto":
        return str(training.resources.get(GPU, "auto"))
    return str(training.processes_per_node)


def _run_policy(training: Training, operator: PyTorchJobSettings, *, pods: int) -> Spec:
    made: Spec = {"cleanPodPolicy": operator.clean_pods}
    if operator.restarts:
        # Counted in restarts of containers, of all pods together, and failed when it is reached. 0
        # would delete all pods, with their logs, whatever cleanPodPolicy says.
        made["backoffLimit"] = operator.restarts * pods * RESTARTS_PER_GANG_RESTART + 1
    if training.time_limit_minutes is not None:
        # From the first reconcile on, the wait for nodes included.
        made["activeDeadlineSeconds"] = training.time_limit_minutes * 60
    return made


def _replicas(training: Training, operator: PyTorchJobSettings) -> Spec:
    """Replicas are always a number: the webhook refuses a Master whose default is yet to come."""
    node, template = _pod(training, operator)
    if operator.elastic:
        node["env"] = [*_WHERE, *node["env"]]
        return {"Worker": _replica(template, operator, node, "Worker", training.nodes)}
    if operator.coordinator:
        node["command"] = pytorch_coordinator.worker(training.command)
        master: Spec = {
            "name": CONTAINER,
            "image": training.image,
            "command": pytorch_coordinator.COORDINATOR,
        }
        return {
            "Master": _replica(template, operator, master, "Master", 1),
            "Worker": _replica(template, operator, node, "Worker", training.nodes),
        }
    made = {"Master": _replica(template, operator, node, "Master", 1)}
    if training.nodes > 1:
        made["Worker"] = _replica(template, operator, node, "Worker", training.nodes - 1)
    return made


def _pod(training: Training, operator: PyTorchJobSettings) -> tuple[Spec, Spec]:
    """The container in which the ranks run, and the template of a pod of any role: without containers,
    with the volumes of all."""
    container: Spec = {
        "name": CONTAINER,
        "image": training.image,
        **starts(training),
        "env": env(training),
        "resources": resources(training),
        "volumeMounts": volume_mounts(training),
    }
    metadata = pod_metadata(training)
    pod = pod_spec(training)
    if operator.priority:
        pod["priorityClassName"] = operator.priority
    if training.time_limit_minutes is not None:
        # The operator looks at its own deadline only when something changes (its work queue is a
        # fake one). This ends the pod, which is such a change.
        pod["activeDeadlineSeconds"] = training.time_limit_minutes * 60
    return container, {"metadata": metadata, "spec": pod}


def _replica(
    template: Spec, operator: PyTorchJobSettings, container: Spec, role: str, count: int
) -> Spec:
    """The pods of a role: their container, the volumes that it mounts, and their labels."""
    metadata, pod = template["metadata"], template["spec"]
    mounted = {mount["name"] for mount in container.get("volumeMounts", [])}
    pull = {"imagePullPolicy": operator.pull_policy} if operator.pull_policy else {}
    if labels := operator.role_labels.get(role):
        metadata = {**metadata, "labels": {**metadata.get("labels", {}), **labels}}
    return {
        "replicas": count,
        "restartPolicy": "OnFailure" if operator.restarts else "Never",
        "template": {
            "metadata": metadata,
            "spec": {
                **pod,
                "containers": [container | pull],
                "volumes": [volume for volume in pod["volumes"] if volume["name"] in mounted],
            },
        },
    }


_WHERE: list[Spec] = [
    {"name": "PYTORCH_JOB", "valueFrom": {"fieldRef": {"fieldPath": LABELS.format("job-name")}}},
    {"name": "PET_MASTER_ADDR", "value": "$(PYTORCH_JOB)-worker-0"},
    {"name": "PET_MASTER_PORT", "value": str(MASTER_PORT)},
    {
        "name": "PET_NODE_RANK",
        "valueFrom": {"fieldRef": {"fieldPath": LABELS.format("replica-index")}},
    },
]
"""Variables that a script of the Trainer reads and the operator leaves out where there is no
Master."""
