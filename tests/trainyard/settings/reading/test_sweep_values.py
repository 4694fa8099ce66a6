"""Values of a sweep that stand beside `over`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import at, errors, planned

TUNE = {
    "runtime": "torch-distributed-resilient",
    "nodes": 1,
    "pool": "g6e",
    "image": "train:1",
    "allow_no_checkpoint": True,
    "torchrun": {"script": "/app/train.py", "arguments": ["--lr={lr}", "--wd={wd}"]},
}


def _errors(sweep: dict[str, Any]) -> list[str]:
    return errors(at("jobs", {"tune": {**TUNE, "sweep": sweep}}))


def test_values_beside_over_are_one_error_that_writes_them_under_it() -> None:
    [error] = _errors({"lr": [0.1, 0.2], "wd": [1, 2], "at_most": 1})
    assert error.startswith("environment.jobs.tune.sweep: ")
    assert error.endswith(
        "must have its values under over; got {lr: [0.1, 0.2], wd: [1, 2]}. Fix: write over: {lr: [0.1, 0.2],"
        " wd: [1, 2]}"
    )


def test_those_that_are_under_over_already_stay() -> None:
    [error] = _errors({"over": {"lr": [0.1, 0.2]}, "wd": [1, 2]})
    assert error.endswith("Fix: write over: {lr: [0.1, 0.2], wd: [1, 2]}")


def test_the_rest_is_judged_with_the_values_that_are_meant() -> None:
    said = _errors({"lr": [0.1, 0.2]})
    assert (
        len(said) == 2
        and "have every name that the job's texts have in braces; got {wd}" in said[1]
    )


@pytest.mark.parametrize(
    ("sweep", "fix"),
    [
        ({"over": {"lr": [1], "wd": [2]}, "at_mst": [1]}, "did you mean at_most?"),
        ({"over": [1], "lr": [1]}, "delete it; the settings are over, at_most, metric"),
        ({"parameters": {"lr": [1], "wd": [2]}}, "did you mean over?"),
        ({"over": {"lr": [1], "wd": [2]}, "max_parallel": 2}, "did you mean at_most?"),
        ({"over": {"lr": 0.1, "wd": [2]}}, "write [0.1]"),
        (
            {"over": {"lr": [1], "wd": [2]}, "metric": "eval_loss"},
            "write a value such as {name: eval_loss, goal: minimize}",
        ),
        (
            {"over": {"lr": [1], "wd": [2]}, "metric": {"name": "loss"}},
            "add goal: minimize or maximize",
        ),
    ],
)
def test_other_mistakes_of_a_sweep_say_what_to_write(sweep: dict[str, Any], fix: str) -> None:
    assert fix in "\n".join(_errors(sweep))


def test_a_sweep_that_is_right_has_no_error() -> None:
    assert planned(at("jobs", {"tune": {**TUNE, "sweep": {"over": {"lr": [1], "wd": [2]}}}})).plan
