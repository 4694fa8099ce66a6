"""Kinds of slips that real people made: each is named alone, where it stands, with a way out that fits
the stack; what looks like it and is right is not named."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, planned, values
from trainyard.decide import plan_stack
from trainyard.problems import InputError, Problem
from trainyard.settings.reading.reader import read

MASTER = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: train}
spec:
  pytorchReplicaSpecs:
    Master:
      replicas: 1
      restartPolicy: Never
      template:
        spec:
          volumes:
            - {name: shm, emptyDir: {medium: Memory, sizeLimit: 32Gi}}
          containers:
            - name: pytorch
              image: registry.example.com/team/train:1
              command: [torchrun, --nproc_per_node=8, /app/train.py]
              volumeMounts:
                - {name: shm, mountPath: /dev/shm}
              resources: {limits: {nvidia.com/gpu: 8, memory: 512Gi}}
"""
WORKERS = MASTER.replace("Master:", "Worker:").replace("replicas: 1", "replicas: 2")
ELASTIC = WORKERS.replace(
    "spec:\n",
    "spec:\n  elasticPolicy: {rdzvBackend: c10d, minReplicas: 2, maxReplicas: 2}\n",
    1,
)
NODES = WORKERS + MASTER.partition("pytorchReplicaSpecs:\n")[2]
"""A Master and two Workers, of which the first stands first."""
ENTRY = "jobs.t5-large"
PLAIN: tuple[Edit, ...] = (
    at(f"{ENTRY}.script", "torchrun --nproc_per_node=8 /app/train.py"),
    at(f"{ENTRY}.image", f"registry.example.com/train@sha256:{'0' * 64}"),
    at("storage.home", {"efs": {}}),
    at("storage.results", {"s3": {"writable": True}}),
    at("training_operator", {"version": "1.8.1"}),
)
Slip = tuple[str, str]
"""What stands in a file, and what stands there instead; or a setting's path, and its value."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of slip."""

    file: str = ""
    """The sound file that it is made in; empty for an entry of the stack file."""
    wrong: tuple[tuple[str, Any], ...]
    """Slips, each of which is one problem."""
    says: str
    """Words of the problem."""
    where: str
    """End of its path."""
    right: tuple[tuple[str, Any], ...] = ()
    """What looks like it, and is none."""
    entry: dict[str, Any] = field(default_factory=dict)
    """Settings beside manifest and pool."""
    is_error: bool = True


SHELL = "command: [torchrun, --nproc_per_node=8, /app/train.py]"
IN_SHELL = 'command: [bash, -c, "torchrun {} /app/train.py"]'


def _runs(options: str) -> Slip:
    return SHELL, IN_SHELL.format(options)


def _env(name: str, value: str) -> Slip:
    return (
        "              image:",
        f'              env: [{{name: {name}, value: "{value}"}}]\n              image:',
    )


def _claim(folder: str, claim: str, more: str) -> Slip:
    return (
        "          volumes:\n",
        f"          {more}\n          volumes:\n            - {{name: out, persistentVolumeClaim:"
        f" {{claimName: {claim}}}}}\n",
    )


