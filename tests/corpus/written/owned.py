"""Variables and fields of somebody else. Rows as in blanks.py."""

from __future__ import annotations

from tests.corpus.written.blanks import Row

LOG = "                - {name: NCCL_DEBUG, value: INFO}\n"
POD = "          containers:\n            - name: pytorch\n"
SAVE = "--output_dir /scratch/out"
TORCHRUN = "torchrun --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=$PET_MASTER_ADDR:$PET_MASTER_PORT"


def env(name: str, value: str) -> tuple[str, str, str]:
    return "fsdp", LOG, f'                - {{name: {name}, value: "{value}"}}\n{LOG}'


def env_of_sft(name: str, value: str) -> tuple[str, str, str]:
    return "sft", "    env:\n", f'    env:\n      - {{name: {name}, value: "{value}"}}\n'


def env_of_own(name: str, value: str) -> tuple[str, str, str]:
    return "own", "env: [{name: EPOCHS", f'env: [{{name: {name}, value: "{value}"}}, {{name: EPOCHS'


def line(text: str) -> tuple[str, str, str]:
    return "fsdp", "set -euo pipefail\n", f"set -euo pipefail\n                  {text}\n"


def line_of_sft(text: str) -> tuple[str, str, str]:
    return "sft", "set -eu\n", f"set -eu\n        {text}\n"


def saves(option: str) -> tuple[str, str, str]:
    return "fsdp", SAVE, option


def entry(line: str) -> tuple[str, str, str]:
    return "entry", "jobs.w.script", line


OWNED: dict[str, Row] = {
    "an interface of nodes": (*env("NCCL_SOCKET_IFNAME", "ens32"), "env", "eth0", True),
    "an interface of nodes, exported": (
        *line("export NCCL_SOCKET_IFNAME=ens5"),
        "command",
        "eth0",
        True,
    ),
    "an interface of gloo in a runtime": (
        *env_of_own("GLOO_SOCKET_IFNAME", "enp71s0"),
        "env",
        "eth0",
        True,
    ),
    "an interface of MPI": (
        *env_of_sft("OMPI_MCA_btl_tcp_if_include", "ens5"),
        "env",
        "eth0",
        True,
    ),
    "an interface of UCX": (*env("UCX_NET_DEVICES", "mlx5_0:1"), "env", "UCX_NET_DEVICES", True),
    "GPUs of the plugin": (
        "part",
        '{name: LR, value: "0.1"}',
        '{name: NVIDIA_VISIBLE_DEVICES, value: "0,1,2,3"}',
        "env",
        "device plugin",
        True,
    ),
    "one GPU for eight processes": (
        *env("CUDA_VISIBLE_DEVICES", "0"),
        "env",
        "CUDA_VISIBLE_DEVICES",
        True,
    ),
    "four GPUs for eight processes": (
        *line_of_sft("export CUDA_VISIBLE_DEVICES=0,1,2,3"),
        "args",
        "CUDA_VISIBLE_DEVICES",
        True,
    ),
    "GPUs by the numbers of another node": (
        *env("CUDA_VISIBLE_DEVICES", "8,9,10,11,12,13,14,15"),
        "env",
        "counts its 8 from 0",
        True,
    ),
    "nodes of the Trainer": (*env_of_sft("PET_NNODES", "4"), "env", "PET_NNODES", True),
    "processes of the Trainer in a runtime": (
        *env_of_own("PET_NPROC_PER_NODE", "4"),
        "env",
        "PET_NPROC_PER_NODE",
        True,
    ),
    "nodes of the Trainer, exported": (
        *line_of_sft("export PET_NNODES=1"),
        "args",
        "PET_NNODES",
        False,
    ),
    "a rank of torchrun": (*env_of_sft("LOCAL_RANK", "0"), "env", "LOCAL_RANK", False),
    "a world of torchrun in a runtime": (
        *env_of_own("WORLD_SIZE", "16"),
        "env",
        "WORLD_SIZE",
        False,
    ),
    "a host of the operator": (*env("MASTER_ADDR", "fsdp-master-0"), "env", "MASTER_ADDR", False),
    "a rank of all nodes": (*env_of_sft("NODE_RANK", "0"), "env", "NODE_RANK", True),
    "an index of all nodes": (
        *env_of_own("JOB_COMPLETION_INDEX", "0"),
        "env",
        "JOB_COMPLETION_INDEX",
        True,
    ),
    "libraries in the place of the image's": (
        *env("LD_LIBRARY_PATH", "/usr/local/cuda/lib64"),
        "env",
        "aws-ofi-nccl",
        False,
    ),
    "libraries, exported": (
        *line("export LD_LIBRARY_PATH=/opt/conda/lib"),
        "command",
        "aws-ofi-nccl",
        False,
    ),
    "programs in the place of the image's": (
        *env_of_sft("PATH", "/opt/conda/bin:$(PATH)"),
        "env",
        "PATH",
        True,
    ),
    "a provider that EFA is not": (*env("FI_PROVIDER", "tcp"), "env", "FI_PROVIDER", True),
    "a transport that the node lacks": (*env_of_sft("NCCL_NET", "IB"), "env", "NCCL_NET", True),
    "a plugin turned off": (*env("NCCL_NET_PLUGIN", "none"), "env", "NCCL_NET_PLUGIN", True),
    "a policy under the replica's": (
        *env("X", "1")[:1],
        POD,
        f"          restartPolicy: Always\n{POD}",
        "template.spec.restartPolicy",
        "OnFailure",
        False,
    ),
    "pods of a runtime": (
        "own",
        "dependsOn:",
        "replicas: 2\n          dependsOn:",
        "replicas",
        "numNodes",
        True,
    ),
    "an interface of an entry": (
        "entry",
        "jobs.w.env",
        {"NCCL_SOCKET_IFNAME": "eth1"},
        "env.NCCL_SOCKET_IFNAME",
        "eth0",
        True,
    ),
    "a variable of the Trainer in an entry": (
        "entry",
        "jobs.w.env",
        {"PET_NODE_RANK": "0"},
        "env.PET_NODE_RANK",
        "PET_NODE_RANK",
        True,
    ),
    "GPUs of an entry": entry(f"export CUDA_VISIBLE_DEVICES=0\n{TORCHRUN} /app/train.py")
    + ("script", "CUDA_VISIBLE_DEVICES", True),
}
