"""Pods of a training run, whichever kind of object describes them: image, command, devices, mounts.

Pure data, and the parts of a pod that follow from it. The objects: trainyard/objects/jobs/trainer.py and
trainyard/objects/jobs/pytorch.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated

import pydantic

from trainyard.catalog.job_kinds import POOL
from trainyard.objects.iam.secrets import SecretFiles
from trainyard.plans.jobs import Spec

GPU = "nvidia.com/gpu"
EFA = "vpc.amazonaws.com/efa"
VISIBLE, NO_DEVICES = "NVIDIA_VISIBLE_DEVICES", ("none", "void")
"""Variable that tells NVIDIA's runtime of the node which GPUs a container sees, and its values for no GPU."""
TAINT_VALUE = "present"
"""The only value that NVIDIA's node-feature-discovery worker tolerates."""
NODES_FOR = "trainyard.io/nodes"
"""Label of every node: `system` for controllers, `training` for jobs."""

LABEL_CHARACTERS = 63
"""Most characters of a label, and so of the name of a job's pod, which a label has, too."""
FILES = "files"
"""Volume of a pod with the files that a job brings from the checkout."""
PULL_POLICIES = {"always": "Always", "if_not_present": "IfNotPresent", "never": "Never"}
"""Setting → imagePullPolicy."""

TOLERATIONS: list[Spec] = [
    {"key": GPU, "operator": "Equal", "value": TAINT_VALUE, "effect": "NoSchedule"},
    {"key": POOL, "operator": "Exists", "effect": "NoSchedule"},
    # Leave a node that died after 30 s, not after the default 300: the whole gang waits for this
    # pod.
    {
        "key": "node.kubernetes.io/unreachable",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 30,
    },
    {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 30,
    },
]


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A claim, mounted."""

    store: str
    """Name of the volume in the pod."""
    claim: str
    path: str
    directory: str | None = None
    """A directory of the claim instead of its root; kubelet makes it where it is missing."""


SecretObject = Annotated[str, pydantic.Field(pattern=r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$")]
"""Name of a Secret of Kubernetes."""


@dataclass(frozen=True, kw_only=True)
class SecretKey:
    """A key of a Kubernetes Secret in the job's namespace. The Secret must exist. This program
    never sees its value."""

    secret: SecretObject
    """Name of the Secret."""
    key: Annotated[str, pydantic.Field(pattern=r"^[-._a-zA-Z0-9]+$")]
    """Key in the Secret."""


@dataclass(frozen=True, kw_only=True)
class HostFolder:
    """A folder of the node, read-only."""

    name: str
    """Name of the volume in the pod."""
    host: str
    path: str


@dataclass(frozen=True, kw_only=True)
class Training:
    """One run: a pod a node, all alike."""

    image: str
    command: tuple[str, ...]
    """Empty: its runtime's, or else the image's own entrypoint."""
    arguments: tuple[str, ...] = ()
    """Arguments of a command that is not `command`: its runtime's, or else the image's own
    entrypoint."""
    nodes: int
    processes_per_node: int | str
    resources: Mapping[str, int]
    """Devices of a pod, and on CPU nodes its vCPUs; requests equal limits."""
    cpus: int | None
    """vCPUs that a pod requests, without a limit; None where `resources` says them."""
    memory_gib: int
    """Memory of a pod; the request equals the limit, so kubelet kills no pod within its limit."""
    node_selector: Mapping[str, str]
    env: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, SecretKey] = field(default_factory=dict)
    """Variable → where its value stays."""
    secret_files: SecretFiles | None = None
    """Files that the command reads other variables from."""
    mounts: tuple[Mount, ...] = ()
    files: tuple[str, str] | None = None
    """ConfigMap, and the folder its files appear in."""
    host_folders: tuple[HostFolder, ...] = ()
    local_scratch: str | None = None
    """Folder on the node's NVMe; gone with the pod."""
    shared_memory_gib: int
    pull_secrets: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    """Labels of the pods."""
    time_limit_minutes: int | None = None
    """Counted from creation, or from the last resume; then the run is ended and has failed."""


