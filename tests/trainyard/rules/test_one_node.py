"""A rank or an address that nobody sets is judged by its default: with that of one node each pod of a
gang trains alone, and all save over each other."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from tests.support.stackfile import at, planned
from tests.trainyard.rules.test_jobs import JOB, SCRIPT, of_entry, of_file
from trainyard.manifests.context import contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.problems import InputError, InputWarning
from trainyard.rules.jobs import job_problems

MEET = "torchrun --nnodes=2 --node_rank={} --master_addr={} t.py"
ALONE = {
    "options": MEET.format("${RANK:-0}", "${MASTER_ADDR:-localhost}"),
    "quoted": MEET.format('"${NODE_RANK:-0}"', "$PET_MASTER_ADDR"),
    "without a colon": MEET.format("$PET_NODE_RANK", "${MASTER_ADDR-127.0.0.1}"),
    "the default of another variable": MEET.format("${RANK:-${NODE_RANK:-0}}", "$PET_MASTER_ADDR"),
    "nodes": "torchrun --nnodes=${WORLD_SIZE:-1} t.py",
    "assigned to itself": "export RANK=${RANK:-0}\n" + MEET.format("$RANK", "$PET_MASTER_ADDR"),
    "assigned where it is missing": ': "${RANK:=0}"\n' + MEET.format("$RANK", "$PET_MASTER_ADDR"),
    "through another variable": "N=${RANK:-0}\n" + MEET.format("$N", "$PET_MASTER_ADDR"),
    "in a list of options": 'O="--node_rank ${RANK:-0}"\ntorchrun $O t.py',
    "over lines": "torchrun \\\n  --nnodes=2 \\\n  --node_rank=${RANK:-0} \\\n  t.py",
    "no torchrun": "export RANK=${RANK:-0} WORLD_SIZE=${WORLD_SIZE:-1}\npython t.py",
    "in a file of another launcher": (
        "cat > c.yaml <<EOF\nmachine_rank: ${RANK:-0}\nEOF\naccelerate launch --config_file c.yaml t.py"
    ),
    "written line by line": "echo machine_rank: ${RANK:-0} > c.yaml\naccelerate launch t.py",
    "behind conda": "source /opt/conda/bin/activate a\n" + MEET.format("${RANK:-0}", "a"),
}
SOUND = {
    "what the Trainer sets": MEET.format("${PET_NODE_RANK:-0}", "${PET_MASTER_ADDR:-localhost}"),
    "a default that the Trainer sets": MEET.format(
        "${RANK:-$PET_NODE_RANK}", "${MASTER_ADDR:-${PET_MASTER_ADDR}}"
    ),
    "set before": "RANK=$PET_NODE_RANK\n" + MEET.format("${RANK:-0}", "$PET_MASTER_ADDR"),
    "set by its own default": "RANK=${RANK:-$PET_NODE_RANK}\ntorchrun --node_rank=${RANK:-0} t.py",
    "read before": "read -r RANK MASTER_ADDR < /etc/pod\n"
    + MEET.format("${RANK:-0}", "${MASTER_ADDR:-localhost}"),
    "perhaps set in another file": ". ./cluster.env\n" + MEET.format("${RANK:-0}", "$HEAD"),
    "the right number of nodes": "torchrun --nnodes=${NNODES:-2} t.py",
    "a port": "torchrun --master_port=${MASTER_PORT:-29500} t.py",
    "the only process of its node": "torchrun t.py --first=${LOCAL_RANK:-0}",
    "for people": 'echo "node ${RANK:-0} of ${WORLD_SIZE:-1}"; torchrun t.py',
    "no start goes by it": ': "${WORLD_SIZE:=1}"\ntorchrun t.py 2>&1 | tee log_${RANK:-0}.txt',
    "a comment": "# --node_rank=${RANK:-0}\ntorchrun t.py",
    "in a process of torchrun": "torchrun --no-python bash -c 'A=${RANK:-0}; python t.py'",
    "escaped for one": 'torchrun --no-python bash -c "A=\\${RANK:-0}; python t.py"',
    "in a script for one": "cat > w.sh <<'EOF'\nexport A=${RANK:-0}\nEOF\ntorchrun --no-python ./w.sh",
}
TOLD = {
    "a test": '[ "${RANK:-0}" = 0 ] && python download.py\ntorchrun t.py',
    "a condition": "if [[ ${WORLD_SIZE:-1} -eq 1 ]]; then pip list; fi\ntorchrun t.py",
}
ERROR, WARNING = (
    "not go on with a default where Trainer 2.1.0 sets no",
    "is the same on all 2 nodes",
)


@pytest.mark.parametrize("case", ALONE)
def test_a_default_of_one_node_is_refused(case: str) -> None:
    for said in (of_entry(ALONE[case]), of_file(ALONE[case])):
        assert len([words for words in said if ERROR in words]) == 1, said


@pytest.mark.parametrize("case", ALONE)
def test_on_one_node_it_is_right(case: str) -> None:
    for said in (of_entry(ALONE[case], nodes=1), of_file(ALONE[case], nodes=1)):
        assert not [words for words in said if ERROR in words or WARNING in words], said


@pytest.mark.parametrize("case", SOUND)
def test_what_is_set_or_means_nothing_is_no_fault(case: str) -> None:
    for said in (of_entry(SOUND[case]), of_file(SOUND[case])):
        assert not [words for words in said if ERROR in words or "is the same on" in words], said


def test_what_the_job_sets_is_set() -> None:
    options = ALONE["options"]
    for said in (
        of_entry(options, RANK="1", MASTER_ADDR="head"),
        of_file(options, RANK="1", MASTER_ADDR="head"),
    ):
        assert not [words for words in said if ERROR in words], said


@pytest.mark.parametrize("case", TOLD)
def test_what_is_only_asked_is_a_warning(case: str) -> None:
    for said in (of_entry(TOLD[case]), of_file(TOLD[case])):
        assert len([words for words in said if WARNING in words]) == 1, said


def _pytorch_job(roles: dict[str, int], script: str) -> list[InputError | InputWarning]:
    container = {
        "name": "pytorch",
        "image": "a/b:1",
        "command": ["bash", "-c", script],
        "resources": {"limits": {"nvidia.com/gpu": 8}},
    }
    pod: dict[str, Any] = {"template": {"spec": {"containers": [container]}}}
    body = {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {"name": "a"},
        "spec": {
            "pytorchReplicaSpecs": {role: {"replicas": n, **pod} for role, n in roles.items()}
        },
    }
    workloads, _ = read_manifest(yaml.safe_dump(body), "job.yaml")
    problems = job_problems(contexts_of(workloads)[0].view)
    return [each for each in problems if "sets no" in str(each)]


def test_a_master_has_the_operator_set_them() -> None:
    assert _pytorch_job({"Master": 1, "Worker": 1}, ALONE["options"]) == []
    [error] = _pytorch_job({"Worker": 2}, ALONE["options"])
    assert str(error).endswith(
        "must not go on with a default where training-operator v1.8.1 sets no RANK, MASTER_ADDR: each"
        " of 2 nodes would be the first of its own, and all would save over each other; got"
        " ${RANK:-0}, ${MASTER_ADDR:-localhost}. Fix: add a Master, with which the operator sets RANK,"
        " WORLD_SIZE and MASTER_ADDR"
    )


PYTHON = "rank = int(os.environ.get({}, 0))\nworld = os.getenv('WORLD_SIZE', '1')\n".format(
    '"RANK"'
)
HEREDOC = f"cat > t.py <<'EOF'\nimport os\n{PYTHON}EOF\n"


@pytest.mark.parametrize(
    ("script", "judged"),
    [
        (HEREDOC + "python t.py", True),
        ("import os\n" + PYTHON, True),
        (HEREDOC + "torchrun --nnodes=2 t.py", False),
        (HEREDOC + "export RANK=1 WORLD_SIZE=2\npython t.py", False),
        (
            HEREDOC.replace("rank =", "os.environ['RANK'] = os.environ['WORLD_SIZE'] = 1; r ="),
            False,
        ),
        ("# " + PYTHON.replace("\n", "\n# ") + "\npython t.py", False),
        (HEREDOC.replace(", 0)", ", -1)").replace("'1'", "'2'") + "python t.py", False),
    ],
)
def test_a_default_in_python_is_judged_where_nothing_starts_ranks(
    script: str, judged: bool
) -> None:
    told = _pytorch_job({"Worker": 2}, script)
    assert bool(told) is judged, told
    assert not told or "sets no RANK, WORLD_SIZE: each of 2 nodes" in str(told[0])
    assert _pytorch_job({"Master": 1, "Worker": 1}, script) == []
    assert _pytorch_job({"Worker": 1}, script) == []


def test_the_way_out_of_a_default_in_python_is_python() -> None:
    view = planned(at(SCRIPT, HEREDOC + "python t.py"), at(f"{JOB}.nodes", 2))
    [error] = [each for each in view.errors if "sets no" in each.must]
    assert error.fix.startswith(
        'write os.environ["PET_NODE_RANK"] for os.environ.get("RANK", 0), os.environ["PET_NNODES"] for'
    )


def test_the_way_out_names_what_the_trainer_sets() -> None:
    job = yaml.safe_dump(
        {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": "a"},
            "spec": {
                "runtimeRef": {"name": "torch-distributed"},
                "trainer": {"numNodes": 2, "command": ["bash", "-c", ALONE["options"]]},
            },
        }
    )
    workloads, _ = read_manifest(job, "job.yaml")
    [error] = [
        each for each in job_problems(contexts_of(workloads)[0].view) if "sets no" in str(each)
    ]
    assert str(error).endswith(
        "Fix: write ${PET_NODE_RANK} for ${RANK:-0}, ${PET_MASTER_ADDR} for ${MASTER_ADDR:-localhost}"
    )
