"""`trainyard spent`: hours and dollars of finished runs, by run and by team."""

from __future__ import annotations

import json
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.finished import cluster, expecting, node, pod, train_job
from trainyard.catalog.aws.own_prices import LIST
from trainyard.catalog.aws.prices import price
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import TargetError
from trainyard.operations.runs import runs, spent, watch
from trainyard.operations.runs.node_time import ABOUT, AT_LEAST, AT_MOST, EXACT, finished_runs
from trainyard.operations.runs.records import KEPT, MISSING, UNREADABLE, Known, runs_of

PRICE = next(filter(None, [price("ec2", "g6e.48xlarge", "us-east-1")]))
NODE = PRICE.usd


def of(snapshot: Snapshot) -> list[spent.Spent]:
    return [spent.spent(run) for run in finished_runs(snapshot)]


def two_teams() -> Snapshot:
    """A run whose pods are there, and one of another team whose pods are gone."""
    return cluster(trainjobs=[train_job(), train_job("vit", "team-vision")])


def test_a_run_costs_its_hours_times_the_price_of_its_nodes() -> None:
    [run] = of(cluster())
    assert (run.gpu_hours, run.known) == (16, EXACT)
    assert (run.usd, run.usd_known) == ((2 * NODE).quantize(Decimal("0.01")), EXACT)
    assert (run.nodes, run.instance_types, run.as_of) == (2, ("g6e.48xlarge",), PRICE.as_of)


def test_a_node_without_a_price_makes_the_dollars_at_least() -> None:
    spot = node(1, **{"karpenter.sh/capacity-type": "spot"})
    [run] = of(cluster(nodes=[node(0), spot]))
    assert (run.usd, run.usd_known) == (NODE.quantize(Decimal("0.01")), AT_LEAST)
    assert run.known == EXACT, "its hours are known"


def test_a_run_without_any_price_has_no_dollars() -> None:
    spot = {"karpenter.sh/capacity-type": "spot"}
    [run] = of(cluster(nodes=[node(0, **spot), node(1, **spot)]))
    assert run.usd is None
    [_, row, *_] = spent.text([run], 0)
    assert row.split()[-2:] == ["price", "-"]


def test_the_plans_figure_is_its_hours_at_the_same_prices() -> None:
    [run] = of(cluster(trainjobs=[expecting(train_job(), hours=1.25)]))
    assert run.planned_usd == (NODE * 2 * Decimal("1.25")).quantize(Decimal("0.01"))
    assert [run.planned_usd for run in of(cluster())] == [None]
    pods = [pod(number, gpus=1) for number in range(2)]
    [part] = of(cluster(trainjobs=[expecting(train_job(), hours=1)], pods=pods))
    assert (part.usd, part.planned_usd) == (
        part.planned_usd,
        (NODE * 2 / 8).quantize(Decimal("0.01")),
    )


def test_runs_are_summed_by_team_and_the_sum_says_what_it_is() -> None:
    vision, training = spent.by_namespace(of(two_teams()))
    assert (training.namespace, training.runs, training.known) == ("training", 1, EXACT)
    assert (vision.namespace, vision.known, vision.usd_known) == ("team-vision", AT_MOST, AT_MOST)
    mixed = [train_job(), train_job("again"), train_job("gone")]
    [both] = spent.by_namespace(of(cluster(trainjobs=mixed, pods=[pod(0), pod(0, "again")])))
    assert (both.runs, both.known) == (3, ABOUT)


def test_a_sum_with_a_run_without_a_price_is_at_least() -> None:
    spot = {"karpenter.sh/capacity-type": "spot"}
    jobs, pods = [train_job(), train_job("x")], [pod(0), pod(1), pod(2, "x"), pod(3, "x")]
    nodes = [node(0), node(1), node(2, **spot), node(3, **spot)]
    [total] = spent.by_namespace(of(cluster(trainjobs=jobs, pods=pods, nodes=nodes)))
    assert (total.usd, total.usd_known) == ((2 * NODE).quantize(Decimal("0.01")), AT_LEAST)


def test_a_person_reads_runs_sums_and_what_they_leave_out() -> None:
    said = spent.text(of(two_teams()), going=1)
    assert said[1].startswith("training/t5 ") and "16.00" in said[1]
    sums = [line.split() for line in said if line.startswith("team-vision ")]
    assert sums[-1][2:4] == ["at", "most"], "the words stand before their figure"
    assert "1 job not ended" in said
    notes = " ".join(" ".join(said).split())
    assert all(note in notes for note in spent.NOTES) and max(map(len, said[-9:])) <= 100


def test_a_cluster_without_a_finished_run_says_so_and_why_one_may_be_gone() -> None:
    first, why, *_ = spent.text([], 2, history=MISSING)
    assert first == "no finished run is on the cluster; 2 jobs not ended"
    assert why.startswith("  Sums are at least: a run whose job is deleted")
    assert spent.text([], 0) == ["no finished run is on the cluster"]