IO = f"{ENTRY}.env.NCCL_SOCKET_IFNAME"
MOUNTS = MASTER.replace(
    "                - {name: shm",
    "                - {name: out, mountPath: /out}\n                - {name: shm",
)
KINDS: dict[str, Kind] = {
    "an interface of the node": Kind(
        wrong=(
            (IO, "ens5"),
            (IO, "efa0,ens32"),
            (IO, "=eth"),
            (IO, "^eth0"),
            (f"{ENTRY}.env.GLOO_SOCKET_IFNAME", "ens5"),
        ),
        says="must name an interface that pods have, which is eth0",
        where="SOCKET_IFNAME",
        right=((IO, "eth0"), (IO, "eth"), (IO, "^lo,docker,veth"), (IO, "=eth0"), (IO, "lo")),
    ),
    "an interface of the node in a file": Kind(
        file=MASTER,
        wrong=(_env("NCCL_SOCKET_IFNAME", "ens5"), _env("TP_SOCKET_IFNAME", "enp")),
        says="must name an interface that pods have",
        where="env[0].name",
        right=(_env("NCCL_SOCKET_IFNAME", "eth0"),),
    ),
    "GPUs that the device plugin hands out": Kind(
        file=MASTER.replace("gpu: 8", "gpu: 4").replace("node=8", "node=4"),
        wrong=(_env("NVIDIA_VISIBLE_DEVICES", "all"), _env("NVIDIA_VISIBLE_DEVICES", "0,1,2,3")),
        says="must not be set: the device plugin sets it to the 4 GPUs",
        where="env[0].name",
        right=(_env("NVIDIA_VISIBLE_DEVICES", "void"), _env("NVIDIA_DRIVER_CAPABILITIES", "all")),
    ),
    "all GPUs of a whole node": Kind(
        file=MASTER, wrong=(), says="", where="", right=(_env("NVIDIA_VISIBLE_DEVICES", "all"),)
    ),
    "a variable of the operator that elastic jobs lack": Kind(
        file=ELASTIC,
        wrong=(_runs("--nnodes=2 --rdzv_backend=c10d --rdzv_endpoint=$MASTER_ADDR:29400"),),
        says="must use variables that training-operator v1.8.1 provides; got MASTER_ADDR. Fix: leave"
        " --rdzv_endpoint, --master_addr and --node_rank out",
        where="command",
        right=(_runs("--nnodes=2"),),
    ),
    "the number of all ranks for that of nodes": Kind(
        file=MASTER.replace("spec:\n", 'spec:\n  nprocPerNode: "8"\n', 1),
        wrong=(
            _runs("--nnodes=$WORLD_SIZE --node_rank=$RANK --master_addr=$MASTER_ADDR"),
            _runs("--nnodes ${WORLD_SIZE}"),
            (SHELL, "command: [torchrun, --nnodes=$(WORLD_SIZE), /app/train.py]"),
            (SHELL, 'command: [bash, -c, "NNODES=$WORLD_SIZE; torchrun --nnodes $NNODES t.py"]'),
            (
                SHELL,
                'command: [bash, -c, "accelerate launch --num_machines $WORLD_SIZE --num_processes 8'
                ' --machine_rank $RANK --main_process_ip $MASTER_ADDR t.py"]',
            ),
        ),
        says="training-operator v1.8.1 sets it to the number of all ranks, 8, and torchrun waits",
        where="command",
        right=(
            _runs("--nnodes=$PET_NNODES"),
            _runs("--nnodes=$((WORLD_SIZE / 8))"),
            (SHELL, 'command: [bash, -c, "WORLD_SIZE=1 && torchrun --nnodes $WORLD_SIZE t.py"]'),
        ),
    ),
    "the number of all ranks where there is no number of processes": Kind(
        file=MASTER, wrong=(), says="", where="", right=(_runs("--nnodes=$WORLD_SIZE"),)
    ),
    "that number where processes are counted at the start": Kind(
        file=MASTER.replace("spec:\n", "spec:\n  nprocPerNode: auto\n", 1),
        wrong=(),
        says="",
        where="",
        right=(_runs("--nnodes=$WORLD_SIZE"),),
    ),
    "Lightning that starts nodes itself": Kind(
        file=NODES,
        wrong=(
            (SHELL, "command: [python, t.py, --trainer.num_nodes=3, --trainer.devices=8]"),
            (SHELL, 'command: [bash, -c, "python t.py trainer.num_nodes=3 trainer.devices=8"]'),
        ),
        says="sets no NODE_RANK, by which Lightning knows its node, so each of the 3 pods is node 0",
        where="Worker.template.spec.containers[0].command",
        right=(
            (SHELL, "command: [torchrun, t.py, --trainer.num_nodes=3, --trainer.devices=8]"),
            (SHELL, 'command: [bash, -c, "NODE_RANK=$RANK python t.py --trainer.num_nodes=3"]'),
            (SHELL, "command: [python, t.py, --trainer.devices=8]"),
        ),
        is_error=False,
    ),
    "a relative path for checkpoints": Kind(
        file=MASTER.replace("Never", "OnFailure").replace(
            "spec:\n", "spec:\n  runPolicy: {backoffLimit: 5}\n", 1
        ),
        wrong=(_runs("--checkpoint_dir=./ckpt"), _runs("--output_dir ../out")),
        says="is lost when the container starts again",
        where="command",
        right=(
            _runs("--cache_dir=./ckpt"),
            (SHELL, 'command: [bash, -c, "cd /data && torchrun t.py --save_dir ./a"]'),
        ),
        is_error=False,
    ),
    "a label that no node has": Kind(
        file=MASTER,
        wrong=tuple(
            ("          volumes:", f"          nodeSelector: {{{label}: x}}\n          volumes:")
            for label in ("sagemaker.amazonaws.com/node-health-status", "nvidia.com/gpu.product")
        ),
        says="Fix: delete it, or write in its place node.kubernetes.io/instance-type: g6e.48xlarge",
        where="x",
    ),
    "a user who may not write": Kind(
        file=MOUNTS,
        wrong=(_claim("/out", "results", "securityContext: {runAsUser: 1000, fsGroup: 1000}"),),
        says="user 1000 cannot write to /out: the root of store home belongs to root",
        where="securityContext.runAsUser",
        right=(_claim("/out", "results", "securityContext: {runAsUser: 0}"),),
        entry={"claims": {"results": "home"}},
        is_error=False,
    ),
    "a store that cannot rename": Kind(
        file=MOUNTS.replace("          volumes:\n", _claim("/out", "results", "hostIPC: false")[1]),
        wrong=(_runs("--output_dir=/out/run"),),
        says="/out/run is on store results, whose files cannot be renamed",
        where="command",
        right=(_runs("--data_dir=/out/run"),),
        entry={"claims": {"results": "results"}},
        is_error=False,
    ),
    "a store that cannot rename, in an entry": Kind(
        wrong=((f"{ENTRY}.script", "torchrun --nproc_per_node=8 t.py --save_dir=/results/run"),),
        says="/results/run is on store results",
        where="script",
        right=((f"{ENTRY}.script", "torchrun --nproc_per_node=8 t.py --data=/results/run"),),
        is_error=False,
    ),
    "a variable that nobody sets": Kind(
        wrong=((f"{ENTRY}.script", "torchrun t.py --data=${DATA_DIRS} --lr=${LR}"),),
        says="the script uses DATA_DIRS, LR, which neither the job nor Trainer 2.1.0 sets",
        where="script",
        right=tuple(
            (f"{ENTRY}.script", script)
            for script in (
                "torchrun t.py --data=${DATA_DIRS:-/data}",
                "DATA_DIRS=/data\ntorchrun t.py --data=$DATA_DIRS",
                "read -r LR < /lr\ntorchrun t.py --lr=$LR $HOME $CUDA_HOME",
                "source /opt/env.sh\ntorchrun t.py --data=$DATA_DIRS",
                "torchrun t.py '$DATA_DIRS' \\$LR",
            )
        ),
        is_error=False,
    ),
    "settings of other tools": Kind(
        wrong=(
            ("vpc_id", "vpc-0123456789abcdef0"),
            ("vpcId", "vpc-0123456789abcdef0"),
            ("eksVersion", "1.33"),
            ("nodeGroups", {}),
            ("cluster.endpoint_private_access", True),
            ("cluster.desired_capacity", 2),
            ("pools.g6e.spot", True),
            ("pools.g6e.capacity_reservation", "cr-0123456789abcdef0"),
            ("pools.g6e.expire_after", "720h"),
            ("system_nodes.desired_size", 2),
        ),
        says="must be the name of a setting",
        where="",
    ),
}


