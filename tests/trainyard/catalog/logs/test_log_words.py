"""Lines by which scripts say that they resumed, or saved, or that a step is done."""

from __future__ import annotations

import time

import pytest

from trainyard.catalog.logs.log_words import (
    last_step,
    nothing_done,
    nothing_to_do,
    resumed_from,
    saved,
)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("resumed from step-00000012.pt", "step-00000012.pt"),
        ("resumed from step 11", "step 11"),
        ("[rank 0] Resumed from: step-00000012.pt", "step-00000012.pt"),
        ("resumed from: step 11", "step 11"),
        ("INFO:trainer:Loading model from out/checkpoint-500.", "out/checkpoint-500"),
        ("Restored all states from the checkpoint at /ckpt/last.ckpt", "/ckpt/last.ckpt"),
        ("[INFO] [Torch] Loaded checkpoint from /c/global_step9/a.pt.", "/c/global_step9/a.pt"),
        ("[titan] INFO - Loading the checkpoint from /ckpt/step-10.", "/ckpt/step-10"),
        (" successfully loaded checkpoint from /ckpt [ t 1/1, p 1/1 ] at iteration 10", "/ckpt"),
    ],
)
def test_a_script_says_what_it_resumed_from(line: str, what: str) -> None:
    assert resumed_from(line) == what and saved(line) is None


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("saved step-00000012.pt", "step-00000012.pt"),
        ("saved: step-00000012.pt", "step-00000012.pt"),
        ("Saving model checkpoint to out/checkpoint-500", "out/checkpoint-500"),
        ("[Torch] Saved /c/global_step9/a.pt.", "/c/global_step9/a.pt"),
        ("  successfully saved checkpoint from iteration     500 to /ckpt", "500"),
        ("saved checkpoint to /ckpt/step9", "/ckpt/step9"),
        (
            "INFO:torchtune:Model checkpoint of size 2.47 GiB saved to /out/epoch_0/a.pt",
            "/out/epoch_0/a.pt",
        ),
        (
            "[titan] Finished saving the checkpoint (or staging if async) in 0.60 seconds.",
            "checkpoint",
        ),
    ],
)
def test_a_script_says_what_it_saved(line: str, what: str) -> None:
    assert saved(line) == what and resumed_from(line) is None


@pytest.mark.parametrize("line", ["step 12 loss 0.31 ranks 16", "no checkpoint was saved", ""])
def test_other_lines_say_nothing(line: str) -> None:
    assert resumed_from(line) is None and saved(line) is None


def test_a_run_that_resumes_and_prints_no_step_had_nothing_to_do() -> None:
    assert (
        nothing_done(["ranks met", "resumed from step 81", "rank 0: final loss 0.1"]) == "step 81"
    )
    assert "resumed from step 81, printed no step" in nothing_to_do("step 81")


def test_a_trainer_of_transformers_that_had_finished_had_nothing_to_do() -> None:
    end = (
        "{'train_runtime': '0.01', 'train_steps_per_second': '0', 'train_loss': '0', 'epoch': '3'}"
    )
    assert nothing_done(["resumed from step 81", end]) == "step 81"


@pytest.mark.parametrize(
    "lines",
    [
        ["resumed from step 81", "step 82 loss 0.3"],
        ["resumed from step 81", "{'step': 90, 'loss': 0.3}"],
        ["resumed from step 81", "{'loss': 0.3, 'epoch': 0.15}"],
        ["resumed from step 81", "{'loss': '6.13', 'grad_norm': '0.8', 'epoch': '0.1562'}"],
        ["resumed from step 81", "Epoch 1/1  ━━━━━━╸━━━ 20/32 0:00:00 • 0:00:00 135.47it/s"],
        ["resumed from step-00000295.pt", "saved step-00000299.pt", "rank 0 of 2: final loss 0.2"],
        ["step 1", "step 2", "saved step 2"],
        [],
    ],
)
def test_a_run_that_prints_a_step_or_does_not_resume_had_something_to_do(lines: list[str]) -> None:
    assert nothing_done(lines) is None


@pytest.mark.parametrize("unit", ["checkpoint of size ", "Epoch 1: 1%|", "1%|"])
def test_a_line_without_an_end_takes_no_minutes(unit: str) -> None:
    began = time.perf_counter()
    line = unit * (500_000 // len(unit))
    assert nothing_done(["resumed from step 40", f"{line} nothing"]) == "step 40"
    assert last_step([line]) is None
    assert time.perf_counter() - began < 10


def test_of_a_line_without_an_end_the_end_is_read() -> None:
    """A bar of progress is one line, however often it was drawn."""
    bar = "".join(f"\r  1%|   | {step}/90000 [00:40<01:00]" for step in range(9000))
    assert last_step([bar]) == "1%|   | 8999/90000 [00:40<01:00]"
    assert saved(f"{bar}Saving model checkpoint to /a") == "/a"
