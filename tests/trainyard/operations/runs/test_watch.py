"""`trainyard watch`: pools, gangs, queue, dollars, alerts and problems; in a terminal, once, as a picture."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import pytest

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.busy import ALERTS, TAKEN_AT, busy
from tests.trainyard.operations.finished import at, cluster, node, pod, train_job
from trainyard.catalog.aws.prices import price
from trainyard.operations.reach.target import TargetError
from trainyard.operations.runs import watch
from trainyard.operations.runs.frame import MOST_RANKS, MOST_ROWS, coloured, frame, picture, plain
from trainyard.operations.runs.rank_lines import ReachedLately
from trainyard.operations.runs.view import (
    BROKEN,
    DONE,
    GONE,
    LEAVING,
    NOT_READY,
    View,
    node_state,
    view,
)
from trainyard.operations.status import by_hand
from trainyard.operations.status.finding import Finding

Object = dict[str, Any]
PICTURE = CHECKOUT / "docs/pictures/watch.svg"


def shown() -> View:
    return view("dev", busy(), ALERTS)


def test_nodes_are_counted_by_pool_and_state_with_gpus_and_dollars() -> None:
    g6e, h100 = [*(shown().pools or ())]
    assert (g6e.nodes, g6e.most, g6e.gpus, g6e.gpus_used) == ({"ready": 2, "sick": 1}, 4, 24, 24)
    assert h100.nodes == {"ready": 1, "launching": 1} and h100.instance_types == ("p5.48xlarge",)
    usd = [price("ec2", kind, "us-east-1") for kind in ("g6e.48xlarge", "p5.48xlarge")]
    first, second = (each.usd if each else Decimal() for each in usd)
    assert shown().usd_per_hour == 3 * first + second


def test_a_pool_of_several_types_may_have_its_most_nodes_of_each() -> None:
    snapshot = busy()
    [g6e, _] = node_pools = snapshot.of("nodepools")
    second = copy.deepcopy(g6e)
    second["metadata"]["name"] = "g6e-2"
    node_pools.append(second)
    assert [each.most for each in view("dev", snapshot, None).pools or ()] == [8, 2]
    del second["spec"]["limits"]
    assert [each.most for each in view("dev", snapshot, None).pools or ()] == [None, 2]


def test_a_node_without_a_price_is_counted_as_such() -> None:
    spot = node(0, **{"trainyard.io/nodes": "training", "karpenter.sh/capacity-type": "spot"})
    [pool] = [*(view("dev", cluster(nodes=[spot], nodepools=[]), None).pools or ())]
    assert (pool.unpriced, pool.usd_per_hour) == (1, 0)
    lines = plain(frame(view("dev", cluster(nodes=[spot], nodepools=[]), None)))
    assert "1 nodes without a price" in lines[0]


def test_a_node_that_goes_and_one_that_does_not_answer() -> None:
    snapshot = busy()
    old: Object = {"metadata": {"creationTimestamp": at(0)}, "status": {}}
    assert node_state(old, snapshot) == NOT_READY
    assert node_state({"metadata": {"deletionTimestamp": at(1)}}, snapshot) == LEAVING


def test_a_gang_shows_each_rank_and_a_job_that_ended_long_ago_is_not_shown() -> None:
    gangs = {gang.name: gang for gang in shown().gangs}
    assert gangs["training/t5-large"].ranks == ("runs",) * 3
    assert gangs["team-vision/vit"].ranks == ("starts", "waits")
    assert gangs["team-speech/wav"].ranks == (GONE, GONE)
    assert (gangs["training/hello"].state, gangs["training/hello"].ranks) == ("Complete", ())
    assert view("dev", replace(cluster(), taken_at=TAKEN_AT.replace(day=23)), None).gangs == ()


def test_ranks_that_failed_and_ranks_that_are_done_are_told_apart() -> None:
    pods = [pod(0), pod(1)]
    for number, (each, phase) in enumerate(zip(pods, ("Failed", "Succeeded"), strict=True)):
        each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
        each["status"]["phase"] = phase
    [gang] = view("dev", cluster(trainjobs=[train_job(ended=None)], pods=pods), None).gangs
    assert gang.ranks == (BROKEN, DONE)


def test_a_job_in_a_queue_is_shown_until_it_has_its_quota() -> None:
    [waits] = shown().queue
    assert (waits.job, waits.queue, waits.seconds) == ("wav", "speech", 15 * 60)
    snapshot = busy()
    back = (snapshot.taken_at - timedelta(minutes=1)).isoformat()
    evicted = {"type": "Evicted", "status": "True", "lastTransitionTime": back}
    snapshot.of("workloads")[0]["status"]["conditions"] = [evicted]
    assert view("dev", snapshot, None).queue[0].seconds == 60, "it has run since it was made"
    reserved = {"type": "QuotaReserved", "status": "True"}
    snapshot.of("workloads")[0]["status"]["conditions"] = [reserved]
    assert view("dev", snapshot, None).queue == ()


def test_problems_are_those_of_make_status_but_for_logs_which_are_not_read() -> None:
    problems = " ".join(shown().problems)
    assert "node node-2 is sick" in problems and "hang" not in problems


def test_a_team_that_cannot_read_nodes_is_told_so() -> None:
    unseen = replace(cluster(), unseen=frozenset({"nodes", "nodepools"}))
    lines = plain(frame(view("team-vision", unseen, None)))
    assert any("not shown" in line for line in lines) and "USD" not in lines[0]


def test_an_empty_cluster_says_what_is_not_there() -> None:
    empty = cluster(trainjobs=[], pods=[], nodes=[], nodepools=[])
    lines = plain(frame(view("dev", empty, None)))
    assert "  no pool" in lines and "  no job" in lines


def test_a_large_gang_is_counted_and_long_lists_are_cut() -> None:
    gang = replace(shown().gangs[0], ranks=("runs",) * MOST_RANKS + ("failed",))
    lines = plain(frame(replace(shown(), gangs=(gang,) * (MOST_ROWS + 2))))
    assert any(f"● × {MOST_RANKS}  ✖ × 1" in line for line in lines) and "  and 2 more" in lines


def test_no_line_is_wider_than_the_terminal_and_colours_end() -> None:
    for line in coloured(frame(shown()), 40):
        text = line
        for code in ("\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m"):
            text = text.replace(code, "")
        assert len(text) <= 40 and line.count("\x1b[0m") * 2 == line.count("\x1b[")


def test_a_job_that_has_ended_has_its_time_since_then() -> None:
    lines = plain(frame(shown()))
    jobs = {
        state: [each for each in lines if f"  {state}" in each] for state in ("Complete", "Running")
    }
    assert all(" ago" in line for line in jobs["Complete"]) and jobs["Complete"]
    assert not any(" ago" in line for line in jobs["Running"]) and jobs["Running"]


def test_the_picture_in_the_documents_is_this_view() -> None:
    drawn = picture(frame(shown()))
    ElementTree.fromstring(drawn)
    assert drawn == PICTURE.read_text(), f"python -m {__name__} writes it anew"


class Cluster:
    """A cluster that answers with the busy one, `dies` after some looks, and has Prometheus."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.log, self.logs = "", 0
        self.looks, self.slept = 0, list[float]()
        self.changed = list[Finding]()
        self.alerts: str | Exception = json.dumps(
            {
                "data": {
                    "alerts": [
                        {"state": "firing", "labels": {"alertname": "Watchdog"}},
                        {"state": "pending", "labels": {"alertname": "Slow"}},
                        {
                            "state": "firing",
                            "labels": {"alertname": "RunStandsStill"},
                            "annotations": {"summary": "t5 stands still"},
                        },
                    ]
                }
            }
        )

        @contextmanager
        def asking(*_: object) -> Iterator[Any]:
            yield self

        patch.setattr(watch, "kubeconfig", lambda stack: "")
        patch.setattr(watch, "asking", asking)
        patch.setattr(watch, "snapshot_of", self._snapshot)
        patch.setattr(by_hand, "changed_by_hand", lambda stack, kubectl: self.changed)
        # Not of the module time, which threads of other tests may sleep by.
        patch.setattr(watch, "time", SimpleNamespace(sleep=self._sleep))

    def _snapshot(self, stack: str, kubectl: Any) -> Any:
        self.looks += 1
        if self.looks == 2:
            raise RuntimeError("connection refused\nmore")
        return busy()

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        if len(self.slept) == 3:
            raise KeyboardInterrupt

    def __call__(self, *words: str) -> str:
        if words[0] == "logs":
            self.logs += 1
            return self.log
        assert words[:2] == ("get", "--raw")
        if isinstance(self.alerts, Exception):
            raise self.alerts
        return self.alerts


