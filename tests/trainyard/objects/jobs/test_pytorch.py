"""The training-operator's objects, against its CRD and beside their twins for the Trainer."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import crds
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from tests.support.recording import CHECKOUT
from trainyard.objects.jobs import pytorch_coordinator
from trainyard.objects.jobs.pod_template import EFA, GPU, HostFolder, Mount, SecretKey, Training
from trainyard.objects.jobs.pytorch import PyTorchJobSettings, pytorch_job_spec
from trainyard.objects.jobs.trainer import train_job_spec
from trainyard.plans.jobs import Spec

crds.FILES["PyTorchJob"] = (
    f"{CHECKOUT}/components/charts/training-operator/files/kubeflow.org_pytorchjobs.yaml"
)
JOB = Training(
    image="registry/pytorch-fullft:1",
    command=("/bin/bash", "-c", "torchrun run_full_finetune.py"),
    nodes=2,
    processes_per_node="auto",
    resources={GPU: 8, EFA: 32},
    cpus=171,
    memory_gib=1700,
    node_selector={"trainyard.io/pool": "h100"},
    env={"B": "2", "A": "1"},
    secrets={"HUGGING_FACE_HUB_TOKEN": SecretKey(secret="hf-token", key="token")},
    mounts=(
        Mount(store="scratch", claim="scratch-1", path="/checkpoints", directory="qwen"),
        Mount(store="home", claim="home-1", path="/home"),
    ),
    files=("scripts", "/workspace"),
    host_folders=(HostFolder(name="data", host="/data", path="/data"),),
    local_scratch="/scratch",
    pull_secrets=("registry",),
    labels={"team": "vision"},
    shared_memory_gib=64,
)


def spec_of(training: Training = JOB, **settings: Any) -> Spec:
    return pytorch_job_spec(training, operator=PyTorchJobSettings(**settings))


def replicas(spec: Spec) -> dict[str, int]:
    return {name: replica["replicas"] for name, replica in spec["pytorchReplicaSpecs"].items()}


def pod(spec: Spec, role: str) -> Spec:
    return spec["pytorchReplicaSpecs"][role]["template"]["spec"]


@given(
    nodes=st.integers(1, 512),
    ranks=st.integers(1, 8) | st.just("auto"),
    limit=st.none() | st.integers(1, 10**6),
    mounts=st.sampled_from([(), JOB.mounts]),
    settings=st.builds(
        PyTorchJobSettings,
        clean_pods=st.sampled_from(["None", "Running", "All"]),
        coordinator=st.booleans(),
        restarts=st.integers(0, 100),
        elastic=st.none() | st.just((1, 8)),
        priority=st.none() | st.just("high"),
    ).filter(lambda s: not (s.elastic and s.coordinator)),
)
def test_whatever_is_asked_for_crd_and_webhook_admit_and_it_has_as_many_nodes(
    nodes: int, ranks: Any, limit: int | None, mounts: Any, settings: PyTorchJobSettings
) -> None:
    training = dataclasses.replace(
        JOB, nodes=nodes, processes_per_node=ranks, mounts=mounts, time_limit_minutes=limit
    )
    made = pytorch_job_spec(training, operator=settings)
    assert (
        crds.problems(
            {
                "apiVersion": "kubeflow.org/v1",
                "kind": "PyTorchJob",
                "metadata": {"name": "job"},
                "spec": made,
            }
        )
        == []
    )
    assert {pod(made, role)["containers"][0]["name"] for role in replicas(made)} == {"pytorch"}
    assert (
        replicas(made).get("Master", 1) == 1
        and sum(replicas(made).values()) == nodes + settings.coordinator
    )


def test_a_job_means_what_its_twin_for_the_trainer_means() -> None:
    theirs, ours = train_job_spec("2.1.0", "torch-distributed", JOB), spec_of()
    override, trainer = theirs["podTemplateOverrides"][0], theirs["trainer"]
    for role, replica in ours["pytorchReplicaSpecs"].items():
        [container] = pod(ours, role)["containers"]
        assert (
            container["image"],
            container["command"],
            container["resources"],
            container["env"],
        ) == (trainer["image"], trainer["command"], trainer["resourcesPerNode"], trainer["env"])
        assert container["volumeMounts"] == override["spec"]["containers"][0]["volumeMounts"]
        assert replica["template"]["metadata"] == override["metadata"]
        same = ("nodeSelector", "tolerations", "volumes", "imagePullSecrets")
        assert {key: pod(ours, role)[key] for key in same} == {
            key: override["spec"][key] for key in same
        }
    assert replicas(ours) == {"Master": 1, "Worker": trainer["numNodes"] - 1}
    assert replicas(spec_of(dataclasses.replace(JOB, nodes=1))) == {"Master": 1}
    assert (
        ours["nprocPerNode"] == "8"
    )  # what `auto` comes to: the operator multiplies it to the world size


def test_a_failed_pod_stays_to_be_read_unless_the_gang_may_start_again() -> None:
    for restarts, policy, more in (
        (0, "Never", {}),
        (3, "OnFailure", {"backoffLimit": 3 * 2 * 2 + 1}),
    ):
        made = spec_of(restarts=restarts)
        assert {r["restartPolicy"] for r in made["pytorchReplicaSpecs"].values()} == {policy}
        assert made["runPolicy"] == {"cleanPodPolicy": "Running", **more}
    # The operator does not wake up for it: the end of a pod must wake it.
    limited = spec_of(dataclasses.replace(JOB, time_limit_minutes=90))
    assert (
        limited["runPolicy"]["activeDeadlineSeconds"]
        == pod(limited, "Worker")["activeDeadlineSeconds"]
        == 5400
    )


def test_an_elastic_job_has_workers_only_and_what_a_script_of_the_trainer_reads() -> None:
    made = spec_of(elastic=(1, 4))
    assert replicas(made) == {"Worker": 2} and made["elasticPolicy"]["maxReplicas"] == 4
    assert {"PET_MASTER_ADDR", "PET_NODE_RANK"} <= {
        e["name"] for e in pod(made, "Worker")["containers"][0]["env"]
    }


def test_a_coordinator_has_no_devices() -> None:
    master = pod(spec_of(coordinator=True), "Master")
    assert "resources" not in master["containers"][0] and master["volumes"] == []


@pytest.fixture
def coordinated(tmp_path: Path) -> dict[str, str]:
    """What the operator gives each pod of a coordinated job of two nodes; every name of the job is
    this host."""
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\nresolve = socket.getaddrinfo\nsocket.getaddrinfo = lambda host, *a, **k:"
        " resolve('127.0.0.1' if host.startswith('job-') else host, *a, **k)"
    )
    return os.environ | {
        "PYTHONPATH": str(tmp_path),
        "MASTER_ADDR": "job-master-0",
        "MASTER_PORT": str(free_port()),
        "PET_NNODES": "3",
        "PET_NPROC_PER_NODE": "8",
        "WORLD_SIZE": "24",
        "PYTHONUNBUFFERED": "1",
    }


def worker(env: dict[str, str], rank: int, script: str) -> subprocess.Popen[str]:
    command = pytorch_coordinator.worker(("/bin/sh", "-c", script))
    return subprocess.Popen(
        command,
        env=env | {"RANK": str(rank), "PET_NODE_RANK": str(rank)},
        stdout=subprocess.PIPE,
        text=True,
    )


def test_workers_are_numbered_among_themselves_and_the_coordinator_ends_after_them(
    coordinated: dict[str, str],
) -> None:
    says = (
        "echo $PET_NODE_RANK $RANK $PET_NNODES $WORLD_SIZE $PET_MASTER_ADDR $MASTER_ADDR"
        " job-master-0:29500"
    )
    workers = [worker(coordinated, rank, says) for rank in (1, 2)]
    coordinator = pytorch_coordinator.COORDINATOR
    subprocess.Popen(
        coordinator, env=coordinated
    ).kill()  # it may start again at any time: workers tell the next one
    last = subprocess.Popen(coordinator, env=coordinated)
    assert [w.communicate(timeout=PATIENCE)[0] for w in workers] == [
        f"{i} {i} 2 16 job-worker-0 job-worker-0 job-worker-0:29500\n" for i in (0, 1)
    ]
    assert [p.wait(PATIENCE) for p in (*workers, last)] == [0, 0, 0]


def test_a_worker_that_fails_fails_at_once_and_hands_on_a_signal(
    coordinated: dict[str, str],
) -> None:
    saves = worker(
        coordinated, 1, "trap 'echo saved; exit 4' TERM; echo ready; while :; do sleep 0.1; done"
    )
    assert saves.stdout and saves.stdout.readline() == "ready\n"
    saves.terminate()
    assert saves.communicate(timeout=PATIENCE)[0] == "saved\n" and saves.returncode == 4


def test_a_signal_while_the_command_is_being_started_reaches_it_too(
    coordinated: dict[str, str],
) -> None:
    at_once = "trap 'echo saved; exit 4' TERM; kill -TERM $PPID; while :; do sleep 0.1; done"
    for saves in [worker(coordinated, 1, at_once) for _ in range(5)]:
        assert saves.communicate(timeout=PATIENCE)[0] == "saved\n" and saves.returncode == 4
