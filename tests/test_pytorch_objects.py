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

CRD = CHECKOUT / "components/charts/training-operator/files/kubeflow.org_pytorchjobs.yaml"
crds.FILES["PyTorchJob"] = str(CRD)
JOB = Training(
    image="registry/pytorch-fullft:1", command=("/bin/bash", "-c", "torchrun run_full_finetune.py"), nodes=2,
    processes_per_node="auto", resources={GPU: 8, EFA: 32}, node_selector={"trainyard.io/pool": "h100"},
    env={"B": "2", "A": "1"}, secrets={"HUGGING_FACE_HUB_TOKEN": SecretKey(secret="hf-token", key="token")},
    mounts=(Mount(store="scratch", claim="scratch-1", path="/checkpoints", directory="qwen"),
            Mount(store="home", claim="home-1", path="/home")),
    files=("scripts", "/workspace"), host_folders=(HostFolder(name="data", host="/data", path="/data"),),
    local_scratch="/scratch", pull_secrets=("registry",), labels={"team": "vision"}, shared_memory_gib=64)
PLAIN = PyTorchJobSettings()
VARIANTS: dict[str, PyTorchJobSettings] = {
    "plain": PLAIN, "all is said": PyTorchJobSettings(
        clean_pods="All", keep_finished_minutes=60, time_limit_minutes=600, restarts=3, priority="research"),
    "coordinator": PyTorchJobSettings(coordinator=True), "elastic": PyTorchJobSettings(elastic=(1, 4), restarts=2),
    "keeps its pods": PyTorchJobSettings(clean_pods="None", keep_finished_minutes=0)}


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
    for role, replica in spec["pytorchReplicaSpecs"].items():
        containers = replica["template"]["spec"]["containers"]
        found += [f"{role}: no container pytorch"] * (CONTAINER not in [c["name"] for c in containers])
        found += [f"{role}: no image"] * any(not c["image"] for c in containers)
        found += [f"{role}: not 1"] * (role == "Master" and replica["replicas"] != 1)
    return found


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("nodes", [1, 2, 16])
def test_a_job_is_one_that_crd_and_webhook_admit(variant: str, nodes: int) -> None:
    assert problems(pytorch_job_spec(dataclasses.replace(JOB, nodes=nodes), operator=VARIANTS[variant])) == []


@given(training=st.builds(
    Training, image=st.just("image:1"), command=st.tuples(st.text(min_size=1)), nodes=st.integers(1, 512),
    processes_per_node=st.integers(1, 8) | st.just("auto"), node_selector=st.just({"a": "b"}),
    resources=st.sampled_from([{}, {GPU: 1}, {GPU: 8, EFA: 32}]), shared_memory_gib=st.integers(1, 512),
    env=st.dictionaries(st.from_regex(r"[A-Z_]{1,9}", fullmatch=True), st.text()),
    mounts=st.sampled_from([(), JOB.mounts]), pull_secrets=st.sampled_from([(), ("registry",)])),
    settings=st.builds(
        PyTorchJobSettings, clean_pods=st.sampled_from(["None", "Running", "All"]), coordinator=st.booleans(),
        keep_finished_minutes=st.none() | st.integers(0, 10**6), restarts=st.integers(0, 100),
        time_limit_minutes=st.none() | st.integers(1, 10**6), elastic=st.none() | st.just((1, 8)),
        priority=st.none() | st.just("high")).filter(lambda s: not (s.elastic and s.coordinator)))
def test_whatever_is_asked_for_is_admitted_and_has_as_many_nodes(training: Training,
                                                                 settings: PyTorchJobSettings) -> None:
    made = pytorch_job_spec(training, operator=settings)
    assert problems(made) == []
    assert sum(replicas(made).values()) == training.nodes + settings.coordinator


def test_the_first_node_is_the_master_and_a_job_of_one_node_has_no_workers() -> None:
    assert replicas(spec_of()) == {"Master": 1, "Worker": 1}
    assert replicas(spec_of(dataclasses.replace(JOB, nodes=1))) == {"Master": 1}


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


