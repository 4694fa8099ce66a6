"""Command lines as the manuals of the launchers have them."""

from __future__ import annotations

import pytest

from trainyard.derive.launchers import LAUNCHERS, launcher_of, other_launches

COMMANDS = {
    "accelerate launch": (
        "accelerate launch --num_machines 2 --num_processes 16 --machine_rank 1 train.py",
        (2, None, 16, 1),
    ),
    "deepspeed": (
        "deepspeed --num_nodes=2 --num_gpus=8 --node_rank=0 train.py",
        (2, 8, None, 0),
    ),
    "fabric run": ("fabric run --num-nodes=2 --devices=8 ./train.py", (2, 8, None, None)),
    "lightning run": ("lightning run --devices 4 --node-rank 1 train.py", (None, 4, None, 1)),
    "mpirun": (
        "mpirun -np 16 --hostfile /etc/mpi/hostfile python train.py",
        (None, None, 16, None),
    ),
    "mpiexec": ("mpiexec -n 16 python train.py", (None, None, 16, None)),
    "tune run": (
        "tune run --nnodes 2 --nproc_per_node 4 full_finetune_distributed --config llama3_1/8B_full",
        (2, 4, None, None),
    ),
    "composer": ("composer -n 8 --world_size 16 --node_rank 1 t.py", (None, 8, 16, 1)),
    "colossalai run": ("colossalai run --nproc_per_node 8 --host a,b t.py", (None, 8, None, None)),
    "swift pt": ("swift pt --model a/b", (None, None, None, None)),
    "swift rlhf": ("swift rlhf --rlhf_type dpo --model a/b", (None, None, None, None)),
    "swift sft": ("swift sft --model a/b", (None, None, None, None)),
    "llamafactory-cli train": ("llamafactory-cli train a.yaml", (None, None, None, None)),
    "lmf train": ("lmf train a.yaml", (None, None, None, None)),
    "horovodrun": ("horovodrun -np 16 -H a:8,b:8 python train.py", (None, None, 16, None)),
}
"""Launcher → a command, and its nodes, processes of a node, processes in all, rank."""


def _numbers(script: str) -> list[tuple[int | None, ...]]:
    return [
        tuple(
            each.number(option)
            for option in (
                each.names.nodes,
                each.names.per_node,
                each.names.total,
                each.names.rank,
            )
        )
        for each in other_launches(script)
    ]


@pytest.mark.parametrize("launcher", COMMANDS)
def test_the_manuals_command_of_a_launcher_is_read(launcher: str) -> None:
    command, numbers = COMMANDS[launcher]
    assert _numbers(command) == _numbers(f"cd /work && NCCL_DEBUG=INFO exec {command}") == [numbers]


@pytest.mark.parametrize(
    "start",
    [
        "timeout 3600 deepspeed",
        "timeout --signal=TERM -k 60 1h deepspeed",
        "env A=1 deepspeed",
        "env -u B A=1 deepspeed",
        "numactl --interleave=all --membind 0 deepspeed",
        "nice -n 5 stdbuf -oL deepspeed",
        "A='x y' setsid deepspeed",
        "python -m deepspeed.launcher.runner",
        "/usr/bin/python3.11 -u -m deepspeed.launcher.runner",
    ],
)
def test_a_launcher_behind_another_program_is_read(start: str) -> None:
    assert _numbers(f"cd /a\n{start} --num_gpus 4 t.py") == [(None, 4, None, None)]
    assert launcher_of(f"{start} --num_gpus 4 t.py").split()[0] == "deepspeed"


def test_every_launcher_has_a_command_above() -> None:
    assert set(COMMANDS) == set(LAUNCHERS)


def test_options_of_the_program_are_not_those_of_its_launcher() -> None:
    assert _numbers("deepspeed train.py --num_gpus 4") == [(None, None, None, None)]
    assert _numbers("mpirun -np 2 /opt/train -np 9") == [(None, None, 2, None)]


def test_a_comment_starts_nothing_and_a_line_that_goes_on_is_one() -> None:
    assert _numbers("# mpirun -np 2 a\necho mpirun -np 2 a") == []
    assert _numbers("mpirun \\\n  -np 2 a") == [(None, None, 2, None)]


def test_a_launcher_that_shows_its_version_or_its_options_starts_nothing() -> None:
    assert _numbers("composer --version; deepspeed --help\nmpirun -h") == []
    assert launcher_of("composer --version") == ""


def test_options_of_lightnings_command_line_are_read_behind_any_program() -> None:
    said = _numbers("torchrun train.py trainer.num_nodes=2 --trainer.devices 8")
    assert said == [(2, 8, None, None)]
