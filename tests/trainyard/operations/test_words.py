"""The words for one job: its logs, its end, and its next run; as a person types them one after the
other, on recorded objects of a cluster."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.launchers import torchrun
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.recovery.test_drain import ENVIRONMENT, OURS, SERVED
from tests.trainyard.operations.terminal import Terminal
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note_of
from trainyard.operations.reach import chosen
from trainyard.operations.reach.chosen import Chosen, NoSuchJob, choose
from trainyard.operations.reach.place import place_of
from trainyard.operations.runs.stop import _afterwards
from trainyard.plans.jobs import RUN, SCHEDULE, SWEEP

Object = dict[str, Any]
STACK_FILE = """\
config:
  aws:region: ap-northeast-2
  trainyard:environment:
    zone: ap-northeast-2a
    cluster: {version: "1.35", public_access_cidrs: [203.0.113.7/32]}
    pools:
      g6e: {instance_types: [g6e.48xlarge], max_nodes: 4}
    storage:
      scratch: {lustre: {capacity_gib: 4800, throughput_mbps_per_tib: 500}}
    trainer: {version: 2.1.0, runtimes: [torch-distributed]}
    jobs:
      mine:  # the first try
        runtime: torch-distributed
        nodes: 2
        pool: g6e
        image: registry.example.com/train:1
        script: torchrun train.py
        checkpoints: {store: scratch, directory: mine}
      theirs: {manifest: theirs.yaml, pool: g6e, run: 2}
"""
MNIST = "      mnist: {manifest: mnist.yaml, pool: g6e}\n"


def _job(name: str, kind: str = "TrainJob", state: str = "Failed") -> Object:
    ended = {"type": state, "status": "True", "lastTransitionTime": "2026-11-22T05:40:00Z"}
    return {
        "kind": kind,
        "metadata": {"namespace": "training", "name": name, "uid": f"uid-of-{name}"},
        "status": {"conditions": [ended]},
    }


def _pod(job: str, number: int, role: str = "") -> Object:
    labels = {"jobset.sigs.k8s.io/jobset-name": job, "batch.kubernetes.io/job-completion-index": ""}
    labels["batch.kubernetes.io/job-completion-index"] = str(number)
    if role:
        labels = {
            "training.kubeflow.org/job-name": job,
            "training.kubeflow.org/replica-type": role,
            "training.kubeflow.org/replica-index": str(number),
        }
    return {
        "metadata": {"name": f"{job}-{role}{number}", "labels": labels},
        "spec": {"nodeName": "n1", "containers": [{"name": "node"}]},
    }


PODS = {
    "mine": [_pod("mine", 0), _pod("mine", 1)],
    "pytorch-mnist": [_pod("pytorch-mnist", 0, "master"), _pod("pytorch-mnist", 0, "worker")],
    "gone": [],
}
ENTRIES = {
    "mine": {"kind": "TrainJob", "namespace": "training", "name": "mine", "logs": "kubectl …"},
    "mnist": {"kind": "PyTorchJob", "namespace": "training", "name": "pytorch-mnist"},
    "planned": {"kind": "TrainJob", "namespace": "training", "name": "planned"},
}


class Cluster:
    """The programs pulumi and kubectl, for a stack with three entries and a job sent by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: str | None = None) -> None:
        self.jobs = [_job("mine"), _job("pytorch-mnist", "PyTorchJob"), _job("gone")]
        self.followed: list[str] = []
        self.log = ""
        """Log of the one pod that has failed."""
        self.terminal = Terminal(monkeypatch, answer)
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(words, 0, self._answer([*words], how), "")

    def _answer(self, words: list[str], how: dict[str, Any]) -> str:
        if words[0] == "pulumi":
            return json.dumps(ENVIRONMENT | {"jobs": ENTRIES})
        assert words[0] == "kubectl"
        if "view" in words:
            return json.dumps(OURS)
        kubeconfig = json.loads(Path(how["env"]["KUBECONFIG"]).read_text())
        assert kubeconfig == OURS, "the stack's cluster and no other"
        match words[1:]:
            case ["get", "--raw=/version", *_]:
                return "{}"
            case ["get", "--raw", path, *_]:
                assert path == "/apis/kubeflow.org/v1"
                return SERVED
            case ["get", "pods", _, selector, *_]:
                job = selector.rpartition("=")[2]
                there = any(one["metadata"]["name"] == job for one in self.jobs)
                return json.dumps({"items": PODS[job] if there else []})
            case ["get", kind, *_]:
                return json.dumps({"items": [one for one in self.jobs if self._is(one, kind)]})
            case ["logs", "mine-1", *_] if self.log:
                return self.log
            case ["logs", *rest]:
                self.followed = rest
                return ""
            case ["delete", kind, name, *_]:
                self.jobs = [one for one in self.jobs if one["metadata"]["name"] != name]
                return ""
        raise AssertionError(words)

    def _is(self, job: Object, kind: str) -> bool:
        return kind.startswith(f"{job['kind'].lower()}s.")


