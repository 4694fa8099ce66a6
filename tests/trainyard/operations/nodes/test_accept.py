"""`trainyard accept` as a person types it: first the price and the entry, then the verdicts, on recorded
objects of a cluster."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.nodes.test_verdicts import changed, healthy, log_of
from tests.trainyard.operations.recovery.test_drain import ENVIRONMENT, OURS
from tests.trainyard.operations.terminal import Terminal
from tests.trainyard.operations.test_words import STACK_FILE
from trainyard.settings.reading.reader import read_file

Object = dict[str, Any]
SCRIPT = "workloads/accept/measure.py"
IMAGE = "registry.example.com/torch:1"
NO_EDIT = ("mine", "mine")
TEAM_FILE = """\
config:
  aws:region: ap-northeast-2
  trainyard:team:
    environment: dev
    namespace: vision
"""


@pytest.fixture
def stack_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Pulumi.dev.yaml of a folder that is the current one, with the script."""
    (tmp_path / SCRIPT).parent.mkdir(parents=True)
    for name in (SCRIPT, "Pulumi.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    file = tmp_path / "Pulumi.dev.yaml"
    file.write_text(
        STACK_FILE.partition("      theirs:")[0].replace(
            "max_nodes: 4}\n",
            "max_nodes: 4}\n      h100: {instance_types: [p5.48xlarge], max_nodes: 3}\n",
        )
    )
    monkeypatch.chdir(tmp_path)
    return file


def _pod(node: int) -> Object:
    started = {"running": {"startedAt": "2026-11-22T05:41:10Z"}}
    scheduled = {"type": "PodScheduled", "lastTransitionTime": "2026-11-22T05:40:20Z"}
    return {
        "metadata": {"name": f"accept-h100-node-0-{node}-x7k2p"},
        "spec": {"hostname": f"node-{node}", "nodeName": f"ip-10-0-1-{node}"},
        "status": {"conditions": [scheduled], "containerStatuses": [{"state": started}]},
    }


class Cluster:
    """The programs pulumi and kubectl, for a stack with one acceptance job that printed `log`."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        log: str,
        state: str = "Complete",
        *,
        has_job: bool = True,
        sees_nodes: bool = True,
    ) -> None:
        self.log, self.state, self.has_job, self.sees_nodes = log, state, has_job, sees_nodes
        monkeypatch.setattr(subprocess, "run", self.run)

    def run(self, words: list[str], **how: Any) -> subprocess.CompletedProcess[str]:
        if words[:3] == ["kubectl", "get", "nodes"] and not self.sees_nodes:
            return subprocess.CompletedProcess(words, 1, "", "nodes is forbidden")
        return subprocess.CompletedProcess(words, 0, self._answer([*words]), "")

    def _answer(self, words: list[str]) -> str:
        meta = {"namespace": "training", "name": "accept-h100"}
        if words[0] == "pulumi":
            return json.dumps(ENVIRONMENT | {"jobs": {"accept-h100": {"kind": "TrainJob"} | meta}})
        conditions = [{"type": self.state, "status": "True"}] if self.state else []
        job = {"kind": "TrainJob", "metadata": meta, "status": {"conditions": conditions}}
        nodes = [
            {
                "metadata": {"name": f"ip-10-0-1-{n}"},
                "spec": {"providerID": f"aws:///ap-northeast-2a/i-0{n}"},
            }
            for n in range(3)
        ]
        match words[1:]:
            case ["config", *_]:
                return json.dumps(OURS)
            case ["get", "--raw", "/apis/kubeflow.org/v1", *_]:
                return '{"resources": []}'
            case ["get", "pods", *_]:
                return json.dumps({"items": [_pod(n) for n in range(3)]})
            case ["get", "nodes", *_]:
                return json.dumps({"items": nodes})
            case ["get", kind, *_] if kind.startswith("trainjobs"):
                return json.dumps({"items": [job] if self.has_job else []})
            case ["logs", *_]:
                return self.log
        return '{"items": []}'


def _written(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    Terminal(monkeypatch, "y")
    return run_word("accept", ["dev", "--pool", "h100", "--image", IMAGE, *words])


def test_the_price_comes_before_the_question_and_the_entry_passes_the_check(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = stack_file.read_text()
    assert _written(monkeypatch, "--nodes", "2") == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("jobs.accept-h100: 2 nodes of p5.48xlarge, ")
    assert "of measuring, about " in said[0] and said[0].endswith(" USD")
    assert said[-1] == "next: make up STACK=dev, then trainyard accept dev --pool h100"
    assert set(before.splitlines()) <= set(stack_file.read_text().splitlines())
    assert run_word("check", ["dev"]) == 0
    config = read_file("dev").config
    assert config and config.environment and [*config.environment.jobs] == ["accept-h100", "mine"]


def test_nodes_of_a_capacity_block_are_paid_already(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    held = (
        "capacity: block, reservation: {id: cr-0123456789abcdef0, instances: 2,"
        " starts: 2100-12-01T11:30:00Z, ends: 2100-12-08T11:30:00Z}, max_nodes: 2"
    )
    text = stack_file.read_text()
    [line] = [line for line in text.splitlines() if line.strip().startswith("h100:")]
    stack_file.write_text(text.replace(line, re.sub(r"max_nodes: \d+", held, line)))
    assert _written(monkeypatch, "--nodes", "2") == 0
    said = capsys.readouterr().out.splitlines()[0]
    assert said.endswith(" of measuring, paid already with a Capacity Block"), said


def test_all_nodes_of_the_pool_and_the_image_of_its_job_are_the_default(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_word("accept", ["dev", "--pool", "g6e", "--yes", "--live"]) == 0
    said = capsys.readouterr().out
    assert "4 nodes of g6e.48xlarge" in said and "image: registry.example.com/train:1" in said
    assert "next: pulumi up --stack dev, then trainyard accept dev --pool g6e --live" in said


def test_a_private_image_is_pulled_as_the_jobs_of_its_registry_pull_it(
    stack_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = "image: registry.example.com/train:1\n"
    text = stack_file.read_text()
    assert line in text
    stack_file.write_text(text.replace(line, f"{line}        pull_secrets: [registry]\n", 1))
    assert run_word("accept", ["dev", "--pool", "g6e", "--yes", "--live"]) == 0
    assert "pull_secrets: [registry]" in capsys.readouterr().out
    assert stack_file.read_text().count("pull_secrets: [registry]") == 2


@pytest.mark.parametrize(("answer", "code"), [("n", 3), (None, 2)])
def test_without_a_yes_the_file_stays(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, answer: str | None, code: int
) -> None:
    Terminal(monkeypatch, answer)
    before = stack_file.read_text()
    assert run_word("accept", ["dev", "--pool", "g6e"]) == code
    assert stack_file.read_text() == before


@pytest.mark.parametrize(
    ("words", "edit", "says"),
    [
        ((), NO_EDIT, "none is named. Fix: name one by --pool: g6e, h100"),
        (("--pool", "a100"), NO_EDIT, "there is no pool a100. Fix: name one by --pool: g6e, h100"),
        (("--pool", "h100"), NO_EDIT, "Fix: --image an image with torch"),
        (("--pool", "g6e", "--nodes", "1"), NO_EDIT, "one node has no neighbour; got 1"),
        (
            ("--pool", "g6e"),
            ("mine:  #", "accept-g6e:  #"),
            "has another job accept-g6e. Fix: rename it",
        ),
        (("--pool", "g6e"), ("[torch-distributed]", "[]"), "Fix: add torch-distributed to"),
        (("--pool", "g6e", "--nodes", "5"), NO_EDIT, "environment.jobs.accept-g6e.nodes"),
        (("--pool", "g6e"), ("max_nodes: 4", "max_nodes: -4"), "environment.pools.g6e.max_nodes"),
    ],
)
def test_what_makes_no_entry_is_said_with_its_way_out(
    stack_file: Path,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    edit: tuple[str, str],
    says: str,
) -> None:
    text = stack_file.read_text().replace(*edit)
    stack_file.write_text(text)
    assert run_word("accept", ["dev", "--yes", *words]) == 1
    assert says in capsys.readouterr().err
    assert stack_file.read_text() == text


def test_a_team_measures_a_pool_of_its_environment(
    stack_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = stack_file.with_name("Pulumi.vision.yaml")
    file.write_text(TEAM_FILE)
    assert run_word("accept", ["vision", "--pool", "h100", "--image", IMAGE, "--yes"]) == 0
    assert "    jobs:\n      accept-h100:\n        runtime: torch-distributed\n" in file.read_text()


LISTED = """\
    teams:
      vision: {deployer: "arn:aws:iam::123456789012:role/vision", stores: [corpus, arch]}
    storage:
      corpus: {efs: {}, teams: read_only}
      arch: {efs: {}}
"""


def test_a_listed_team_measures_only_the_stores_that_it_can_write_to(
    stack_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = stack_file.read_text().replace("    storage:\n", LISTED)
    stack_file.write_text(text)
    file = stack_file.with_name("Pulumi.vision.yaml")
    file.write_text(TEAM_FILE.replace("namespace: vision", "name: vision"))
    words = ("--pool", "h100", "--image", IMAGE, "--yes")
    assert run_word("accept", ["vision", *words]) == 0, capsys.readouterr().err
    written = file.read_text()
    assert "--store=arch=" in written and "scratch" not in written and "corpus" not in written
    stack_file.write_text(text.replace("[corpus, arch]", "[corpus]"))
    file.write_text(TEAM_FILE.replace("namespace: vision", "name: vision"))
    assert run_word("accept", ["vision", *words]) == 1
    assert "no store that team vision can write checkpoints to" in capsys.readouterr().err


def test_healthy_nodes_are_accepted_in_one_row_for_each_line(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _written(monkeypatch) == 0
    Cluster(monkeypatch, log_of(healthy(), before=changed("all-reduce", 215, of=str(2**31))))
    capsys.readouterr()
    assert run_word("accept", ["dev", "--pool", "h100"]) == 0
    said = capsys.readouterr().out
    rows = [" ".join(line.split()) for line in said.splitlines()]
    assert rows[0] == "jobs.accept-h100: 3 nodes of pool h100, 24 ranks"
    assert sum(row.startswith("matrix product") for row in rows) == 1
    assert any(
        row.startswith("all-reduce 2 GiB all 430 GB/s ≥ 376.6 215 (+100%) pass") for row in rows
    )
    assert any(row.startswith("pod start worst of 3 50 s ≤ 75 - pass") for row in rows)
    assert "accepted" in rows and rows[-1].startswith(
        "to measure again: trainyard again accept-h100 --stack dev"
    )


def test_a_node_that_fails_is_named_with_its_instance_and_the_next_step(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _written(monkeypatch) == 0
    cluster = Cluster(monkeypatch, log_of(changed("matrix product", 400, "node-1")))
    capsys.readouterr()
    assert run_word("accept", ["dev"]) == 1
    said = capsys.readouterr().out
    assert said.count("matrix product") == 2, "its row and the end"
    assert "not accepted: matrix product\nnode ip-10-0-1-1 (i-01): delete the NodeClaim" in said
    cluster.sees_nodes = False
    assert run_word("accept", ["dev"]) == 1
    assert "node ip-10-0-1-1: delete" in capsys.readouterr().out


def test_programs_get_every_verdict(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _written(monkeypatch) == 0
    Cluster(monkeypatch, log_of(changed("SM clock", 1000, "node-2")))
    capsys.readouterr()
    assert run_word("accept", ["dev", "--json"]) == 0, "a warning is no failure"
    found = json.loads(capsys.readouterr().out)
    assert len(found["verdicts"]) == len(healthy()) + 3
    [warned] = [one for one in found["verdicts"] if one["verdict"] == "warn"]
    assert (warned["line"], warned["node"]) == ("SM clock", "ip-10-0-1-2 (i-02)")


@pytest.mark.parametrize(
    ("log", "state", "has_job", "says"),
    [
        (
            "",
            "",
            True,
            "has not ended (Running). Fix: trainyard logs accept-h100 --stack dev --follow",
        ),
        ("read for syntax", "Complete", True, "has ended (Complete) without all of its results"),
        ("", "Failed", True, "has ended (Failed) without all of its results"),
        ("", "", False, "jobs.accept-h100 has not run. Fix: make up STACK=dev"),
    ],
)
def test_without_results_the_next_word_is_said(
    stack_file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    log: str,
    state: str,
    has_job: bool,
    says: str,
) -> None:
    assert _written(monkeypatch) == 0
    Cluster(monkeypatch, log, state, has_job=has_job)
    assert run_word("accept", ["dev"]) == 1
    assert says in capsys.readouterr().err


def test_a_pool_that_has_its_job_takes_no_other_and_two_jobs_need_a_pool(
    stack_file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _written(monkeypatch) == 0
    assert run_word("accept", ["dev", "--pool", "h100", "--nodes", "2"]) == 1
    assert (
        "--nodes and --image are for a new entry, and jobs.accept-h100" in capsys.readouterr().err
    )
    assert run_word("accept", ["dev", "--pool", "g6e", "--yes"]) == 0
    assert run_word("accept", ["dev"]) == 1
    assert (
        "2 acceptance jobs: accept-g6e, accept-h100. Fix: name one by --pool"
        in capsys.readouterr().err
    )
