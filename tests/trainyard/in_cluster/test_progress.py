"""trainyard/in_cluster/history/progress.py: how far a run is, by what its ranks print."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.support.programs import imported
from trainyard.catalog.logs import last_error, log_words


@pytest.fixture(scope="module")
def module() -> Iterator[ModuleType]:
    with imported("history"):
        import progress  # type: ignore[import-not-found]

        yield progress


def heard(
    module: ModuleType, *said: tuple[float, str] | tuple[float, str, str], run: Any = None
) -> Any:
    """A run that has printed these lines, each at its second, in the log of one pod or of the one that is
    named."""
    run = run or module.Progress()
    words = module.Words.read(log_words.as_text())
    for at, line, *pod in said:
        run.hear(at, line, words, *pod)
    return run


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("step 40 loss 0.31 ranks 16", 40),
        ("step 4/20: all ranks met", 4),
        ("[2026-11-23 10:00:00,1] [INFO] [Rank 0] step=40, skipped=0, lr=[1e-05]", 40),
        ("{'loss': 0.5, 'step': 40}", 40),
        ('{"step": 40, "loss": 0.5}', 40),
        ("\x1b[31mstep: 40  \x1b[32mloss: 8.2", 40),
        (" [2026-11-23 10:00:00] iteration       40/     100 | consumed samples: 640 |", 40),
        ("1|40|Loss: 1.5: 40%|████      | 40/100 [00:40<01:00,  1.0s/it]", 40),
        ("\r 39%|██ | 39/100 [00:39<01:01, 1.0s/it]\r 40%|██ | 40/100 [00:40<01:00, 1.0s/it]", 40),
        ("Epoch 2:  10%|█  | 10/100 [00:10<01:30,  1.0it/s, v_num=0]", 210),
    ],
)
def test_a_script_says_its_step(module: ModuleType, line: str, step: int) -> None:
    assert heard(module, (1, line)).step == step


@pytest.mark.parametrize(
    "line",
    [
        "time per step: 12 ms",
        "num_steps=100 max_step=100",
        "step time: 3.2",
        "lr step 0.1",
        "Loading checkpoint shards: 100%|███| 4/4 [00:05<00:00,  1.2s/it]",
        "",
    ],
)
def test_other_lines_say_no_step(module: ModuleType, line: str) -> None:
    assert heard(module, (1, line)).step is None


def test_a_step_takes_what_passes_between_two_lines_of_steps_alone(module: ModuleType) -> None:
    run = heard(
        module,
        *((2.0 * step, f"step {step} loss 1") for step in (0, 10, 20)),
        (70, "saved step-00000021.pt"),
        (90, "step 30 loss 1"),
        (110, "step 40 loss 1"),
    )
    assert run.seconds == [2, 2, 2] and run.step_seconds == 2
    assert (run.step, run.saved_step, run.saved_at, run.unsaved_since) == (40, 21, 70, 70)


@pytest.mark.parametrize("lag", [0.1, 0.5, 1.5, 2.5])
def test_a_step_takes_as_long_where_the_last_rank_prints_behind_the_first(
    module: ModuleType, lag: float
) -> None:
    lines = [
        (float(step) + late, f"step {step} loss 1", pod)
        for step in range(1, 41)
        for late, pod in ((0.0, "first"), (lag, "last"))
    ]
    run = heard(module, *sorted(lines))
    assert run.step_seconds == pytest.approx(1)
    assert run.goodput(1, 40, lost=False) == pytest.approx(1) and run.step == 40


def test_ranks_of_one_pod_that_print_out_of_step_are_no_restart(module: ModuleType) -> None:
    lines = [(float(at), f"step {step} loss 1") for at in range(1, 41) for step in (at, at - 1)]
    run = heard(module, *lines)
    assert run.step_seconds == pytest.approx(1) and run.step == 40


def test_the_save_of_one_pod_is_in_no_step_of_the_others(module: ModuleType) -> None:
    run = heard(
        module,
        *((float(at), f"step {at} loss 1", pod) for at in (1, 2, 3) for pod in ("first", "last")),
        (30, "saved step-00000003.pt", "first"),
        *(
            (float(at), f"step {at - 27} loss 1", pod)
            for at in (31, 32)
            for pod in ("last", "first")
        ),
    )
    assert set(run.seconds) == {1}


def test_a_gang_that_begins_again_in_its_pods_is_at_an_earlier_step(module: ModuleType) -> None:
    run = heard(
        module,
        *((float(at), f"step {at} loss 1", pod) for at in range(9) for pod in ("first", "last")),
        *((100.0 + at, f"step {at} loss 1", pod) for at in range(3) for pod in ("last", "first")),
    )
    assert run.step == 2 and set(run.seconds) == {1}


def test_the_bar_of_an_evaluation_is_not_that_of_the_training(module: ModuleType) -> None:
    bar = "\r 10%|█ | {}/{} [00:10<01:30, 1.0it/s]"
    run = heard(module, (1, bar.format(10, 100)), (2, bar.format(3, 8)))
    assert run.step == 10


def test_work_before_the_first_save_is_in_no_checkpoint_since_its_first_step(
    module: ModuleType,
) -> None:
    run = module.Progress()
    run.begin("first")
    heard(module, (5, "loading"), (10, "step 0 loss 1"), (20, "step 10 loss 1"), run=run)
    assert run.unsaved_since == 10
    run.begin("")
    assert run.unsaved_since == 0, "between two attempts nothing is computed"
    run.begin("second")
    heard(module, (100, "step 0 loss 1"), run=run)
    assert run.unsaved_since == 100 and run.seconds == [1], "the restart is no step"


def test_goodput_is_the_time_of_the_steps_that_are_kept(module: ModuleType) -> None:
    run = heard(module, *((100 + step, f"step {step} loss 1") for step in (0, 10, 20, 30)))
    assert run.goodput(90, 150, lost=False) == 0.5
    heard(module, (131, "saved step-00000020.pt"), run=run)
    run.begin("second")
    heard(module, (140, "resumed from step-00000020.pt"), (150, "step 20 loss 1"), run=run)
    assert run.goodput(90, 150, lost=False) == pytest.approx(20 / 60), "ten steps were lost"


def test_of_a_run_that_failed_the_steps_in_a_checkpoint_count(module: ModuleType) -> None:
    said = [(100.0 + step, f"step {step} loss 1") for step in (0, 10, 20)]
    run = heard(module, *said)
    assert run.goodput(100, 140, lost=True) == 0
    heard(module, (121, "saved step-00000020.pt"), (131, "step 30 loss 1"), run=run)
    assert run.goodput(100, 140, lost=True) == 0.5


def test_a_run_that_resumed_from_an_earlier_one_counts_its_own_steps(module: ModuleType) -> None:
    run = heard(
        module,
        (100, "resumed from step-00000999.pt"),
        *((float(step), f"step {step} loss 1") for step in (1000, 1010, 1020)),
    )
    assert run.resumed == "step-00000999.pt" and run.goodput(980, 1020, lost=False) == 0.5


def test_what_another_release_has_written_is_gone_on_from(module: ModuleType) -> None:
    told = {"step": 3, "seconds": [1.0], "newest": {"": [3, 0.0, 1]}, "of_a_later_release": True}
    said = {**told, "newest": {**told["newest"]}}
    run = module.Progress.restored(said)
    heard(module, (1, "step 4 loss 1"), (2, "step 5 loss 1"), run=run)
    assert run.step == 5 and run.seconds == [1, 1, 1] and said == told


def test_nobody_knows_the_goodput_of_a_run_that_says_no_steps(module: ModuleType) -> None:
    assert heard(module, (1, "hello")).goodput(1, 9, lost=False) is None
    assert heard(module, (1, "step 1 loss 1")).goodput(1, 9, lost=False) is None


def test_a_line_without_an_end_takes_no_minutes(module: ModuleType) -> None:
    """The other runs wait meanwhile, and kubelet for an answer of the program."""
    began = time.perf_counter()
    run = heard(module, (1, "checkpoint of size " * 26_000), (2, "step 40 loss 0.3"))
    assert run.step == 40
    assert time.perf_counter() - began < 10


def test_of_a_line_without_an_end_as_much_is_read_everywhere(module: ModuleType) -> None:
    assert module.LONGEST == log_words.LONGEST == last_error.LONGEST
