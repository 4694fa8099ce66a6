"""What is said about an entry on a runtime that is not for torch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases.environment import JOB
from tests.support.stackfile import Edit, at, planned, without

OWN = "trainer.own_runtimes.torch-distributed-resilient"
DEEPSPEED = "ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.1.0"
UPSTREAM = (without(f"{JOB}.checkpoints"), at(f"{JOB}.script", "mpirun python t.py"))


def refused(setting: str, *edits: Edit) -> list[str]:
    """Errors at a setting of the job."""
    path = f"environment.{JOB}.{setting}"
    return [str(each) for each in planned(*edits).errors if each.path == path]


def of_upstream(runtime: str, *more: Edit, **settings: Any) -> tuple[Edit, ...]:
    """The dev file's job on a runtime of upstream's."""
    job = {"runtime": runtime, "image": DEEPSPEED} | settings
    return (*UPSTREAM, *(at(f"{JOB}.{name}", value) for name, value in job.items()), *more)


@pytest.mark.parametrize("runtime", ["deepspeed-distributed", "mlx-distributed"])
def test_one_node_with_mpi_is_refused_since_it_takes_two(runtime: str) -> None:
    [error] = refused("nodes", *of_upstream(runtime, nodes=1))
    assert f"be 2 or more on {runtime}: with MPI" in error
    assert error.endswith("got 1. Fix: write 2, or use a torch runtime")
    assert refused("nodes", *of_upstream(runtime, nodes=2)) == []


def test_one_node_of_torch_is_one_pod() -> None:
    assert refused("nodes", at(f"{JOB}.nodes", 1)) == []
    assert refused("nodes", at(f"{JOB}.nodes", 1), at(f"{OWN}.kind", "cpu")) == []


def test_one_cpu_node_with_mpi_is_refused_too() -> None:
    cpus = {"instance_types": ["m7i.4xlarge"], "max_nodes": 3}
    edits = (at("pools.cpus", cpus), at(f"{JOB}.pool", "cpus"), at(f"{JOB}.nodes", 1))
    [error] = refused("nodes", *edits, at(f"{OWN}.kind", "mpi"))
    assert "one node takes two" in error


def other_images(*edits: Edit) -> list[str]:
    """Warnings about an image that the other pods of a job do not have."""
    path = f"environment.{JOB}.image"
    found = [each.text for each in planned(*edits).warnings if each.path == path]
    return [each for each in found if "of the launcher only" in each]


def test_an_own_image_on_an_upstream_runtime_for_mpi_is_a_warning() -> None:
    [said] = other_images(*of_upstream("deepspeed-distributed", image="registry/own:1"))
    assert said == (
        f"on deepspeed-distributed a job replaces the image of the launcher only: the other pods run {DEEPSPEED}, and"
        " their ranks fail on what only registry/own:1 has; write mpi: {kind: mpi, image: registry/own:1,"
        " max_restarts: 0} under environment.trainer.own_runtimes and write runtime: mpi"
    )
    [said] = other_images(*of_upstream("mlx-distributed"))
    assert f"the other pods run {DEEPSPEED.replace('deepspeed', 'mlx')}" in said


def test_the_warning_names_a_runtime_that_is_there_or_a_free_name() -> None:
    other = {"kind": "mpi", "image": "registry/other:1"}
    edits = of_upstream("deepspeed-distributed", image="registry/own:1")
    [said] = other_images(*edits, at("trainer.own_runtimes.mpi", other))
    assert "write mpi-2: {kind: mpi, image: registry/own:1, max_restarts: 0} under" in said
    there = at("trainer.own_runtimes.ours", {**other, "image": "registry/own:1"})
    [said] = other_images(*edits, there)
    assert said.endswith("; write runtime: ours")
    assert other_images(*edits, there, at(f"{JOB}.runtime", "ours")) == []


@pytest.mark.parametrize(
    "image",
    [
        DEEPSPEED,
        "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/copies/deepspeed-runtime:v2.1.0",
        f"ghcr.io/kubeflow/trainer/deepspeed-runtime@sha256:{'a' * 64}",
    ],
)
def test_a_copy_of_the_image_of_an_upstream_runtime_is_taken(image: str) -> None:
    assert other_images(*of_upstream("deepspeed-distributed", image=image)) == []


def test_a_torch_runtime_of_upstream_takes_any_image() -> None:
    edits = of_upstream("torch-distributed", image="registry/own:1", script="torchrun t.py")
    assert other_images(*edits) == []


OWN_MPI = (at(f"{OWN}.kind", "mpi"), at(f"{JOB}.script", "mpirun -x CHECKPOINT_DIR python t.py"))


def unwritable(*edits: Edit) -> list[str]:
    """Warnings about directories that the user of MPI's pods cannot write to."""
    return [str(each) for each in planned(*edits).warnings if "user 1000" in each.text]