def test_all_ranks_are_printed_whole_behind_their_names(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch)
    assert run_word("logs", ["--stack", "dev", "--job", "mine", "--follow"]) == 0
    assert cluster.followed == [
        "--namespace=training",
        "--selector=jobset.sigs.k8s.io/jobset-name=mine",
        "--all-containers",
        "--prefix",
        "--tail=-1",
        "--ignore-errors",
        "--max-log-requests=1000",
        "--follow",
    ]


def test_of_a_job_whose_pods_are_gone_the_reason_is_said_that_an_update_has_noted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    monkeypatch.setitem(PODS, "mine", [])
    [job] = [one for one in cluster.jobs if one["metadata"]["name"] == "mine"]
    text = note_of(Cause("node rank 0 on n1 ended: ValueError: no such column", "mend the script"))
    monkeypatch.setitem(job["metadata"], "annotations", {WHY: text})
    assert run_word("logs", ["--stack", "dev", "--job", "mine"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == (
        "TrainJob training/mine has no pod any more, so there is no log. The update that waited for it read why: node"
        " rank 0 on n1 ended: ValueError: no such column. Fix: mend the script"
    )


def test_behind_the_log_of_a_job_that_failed_comes_the_sentence_about_its_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.log = f"ModuleNotFoundError: No module named 'einops'\n{torchrun('1', '0')}\n"
    end = {"name": "node", "state": {"terminated": {"exitCode": 1, "finishedAt": "2026"}}}
    monkeypatch.setitem(PODS["mine"][1], "status", {"containerStatuses": [end]})
    assert run_word("logs", ["--stack", "dev", "--job", "mine"]) == 0
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "why: node rank 1 on n1 ended first, with exit code 1: ModuleNotFoundError: No module named 'einops'"
        " (the image has no Python module einops)",
        "fix: install einops in the image (`trainyard image`), or add its file to files.sources",
    ]


@pytest.mark.parametrize(
    ("job", "rank", "selects"),
    [
        ("mine", "1", "batch.kubernetes.io/job-completion-index=1"),
        ("mnist", "0", "replica-type=master,training.kubeflow.org/replica-index=0"),
        ("pytorch-mnist", "1", "replica-type=worker,training.kubeflow.org/replica-index=0"),
    ],
)
def test_a_rank_is_a_node_of_either_kind_of_job(
    monkeypatch: pytest.MonkeyPatch, job: str, rank: str, selects: str
) -> None:
    cluster = Cluster(monkeypatch)
    assert run_word("logs", ["--stack", "dev", "--job", job, "--rank", rank]) == 0
    assert cluster.followed[1].endswith(selects) and "--follow" not in cluster.followed


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--job", "mine", "--rank", "2"], "has no node 2. Fix: name one by --rank: 0, 1"),
        (["--job", "gone"], "TrainJob training/gone has no pod, so there is no log"),
        (["--job", "gone"], "a log goes with its pod. Pods of a runtime of own_runtimes"),
        (["--job", "mien"], "no job mien in all namespaces"),
        (
            ["--job", "planned"],
            "jobs.planned has no job in all namespaces of cluster ours, stack dev: it has been stopped, or has not"
            " started. trainyard status --stack dev lists the jobs that there are\n",
        ),
        (
            [],
            "there are 3 jobs in all namespaces of cluster ours, stack dev: mine, training/gone, mnist. Fix:"
            " name one, as in trainyard logs mine --stack dev\n",
        ),
    ],
)
def test_what_has_no_log_is_said_with_what_there_is(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    says: str,
) -> None:
    cluster = Cluster(monkeypatch)
    assert run_word("logs", ["--stack", "dev", *words]) == 1
    assert says in capsys.readouterr().err and not cluster.followed


