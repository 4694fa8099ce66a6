"""The training-operator's objects, against its CRD and beside their twins for the Trainer."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from components import pytorch_coordinator
from components.plans import Spec
from components.pytorch_objects import CONTAINER, PyTorchJobSettings, pytorch_job_spec
from components.trainer_objects import train_job_spec
from components.training import EFA, GPU, HostFolder, Mount, SecretKey, Training
from rehearsal.paths import free_port
from tests import crds
from tests.recording import CHECKOUT

crds.FILES["PyTorchJob"] = f"{CHECKOUT}/components/charts/training-operator/files/kubeflow.org_pytorchjobs.yaml"
JOB = Training(
    image="registry/pytorch-fullft:1", command=("/bin/bash", "-c", "torchrun run_full_finetune.py"), nodes=2,
    processes_per_node="auto", resources={GPU: 8, EFA: 32}, node_selector={"trainyard.io/pool": "h100"},
    env={"B": "2", "A": "1"}, secrets={"HUGGING_FACE_HUB_TOKEN": SecretKey(secret="hf-token", key="token")},
    mounts=(Mount(store="scratch", claim="scratch-1", path="/checkpoints", directory="qwen"),
            Mount(store="home", claim="home-1", path="/home")),
    files=("scripts", "/workspace"), host_folders=(HostFolder(name="data", host="/data", path="/data"),),
    local_scratch="/scratch", pull_secrets=("registry",), labels={"team": "vision"}, shared_memory_gib=64)


def spec_of(training: Training = JOB, **settings: Any) -> Spec:
    return pytorch_job_spec(training, operator=PyTorchJobSettings(**settings))


def replicas(spec: Spec) -> dict[str, int]:
    return {name: replica["replicas"] for name, replica in spec["pytorchReplicaSpecs"].items()}


def pod(spec: Spec, role: str) -> Spec:
    return spec["pytorchReplicaSpecs"][role]["template"]["spec"]


def problems(spec: Spec) -> list[str]:
    """What the API server and the operator's webhook (pkg/webhooks/pytorch at 1.8.1) would refuse."""
    found = crds.problems({"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": {"name": "job"},
                           "spec": spec})
    for role, count in replicas(spec).items():
        found += [f"{role}: no container pytorch"] * (pod(spec, role)["containers"][0]["name"] != CONTAINER)
        found += [f"{role}: not 1"] * (role == "Master" and count != 1)
    return found


@given(nodes=st.integers(1, 512), ranks=st.integers(1, 8) | st.just("auto"), resources=st.sampled_from([
           {}, {GPU: 1}, {GPU: 8, EFA: 32}]), mounts=st.sampled_from([(), JOB.mounts]),
       settings=st.builds(
           PyTorchJobSettings, clean_pods=st.sampled_from(["None", "Running", "All"]), coordinator=st.booleans(),
           keep_finished_minutes=st.none() | st.integers(0, 10**6), restarts=st.integers(0, 100),
           time_limit_minutes=st.none() | st.integers(1, 10**6), elastic=st.none() | st.just((1, 8)),
           priority=st.none() | st.just("high")).filter(lambda s: not (s.elastic and s.coordinator)))
def test_whatever_is_asked_for_crd_and_webhook_admit_and_it_has_as_many_nodes(
        nodes: int, ranks: Any, resources: dict[str, int], mounts: Any, settings: PyTorchJobSettings) -> None:
    training = dataclasses.replace(JOB, nodes=nodes, processes_per_node=ranks, resources=resources, mounts=mounts)
    made = pytorch_job_spec(training, operator=settings)
    assert problems(made) == []
    assert sum(replicas(made).values()) == nodes + settings.coordinator


def test_a_job_means_what_its_twin_for_the_trainer_means() -> None:
    theirs, ours = train_job_spec("2.1.0", "torch-distributed", JOB), spec_of()
    override, trainer = theirs["podTemplateOverrides"][0], theirs["trainer"]
    for role, replica in ours["pytorchReplicaSpecs"].items():
        [container] = pod(ours, role)["containers"]
        assert (container["image"], container["command"], container["resources"], container["env"]) == (
            trainer["image"], trainer["command"], trainer["resourcesPerNode"], trainer["env"])
        assert container["volumeMounts"] == override["spec"]["containers"][0]["volumeMounts"]
        assert replica["template"]["metadata"] == override["metadata"]
        same = ("nodeSelector", "tolerations", "volumes", "imagePullSecrets")
        assert {key: pod(ours, role)[key] for key in same} == {key: override["spec"][key] for key in same}
    assert sum(replicas(ours).values()) == trainer["numNodes"]