def test_a_directory_that_mpi_cannot_write_to_is_a_warning() -> None:
    [said] = unwritable(*OWN_MPI)
    assert said == (
        "environment.jobs.t5-large.checkpoints: with MPI the pods run as user 1000, who cannot write to t5-large of"
        " store scratch: what is new there belongs to root, and fsGroup changes nothing; let a job that runs as root"
        " and mounts the store make it first (install -d -o 1000 <its path>/t5-large), which keeps its owner"
    )
    whole = at(f"{JOB}.storage", {"home": {"path": "/home/me"}})
    events = at(f"{JOB}.tensorboard", {"store": "home", "directory": "events"})
    said = unwritable(
        *OWN_MPI, without(f"{JOB}.checkpoints"), whole, events, at(f"{OWN}.max_restarts", 0)
    )
    assert [each.partition(": ")[0] for each in said] == [
        "environment.jobs.t5-large.tensorboard",
        "environment.jobs.t5-large.storage.home",
    ]
    assert "cannot write to the root of store home" in said[1]
    assert "(install -d -o 1000 <its path>/t5-large), and write below it" in said[1]


def test_torch_runs_as_root_and_writes_everywhere() -> None:
    assert unwritable() == []
    assert unwritable(at(f"{JOB}.storage", {"home": {"path": "/home/me"}})) == []


def test_a_bucket_has_no_owners() -> None:
    bucket = at("storage.bucket", {"s3": {"writable": True}, "data": "delete"})
    saved = at(f"{JOB}.checkpoints.store", "bucket")
    assert unwritable(*OWN_MPI, bucket, saved) == []


def test_a_job_that_makes_the_directory_ends_the_warning() -> None:
    makes: dict[str, Any] = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "g6e",
        "image": "a/b:1",
        "storage": {"scratch": {"path": "/scratch"}},
        "allow_no_checkpoint": True,
        "script": "install -d -o 1000 /scratch/t5-large",
    }
    assert unwritable(*OWN_MPI, at("jobs.makes", makes)) == []
    makes["script"] = "ls /scratch"
    assert len(unwritable(*OWN_MPI, at("jobs.makes", makes))) == 1


def of_newer(runtime: str, **settings: Any) -> tuple[Edit, ...]:
    """The dev file's job on a runtime that the Trainer has since 2.3."""
    newer = (at("trainer.version", "2.3.0"), at("trainer.runtimes", [runtime]))
    job = {"image": "a/b:1", "script": "python t.py"} | settings
    return (*newer, *of_upstream(runtime, **job))


def said(*edits: Edit) -> list[str]:
    """Warnings about the GPUs of the job."""
    path = f"environment.{JOB}.gpus_per_node"
    return [each.text for each in planned(*edits).warnings if each.path == path]


def test_workers_of_xgboost_that_nobody_starts_are_a_warning() -> None:
    [text] = said(*of_newer("xgboost-distributed"))
    assert "a worker for each of the 8 GPUs of a pod (DMLC_NUM_WORKER is 16)" in text
    assert text.endswith("waits for ever; write 1, and as many nodes as workers")
    assert said(*of_newer("xgboost-distributed", gpus_per_node=1)) == []
    assert said(*of_newer("jax-distributed")) == []


