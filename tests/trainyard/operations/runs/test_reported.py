"""Progress of a run by the trainerStatus of its TrainJob, or by its log: per cent, time to go, dollars to the end."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from tests.support.recording import CHECKOUT
from tests.trainyard.operations.finished import BEGAN, at, cluster, expecting, pod, train_job
from trainyard.catalog.aws.own_prices import OwnPrices
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs.frame import frame, plain
from trainyard.operations.runs.node_time import finished_runs, going_runs, uid_of
from trainyard.operations.runs.rank_lines import reached
from trainyard.operations.runs.reported import HowFar, far_of
from trainyard.operations.runs.runs import told
from trainyard.operations.runs.view import view
from trainyard.operations.status.status import tables

Object = dict[str, Any]


def running(said: Object | None, *, hours: float | None = None, minutes: float = 65) -> Snapshot:
    """A run of two nodes since minute 5, looked at in that minute. `said`: its trainerStatus."""
    status = {"conditions": [], **({"trainerStatus": said} if said else {})}
    job = train_job(ended=None, status=status)
    job = expecting(job, hours) if hours else job
    pods = [pod(number, ended=10_000) for number in range(2)]
    for each in pods:
        each["status"]["phase"] = "Running"
        each["status"]["containerStatuses"][0]["state"] = {"running": {"startedAt": at(6)}}
    made = cluster(trainjobs=[job], pods=pods)
    return replace(made, taken_at=BEGAN + timedelta(minutes=minutes))


def far(snapshot: Snapshot) -> HowFar | None:
    [run] = going_runs(snapshot)
    return far_of(run)


SAID = {
    "progressPercentage": 43,
    "estimatedRemainingSeconds": 3700,
    "lastUpdatedTime": at(65 - 100 / 60),
}


def test_time_to_go_counts_from_the_look_and_dollars_as_the_plan_does() -> None:
    planned = far(running(SAID, hours=10))
    assert planned and (planned.percent, planned.remaining_seconds) == (43, 3600)
    [run] = going_runs(running(SAID, hours=10))
    facts = told(run, {}, going=True)
    assert facts.usd_planned and planned.usd_remaining
    assert abs(planned.usd_remaining - facts.usd_planned / 10) < Decimal("0.01")
    half = OwnPrices(discount_percent=Decimal(50))
    cheaper = told(run, {}, going=True, prices=half).how_far
    assert cheaper and cheaper.usd_remaining
    assert abs(cheaper.usd_remaining - planned.usd_remaining / 2) < Decimal("0.02")
    assert str(planned) == f"43%, 1 h 00 min to go, about {planned.usd_remaining:,.2f} USD more"


def test_without_a_plan_an_hour_costs_what_it_has_cost_until_now() -> None:
    """One hour has passed, and one is to come."""
    seen = running(SAID)
    [run] = going_runs(seen)
    usd = told(run, {}, going=True).usd
    assert usd and usd > 10
    found = far(seen)
    assert found and found.usd_remaining and abs(found.usd_remaining - usd) <= Decimal("0.01")


def test_a_run_that_says_nothing_or_only_a_part_says_no_more() -> None:
    assert far(running(None)) is None
    only = far(running({"progressPercentage": 7, "lastUpdatedTime": at(60)}))
    assert only and str(only) == "7%" and only.usd_remaining is None
    metrics = far(running({"metrics": [], "lastUpdatedTime": at(60)}))
    assert metrics and str(metrics) == ""
    young = far(running(SAID, minutes=5.5))
    assert young and young.usd_remaining is None, "half a minute has no price of an hour"


def test_an_estimate_whose_time_is_over_is_no_time_before_now() -> None:
    late = far(running({"estimatedRemainingSeconds": 60, "lastUpdatedTime": at(60)}))
    assert late and late.remaining_seconds == 0


def test_a_complete_run_has_no_per_cent_and_one_that_failed_has_no_time_to_go() -> None:
    job = train_job()
    job["status"]["trainerStatus"] = SAID
    [run] = finished_runs(cluster(trainjobs=[job]))
    assert run.job.complete and far_of(run) is None
    job["status"]["conditions"][-1]["type"] = "Failed"
    [failed] = finished_runs(cluster(trainjobs=[job]))
    assert not failed.job.complete and str(far_of(failed)) == "43%"


def test_runs_status_and_watch_say_it() -> None:
    seen = running(SAID, hours=10)
    [run] = going_runs(seen)
    said = str(told(run, {}, going=True).how_far)
    assert said.startswith("43%, 1 h 00 min to go, about ")
    assert "Running 43%" in tables(seen)
    [line] = [line for line in plain(frame(view("dev", seen, None))) if "training/t5" in line]
    assert said in line
    [quiet] = [
        line for line in plain(frame(view("dev", running(None), None))) if "training/t5" in line
    ]
    assert "%" not in quiet


def test_the_crd_of_trainer_2_3_has_these_fields_and_that_of_2_1_has_none() -> None:
    """KEP-2779. A field that the CRD lacks would be pruned without a word."""
    known: dict[str, Object] = {}
    for release in ("2.1.0", "2.3.0"):
        folder = CHECKOUT / "components/charts" / f"kubeflow-trainer-crds-{release}/templates"
        crd = json.loads((folder / "trainjobs.trainer.kubeflow.org.yaml").read_text())
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]
        known[release] = schema["properties"].get("trainerStatus", {}).get("properties", {})
    assert known["2.1.0"] == {} and {*SAID} <= {*known["2.3.0"]}


def line(minute: float, text: str) -> tuple[datetime | None, str]:
    return datetime.fromisoformat(at(minute)), text


def bar(step: int, of: int = 100) -> str:
    return f" {100 * step // of}%|██   | {step}/{of} [00:01<"


def test_without_a_status_the_log_says_per_cent_and_time_of_a_job_of_either_kind() -> None:
    """From 10 to 40 of 100 in 30 minutes: 60 are left a minute before the look."""
    lines = [line(minute, bar(minute - 24)) for minute in range(34, 65)]
    found = reached({}, lines)
    [run] = going_runs(running(None, hours=10))
    far = far_of(run, reached=found)
    assert found and far and (far.percent, far.remaining_seconds) == (40, 59 * 60)
    planned = told(run, {}, going=True).usd_planned
    assert planned and far.usd_remaining
    assert abs(far.usd_remaining - planned * 59 / 600) < Decimal("0.02")
    [shown] = view("dev", running(None), None, reached={uid_of(run): found}).gangs
    assert shown.how_far.startswith("40%, 59 min to go")


def test_a_complete_run_has_no_per_cent_whatever_its_script_said_last() -> None:
    """A script that reports before it saves its last step ends at 91%."""
    [run] = going_runs(running(SAID))
    done = replace(run, job=replace(run.job, state="Complete"))
    assert (run.job.percent, done.job.percent, far_of(done)) == ("43%", "", None)
    failed = replace(run, job=replace(run.job, state="Failed"))
    assert failed.job.percent == "43%" and far_of(failed)


def test_what_the_trainer_knows_goes_before_the_log() -> None:
    [run] = going_runs(running(SAID))
    far = far_of(run, reached=reached({}, [line(64, bar(90))]))
    assert far and far.percent == 43


def test_a_bar_of_an_evaluation_and_one_before_a_restart_do_not_count() -> None:
    lines = [line(1, bar(80)), line(5, bar(20)), line(6, bar(3, of=5)), line(9, bar(24))]
    found = reached({}, lines)
    assert found and found.share == 0.24
    assert found.share_a_second and abs(found.share_a_second - 0.04 / 240) < 1e-9
    once = reached({}, [line(5, bar(20))])
    [run] = going_runs(running(None))
    assert once and once.share_a_second is None and str(far_of(run, reached=once)) == "20%"
    assert reached({}, [line(5, "compiling")]) is None and far_of(run) is None


def test_epochs_are_counted_by_the_arguments_of_the_job() -> None:
    said = [line(5, "{'loss': '6.13', 'epoch': '1.5'}")]
    spec = {"trainer": {"command": ["torchrun", "train.py", "--num_train_epochs", "3"]}}
    found = reached(spec, said)
    assert found and found.share == 0.5 and reached({}, said) is None


def test_dollars_to_the_end_are_counted_at_the_prices_of_the_stack() -> None:
    half = OwnPrices(discount_percent=Decimal(50))
    [run] = going_runs(running(SAID, hours=10))
    listed, own = far_of(run), far_of(run, half)
    assert listed and own and listed.usd_remaining and own.usd_remaining
    assert abs(listed.usd_remaining - own.usd_remaining * 2) <= Decimal("0.02")