def test_the_operator_gets_the_number_that_it_multiplies_to_the_world_size() -> None:
    for change, says in (({}, "8"), ({"processes_per_node": 4}, "4"), ({"resources": {}}, "auto")):
        assert spec_of(dataclasses.replace(JOB, **change))["nprocPerNode"] == says


def test_a_failed_pod_stays_to_be_read_unless_the_gang_may_start_again() -> None:
    for restarts, policy, more in ((0, "Never", {}), (3, "OnFailure", {"backoffLimit": 3 * 2 + 1})):
        made = spec_of(restarts=restarts)
        assert {r["restartPolicy"] for r in made["pytorchReplicaSpecs"].values()} == {policy}
        assert made["runPolicy"] == {"cleanPodPolicy": "Running", **more}


def test_a_time_limit_ends_the_pods_since_the_operator_does_not_wake_up_for_it() -> None:
    made = spec_of(time_limit_minutes=90)
    assert made["runPolicy"]["activeDeadlineSeconds"] == pod(made, "Worker")["activeDeadlineSeconds"] == 5400


def test_an_elastic_job_has_workers_only_and_what_a_script_of_the_trainer_reads() -> None:
    made = spec_of(elastic=(1, 4), restarts=2)
    assert replicas(made) == {"Worker": 2}
    assert made["elasticPolicy"] == {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 4, "maxRestarts": 2}
    names = [variable["name"] for variable in pod(made, "Worker")["containers"][0]["env"]]
    assert names[:4] == ["PYTORCH_JOB", "PET_MASTER_ADDR", "PET_MASTER_PORT", "PET_NODE_RANK"]
    with pytest.raises(ValueError, match="no Master"):
        spec_of(elastic=(1, 4), coordinator=True)


def test_a_coordinator_has_no_devices_and_every_node_is_a_worker() -> None:
    made = spec_of(coordinator=True)
    assert replicas(made) == {"Master": 1, "Worker": 2}
    [master], [worker] = pod(made, "Master")["containers"], pod(made, "Worker")["containers"]
    assert "resources" not in master and pod(made, "Master")["volumes"] == []
    assert worker["command"][-3:] == list(JOB.command)


@pytest.fixture
def coordinated(tmp_path: Path) -> dict[str, str]:
    """What the operator gives each pod of a coordinated job of two nodes; every name of the job is this host."""
    (tmp_path / "sitecustomize.py").write_text(
        "import socket\nresolve = socket.getaddrinfo\n"
        "socket.getaddrinfo = lambda host, *a, **k: resolve('127.0.0.1' if host.startswith('job-') else host, *a, **k)")
    return os.environ | {"PYTHONPATH": str(tmp_path), "MASTER_ADDR": "job-master-0", "MASTER_PORT": str(free_port()),
                         "PET_NNODES": "3", "PET_NPROC_PER_NODE": "8", "WORLD_SIZE": "24", "PYTHONUNBUFFERED": "1"}


def worker(env: dict[str, str], rank: int, script: str) -> subprocess.Popen[str]:
    command = pytorch_coordinator.worker(("/bin/sh", "-c", script))
    return subprocess.Popen([sys.executable, *command[1:]], env=env | {"RANK": str(rank), "PET_NODE_RANK": str(rank)},
                            stdout=subprocess.PIPE, text=True)


def test_workers_are_numbered_among_themselves_and_the_coordinator_ends_after_them(
        coordinated: dict[str, str]) -> None:
    says = "echo $PET_NODE_RANK $RANK $PET_NNODES $WORLD_SIZE $PET_MASTER_ADDR $MASTER_ADDR job-master-0:29500"
    workers = [worker(coordinated, rank, says) for rank in (1, 2)]
    coordinator = [sys.executable, *pytorch_coordinator.COORDINATOR[1:]]
    subprocess.Popen(coordinator, env=coordinated).kill()  # it may start again at any time: workers tell the next one
    last = subprocess.Popen(coordinator, env=coordinated)
    assert [w.communicate(timeout=30)[0] for w in workers] == [
        f"{i} {i} 2 16 job-worker-0 job-worker-0 job-worker-0:29500\n" for i in (0, 1)]
    assert [p.wait(30) for p in (*workers, last)] == [0, 0, 0]


def test_a_worker_that_fails_fails_at_once_and_hands_on_a_signal(coordinated: dict[str, str]) -> None:
    saves = worker(coordinated, 1, "trap 'echo saved; exit 4' TERM; echo ready; while :; do sleep 0.1; done")
    assert saves.stdout and saves.stdout.readline() == "ready\n"
    saves.terminate()
    assert saves.communicate(timeout=30)[0] == "saved\n" and saves.returncode == 4
