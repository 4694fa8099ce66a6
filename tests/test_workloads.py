"""The samples train for real: two nodes of two processes, gloo, on this machine."""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from rehearsal import processes
from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.workloads_train.runs import (
    RANKS,
    ROUNDING,
    WORKLOADS,
    Run,
    after_resuming,
    final,
    resumed,
    workers,
)

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="real training needs torch: make train-real"
)

FLAGS = {
    "ddp": ("--steps=150", "--steps-per-checkpoint=25"),
    "fsdp": ("--steps=60", "--steps-per-checkpoint=10"),
    "full_finetune": (
        "--dataset_dir=../data",
        "--output_dir=out",
        "--num_train_epochs=8",
        "--learning_rate=3e-3",
        "--bf16=True",
        "--save_steps=10",
        "--logging_steps=1",
        f"--deepspeed={CHECKOUT / 'tests/workloads/e-ds_full.json'}",
    ),
}
TOKENS = """
import sys, torch
torch.save(torch.tensor(list(open(sys.argv[1], "rb").read()), dtype=torch.uint8), sys.argv[2])
"""
LOADS = """
import torch.distributed as dist, checkpoints
dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
print(checkpoints.Checkpoints(1).load()["step"])
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where all runs lie, with a data set beside them: a text that nobody edits, so that the losses
    stay what they are."""
    made = tmp_path_factory.mktemp("runs")
    (made / "data").mkdir()
    subprocess.run(
        [sys.executable, "-c", TOKENS, CHECKOUT / "LICENSE", made / "data" / "license.pt"],
        check=True,
    )
    return made


@functools.cache
def _undisturbed(folder: Path, sample: str) -> Run:
    run = Run(sample=sample, folder=folder / sample, flags=FLAGS[sample]).start()
    assert run.wait() == [0, 0], run.log
    return run


def _disturbed(folder: Path, sample: str, **env: str) -> Run:
    return Run(
        sample=sample, folder=folder / f"{sample}-disturbed", flags=FLAGS[sample], env=env
    ).start()


def _ends_as_if_nothing_had_happened(folder: Path, sample: str, step: int) -> None:
    """The step after the checkpoint has the loss that it has without the kill. Later steps may differ:
    the first step of a process adds its ranks in another order than the steps after it, because DDP
    sorts its buckets anew after one step, and a last digit in fp32 is soon another number in bf16."""
    run = _disturbed(folder, sample)
    assert run.wait() == [0, 0], run.log
    assert resumed(run.log) == [step], run.log
    undisturbed = _undisturbed(folder, sample).log
    first, loss = min(after_resuming(run.log).items())
    assert first == step + 1, run.log
    assert loss == pytest.approx(after_resuming(undisturbed)[first], rel=1e-5, abs=2e-6)
    assert final(run.log) == [pytest.approx(final(undisturbed)[0], rel=ROUNDING)] * RANKS


@pytest.mark.parametrize("sample", FLAGS)
def test_the_loss_falls_and_all_ranks_agree(folder: Path, sample: str):
    log = _undisturbed(folder, sample).log
    first, last = float(log.partition("step 0 loss ")[2].split()[0]), final(log)
    assert last[0] < first / 2, log
    assert len(last) == RANKS and len(set(last)) == 1, log


def test_a_kill_in_the_middle_of_a_checkpoint_leaves_the_one_before(folder: Path):
    run = _disturbed(folder, "ddp", STALL_AT="step-00000074.pt")
    fresh = run.checkpoints / "step-00000074.pt.new"
    assert until(fresh.exists, every=0.02), run.log
    run.kill()
    assert fresh.exists() and run.latest == 49
    _ends_as_if_nothing_had_happened(folder, "ddp", 49)
    assert sorted(p.name for p in run.checkpoints.glob("step-*")) == [
        "step-00000124.pt",
        "step-00000149.pt",
    ]


def test_one_killed_rank_ends_the_run_everywhere_and_the_next_resumes(folder: Path):
    run = _disturbed(folder, "fsdp")
    assert until(lambda: run.latest >= 19, every=0.02), run.log
    processes.kill(workers(run.agents[1])[:1])
    assert 0 not in run.wait(), run.log
    _ends_as_if_nothing_had_happened(folder, "fsdp", run.latest)


def test_a_node_that_is_asked_to_stop_makes_all_save_at_the_same_step_and_nobody_calls_it_done(
    folder: Path,
):
    run = _disturbed(folder, "full_finetune")
    assert until(lambda: run.latest >= 9, every=0.02), run.log
    run.agents[1].terminate()
    assert 0 not in run.wait(), run.log
    assert run.log.count(f"asked to stop, after step {run.latest}") == RANKS, run.log
    _ends_as_if_nothing_had_happened(folder, "full_finetune", run.latest)


def test_a_checkpoint_that_cannot_be_read_is_passed_over(folder: Path):
    checkpoints = _undisturbed(folder, "ddp").checkpoints
    newest = checkpoints / "step-00000149.pt"
    newest.write_bytes(newest.read_bytes()[:1000])
    env = os.environ | {"PYTHONPATH": str(WORKLOADS), "CHECKPOINT_DIR": str(checkpoints)}
    said = subprocess.run(
        [sys.executable, "-c", LOADS], env=env, capture_output=True, text=True, check=True
    )
    assert (
        said.stdout.splitlines()[-1] == "124" and "step-00000149.pt cannot be used" in said.stderr
    )
