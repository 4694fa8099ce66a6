"""The same job gets the same sentences, whoever writes it: an entry of a stack file, a PyTorchJob entry, a file
with a TrainJob and its runtime, a file with a PyTorchJob. Where they differ, a table says why."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.corpus.test_placeholders import release_of, texts
from tests.support.three_ways import ENDPOINT, WAYS, Described
from trainyard.manifests.context import ManifestContext, contexts_of
from trainyard.manifests.document import read_manifest
from trainyard.problems import InputError, Problem

JOB = Described()
TORCHRUN = f"torchrun {ENDPOINT}"
TOKEN = "hf_" + "aBcDe" * 6 + "fGhI"
CASES: dict[str, Described] = {
    "sound": JOB,
    "with restarts": JOB.but(restarts=3),
    "one node": JOB.but(nodes=1, script="torchrun /app/train.py"),
    "an interface of the node": JOB.but(env={"NCCL_SOCKET_IFNAME": "ens5"}),
    "MPI's interface": JOB.but(env={"OMPI_MCA_btl_tcp_if_include": "ens5"}),
    "a variable of InfiniBand": JOB.but(env={"NCCL_IB_DISABLE": "0"}),
    "GPUs by hand": JOB.but(gpus=4, memory_gib=300, env={"NVIDIA_VISIBLE_DEVICES": "all"}),
    "a variable of the controller": JOB.but(env={"PET_NNODES": "2"}),
    "a variable of torchrun": JOB.but(env={"RANK": "0"}),
    "libraries without EFA": JOB.but(env={"LD_LIBRARY_PATH": "/usr/local/lib"}),
    "a token in clear": JOB.but(env={"HF_TOKEN": TOKEN}),
    "a placeholder in a variable": JOB.but(env={"LR": "<LR>"}),
    "a tag that moves": JOB.but(image="registry.example.com/train:latest"),
    "no tag": JOB.but(image="registry.example.com/train"),
    "an image that is none": JOB.but(image="Registry.example.com/Train:1"),
    "too many ranks": JOB.but(ranks=9),
    "too few ranks": JOB.but(ranks=4),
    "too many processes": JOB.but(script=f"{TORCHRUN} --nproc_per_node=16 t.py"),
    "too few processes": JOB.but(script=f"{TORCHRUN} --nproc_per_node=4 t.py"),
    "another number of nodes": JOB.but(script=f"{TORCHRUN} --nnodes=3 t.py"),
    "one rank for all": JOB.but(
        script="torchrun --node_rank=0 --nnodes=2 --master_addr=$PET_MASTER_ADDR t.py"
    ),
    "no endpoint": JOB.but(script="torchrun --rdzv_backend=c10d t.py"),
    "no launcher": JOB.but(script="python t.py"),
    "variables of the operator": JOB.but(script="python t.py $RANK $MASTER_ADDR"),
    "at home by default": JOB.but(
        script="torchrun --nnodes=2 --node_rank=${RANK:-0} --master_addr=${MASTER_ADDR:-localhost} t.py"
    ),
    "short patience": JOB.but(script=f"{TORCHRUN} --rdzv_conf=join_timeout=60 t.py"),
    "a relative directory": JOB.but(restarts=3, script=f"{TORCHRUN} t.py --output_dir ./out"),
    "a directory of the pod": JOB.but(script=f"{TORCHRUN} t.py --output_dir /tmp/out"),
    "restarts from nothing": JOB.but(restarts=3, mounts={}),
    "a variable that nobody sets": JOB.but(script=f"{TORCHRUN} t.py --lr=$LR_X"),
    "a variable that the job sets": JOB.but(script=f"{TORCHRUN} t.py $LR_X", env={"LR_X": "1"}),
    "a placeholder in the script": JOB.but(script=f"{TORCHRUN} t.py --lr=<LR>"),
    "only a comment": JOB.but(script="# torchrun t.py\n"),
    "a blank behind a backslash": JOB.but(script=f"{TORCHRUN} \\ \n t.py"),
    "no end of an if": JOB.but(script="if true; then torchrun t.py"),
    "lines of Windows": JOB.but(script=f"{TORCHRUN} t.py\r\n"),
    "a clone of the newest": JOB.but(script=f"git clone https://github.com/a/b && {TORCHRUN} t.py"),
    "packages at each start": JOB.but(script=f"pip install foo && {TORCHRUN} t.py"),
    "all memory shared": JOB.but(shared_memory_gib=700),
    "more memory than a node": JOB.but(memory_gib=5000),
    "more vCPUs than a node": JOB.but(cpus=1000),
    "a part of a node": JOB.but(gpus=4, memory_gib=300),
    "more nodes than the pool": JOB.but(nodes=9),
    "grows past the pool": JOB.but(elastic=True, nodes=2, most_nodes=9),
    "a queue that is not there": JOB.but(labels={"kueue.x-k8s.io/queue-name": "x"}),
    "a label that is none": JOB.but(labels={"a b": "x"}),
    "a value of a label that is none": JOB.but(labels={"a": "x y"}),
    "a name of a variable that is none": JOB.but(env={"A B": "x"}),
    "over the programs of the image": JOB.but(mounts={"scratch": "/usr"}),
    "over shared memory": JOB.but(mounts={"scratch": "/dev/shm"}),
}
ENTRIES, FILES = WAYS[:2], WAYS[2:]
TRAIN_JOBS, PYTORCH_JOBS = WAYS[::2], WAYS[1::2]
DIFFERENT: tuple[tuple[str, tuple[str, ...], str], ...] = (
    ("has no GPUDirect RDMA", ENTRIES, "an entry turns it off by allow_slow_fabric, a file cannot"),
    ("a tag can change; a digest", ENTRIES, "what people bring is held to less: latest only"),
    ("must have a tag", ENTRIES, "an entry names a tag; Kubernetes takes latest for none"),
    ("the tag latest", FILES, "the image without a tag, which is an error of an entry"),
    ("not be a variable that the Trainer sets", TRAIN_JOBS, "the Trainer's webhook refuses it"),
    ("because of set -u; write it into secrets", ENTRIES, "the place of a secret in an entry"),
    ("because of set -u; write it into env, with valueFrom", FILES, "the same in a file"),
    ("writes PET_NNODES behind", PYTORCH_JOBS, "the operator takes it, and writes its own behind"),
    (
        "ends this elastic job",
        PYTORCH_JOBS[:1],
        "the torchrun of a file has its own --max_restarts",
    ),
    ("transformers makes a folder", ENTRIES, "of most programs of a file nobody knows it"),
    ("nodes of pool g6e", PYTORCH_JOBS, "no TrainJob is elastic"),
    ("must use variables that", TRAIN_JOBS, "the operator sets them, the Trainer does not"),
    ("must use variables that", PYTORCH_JOBS, "a variable of neither: each proposes its own"),
    (
        "starts without torchrun",
        TRAIN_JOBS,
        "the operator sets ranks for programs without torchrun",
    ),
    ("get a process, unless", PYTORCH_JOBS, "said of TrainJobs by the sentence about torchrun"),
    ("go on with a default where", TRAIN_JOBS, "the operator sets RANK and MASTER_ADDR"),
    ("restarts begin at step 0", FILES, "an entry must have checkpoints, or allow_no_checkpoint"),
    ("and name the Secret in the job", ENTRIES, "an entry has secrets"),
    ("and read it by env", FILES, "an object has valueFrom"),
    ("GPUs of a pod; got 9. Fix: write 8", WAYS[:3], "a number"),
    ('GPUs of a pod; got 9. Fix: write "8"', WAYS[3:], "nprocPerNode is text"),
    ("be the name of a variable", ENTRIES, "the API server takes any text since Kubernetes 1.32"),
    ("be a path of one volume only", FILES, "one mount in words of a file"),
    ("has for pods: /dev/shm", ENTRIES, "a container in a file has a limit of its own"),
    ("as the pod has", ENTRIES, "the same of a memory_gib that it sets"),
    ("as the container has", FILES, "the same of the container's limit"),
    ("be a path of its own", ENTRIES, "the same in words of settings"),
    (
        "not take WORLD_SIZE for the number of nodes",
        ("PyTorchJob entry",),
        "an entry says how many processes a pod has, and this file does not",
    ),
    ("the nodes meet at", ("entry",), "the way out names the pods of the kind"),
    ("the nodes meet at", ("PyTorchJob entry",), "the same"),
    ("the nodes meet at", ("TrainJob file",), "the same, and the namespace"),
    ("the nodes meet at", ("PyTorchJob file",), "the same"),
)
"""Words of a problem, the ways of writing a job that get it, and why the others do not."""


def _plain(problem: Problem) -> str:
    """A problem without its place, and without what differs by name or unit only."""
    text = str(problem).partition(": ")[2]
    if isinstance(problem, InputError):
        text = f"must {problem.must}; got {problem.got}. Fix: {problem.fix}"
    text = re.sub(r"training-operator v1\.8\.1|Trainer 2\.1\.0", "the controller", text)
    text = re.sub(r"^\d+ restarts", "restarts", text)
    return (
        re.sub(r"(?<=\d)Gi\b", "", text)
        .replace("$(", "${")
        .replace("PORT)", "PORT}")
        .replace("ADDR)", "ADDR}")
    )


def _differences(job: Described, folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Problems that not all ways get, and that the table does not explain."""
    said = {way: {*map(_plain, problems)} for way, problems in job.said(folder).items()}
    found = []
    for text in sorted(set.union(*said.values())):
        ways = tuple(way for way in said if text in said[way])
        known = any(words in text and only == ways for words, only, _ in DIFFERENT)
        if ways != tuple(said) and not known:
            found.append((text, ways))
    return found