@pytest.mark.parametrize(
    ("runtime", "variable", "is_refused"),
    [
        ("xgboost-distributed", "DMLC_NUM_WORKER", True),
        ("xgboost-distributed", "PET_NNODES", False),
        ("jax-distributed", "JAX_PROCESS_ID", False),
        ("jax-distributed", "PET_NNODES", False),
        ("deepspeed-distributed", "OMPI_MCA_orte_set_default_slots", True),
        ("torch-distributed", "PET_NNODES", True),
        ("torch-distributed", "DMLC_NUM_WORKER", False),
    ],
)
def test_each_policy_reserves_variables_of_its_own(
    runtime: str, variable: str, is_refused: bool
) -> None:
    found = refused(f"env.{variable}", *of_newer(runtime, env={variable: "2"}))
    assert [each for each in found if "its webhook refuses the job" in each][:1] == found
    assert bool(found) == is_refused


def test_the_trainer_2_1_takes_variables_of_mpi() -> None:
    variable = "OMPI_MCA_orte_set_default_slots"
    edits = of_upstream("deepspeed-distributed", env={variable: "2"})
    assert refused(f"env.{variable}", *edits) == []


def test_an_own_runtime_for_mpi_sets_no_variable_that_the_trainer_replaces() -> None:
    def refused_there(kind: str, variable: str) -> bool:
        edits = (at(f"{OWN}.kind", kind), at(f"{OWN}.env", {variable: "2"}))
        path = f"environment.{OWN}.env.{variable}"
        return any(each.path == path for each in planned(*edits).errors)

    assert refused_there("mpi", "OMPI_MCA_plm_rsh_args") and refused_there("torch", "PET_NNODES")
    assert not refused_there("torch", "OMPI_MCA_plm_rsh_args")


@pytest.mark.parametrize("runtime", ["jax-distributed", "xgboost-distributed"])
def test_torchrun_on_a_runtime_without_torch_is_refused(runtime: str) -> None:
    runs = (without(f"{JOB}.script"), at(f"{JOB}.torchrun", {"script": "/app/t.py"}))
    [error] = refused("torchrun", *of_newer(runtime), *runs)
    assert f"not be set on {runtime}: the Trainer sets no PET_* variables there" in error
    assert error.endswith("Fix: use a torch runtime")
    assert refused("torchrun", *of_newer("torch-distributed"), *runs) == []
    assert len(refused("torchrun", *OWN_MPI, *runs)) == 1


@pytest.mark.parametrize(
    ("runtime", "fix"),
    [
        ("jax-distributed", "use JAX_COORDINATOR_ADDRESS, JAX_PROCESS_ID, JAX_NUM_PROCESSES"),
        (
            "xgboost-distributed",
            "use DMLC_TRACKER_URI, DMLC_TRACKER_PORT, DMLC_TASK_ID, DMLC_NUM_WORKER",
        ),
        (
            "deepspeed-distributed",
            "use OMPI_COMM_WORLD_RANK, OMPI_COMM_WORLD_SIZE in the ranks that mpirun starts",
        ),
    ],
)
def test_variables_of_torch_on_another_runtime_are_refused(runtime: str, fix: str) -> None:
    script = "torchrun --nnodes=$PET_NNODES --node_rank=$PET_NODE_RANK t.py"
    [error] = [
        each
        for each in refused("script", *of_newer(runtime, script=script))
        if "use variables that Trainer 2.3.0 provides" in each
    ]
    assert "got PET_NNODES, PET_NODE_RANK" in error
    assert error.endswith(f"Fix: {fix}, or use a torch runtime")


def test_variables_of_another_runtime_are_known_there() -> None:
    for runtime, name in (
        ("jax-distributed", "JAX_PROCESS_ID"),
        ("xgboost-distributed", "DMLC_TASK_ID"),
    ):
        script = f"python t.py --rank=${name}"
        found = planned(*of_newer(runtime, script=script, gpus_per_node=1))
        texts = [*map(str, found.errors), *map(str, found.warnings)]
        assert [each for each in texts if name in each] == []


@pytest.mark.parametrize(
    "script", ["export PET_NNODES=2; python t.py $PET_NNODES", "python t.py ${PET_NNODES:-1}"]
)
def test_a_script_that_sets_them_itself_is_left_alone(script: str) -> None:
    for runtime in ("jax-distributed", "deepspeed-distributed"):
        edits = of_newer(runtime, script=script)
        assert [each for each in refused("script", *edits) if "provides" in each] == []
