"""A launcher over sshd is asked for the variables that ranks on other pods lack."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import yaml

from tests.support.cases.jobs import JOB
from tests.support.stackfile import Edit, at, planned, without
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.problems import InputWarning
from trainyard.rules.jobs import job_problems

ENV = {"LR": "0.1", "SEED": "1"}


def of_entry(script: str, *more: Edit, kind: str = "mpi", nodes: int = 2) -> list[str]:
    """Warnings of this rule about an entry with checkpoints."""
    edits = (
        at("trainer.own_runtimes.torch-distributed-resilient.kind", kind),
        at(f"{JOB}.script", script),
        at(f"{JOB}.nodes", nodes),
        at(f"{JOB}.env", ENV),
    )
    return [each.text for each in planned(*edits, *more).warnings if "by sshd" in each.text]


def of_file(
    script: str,
    nodes: int = 2,
    runtime: str = "deepspeed-distributed",
    more: Sequence[str] = (),
) -> list[str]:
    """The same about a TrainJob in a file."""
    trainer = {
        "numNodes": nodes,
        "image": "a/b:1",
        "command": ["bash", "-c", script],
        "env": [
            {"name": name, "value": value}
            for name, value in [*ENV.items(), *((each, "") for each in more)]
        ],
    }
    job = {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"name": "a"},
        "spec": {"runtimeRef": {"name": runtime}, "trainer": trainer},
    }
    workloads, _ = read_manifest(yaml.safe_dump(job), "job.yaml")
    said = job_problems(contexts_of(workloads)[0].view)
    return [each.text for each in said if isinstance(each, InputWarning) and "sshd" in each.text]


def test_mpirun_is_asked_for_each_variable_of_the_job() -> None:
    [said] = of_entry("mpirun python t.py")
    assert "starts the ranks on another pod by sshd, without CHECKPOINT_DIR, LR, SEED:" in said
    assert said.endswith("add -x CHECKPOINT_DIR -x LR -x SEED right behind mpirun")
    [said] = of_file("mpirun -np 4 python t.py", nodes=4)
    assert "on other pods by sshd, without LR, SEED:" in said


def test_the_words_that_it_proposes_end_the_warning() -> None:
    assert of_entry("mpirun -x CHECKPOINT_DIR -x LR -x SEED python t.py") == []
    assert of_file("mpirun -x LR -x SEED=1 python t.py") == []
    for beside in ("-x LR", "-x SEED"):
        [said] = of_file(f"mpirun {beside} python t.py")
        assert f"add {({'-x LR', '-x SEED'} - {beside}).pop()} right behind mpirun" in said


def test_deepspeed_is_asked_for_a_file_and_sends_some_by_itself() -> None:
    script = "deepspeed --hostfile /etc/mpi/hostfile t.py"
    [said] = of_entry(script, at(f"{JOB}.env", {"LR": "0.1", "NCCL_DEBUG": "INFO"}))
    assert "without CHECKPOINT_DIR, LR:" in said
    assert (
        "write CHECKPOINT_DIR=$CHECKPOINT_DIR LR=$LR, each on a line, into ~/.deepspeed_env" in said
    )
    assert (
        of_file(f"echo LR=$LR > ~/.deepspeed_env; echo SEED=1 >> ~/.deepspeed_env; {script}") == []
    )


@pytest.mark.parametrize(
    "script",
    [
        "mpirun --mca mca_base_env_list 'LR;SEED;CHECKPOINT_DIR' python t.py",
        "mpirun python t.py --lr $LR --seed ${SEED} --out $CHECKPOINT_DIR",
        "mpirun bash -c 'export LR=1 SEED=1 CHECKPOINT_DIR=/c; python t.py'",
        "mpirun $(env | cut -d= -f1 | sed 's/^/-x /') python t.py",
        "horovodrun -np 16 --hostfile /etc/mpi/hostfile python t.py",
        "source ./mpi.sh; mpirun python t.py",
    ],
)
def test_a_script_that_sends_them_in_its_own_way_is_left_alone(script: str) -> None:
    assert of_entry(script) == []
    assert of_file(script) == []


def test_ranks_beside_the_launcher_have_them() -> None:
    assert of_entry("mpirun python t.py", nodes=1) == []
    assert of_entry("mpirun --host a python t.py", kind="torch") == []
    assert of_file("mpirun --host a python t.py", runtime="torch-distributed") == []


def test_what_is_no_name_of_a_variable_is_left_to_other_rules() -> None:
    assert of_file("mpirun -x LR -x SEED python t.py", more=["A((", "a b", "1"]) == []


def test_a_job_without_variables_lacks_none() -> None:
    bare = (at(f"{JOB}.env", {}), without(f"{JOB}.checkpoints"))
    assert of_entry("mpirun python t.py", *bare) == []