def test_the_only_job_needs_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch)
    cluster.jobs = [_job("mine")]
    assert run_word("logs", ["--stack", "dev"]) == 0 and "mine" in cluster.followed[1]


@pytest.mark.parametrize("name", ["mnist", "pytorch-mnist", "training/pytorch-mnist"])
def test_a_job_is_chosen_by_its_entry_its_name_or_namespace_and_name(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    cluster = Cluster(monkeypatch)
    assert (
        run_word("logs", ["--stack", "dev", "--job", name]) == 0
        and "pytorch-mnist" in cluster.followed[1]
    )


def _of_team(name: str) -> Object:
    job = _job(name, state="Running")
    job["metadata"] |= {"namespace": "team-a", "uid": f"uid-of-team-a-{name}"}
    return job


@pytest.mark.parametrize(
    ("name", "found"),
    [("mine", "training/mine"), ("team-a/mine", "team-a/mine"), ("training/mine", "training/mine")],
)
def test_the_name_of_an_entry_means_that_entry_alone_where_a_team_has_a_job_of_that_name(
    monkeypatch: pytest.MonkeyPatch, name: str, found: str
) -> None:
    cluster = Cluster(monkeypatch, answer="y")
    cluster.jobs = [_of_team("mine"), _job("mine", state="Running"), _of_team("wav")]
    items = json.dumps({"items": cluster.jobs})

    def kubectl(*words: str) -> str:
        return SERVED if "--raw" in words else items if "trainjobs" in words[1] else '{"items": []}'

    body = choose(kubectl, place_of("dev", ENVIRONMENT), ENTRIES, name).body
    assert f"{body['metadata']['namespace']}/{body['metadata']['name']}" == found


def test_the_job_of_a_team_goes_on_where_the_entry_of_that_name_has_no_job(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`stop pretrain --yes` ended the run of the team once the own one was gone."""
    cluster = Cluster(monkeypatch)
    cluster.jobs = [_of_team("mine")]
    assert run_word("stop", ["mine", "--stack", "dev", "--yes"]) == 1 and len(cluster.jobs) == 1
    said = capsys.readouterr().err
    assert "jobs.mine has no job in all namespaces" in said and "team-a/mine" not in said
    assert said.endswith("No job was stopped.\n")


def test_a_name_that_several_jobs_have_is_refused_with_names_that_each_mean_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.jobs = [_of_team("gone"), _job("gone")]
    assert run_word("stop", ["gone", "--stack", "dev", "--yes"]) == 1 and len(cluster.jobs) == 2
    said = capsys.readouterr().err
    assert "Fix: name one, as in trainyard stop team-a/gone --stack dev" in said


def test_an_empty_cluster_has_no_job_to_choose() -> None:
    with pytest.raises(NoSuchJob, match="no training job in all namespaces"):
        choose(
            lambda *words: SERVED if "--raw" in words else '{"items": []}',
            place_of("dev", ENVIRONMENT),
            {},
            None,
        )


def test_a_job_is_stopped_after_its_name_and_a_yes_and_the_way_back_is_printed(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.write_text(STACK_FILE + MNIST)
    cluster = Cluster(monkeypatch, answer="y")
    assert run_word("stop", ["--stack", "dev", "--job", "mnist"]) == 0
    assert [job["metadata"]["name"] for job in cluster.jobs] == ["mine", "gone"]
    assert cluster.terminal.asked[0].startswith(
        "Stop this job, and delete its pods and their logs?"
    )
    assert capsys.readouterr().out.splitlines()[1:] == [
        "PyTorchJob training/pytorch-mnist, jobs.mnist of the stack file: Failed since"
        " 2026-11-22T05:40:00Z",
        "deletes PyTorchJob training/pytorch-mnist",
        "stopped; Pulumi.dev.yaml still describes it, and make up STACK=dev starts no run of the same"
        " number",
        "to begin again: trainyard again mnist --stack dev, then make up STACK=dev",
        "to be without it: delete jobs.mnist from Pulumi.dev.yaml, then make up STACK=dev",
    ]


@pytest.mark.parametrize(("answer", "code"), [("n", 3), (None, 2)])
def test_without_a_yes_no_job_is_stopped(
    monkeypatch: pytest.MonkeyPatch, answer: str | None, code: int
) -> None:
    cluster = Cluster(monkeypatch, answer=answer)
    assert run_word("stop", ["--stack", "dev", "--job", "mine"]) == code
    assert len(cluster.jobs) == 3
    assert (
        run_word("stop", ["--stack", "dev", "--job", "mine", "--yes"]) == 0
        and len(cluster.jobs) == 2
    )


@pytest.mark.parametrize("state", ["Succeeded", "Failed"])
def test_a_job_that_has_ended_is_left_alone_with_its_record_and_its_logs(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], state: str
) -> None:
    """`stop --yes` of a job that was complete deleted it with all that was known of it."""
    checkout.write_text(STACK_FILE + MNIST)
    cluster = Cluster(monkeypatch)
    cluster.jobs[1] = _job("pytorch-mnist", "PyTorchJob", state)
    for pod in PODS["pytorch-mnist"]:
        monkeypatch.setitem(pod, "status", {"phase": state})
    assert run_word("stop", ["--stack", "dev", "--job", "mnist", "--yes"]) == 0
    assert len(cluster.jobs) == 3
    assert capsys.readouterr().out.splitlines()[1:] == [
        f"PyTorchJob training/pytorch-mnist, jobs.mnist of the stack file: {state} since"
        " 2026-11-22T05:40:00Z",
        "nothing to stop: it has ended, and no pod of it runs. It stays with its pods and their logs",
        "to be without it: delete jobs.mnist from Pulumi.dev.yaml, then make up STACK=dev",
    ]
    assert run_word("stop", ["--stack", "dev", "--job", "gone", "--yes"]) == 0
    assert capsys.readouterr().out.endswith(
        "to be without it: kubectl -n training delete trainjob gone\n"
    )


def test_a_job_that_has_ended_and_whose_pods_still_run_can_be_stopped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(monkeypatch)
    for pod, phase in zip(PODS["mine"], ("Running", "Failed"), strict=True):
        monkeypatch.setitem(pod, "status", {"phase": phase})
    assert run_word("stop", ["--stack", "dev", "--job", "mine", "--yes"]) == 0
    assert len(cluster.jobs) == 2


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a stack file; returns the file."""
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    (tmp_path / "Pulumi.dev.yaml").write_text(STACK_FILE)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "Pulumi.dev.yaml"


def test_a_run_is_counted_up_and_nothing_else_of_the_file_changes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Terminal(monkeypatch, "y")
    assert run_word("again", ["--stack", "dev", "--job", "mine"]) == 0
    assert checkout.read_text() == STACK_FILE.replace(
        "        runtime: torch", "        run: 2\n        runtime: torch"
    )
    shown = capsys.readouterr().out
    assert (
        "run 2 goes on from the checkpoint in scratch/mine, and ends at once where the run before it has"
        " finished\nto begin afresh instead: write another checkpoints.directory, such as mine-2\n"
    ) in shown
    assert shown.endswith("next: make up STACK=dev\n")
    assert run_word("again", ["--stack", "dev", "--job", "mine", "--yes", "--live"]) == 0
    assert "        run: 3\n        runtime: torch" in checkout.read_text()
    assert capsys.readouterr().out.endswith("next: pulumi up --stack dev\n")


def test_of_a_job_whose_entry_is_gone_no_word_advises_to_delete_the_entry(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.write_text(STACK_FILE.replace("mine:", "called-otherwise:"))
    Cluster(monkeypatch, answer="y")
    assert run_word("stop", ["--stack", "dev", "--job", "mine"]) == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "deletes TrainJob training/mine",
        "stopped; Pulumi.dev.yaml does not describe it any more: make up STACK=dev forgets it",
    ]


def test_of_a_job_whose_directory_has_its_number_both_words_say_where_each_beginning_is(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    checkout.write_text(STACK_FILE.replace("directory: mine}", 'directory: "mine/{run}"}'))
    Cluster(monkeypatch, answer="y")
    assert run_word("stop", ["--stack", "dev", "--job", "mine"]) == 0
    assert capsys.readouterr().out.splitlines()[-3:-1] == [
        "to go on from its checkpoint in scratch/mine/1, if it wrote one: write checkpoints.directory: mine/1 into"
        " jobs.mine, then trainyard again mine --stack dev, then make up STACK=dev",
        "to begin afresh in scratch/mine/2: trainyard again mine --stack dev, then make up STACK=dev",
    ]
    assert run_word("again", ["--stack", "dev", "--job", "mine"]) == 0
    shown = capsys.readouterr().out
    assert (
        "run 2 begins afresh in scratch/mine/2\nto go on from the checkpoint in scratch/mine/1 instead:"
        " write checkpoints.directory: mine/1\n"
    ) in shown and "{run}" not in shown


@pytest.mark.parametrize(
    ("job", "says"),
    [
        ("mien", "has no job mien. Fix: name one by --job: mine, theirs"),
        ("theirs", "the entry of theirs is no block of lines. Fix: write run: 3 into it"),
    ],
)
def test_what_cannot_be_counted_up_is_said_and_the_file_stays(
    checkout: Path, capsys: pytest.CaptureFixture[str], job: str, says: str
) -> None:
    assert run_word("again", ["--stack", "dev", "--job", job, "--yes"]) == 1
    assert says in capsys.readouterr().err and checkout.read_text() == STACK_FILE


def test_of_a_run_of_a_sweep_both_words_name_the_entry(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    swept = STACK_FILE.replace("train.py", "train.py {lr}").replace(": mine}", ': "mine/{lr}"}')
    checkout.write_text(swept.replace("nodes: 2", "nodes: 2\n        sweep: {over: {lr: [1, 2]}}"))
    assert run_word("again", ["--stack", "dev", "--job", "mine-2", "--yes"]) == 1
    said = capsys.readouterr().err
    assert (
        "Fix: --job mine, which repeats all its runs; or for mine-2 alone, where it was stopped:"
        in said
    )
    assert "--target '**:TrainJob::mine-2', then make up STACK=dev" in said
    run = Chosen(kind="TrainJob", body=_job("mine-2"), entry="mine-2")
    assert _afterwards(run, "dev", live=True)[1:] == [
        "to begin this run alone again: pulumi refresh --yes --stack dev --target '**:TrainJob::mine-2', then pulumi up"
        " --stack dev",
        "to begin all runs of mine again: trainyard again mine --stack dev, then pulumi up --stack dev",
        "to be without it: delete its value from jobs.mine.sweep.over, and all runs with that value, then pulumi up"
        " --stack dev",
    ]
    assert run_word("again", ["--stack", "dev", "--job", "mine", "--yes"]) == 0
    assert "        run: 2\n" in checkout.read_text()


def test_of_a_schedule_both_words_name_its_times(
    checkout: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed = STACK_FILE.replace(": mine}", ': "mine/{scheduled_time}"}')
    checkout.write_text(timed.replace("nodes: 2", "nodes: 2\n        schedule: {cron: 0 3 * * 1}"))
    assert run_word("again", ["--stack", "dev", "--job", "mine", "--yes"]) == 1
    now = "kubectl create job --from=cronjob/mine mine-$(date -u +%Y%m%d-%H%M)"
    assert now in capsys.readouterr().err
    body = _scheduled("mine-20261130-0300", "2026-11-30T03:00:00Z")
    run = Chosen(kind="TrainJob", body=body, entry="mine")
    assert _afterwards(run, "dev", live=False) == [
        "stopped; the schedule of mine in Pulumi.dev.yaml starts the next run at its time",
        "to be without it: write suspend: true under jobs.mine.schedule, then make up STACK=dev",
    ]


def test_of_a_sweep_the_runs_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    for job in cluster.jobs[:2]:
        job["metadata"]["annotations"] = {SWEEP: json.dumps({"entry": "tune"})}
    assert run_word("logs", ["--stack", "dev", "--job", "tune"]) == 1
    assert (
        "tune is a sweep, and its runs in all namespaces of cluster ours, stack dev are mine, mnist. Fix: name one, as"
        " in trainyard logs mine --stack dev"
    ) in capsys.readouterr().err


def test_a_job_of_an_update_that_goes_on_has_its_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """No output named it yet, and `stop` said that no stack file describes it."""
    cluster = Cluster(monkeypatch)
    made = _job("mine")
    made["metadata"]["annotations"] = {RUN: "0123456789ab-1"}
    cluster.jobs = [made, _job("other")]
    items = json.dumps({"items": cluster.jobs})
    urn = "urn:pulumi:dev::trainyard::trainyard:jobs:Jobs$kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob::mine"
    type_ = urn.partition("$")[2].rpartition("::")[0]
    state = {"deployment": {"resources": [{"urn": urn, "type": type_, "id": "training/mine"}]}}
    monkeypatch.setattr(chosen, "deployment", lambda stack: state)

    def kubectl(*words: str) -> str:
        if "--raw" in words:
            return SERVED
        return items if "trainjobs" in words[1] else '{"items": []}'

    place = place_of("dev", ENVIRONMENT)
    assert choose(kubectl, place, {}, "mine").entry == "mine"
    assert choose(kubectl, place, {}, "other").entry == ""


def _scheduled(name: str, created: str) -> Object:
    job = _job(name)
    job["metadata"] |= {"labels": {SCHEDULE: "mine"}, "creationTimestamp": created}
    return job


def test_the_entry_of_a_schedule_is_its_newest_run(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch)
    names = ("mine-20261130-0300", "mine-20261207-0300", "mine-20261123-0300")
    cluster.jobs = [
        _scheduled(name, f"2026-{name[9:11]}-{name[11:13]}T03:00:00Z") for name in names
    ]
    cluster.jobs.append(_job("other"))
    items = json.dumps({"items": cluster.jobs})
    place = place_of("dev", ENVIRONMENT)

    def kubectl(*words: str) -> str:
        if "--raw" in words:
            return SERVED
        return items if "trainjobs" in words[1] else '{"items": []}'

    chosen = choose(kubectl, place, {}, "mine")
    assert (chosen.name, chosen.entry) == (names[1], "mine")
    assert choose(kubectl, place, {}, names[2]).name == names[2]
    with pytest.raises(NoSuchJob, match="there are 4 jobs"):
        choose(kubectl, place, {}, None)


@pytest.mark.parametrize(
    ("job", "other", "is_refused"),
    [
        ("mine", "*lines", True),
        ("other", "*lines", True),
        ("mine", "{<<: *lines, nodes: 1}", True),
        ("mine", "{<<: *lines, run: 7}", False),
        ("other", "\n        <<: *lines\n        nodes: 1", False),
    ],
)
def test_a_run_of_lines_that_two_jobs_share_is_not_counted_up(
    checkout: Path,
    capsys: pytest.CaptureFixture[str],
    job: str,
    other: str,
    is_refused: bool,
) -> None:
    text = STACK_FILE.replace("mine:  #", "mine: &lines  #")
    text = text.replace("        checkpoints: {store: scratch, directory: mine}\n", "")
    text += f"      other: {other}\n"
    checkout.write_text(text)
    assert run_word("again", ["--stack", "dev", "--job", job, "--yes"]) == is_refused
    if is_refused:
        assert checkout.read_text() == text
        assert "is a line of other jobs, too" in capsys.readouterr().err
    else:
        assert checkout.read_text().count("run: 2\n") == 1
