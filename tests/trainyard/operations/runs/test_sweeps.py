"""The tables of sweeps in `trainyard runs`: values, figure, the best first."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.trainyard.operations.finished import cluster, pod, train_job
from trainyard.catalog.logs.log_words import figure_named
from trainyard.operations.runs.rank_lines import Printed, printed
from trainyard.operations.runs.records import MISSING, runs_of
from trainyard.operations.runs.runs import Told, told
from trainyard.operations.runs.sweeps import sweep_of, tables
from trainyard.plans.jobs import SWEEP

METRIC = {"name": "eval_loss", "goal": "minimize"}


def job(name: str, values: dict[str, str], metric: Any = METRIC, **more: Any) -> dict[str, Any]:
    made = train_job(name, **more)
    note = {"entry": "tune", "values": values, "metric": metric}
    made["metadata"]["annotations"][SWEEP] = json.dumps(note)
    return made


def of(jobs: list[dict[str, Any]], figures: dict[str, float | None]) -> list[Told]:
    snapshot = cluster(trainjobs=jobs)
    known = runs_of(snapshot, [], MISSING)
    said = {f"uid-of-training-{name}": Printed(metric=it) for name, it in figures.items()}
    return [
        *(told(run, said, going=False) for run in known.finished),
        *(told(run, said, going=True) for run in known.going),
    ]


def rows(runs: list[Told]) -> list[list[str]]:
    return [line.split() for line in tables(runs)[2:]]


THREE = [job("tune-a", {"lr": "a"}), job("tune-b", {"lr": "b"}), job("tune-c", {"lr": "c"})]


def test_the_best_run_is_first_and_one_without_a_figure_last() -> None:
    runs = of(THREE, {"tune-a": None, "tune-b": 0.7, "tune-c": 0.25})
    assert tables(runs)[1] == "sweep training/tune, minimize eval_loss"
    assert rows(runs) == [
        ["RUN", "lr", "eval_loss", "OUTCOME"],
        ["tune-c", "c", "0.25", "Complete", "best"],
        ["tune-b", "b", "0.7", "Complete"],
        ["tune-a", "a", "not", "known", "Complete"],
    ]


def test_the_highest_figure_is_the_best_where_the_goal_says_so() -> None:
    goal = {"name": "accuracy", "goal": "maximize"}
    jobs = [job("tune-a", {}, goal), job("tune-b", {}, goal)]
    found = rows(of(jobs, {"tune-a": 0.7, "tune-b": 0.9}))
    assert [line[0] for line in found[1:]] == ["tune-b", "tune-a"]


def test_the_best_of_runs_that_go_on_is_the_best_so_far() -> None:
    jobs = [*THREE[:2], job("tune-c", {"lr": "c"}, ended=None)]
    found = rows(of(jobs, {"tune-a": 0.1, "tune-b": 0.2}))
    assert found[1][-3:] == ["best", "so", "far"]


def test_without_a_metric_values_are_listed_and_no_run_is_the_best() -> None:
    found = rows(of([job("tune-a", {"lr": "a"}, None)], {}))
    assert found == [["RUN", "lr", "OUTCOME"], ["tune-a", "a", "Complete"]]


def test_a_job_of_no_sweep_is_in_no_table() -> None:
    assert tables(of([train_job()], {})) == [] and sweep_of(train_job()) is None


def test_the_last_figure_of_the_named_metric_counts_and_no_other_is_asked_for() -> None:
    def kubectl(*arguments: str) -> str:
        return "2026-11-21T12:06:00Z eval_loss: 3.5\n2026-11-21T12:07:00Z {'eval_loss': '2.5'}\n"

    jobs, pods = [THREE[0], train_job()], [pod(0, "tune-a"), pod(0)]
    said = printed(kubectl, cluster(trainjobs=jobs, pods=pods))
    assert {uid: each.metric for uid, each in said.items()} == {
        "uid-of-training-tune-a": 2.5,
        "uid-of-training-t5": None,
    }


@pytest.mark.parametrize(
    ("line", "figure"),
    [
        ("eval_loss: 0.51", "0.51"),
        ("{'eval_loss': 0.51, 'epoch': 1.0}", "0.51"),
        ("{'eval_loss': '5.1e-1', 'epoch': '1'}", "5.1e-1"),
        ('{"step": 3, "eval_loss": 12}', "12"),
        ("step=3 eval_loss=-0.5, lr=1", "-0.5"),
        ("step 3 eval_loss 0.5", "0.5"),
        ("| eval_loss | 0.5 |", "0.5"),
        ("train/eval_loss: 0.5", None),
        ("my_eval_loss: 0.5", None),
        ("eval_loss_scale: 0.5", None),
        ("eval_loss: nan", None),
        ("eval_loss: 3 of 5.x1", "3"),
        ("eval_loss: 1.2.3", None),
    ],
)
def test_a_figure_is_read_as_scripts_print_it(line: str, figure: str | None) -> None:
    """transformers' Trainer, its release 5, JSON lines, key=value, plain words, tables."""
    found = figure_named("eval_loss").search(line)
    assert (found and found[1]) == figure
