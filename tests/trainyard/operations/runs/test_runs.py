"""`trainyard runs`: who, what, when, how long, on what, for how much, and how it ended; gaps are named."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.launchers import torchrun
from tests.support.tool import run_word
from tests.trainyard.operations.finished import cluster, pod, train_job
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note_of
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.target import TargetError
from trainyard.operations.runs import runs
from trainyard.operations.runs.node_time import AT_LEAST
from trainyard.operations.runs.rank_lines import Printed
from trainyard.operations.runs.records import KEPT, MISSING, runs_of
from trainyard.operations.runs.runs import HISTORY, NOTES, Told, text, told
from trainyard.plans.jobs import GOODPUT

SAID = Printed(
    resumed_from="step-00000012.pt",
    saved="step-00000020.pt",
    saved_at=datetime(2026, 11, 21, 12, 30, tzinfo=UTC),
)


def of(snapshot: Snapshot, said: Printed = SAID) -> list[Told]:
    known = runs_of(snapshot, [], MISSING)
    prints = {job.body["metadata"]["uid"]: said for job in snapshot.jobs()}
    return [
        *(told(run, prints, going=False) for run in known.finished),
        *(told(run, prints, going=True) for run in known.going),
    ]


def test_a_finished_run_says_who_what_when_how_long_and_what_it_took() -> None:
    [run] = of(cluster())
    assert (run.namespace, run.job, run.kind, run.by_stack) == ("training", "t5", "TrainJob", True)
    assert (run.image, run.nodes, run.gpu_hours) == ("ghcr.io/team/train:1", 2, 16)
    assert (run.waited_seconds, run.ran_seconds) == (5 * 60, 65 * 60)
    assert (run.outcome, run.reason, run.resumed_from) == ("Complete", "", "step-00000012.pt")
    assert run.checkpoint == "step-00000020.pt" and run.checkpoint_age_seconds is None


def test_how_long_a_run_waited_is_not_known_where_its_first_pods_are_gone() -> None:
    """A run of days that was restarted near its end said that it had waited for days."""
    [run] = runs_of(cluster(), [], MISSING).finished
    one = told(replace(run, known=AT_LEAST), {}, going=False)
    assert (one.waited_seconds, one.ran_seconds) == (None, 65 * 60)


def test_a_failed_run_says_why() -> None:
    failed = {
        "type": "Failed",
        "status": "True",
        "reason": "BackoffLimitExceeded",
        "message": "rank 3 left",
        "lastTransitionTime": "2026-11-21T13:00:00Z",
    }
    job = train_job(status={"conditions": [failed]})
    [run] = of(cluster(trainjobs=[job]))
    assert (run.outcome, run.reason) == ("Failed", "BackoffLimitExceeded: rank 3 left")
    assert "  why: BackoffLimitExceeded: rank 3 left" in text([run], NOTES)


def test_of_a_failed_run_without_pods_the_reason_is_said_that_an_update_has_noted() -> None:
    ended = {"type": "Failed", "status": "True", "reason": "r", "message": "m"}
    job = train_job(status={"conditions": [ended | {"lastTransitionTime": "2026-11-21T13:00:00Z"}]})
    noted = {WHY: note_of(Cause("node rank 0 ended: ValueError: no such column", "mend it"))}
    job["metadata"].setdefault("annotations", {}).update(noted)
    known = runs_of(cluster(trainjobs=[job], pods=[]), [], MISSING)
    causes = runs._causes(lambda *_: "", known.finished)
    [run] = [told(run, {}, causes, going=False) for run in known.finished]
    assert (run.why, run.fix) == ("node rank 0 ended: ValueError: no such column", "mend it")


def test_a_run_that_goes_on_says_why_its_last_try_failed_where_an_update_has_noted_it() -> None:
    job = train_job(status={})
    why = "node rank 0 ended: unrecognized arguments: --stepz"
    job["metadata"].setdefault("annotations", {})[WHY] = note_of(Cause(why, ""))
    sets = [{"metadata": {"name": "t5", "namespace": "training"}, "status": {"restarts": 2}}]
    sets[0]["metadata"] = {key: job["metadata"][key] for key in ("name", "namespace")}
    known = runs_of(cluster(trainjobs=[job], pods=[pod(0)], jobsets=sets), [], MISSING)
    [run] = known.going
    said = told(run, {}, runs._of_tries(known.going), going=True)
    assert said.restarts == 2 and said.why == why
    assert f"  why it began again: {why}" in text([said], NOTES)


def test_a_failed_run_says_the_sentence_about_the_rank_that_ended_first_and_what_to_do() -> None:
    ended = {"type": "Failed", "status": "True", "reason": "r", "message": "m"}
    job = train_job(status={"conditions": [ended | {"lastTransitionTime": "2026-11-21T13:00:00Z"}]})
    pods = [pod(0), pod(1)]
    end = {"exitCode": 1, "finishedAt": "2026-11-21T12:59:00Z"}
    pods[1]["status"]["containerStatuses"] = [{"name": "node", "state": {"terminated": end}}]
    pods[1]["spec"]["containers"][0]["name"] = "node"
    known = runs_of(cluster(trainjobs=[job], pods=pods), [], MISSING)
    asked: list[tuple[str, ...]] = []

    def kubectl(*words: str) -> str:
        asked.append(words)
        return f"RuntimeError: CUDA out of memory\n{torchrun('1', '0')}\n"

    causes = runs._causes(kubectl, known.finished)
    [run] = [told(run, {}, causes, going=False) for run in known.finished]
    assert run.why.endswith("(a GPU has too little memory for the model and its batch)")
    assert "ended first, with exit code 1: RuntimeError: CUDA out of memory" in run.why
    assert run.fix == "lower the batch of a rank, or shard the model over more GPUs"
    assert run.reason == "r: m" and [words[0] for words in asked] == ["logs"]
    lines = "\n".join(text([run], NOTES))
    assert "  why: node rank 0 on " in lines and "  fix: lower the batch of a rank" in lines


def test_a_run_that_was_complete_at_once_has_an_outcome_of_its_own() -> None:
    idle = Printed(resumed_from="step 81", nothing_done="step 81")
    [run] = of(cluster(), idle)
    assert run.outcome == "NothingToDo"
    assert "  it had nothing to do: it resumed from step 81" in "\n".join(text([run], NOTES))
    [going] = of(cluster(trainjobs=[train_job(ended=None)]), idle)
    assert (going.outcome, going.nothing_to_do) == ("Running", "")


def test_a_run_that_goes_on_tells_the_age_of_its_checkpoint_and_one_that_waits_that_it_waits() -> (
    None
):
    jobs = [train_job(ended=None), train_job("waits", ended=None)]
    jobs[1]["metadata"]["annotations"] = {}
    snapshot = cluster(trainjobs=jobs)
    going, waits = of(snapshot)
    age = (snapshot.taken_at - datetime(2026, 11, 21, 12, 30, tzinfo=UTC)).total_seconds()
    assert going.outcome == "Running" and going.checkpoint_age_seconds == int(age)
    assert (waits.outcome, waits.ran_seconds, waits.by_stack) == ("Waiting", None, False)
    assert waits.usd == 0, "it has no node yet"


def test_a_checkpoint_on_no_store_is_said_to_end_with_its_pod() -> None:
    job = train_job()
    job["spec"]["trainer"]["command"] = ["torchrun", "train.py"]
    lost = "newest checkpoint: step-00000020.pt, which is on no store and ends with its pod"

    def said() -> str:
        return " ".join(" ".join(text(of(cluster(trainjobs=[job])), NOTES)).split())

    assert lost in said()
    volume = {"name": "s", "persistentVolumeClaim": {"claimName": "scratch"}}
    job["spec"]["podTemplateOverrides"] = [{"spec": {"volumes": [volume]}}]
    assert lost not in said()
    job["spec"]["trainer"]["env"] = [{"name": "CHECKPOINT_DIR", "value": "/stores/scratch/mine"}]
    job["spec"]["podTemplateOverrides"] = [{"spec": {"nodeSelector": {}}}]
    assert lost in said()
    del job["spec"]["podTemplateOverrides"]
    assert lost not in said(), (
        "another Trainer has taken the field away, and the pods have its volumes"
    )


def test_a_run_whose_steps_are_known_says_what_was_planned_and_what_was_reached() -> None:
    job = train_job()
    job["metadata"]["annotations"][GOODPUT] = "0.953"
    said = replace(SAID, step=1200, step_seconds=0.5234, goodput=0.9181)
    lines = text(of(cluster(trainjobs=[job]), said), NOTES)
    assert "  step: 1200, 0.523 s each; goodput: planned 95.3%, measured 91.8%" in lines
    lines = text(of(cluster(), replace(SAID, step=3)), NOTES)
    assert "  step: 3; goodput: planned not known, measured not known" in lines
    assert not any("goodput" in line for line in text(of(cluster()), NOTES))


def test_what_nobody_knows_is_said_to_be_not_known() -> None:
    [run] = of(cluster(pods=[]), Printed())
    lines = text([run], (HISTORY[MISSING], *NOTES))
    assert "not known" in lines[1]
    assert "  resumed from: not known; newest checkpoint: not known" in lines
    assert any("history: {}" in line for line in lines)
    assert max(map(len, lines)) <= 110


def test_the_image_of_a_pytorch_job_is_that_of_its_first_container() -> None:
    container = {"name": "pytorch", "image": "ghcr.io/team/other:2"}
    master = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    job = train_job(spec={"pytorchReplicaSpecs": {"Master": master}})
    job["kind"] = "PyTorchJob"
    own = pod(0)
    own["metadata"]["labels"] = {"training.kubeflow.org/job-name": "t5"}
    [run] = of(cluster(trainjobs=[], pytorchjobs=[job], pods=[own]))
    assert run.image == "ghcr.io/team/other:2"


def test_a_cluster_without_a_run_says_what_the_list_would_lack() -> None:
    assert text([], (HISTORY[KEPT],))[0] == "no run is known"


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_read", lambda stack: (runs_of(cluster(), [], KEPT), {}, {}, {}))


@pytest.mark.usefixtures("read")
def test_a_program_reads_it_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("runs", ["dev", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    [run] = said["runs"]
    assert (run["job"], run["outcome"], run["usd_known"], said["history"]) == (
        "t5",
        "Complete",
        "",
        "kept",
    )


@pytest.mark.usefixtures("read")
def test_a_person_gets_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("runs", ["dev"]) == 0
    assert capsys.readouterr().out.startswith("RUN ")


def test_a_cluster_that_does_not_answer_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(error: Exception) -> Any:
        def fail(stack: str) -> Any:
            raise error

        return fail

    monkeypatch.setattr(runs, "_read", fails(TargetError("stack x has no cluster")))
    assert run_word("runs", ["x"]) == 1
    monkeypatch.setattr(runs, "_read", fails(RuntimeError("timed out")))
    assert run_word("runs", ["x"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "stack x has no cluster",
        "the cluster does not answer: timed out",
    ]