def _made(kind: Kind, slip: tuple[str, Any]) -> tuple[str, list[Edit]]:
    there, instead = slip
    if not kind.file:
        return "", [at(there, instead)]
    assert there in kind.file
    return kind.file.replace(there, instead, 1), []


def _problems(text: str, edits: list[Edit], kind: Kind, folder: Path) -> list[Problem]:
    if text:
        (folder / "job.yaml").write_text(text)
        job = {"manifest": "job.yaml", "pool": "g6e", **kind.entry}
        found = planned(*PLAIN, at("jobs", {"x": job}), folder=folder)
        said: list[Problem] = [*found.errors, *found.warnings]
        return [each for each in said if each.file == "job.yaml"]
    found = planned(*PLAIN, at(f"{ENTRY}.storage.results", {"path": "/results"}), *edits)
    return [each for each in (*found.errors, *found.warnings) if str(each) not in _usual()]


@cache
def _usual() -> set[str]:
    """What is said of the development environment as it is."""
    found = planned(*PLAIN, at(f"{ENTRY}.storage.results", {"path": "/results"}))
    return {*map(str, (*found.errors, *found.warnings))}


@pytest.mark.parametrize("name", KINDS)
def test_a_kind_of_slip_is_named_alone_and_its_likeness_is_not(name: str, tmp_path: Path) -> None:
    kind = KINDS[name]
    for slip in kind.wrong:
        said = _problems(*_made(kind, slip), kind, tmp_path)
        said = [each for each in said if not re.search("was not checked", str(each))]
        assert len(said) == 1, (slip, [*map(str, said)])
        where = kind.where if kind.where != "x" else said[0].path
        assert kind.says in str(said[0]) and said[0].path.endswith(where), str(said[0])
        assert isinstance(said[0], InputError) is kind.is_error
        assert "the settings are" not in str(said[0])
    for likeness in kind.right:
        said = _problems(*_made(kind, likeness), kind, tmp_path)
        assert [str(each) for each in said if kind.says in str(each)] == []


