"""Settings that no other world has: a runtime of `kind: cpu`, an elastic job, Lustre of SCRATCH_2 and
one whose size follows from a model."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from rehearsal import world
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [
    pytest.mark.world,
    pytest.mark.soak,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]
PREPARE, TRAIN, GROWS = "prepare", "train", "grows"
MODEL = {"parameters_billion": 8, "nodes": 2}
SCRIPT = (
    "echo rank $JOB_COMPLETION_INDEX wrote > /scratch/$JOB_COMPLETION_INDEX.txt; cat /scratch/*.txt"
)


def _stack() -> Object:
    prepare: Object = {
        "runtime": "plain",
        "nodes": 2,
        "pool": "cpus",
        "image": "python:3.13",
        "script": SCRIPT,
        "processes_per_node": 1,
        "allow_no_checkpoint": True,
        "storage": {"scratch": {"path": "/scratch"}},
    }
    train: Object = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "script": "touch x.py; torchrun --nproc_per_node=1 x.py",
        "checkpoints": {"store": "checkpoints", "directory": TRAIN},
        "env": {"TRAINYARD_STEPS": "6"},
    }
    grows: Object = {
        **train,
        "nodes": 2,
        "script": ELASTIC,
        "checkpoints": {"store": "checkpoints", "directory": GROWS},
        "pytorch_job": {"clean_pods": "none"},
        "elastic": {"min_nodes": 1, "max_nodes": 2},
    }
    del grows["runtime"]
    stack = with_l4(
        max_nodes=3,
        storage={
            "scratch": {
                "data": "delete",
                "lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"},
            },
            "checkpoints": {"data": "delete", "lustre": {"for_model": MODEL}},
        },
        training_operator={"version": "1.8.1"},
        jobs={PREPARE: prepare, TRAIN: train, GROWS: grows},
    )
    environment = stack["trainyard:environment"]
    environment["pools"]["cpus"] = {"instance_types": ["m7i.4xlarge"], "max_nodes": 2}
    environment["trainer"]["own_runtimes"] = {"plain": {"kind": "cpu", "image": "python:3.13"}}
    return stack


ELASTIC = "touch x.py; torchrun --nproc_per_node=1 x.py"
"""All else is in variables that the operator sets from elasticPolicy."""


@pytest.fixture(scope="module")
def trial() -> Iterator[Harness]:
    file = yaml.safe_dump({"config": _stack()})
    with rehearsing("settings", {"Pulumi.settings.yaml": file}) as made:
        assert made.do("up", "--stack", "settings") == 0, made.log.read_text()
        yield made


def test_a_runtime_without_gpus_runs_its_pods_on_nodes_without_gpus(trial: Harness) -> None:
    assert trial.condition(PREPARE) == "Complete"
    pods = "-n training -l jobset.sigs.k8s.io/jobset-name=prepare"
    said = trial.shell(f"kubectl logs {pods} --tail=-1")
    assert "rank 0 wrote" in said and "rank 1 wrote" in said
    names = {pod["spec"]["nodeName"] for pod in trial.get(f"pods {pods}")["items"]}
    types = {
        trial.get(f"node {name}")["metadata"]["labels"]["node.kubernetes.io/instance-type"]
        for name in names
    }
    assert types == {"m7i.4xlarge"}


def test_an_elastic_job_runs_with_all_the_nodes_that_come_in_time(trial: Harness) -> None:
    job = trial.get(f"pytorchjob {GROWS} -n training")
    assert [c["type"] for c in job["status"]["conditions"] if c["status"] == "True"][
        -1
    ] == "Succeeded"
    logs = "kubectl logs -n training -l training.kubeflow.org/job-name=grows --tail=-1"
    assert "[rank 1/2]" in trial.shell(logs)


def test_a_store_whose_size_follows_from_a_model_holds_its_checkpoints(trial: Harness) -> None:
    assert trial.condition(TRAIN) == "Complete"
    systems = trial.aws("fsx").describe_file_systems()["FileSystems"]
    kinds = {one["LustreConfiguration"]["DeploymentType"]: one for one in systems}
    assert set(kinds) == {"SCRATCH_2", "PERSISTENT_2"}
    assert kinds["PERSISTENT_2"]["LustreConfiguration"]["PerUnitStorageThroughput"] >= 125


def test_nothing_changes_after_that(trial: Harness) -> None:
    trial.shell("pulumi preview --non-interactive --expect-no-changes --refresh")