@pytest.mark.parametrize(
    ("state", "fix"),
    [(MISSING, "write history: {} under environment"), (UNREADABLE, "you cannot read the history")],
)
def test_without_a_history_every_sum_is_a_bound_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str, fix: str
) -> None:
    """A job that is deleted or replaced takes its run with it: the sum looked as if it were all."""
    [exact], [bound] = (spent.by_namespace(of(cluster()), each) for each in (KEPT, state))
    assert (exact.known, exact.usd_known) == (EXACT, EXACT)
    assert (bound.known, bound.usd_known, bound.usd) == (AT_LEAST, AT_LEAST, exact.usd)
    [gone] = spent.by_namespace(of(cluster(pods=[], nodes=[])), state)
    assert (gone.known, gone.usd_known) == (ABOUT, ABOUT), "one run is at most, others are missing"
    monkeypatch.setattr(spent, "known_runs", lambda stack: runs_of(cluster(), [], state))
    assert run_word("spent", ["dev"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "NAMESPACE RUNS GPU HOURS USD training 1 at least 16.00 at least" in said
    assert "Sums are at least" in said and fix in said


def test_with_a_history_nothing_is_said_to_be_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(spent, "known_runs", lambda stack: runs_of(cluster(), [], KEPT))
    assert run_word("spent", ["dev"]) == 0
    assert "Sums are at least" not in capsys.readouterr().out


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    def known(stack: str) -> Known:
        assert stack == "dev"
        return runs_of(cluster(), [], MISSING)

    monkeypatch.setattr(spent, "known_runs", known)


@pytest.mark.usefixtures("read")
def test_a_program_reads_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("spent", ["dev", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    [run], [team] = told["runs"], told["namespaces"]
    assert (run["job"], run["gpu_hours"], run["usd_known"]) == ("t5", "16.00", "")
    assert (team["usd_known"], told["history"]) == ("at least", "missing")
    assert team["usd"] == run["usd"] and told["running"] == 0 and len(told["notes"]) == 4
    assert told["beside_plan"] is None


@pytest.mark.usefixtures("read")
def test_a_person_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("spent", ["dev"]) == 0
    assert capsys.readouterr().out.startswith("RUN ")


def test_a_cluster_that_does_not_answer_and_a_stack_without_one_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(error: Exception) -> Any:
        def fail(*_: Any, **__: Any) -> Any:
            raise error

        return fail

    monkeypatch.setattr(spent, "known_runs", fails(TargetError("stack x has no cluster")))
    assert run_word("spent", ["x"]) == 1
    monkeypatch.setattr(spent, "known_runs", fails(RuntimeError("timed out")))
    assert run_word("spent", ["x"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.splitlines() == [
        "stack x has no cluster",
        "the cluster does not answer: timed out",
    ]


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder with Pulumi.dev.yaml, in which a g6e costs 0.45 of its list price; the stack file."""
    file = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
    prices = {"discount_percent": 10, "savings_plan_percent": {"g6e": 50}, "support_percent": 3}
    file["config"]["trainyard:environment"] |= {"prices": prices, "jobs": {}}
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    found = tmp_path / "Pulumi.dev.yaml"
    found.write_text(yaml.safe_dump(file))
    monkeypatch.chdir(tmp_path)
    return found


@pytest.mark.usefixtures("own")
def test_runs_are_counted_at_the_own_prices_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two hours of a node. Plan and run are at the same prices, so own ones do not change their ratio."""
    snapshot = cluster(trainjobs=[expecting(train_job(), hours=1)])
    monkeypatch.setattr(spent, "known_runs", lambda stack: runs_of(snapshot, [], KEPT))
    assert run_word("spent", ["dev", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    [run] = found["runs"]
    dollars = str((2 * NODE * Decimal("0.45")).quantize(Decimal("0.01")))
    assert (run["usd"], run["planned_usd"]) == (dollars, dollars)
    assert found["beside_plan"]["usd_ratio"] == "1.00"
    said = "USD are at own prices (environment.prices): 10 % off each price; Savings Plans: 50 % off g6e."
    assert said in found["notes"]
    monkeypatch.setattr(runs, "_read", lambda stack: (runs_of(snapshot, [], KEPT), {}, {}, {}))
    assert run_word("runs", ["dev", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["runs"][0]["usd"], found["runs"][0]["usd_planned"]) == (dollars, dollars)
    assert said in found["notes"]


@pytest.mark.usefixtures("own")
def test_nodes_that_run_now_cost_the_own_prices_of_the_stack(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    training = node(0, **{"trainyard.io/nodes": "training"})
    snapshot = cluster(nodes=[training], nodepools=[])
    monkeypatch.setattr(watch, "kubeconfig", lambda stack: "")
    monkeypatch.setattr(watch, "asking", lambda *_: nullcontext())
    monkeypatch.setattr(watch, "snapshot_of", lambda *_: snapshot)
    monkeypatch.setattr(watch, "alerts", lambda _: None)
    monkeypatch.setattr(watch, "Changes", lambda *_: lambda: ())
    assert run_word("watch", ["dev", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert Decimal(found["usd_per_hour"]) == NODE * Decimal("0.45")


def test_without_a_stack_file_or_with_a_wrong_one_the_list_counts(own: Path) -> None:
    assert own_prices("dev").discount_percent == 10
    own.write_text(own.read_text().replace("support_percent: 3", "support_percent: 300"))
    assert own_prices("dev") == LIST == own_prices("nowhere")