def test_the_operator_gets_a_number_of_processes_where_there_is_one() -> None:
    """WORLD_SIZE is nodes times this, and nodes times 1 where it is no number."""
    assert spec_of()["nprocPerNode"] == "8"
    assert spec_of(dataclasses.replace(JOB, processes_per_node=4))["nprocPerNode"] == "4"
    assert spec_of(dataclasses.replace(JOB, resources={}))["nprocPerNode"] == "auto"


def test_without_restarts_a_failed_pod_stays_to_be_read() -> None:
    """With a backoffLimit the operator deletes all pods when it is reached, before it looks at cleanPodPolicy."""
    made = spec_of()
    assert {r["restartPolicy"] for r in made["pytorchReplicaSpecs"].values()} == {"Never"}
    assert made["runPolicy"] == {"cleanPodPolicy": "Running"}


def test_a_restart_is_counted_for_every_pod_of_the_gang() -> None:
    made = spec_of(restarts=3)
    assert {r["restartPolicy"] for r in made["pytorchReplicaSpecs"].values()} == {"OnFailure"}
    assert made["runPolicy"]["backoffLimit"] == 3 * 2 + 1


def test_a_time_limit_ends_the_pods_since_the_operator_does_not_wake_up_for_it() -> None:
    made = spec_of(time_limit_minutes=90)
    assert made["runPolicy"]["activeDeadlineSeconds"] == 5400
    assert {pod(made, role)["activeDeadlineSeconds"] for role in ("Master", "Worker")} == {5400}


def test_an_elastic_job_has_workers_only_and_what_a_script_of_the_trainer_reads() -> None:
    made = spec_of(elastic=(1, 4), restarts=2)
    assert replicas(made) == {"Worker": 2}
    assert made["elasticPolicy"] == {"rdzvBackend": "c10d", "minReplicas": 1, "maxReplicas": 4, "maxRestarts": 2}
    [container] = pod(made, "Worker")["containers"]
    assert [e["name"] for e in container["env"]][:4] == ["PYTORCH_JOB", "PET_MASTER_ADDR", "PET_MASTER_PORT",
                                                         "PET_NODE_RANK"]
    with pytest.raises(ValueError, match="no Master"):
        spec_of(elastic=(1, 4), coordinator=True)


def test_a_coordinator_has_no_devices_and_every_node_is_a_worker() -> None:
    made = spec_of(coordinator=True)
    assert replicas(made) == {"Master": 1, "Worker": 2}
    [master], [worker] = pod(made, "Master")["containers"], pod(made, "Worker")["containers"]
    assert "resources" not in master and pod(made, "Master")["volumes"] == []
    assert worker["command"][-3:] == list(JOB.command) and worker["resources"]["limits"][GPU] == "8"


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


def coordinator(env: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, *pytorch_coordinator.COORDINATOR[1:]], env=env, stdout=subprocess.PIPE,
                            text=True)


def test_workers_are_numbered_among_themselves_and_the_coordinator_ends_after_them(
        coordinated: dict[str, str]) -> None:
    says = "echo $PET_NODE_RANK $RANK $PET_NNODES $WORLD_SIZE $PET_MASTER_ADDR $MASTER_ADDR job-master-0:29500"
    workers = [worker(coordinated, rank, says) for rank in (1, 2)]
    first = coordinator(coordinated)
    first.kill()  # it may be restarted at any time: the workers tell the next one
    first.wait()
    last = coordinator(coordinated)
    assert [w.communicate(timeout=30)[0] for w in workers] == [
        f"{i} {i} 2 16 job-worker-0 job-worker-0 job-worker-0:29500\n" for i in (0, 1)]
    assert [p.wait(30) for p in (*workers, last)] == [0, 0, 0]


def test_a_worker_that_fails_fails_at_once_and_hands_on_a_signal(coordinated: dict[str, str]) -> None:
    assert worker(coordinated, 1, "exit 3").wait(30) == 3
    saves = worker(coordinated, 1, "trap 'echo saved; exit 4' TERM; echo ready; while :; do sleep 0.1; done")
    assert saves.stdout and saves.stdout.readline() == "ready\n"
    saves.terminate()
    assert saves.communicate(timeout=30)[0] == "saved\n" and saves.returncode == 4
