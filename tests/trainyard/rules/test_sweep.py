"""What is refused of a sweep, where, and with which way out; and that it is told once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.grammar import without_a_verb
from tests.support.stackfile import Edit, at, planned, without
from tests.support.sweep import lines_not_reached
from tests.trainyard.derive.test_sweep import LRS, TUNE, tune
from trainyard.rules import sweep

TWO = {"lr": [1, 2], "size": [1, 2]}
CASES: dict[str, tuple[list[Edit], str, str]] = {
    "no name": (
        [tune({}), at(f"{TUNE}.checkpoints.directory", "tune")],
        "sweep.over",
        "have a name with its values",
    ),
    "no value": ([tune({"lr": []})], "sweep.over.lr", "have values; got []"),
    "a value twice": (
        [tune({"lr": [1, 2, 1.0]})],
        "sweep.over.lr",
        "each value once; got 1 twice. Fix: delete one 1",
    ),
    "too many runs": (
        [tune({"lr": [*range(11)], "size": [*range(10)]})],
        "sweep.over",
        "at most 100 runs; got 110 (11 x 10)",
    ),
    "a name that is the number of a run": (
        [tune({"run": [1, 2]})],
        "sweep.over.run",
        "and not run",
    ),
    "a name with a space": (
        [tune({"a b": [1, 2]}), at(f"{TUNE}.torchrun.arguments", ["--lr={a b}"])],
        "sweep.over.a b",
        "of letters, digits, _ and -",
    ),
    "two runs of one name": (
        [tune({"lr": ["a_b", "a-b"]})],
        "sweep.over",
        "got a_b and a-b, which are both tune-a-b",
    ),
    "the name of another job": (
        [
            tune({"lr": ["x", "y"]}),
            lambda s: s["jobs"].update({"tune-x": s["jobs"].pop("t5-large")}),
        ],
        "sweep.over",
        "that no other job has; got tune-x",
    ),
    "the names of the runs of another sweep, which begins with the same letters": (
        [
            tune({"lr": [1, 2]}),
            lambda s: s["jobs"].update(
                {
                    f"finetune-llama-3-70b-instruct-{one}": s["jobs"]["tune"]
                    | {"checkpoints": {"store": "scratch", "directory": f"{one}/{{lr}}"}}
                    for one in "ab"
                }
            ),
            lambda s: s["jobs"].pop("tune"),
        ],
        "sweep.over",
        ", as finetune-llama-3-70b-instruct-a has. Fix: rename one of them",
    ),
    "a name that stands in no text": (
        [
            LRS,
            at(f"{TUNE}.torchrun.arguments", ["--lr", "$lr"]),
            without(f"{TUNE}.checkpoints"),
            at(f"{TUNE}.allow_no_checkpoint", True),
        ],
        "sweep.over.lr",
        "stand as {lr} in a text of the job, such as its script or env: without it all runs are the same; got no {lr}."
        " Fix: write {lr} where",
    ),
    "a name that stands as a variable of a shell": (
        [
            LRS,
            at(f"{TUNE}.torchrun.arguments", ["--lr=${lr}"]),
            without(f"{TUNE}.checkpoints"),
            at(f"{TUNE}.allow_no_checkpoint", True),
        ],
        "sweep.over.lr",
        "got ${lr}, which is a variable of a shell. Fix: write {lr} where",
    ),
    "a name that is misspelt": (
        [LRS, at(f"{TUNE}.torchrun.arguments", ["--lr={learning_rate}"])],
        "sweep.over",
        "got {learning_rate}, which is none. Fix: write {lr} instead, or learning_rate: […] under over",
    ),
    "one directory for all runs": (
        [LRS, at(f"{TUNE}.checkpoints.directory", "tune")],
        "checkpoints.directory",
        "be another one for each run of the sweep, which would resume from another run's checkpoint; got tune."
        " Fix: write tune/{lr}",
    ),
    "one directory for some runs": (
        [tune(TWO), at(f"{TUNE}.checkpoints.directory", "tune/{lr}")],
        "checkpoints.directory",
        "Fix: write tune/{lr}/{size}",
    ),
    "one directory for the same number of all runs": (
        [tune(TWO), at(f"{TUNE}.checkpoints.directory", "tune/{run}")],
        "checkpoints.directory",
        "Fix: write tune/{lr}-{size}/{run}",
    ),
}


def _errors(*edits: Edit) -> list[str]:
    return [str(each) for each in planned(*edits).errors]


@pytest.mark.parametrize("case", CASES)
def test_a_sweep_that_cannot_be_is_refused_once_where_it_stands(case: str) -> None:
    edits, path, says = CASES[case]
    said = _errors(*edits)
    assert len(said) == 1, said
    entry = "jobs.finetune-llama-3-70b-instruct-b" if "another sweep" in case else TUNE
    assert said[0].startswith(f"environment.{entry}.{path}: must ") and says in said[0]
    assert without_a_verb(said) == []


def test_a_directory_for_each_run_is_accepted_as_it_is_proposed() -> None:
    for directory in ("tune/{lr}-{size}", "{lr}/tune/{size}", "tune/{lr}-{size}/{run}"):
        assert _errors(tune(TWO), at(f"{TUNE}.checkpoints.directory", directory)) == []


def test_braces_of_other_languages_are_left_alone() -> None:
    script = "awk '{print}' x; echo ${HOME} {lr}; torchrun /app/train.py"

    def scripted(settings: dict[str, Any]) -> None:
        job = settings["jobs"]["tune"]
        del job["torchrun"]
        job["script"] = script

    assert _errors(LRS, scripted, at(f"{TUNE}.env", {"A": "${lr}", "B": "a {b} c"})) == []


def test_events_of_all_runs_in_one_directory_are_a_warning() -> None:
    board = at(f"{TUNE}.tensorboard", {"store": "home", "directory": "boards"})
    [said] = [str(each) for each in planned(LRS, board).warnings if "TensorBoard" in str(each)]
    assert said.endswith("draws them as one run: write boards/{lr}")
    own = at(f"{TUNE}.tensorboard", {"store": "home", "directory": "boards/{lr}"})
    assert not [each for each in planned(LRS, own).warnings if "TensorBoard" in str(each)]


def test_the_rest_of_an_entry_is_judged_beside_a_sweep_that_cannot_be() -> None:
    said = _errors(tune({"lr": []}), at(f"{TUNE}.pool", "nowhere"))
    assert len(said) == 2 and any(f"environment.{TUNE}.pool: must" in each for each in said), said


def test_a_list_that_is_none_is_one_error() -> None:
    said = _errors(tune({"lr": 3}))  # type: ignore[dict-item]
    assert len(said) == 1 and f"environment.{TUNE}.sweep.over.lr: must" in said[0], said


def test_every_line_of_the_rules_is_reached() -> None:
    def all_cases() -> None:
        for edits, _, _ in CASES.values():
            planned(*edits)
        test_events_of_all_runs_in_one_directory_are_a_warning()

    assert lines_not_reached([sweep], all_cases) == []