def test_variables_that_nobody_sets_are_one_error_of_one_command(tmp_path: Path) -> None:
    text = ELASTIC.replace(*_runs("--nnodes=2 --rdzv_endpoint=$MASTER_ADDR:$MASTER_PORT"))
    [error] = _problems(text, [], KINDS["all GPUs of a whole node"], tmp_path)
    assert "got MASTER_ADDR, MASTER_PORT. Fix: leave --rdzv_endpoint" in str(error)


@pytest.mark.parametrize("file", [MASTER, ELASTIC])
def test_the_files_that_slips_are_made_in_are_sound(file: str, tmp_path: Path) -> None:
    kind = Kind(file=file, wrong=(), says="", where="")
    assert [str(each) for each in _problems(file, [], kind, tmp_path)] == []


def test_settings_of_other_providers_are_refused() -> None:
    extra = {**values(), "kubernetes:deleteUnreachable": "true", "eks:x": "y", "pulumi:tags": {}}
    first, second = map(str, read(extra, stack="dev", project="trainyard").errors)
    assert first.startswith(
        "kubernetes:deleteUnreachable: must not be set: the program makes its own"
    )
    assert "PULUMI_K8S_DELETE_UNREACHABLE" in first and second.startswith("eks:x: ")


@pytest.mark.parametrize(
    ("key", "way_out"),
    [
        ("gcp:project", "delete it"),
        ("my-app:size", "delete it"),
        ("AWS:region", "did you mean aws:region?"),
    ],
)
def test_settings_of_a_namespace_that_nobody_reads_are_refused(key: str, way_out: str) -> None:
    [error] = read({**values(), key: "x"}, stack="dev", project="trainyard").errors
    assert (error.path, error.fix) == (key, way_out)
    assert "reads settings of that namespace" in error.must


@pytest.mark.parametrize(("duration", "nearest"), [("13h", "12h"), ("5m", "15m"), ("12h1s", "12h")])
def test_a_session_is_as_long_as_sts_gives_it(duration: str, nearest: str) -> None:
    role = {"roleArn": "arn:aws:iam::123456789012:role/x"}
    given = {**values(), "aws:assumeRole": role | {"duration": duration}}
    planned_stack = plan_stack(read(given, stack="dev", project="trainyard"))
    assert [each.fix for each in planned_stack.errors] == [f"write {nearest}"]
    given["aws:assumeRole"] = role | {"duration": nearest}
    assert plan_stack(read(given, stack="dev", project="trainyard")).errors == ()


def test_an_encrypted_key_is_never_to_be_written_in_clear() -> None:
    for key in ("accessKey", "secretKey", "token"):
        extra = {**values(), f"aws:{key}": {"secure": "v1:bm90cmVhbA==:bm90cmVhbA=="}}
        [error] = map(str, read(extra, stack="dev", project="trainyard").errors)
        assert "delete it and use aws:profile" in error and "in clear" not in error


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        ("HyperPodPyTorchJob", "write it as a PyTorchJob"),
        ("RayJob", "no stack has KubeRay"),
        ("AppWrapper", "into a file of its own"),
        ("Job", "with nodes and torchrun or script"),
    ],
)
def test_another_kind_of_job_is_one_error_with_what_serves_instead(
    kind: str, way_out: str, tmp_path: Path
) -> None:
    text = f"apiVersion: a/v1\nkind: {kind}\nmetadata: {{name: j}}\nspec: {{}}\n"
    [error] = _problems(text, [], KINDS["all GPUs of a whole node"], tmp_path)
    assert str(error).startswith("kind [job.yaml:2]: must be one of ") and way_out in str(error)


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        ("MPIJob", "write an own runtime of kind mpi"),
        ("TFJob", "with nodes and torchrun or script"),
    ],
)
def test_a_kind_that_the_operator_does_not_run_is_one_error_with_two_ways_out(
    kind: str, way_out: str, tmp_path: Path
) -> None:
    text = f"apiVersion: kubeflow.org/v1\nkind: {kind}\nmetadata: {{name: j}}\nspec: {{}}\n"
    [error] = _problems(text, [], KINDS["all GPUs of a whole node"], tmp_path)
    assert way_out in str(error) and f"more_kinds: [{kind}]" in str(error)


@pytest.mark.parametrize(
    ("kind", "way_out"),
    [
        ("Service", "create it with kubectl"),
        ("Namespace", "the stack makes the namespace"),
        ("PersistentVolumeClaim", "`claims` gives"),
        ("Secret", "create a Secret with kubectl"),
    ],
)
def test_another_object_beside_a_job_has_its_own_way_out(
    kind: str, way_out: str, tmp_path: Path
) -> None:
    text = f"{MASTER}---\napiVersion: v1\nkind: {kind}\nmetadata: {{name: j}}\n"
    [error] = _problems(text, [], KINDS["all GPUs of a whole node"], tmp_path)
    assert way_out in str(error)