def test_once_prints_one_frame_without_colours(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Cluster(monkeypatch)
    assert run_word("watch", ["dev", "--once"]) == 0
    said = capsys.readouterr().out
    assert "\x1b" not in said and "RunStandsStill: t5 stands still" in said
    assert "Watchdog" not in said and "Slow" not in said


def test_a_run_shows_how_far_its_log_is_and_logs_are_read_once_in_a_while(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.log = "2026-11-22T05:00:00Z step 10/100\n2026-11-22T05:10:00Z step 30/100"
    assert run_word("watch", ["dev", "--once"]) == 0
    assert "30%" in capsys.readouterr().out
    asked, prints = cluster.logs, ReachedLately()
    for _ in range(3):
        prints(cluster, busy())
    assert cluster.logs == 2 * asked


def test_what_somebody_changed_by_hand_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Cluster(monkeypatch).changed = [Finding(what="NodePool l4 is gone", why="", do="")]
    assert run_word("watch", ["dev", "--once"]) == 0
    assert "! NodePool l4 is gone" in capsys.readouterr().out


def test_without_prometheus_there_are_no_alerts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Cluster(monkeypatch).alerts = RuntimeError("services not found")
    assert run_word("watch", ["dev", "--once"]) == 0
    assert "ALERTS" not in capsys.readouterr().out


def test_programs_get_json_and_documents_a_picture(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    Cluster(monkeypatch)
    assert run_word("watch", ["dev", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["view"]["stack"] == "dev" and Decimal(said["usd_per_hour"]) > 100
    monkeypatch.setattr(watch, "snapshot_of", lambda *_: busy())
    assert run_word("watch", ["dev", "--svg", str(tmp_path / "a.svg")]) == 0
    ElementTree.parse(tmp_path / "a.svg")
    capsys.readouterr()
    assert run_word("watch", ["dev", "--svg", str(tmp_path / "no" / "a.svg")]) == 1
    said = capsys.readouterr().err
    assert (
        "a.svg cannot be written: No such file or directory. Fix: name a file in a folder" in said
    )


def test_a_person_sees_frames_until_ctrl_c_and_the_last_one_while_nobody_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert run_word("watch", ["dev", "--every", "7"]) == 0
    said = capsys.readouterr().out
    assert (
        cluster.slept == [7, 7, 7] and said.startswith(watch.ENTER) and said.endswith(watch.LEAVE)
    )
    assert said.count("the cluster does not answer; this is old: connection refused") == 1
    assert said.count("POOLS") == 3


def test_a_stack_without_a_cluster_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch)
    cluster.looks = 1
    assert run_word("watch", ["dev", "--once"]) == 1

    def none(stack: str) -> str:
        raise TargetError("stack x has no cluster")

    monkeypatch.setattr(watch, "kubeconfig", none)
    assert run_word("watch", ["x"]) == 1
    assert capsys.readouterr().err.splitlines() == [
        "the cluster does not answer: connection refused",
        "more",
        "stack x has no cluster",
    ]


if __name__ == "__main__":
    PICTURE.write_text(picture(frame(shown())))