def starts(training: Training) -> Spec:
    """Command and arguments of the container in which the ranks run, where they are set."""
    given = {"command": training.command, "args": training.arguments}
    return {name: list(words) for name, words in given.items() if words}


def resources(training: Training) -> Spec:
    """Requests and limits of the container in which the ranks run.

    Devices are never shared, so requests equal limits. CPU has a request and no limit: a limit
    would throttle data loaders while vCPUs are idle.
    """
    amounts = {name: str(count) for name, count in sorted(training.resources.items())}
    amounts["memory"] = f"{training.memory_gib}Gi"
    cpu = {"cpu": str(training.cpus)} if training.cpus is not None else {}
    return {"requests": cpu | amounts, "limits": amounts}


def pod_requests(spec: Spec) -> Spec:
    """Requests of a pod that trains, in the spec of a TrainJob or PyTorchJob: its limit where a
    resource has no request, as Kubernetes counts. Empty where its runtime says it."""
    found = spec.get("trainer", {}).get("resourcesPerNode")
    for replica in spec.get("pytorchReplicaSpecs", {}).values():
        found = replica["template"]["spec"]["containers"][0].get("resources") or found
    amounts = found or {}
    return {**(amounts.get("limits") or {}), **(amounts.get("requests") or {})}


def env(training: Training) -> list[Spec]:
    """Variables in clear, then those that stay in a Secret."""
    return [
        *({"name": name, "value": value} for name, value in sorted(training.env.items())),
        *(secret_variable(name, at) for name, at in sorted(training.secrets.items())),
    ]


def secret_variable(name: str, at: SecretKey) -> Spec:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": at.secret, "key": at.key}}}


def pod_spec(training: Training) -> Spec:
    """Fields of a job's pod that say where it runs and what it mounts, without containers. A TrainJob of
    Trainer 2.1 can set no other field of a pod: its runtime does (runtime_objects.py)."""
    pod: Spec = {
        "nodeSelector": dict(training.node_selector),
        "tolerations": TOLERATIONS,
        "volumes": volumes(training),
    }
    if training.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in training.pull_secrets]
    return pod


def volumes(training: Training) -> list[Spec]:
    made: list[Spec] = [
        {
            "name": "dshm",
            "emptyDir": {"medium": "Memory", "sizeLimit": f"{training.shared_memory_gib}Gi"},
        }
    ]
    made += [
        {"name": store, "persistentVolumeClaim": {"claimName": claim}}
        for store, claim in sorted({(mount.store, mount.claim) for mount in training.mounts})
    ]
    if training.files:
        made.append({"name": FILES, "configMap": {"name": training.files[0]}})
    if training.secret_files:
        made.append(training.secret_files.volume())
    made += [
        {"name": each.name, "hostPath": {"path": each.host, "type": "Directory"}}
        for each in training.host_folders
    ]
    if training.local_scratch:
        made.append({"name": "local-scratch", "emptyDir": {}})
    return made


def volume_mounts(training: Training) -> list[Spec]:
    made: list[Spec] = [{"name": "dshm", "mountPath": "/dev/shm"}]
    made += [
        {"name": mount.store, "mountPath": mount.path}
        | ({"subPath": mount.directory} if mount.directory else {})
        for mount in training.mounts
    ]
    if training.files:
        made.append({"name": FILES, "mountPath": training.files[1], "readOnly": True})
    if training.secret_files:
        made.append(training.secret_files.mount())
    made += [
        {"name": each.name, "mountPath": each.path, "readOnly": True}
        for each in training.host_folders
    ]
    if training.local_scratch:
        made.append({"name": "local-scratch", "mountPath": training.local_scratch})
    return made


def pod_metadata(training: Training) -> Spec:
    """Karpenter leaves a node with this annotation alone: consolidation would end the run."""
    labels: Spec = {"labels": dict(training.labels)} if training.labels else {}
    return {"annotations": {"karpenter.sh/do-not-disrupt": "true"}, **labels}
