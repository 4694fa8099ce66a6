"""The building blocks of a training runtime: replicated jobs, their containers, and the policies of
torch and MPI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.plans.jobs import Spec

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Without this label on the replicated job the Trainer ignores numNodes, image, command and env."""
MPI_USER = 1000
"""mpiuser of upstream's MPI images: sshd and ranks run as it."""


def torch_runtime(policy: Mapping[str, str], jobs: list[Spec], **jobset: Any) -> Spec:
    """`policy`: TrainerRelease.torch_policy."""
    return plain_runtime("torch", jobs, dict(policy), **jobset)


def plain_runtime(source: str, jobs: list[Spec], policy: Spec | None = None, **jobset: Any) -> Spec:
    """A runtime of one node unless a job says otherwise. `source`: the name of its policy; `jobset`:
    more fields of its JobSet."""
    return {
        "mlPolicy": {"numNodes": 1, source: policy or {}},
        "template": {"spec": {**jobset, "replicatedJobs": jobs}},
    }


def training_job(image: str) -> Spec:
    """The replicated job whose pods train."""
    return replicated_job("node", "trainer", [container("node", image)])


def replicated_job(
    name: str,
    step: str | None,
    containers: list[Spec],
    *,
    job: Spec | None = None,
    pod: Spec | None = None,
) -> Spec:
    """One of a JobSet's replicatedJobs. `step`: what it is to the Trainer, if anything; `job` and
    `pod`: more fields of the Job's spec and of its pods'."""
    template: Spec = {
        "spec": {**(job or {}), "template": {"spec": {**(pod or {}), "containers": containers}}}
    }
    return {
        "name": name,
        "template": {"metadata": {"labels": {ANCESTOR: step}}, **template} if step else template,
    }


def container(name: str, image: str, **rest: Any) -> Spec:
    """A container; `rest`: more of its fields."""
    return {"name": name, "image": image, **rest}


def mpi_runtime(image: str, *, waits: bool, launcher: Spec | None = None) -> Spec:
    """A launcher that is one of the nodes, and sshd in the others; `waits` until they answer."""
    user = {"runAsUser": MPI_USER}
    sshd = container(
        "node",
        image,
        securityContext=user,
        command=["/usr/sbin/sshd"],
        args=["-De", "-f", "/home/mpiuser/.sshd_config"],
        readinessProbe={"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5},
    )
    pod: Spec = {"securityContext": {"fsGroup": MPI_USER}} if waits else {}
    first = replicated_job(
        "launcher",
        "trainer",
        [container("node", image, securityContext=user, **(launcher or {}))],
        pod=pod,
    )
    other = replicated_job("node", None, [sshd], pod=pod)
    return {
        # Never more than one here: numNodes of an MPI runtime counts launchers (T5).
        "mlPolicy": {
            "numNodes": 1,
            "mpi": {
                "numProcPerNode": 1,
                "mpiImplementation": "OpenMPI",
                "sshAuthMountPath": "/home/mpiuser/.ssh",
                "runLauncherAsNode": True,
            },
        },
        "template": {
            "spec": {
                "network": {"publishNotReadyAddresses": True},
                "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                "replicatedJobs": (
                    [
                        other,
                        {**first, "dependsOn": [{"name": "node", "status": "Ready"}]},
                    ]
                    if waits
                    else [first, other]
                ),
            }
        },
    }
