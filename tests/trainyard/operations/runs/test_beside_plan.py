"""Runs beside what the plan counted for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.finished import cluster, expecting, node, pod, train_job
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs import runs, spent
from trainyard.operations.runs.beside_plan import BesidePlan, beside_plan
from trainyard.operations.runs.node_time import finished_runs
from trainyard.operations.runs.rank_lines import Printed
from trainyard.operations.runs.records import KEPT, runs_of
from trainyard.plans.jobs import EXPECTED

Object = dict[str, Any]


def ran(
    name: str, hours: float, expected: float | None = 1, **more: Any
) -> tuple[Object, list[Object]]:
    """A complete job of two nodes that ran so long, and its pods."""
    job = train_job(name, ended=5 + hours * 60, **more)
    pods = [pod(number, name, ended=5 + hours * 60) for number in (0, 1)]
    return (job if expected is None else expecting(job, expected)), pods


def of(runs: Sequence[tuple[Object, list[Object]]], **objects: list[Object]) -> Snapshot:
    """A cluster on which these have run."""
    jobs, pods = [job for job, _ in runs], [each for _, pods in runs for each in pods]
    return cluster(trainjobs=jobs, pods=pods, **objects)


def compared(snapshot: Snapshot) -> BesidePlan | None:
    runs = finished_runs(snapshot)
    costs = ((run, spent.spent(run)) for run in runs)
    return beside_plan([(run, spent.exact_usd(one.usd, one.usd_known)) for run, one in costs])


def test_the_last_ten_complete_runs_are_compared_by_their_medians() -> None:
    old = [ran(f"old-{number}", 0.1 + number / 1000) for number in range(5)]
    last = [ran(f"new-{number}", 1.035 + number / 100) for number in range(10)]
    found = compared(of([*old, *last]))
    assert found and found == BesidePlan(
        runs=10, hours_ratio=Decimal("1.08"), usd_runs=10, usd_ratio=Decimal("1.08")
    )
    assert (
        found.said
        == "the last 10 complete runs ran 1.08 × expected_hours, and cost 1.08 × the plan"
    )


def test_dollars_and_hours_differ_where_a_run_had_more_or_fewer_nodes() -> None:
    job, pods = ran("t5", 1.5)
    expecting(job, 1, nodes=3)
    found = compared(of([(job, pods)]))
    assert found and (found.hours_ratio, found.usd_ratio) == (Decimal("1.50"), Decimal("1.00"))
    assert found.said == "the last complete run ran 1.50 × expected_hours, and cost 1.00 × the plan"


def test_a_run_that_failed_lost_its_pods_or_has_no_plan_is_not_compared() -> None:
    failed, pods = ran("failed", 2)
    failed["status"]["conditions"][0]["type"] = "Failed"
    lost = ran("lost", 2)[0]
    assert compared(of([(failed, pods), (lost, []), ran("free", 2, None)])) is None


def test_without_a_price_the_hours_alone_are_compared() -> None:
    spot = {"karpenter.sh/capacity-type": "spot"}
    job, pods = ran("t5", 1.1)
    expecting(job, 1, capacity="spot")
    found = compared(of([(job, pods)], nodes=[node(0, **spot), node(1, **spot)]))
    assert found and found.said == "the last complete run ran 1.10 × expected_hours"
    assert (found.usd_runs, found.usd_ratio) == (0, None)


def test_one_run_among_others_without_a_price_is_said() -> None:
    job, pods = ran("t5", 2)
    found = compared(of([(expecting(job, 1, capacity="spot"), pods), ran("vit", 1)]))
    assert found and "ran 1.50 × expected_hours, and 1 of them cost 1.00 × the plan" in found.said


@pytest.mark.parametrize("said", ["", "7", "[]", '{"hours": 3}', "{", '{"hours": 1, "cows": 2}'])
def test_an_annotation_that_somebody_else_wrote_is_no_plan(said: str) -> None:
    job, pods = ran("t5", 2)
    job["metadata"]["annotations"][EXPECTED] = said
    assert compared(of([(job, pods)])) is None


def test_both_words_say_it_to_a_person_and_to_a_program(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    idle, pods = ran("idle", 0.02)
    snapshot = of([(idle, pods), ran("t5", 1.08)])
    known = runs_of(snapshot, [], KEPT)
    said = {"uid-of-training-idle": Printed(resumed_from="step 9", nothing_done="step 9")}
    monkeypatch.setattr(spent, "known_runs", lambda stack: known)
    monkeypatch.setattr(runs, "_read", lambda stack: (known, said, {}, {}))
    assert run_word("spent", ["dev"]) == 0
    assert "the last 2 complete runs ran 0.55 × expected_hours" in capsys.readouterr().out
    assert run_word("runs", ["dev"]) == 0
    shown = capsys.readouterr().out
    assert "  the last complete run ran 1.08 × expected_hours, and cost 1.08 × the plan" in shown
    assert "  planned: 1 h 00 min, 60.26 USD" in shown, "a run that had nothing to do is left out"
    for word in ("spent", "runs"):
        assert run_word(word, ["dev", "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["beside_plan"]["runs"] == (
            2 if word == "spent" else 1
        )
