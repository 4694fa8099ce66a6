"""Public runs whose end is known: each fits or ran out of memory, and the verdict is not the opposite.

public.jsonl has a run a line, with its source. Where a report does not say it: stanford_alpaca has eager
attention, because its requirements pin transformers 4.28, which has no other; LLaMA-Factory and the
scripts of Qwen turn activation checkpointing on.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.derive.model_memory.memory import Training, least, likely
from trainyard.derive.model_memory.models import MODELS, Shape

RUNS = [
    json.loads(line)
    for line in Path(__file__).with_name("public.jsonl").read_text().splitlines()
    if line
]
NO, MAYBE, YES = "does not fit", "may not fit", "fits"
REPORTED = ("source", "fits", "said", "gpu_gb", "peak_gb", "model")
"""Facts of a run beside the way it is trained. `said` is the verdict as it was recorded."""


def training(run: dict[str, Any]) -> Training:
    """The run in the words of the arithmetic."""
    model = run.get("model")
    shape = MODELS[model].shape if isinstance(model, str) else Shape(**model) if model else None
    return Training(shape=shape, **{key: run[key] for key in run if key not in REPORTED})


def verdict(run: dict[str, Any]) -> str:
    """As Fit.verdict, for GPUs that AWS does not sell, too."""
    room = run["gpu_gb"] * 1e9
    if least(training(run)).total > room:
        return NO
    return MAYBE if likely(training(run)).total > room else YES


def named(run: dict[str, Any]) -> str:
    return run["source"][-60:]


@pytest.mark.parametrize("run", RUNS, ids=named)
def test_the_verdict_about_a_public_run_is_not_the_opposite_of_its_end(run: dict[str, Any]) -> None:
    said = verdict(run)
    assert said == run["said"]
    assert said != (NO if run["fits"] else YES)


def test_most_verdicts_are_certain_and_right_and_of_both_kinds() -> None:
    certain = [run for run in RUNS if verdict(run) == (YES if run["fits"] else NO)]
    assert len(certain) > len(RUNS) / 2 and {run["fits"] for run in certain} == {True, False}
    assert all(run["source"].startswith(("https://", "arXiv:")) for run in RUNS)
    documents = " ".join((CHECKOUT / "docs/jobs.md").read_text().split())
    said = f"of {len(RUNS)} public runs with a known end it calls {len(certain)} with certainty"
    assert said in documents


@pytest.mark.parametrize("run", [run for run in RUNS if "peak_gb" in run], ids=named)
def test_the_range_holds_the_peak_that_is_published(run: dict[str, Any]) -> None:
    low, high = least(training(run)).total / 1e9, likely(training(run)).total / 1e9
    assert low <= run["peak_gb"] <= high