@pytest.mark.parametrize("case", CASES)
def test_one_fault_gets_the_same_sentences_in_every_way_to_write_a_job(
    case: str, tmp_path: Path
) -> None:
    assert _differences(CASES[case], tmp_path) == []


SOUND = ("sound", "with restarts", "one node", "a variable that the job sets")


@pytest.mark.parametrize("case", CASES)
def test_a_fault_has_a_sentence_in_every_way_and_a_sound_job_has_none(
    case: str, tmp_path: Path
) -> None:
    usual = ("no GPUDirect RDMA", "a tag can change")
    for way, problems in CASES[case].said(tmp_path).items():
        said = [each for each in map(str, problems) if not any(words in each for words in usual)]
        spared = way in ENTRIES and case == "restarts from nothing"
        spared |= way in FILES and case == "a name of a variable that is none"
        spared |= way in PYTORCH_JOBS and case in (
            "variables of the operator",
            "at home by default",
        )
        spared |= way not in PYTORCH_JOBS and case == "grows past the pool"
        assert bool(said) != (case in SOUND or spared) or spared, (way, said)


def _described(context: ManifestContext) -> Described | None:
    """The job of a file in the words of all ways; None where nothing of it says what runs."""
    view = context.view
    runs = [*view.containers, *(each for pod in context.runtime_pods for each in pod.containers)]
    script = next((each.script for each in runs if each.script), "")
    if not script:
        return None
    gpus = min(view.gpus or 8, 8)
    return JOB.but(
        script=script,
        nodes=min(view.nodes or 1, 4),
        gpus=gpus,
        memory_gib=150 * gpus,
        restarts=min(view.restarts, 9),
        env={name: value for each in view.containers for name, value in each.env.items() if value},
    )


def _jobs() -> dict[str, Described]:
    found = {}
    for name, text in texts().items():
        workloads, _ = read_manifest(text, "x.yaml")
        for context in contexts_of(workloads, release=release_of(name)):
            if context.workload.kind in ("TrainJob", "PyTorchJob") and (job := _described(context)):
                found[f"{name} {context.workload.name}"] = job
    return found


def test_jobs_of_many_people_get_the_same_sentences_in_every_way_to_write_them(
    tmp_path: Path,
) -> None:
    jobs = _jobs()
    assert len(jobs) >= 60
    found = {name: _differences(job, tmp_path) for name, job in jobs.items()}
    assert {name: each for name, each in found.items() if each} == {}
