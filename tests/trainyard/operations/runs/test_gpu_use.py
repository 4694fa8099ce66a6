"""Use of GPUs by runs: what Prometheus is asked, as promtool judges it, and what becomes of the answer."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest

from rehearsal import paths
from tests.support.tool import run_word
from tests.trainyard.operations.finished import cluster, pod, train_job
from trainyard.operations.runs import runs
from trainyard.operations.runs.gpu_use import AT_ONCE, LAST, promql, sms_at_work
from trainyard.operations.runs.node_time import Run, finished_runs, uid_of
from trainyard.operations.runs.records import KEPT, runs_of

PROMTOOL = paths.BIN / "promtool"


def _runs(*names: str) -> list[Run]:
    jobs = [train_job(name) for name in names]
    pods = [pod(number, name) for name in names for number in (0, 1)]
    return finished_runs(cluster(trainjobs=jobs, pods=pods))


@pytest.mark.skipif(
    not PROMTOOL.exists(),
    reason="needs promtool: `python -m rehearsal build --also promtool` builds it",
)
def test_a_run_has_the_mean_of_its_own_gpus_in_its_own_time(tmp_path: Path) -> None:
    """From minute 10 to minute 20 run a has a GPU at 0.5 and one at 0.9; before, one at 0.1 of an earlier run
    of the same name."""
    [a, b] = (
        replace(
            run,
            began=datetime.fromtimestamp(600, UTC),
            ended=datetime.fromtimestamp(1200, UTC),
        )
        for run in _runs("a", "b")
    )

    def series(run: Run, gpu: int, values: str) -> dict[str, str]:
        labels = f'namespace="{run.job.namespace}",run="{run.job.name}",gpu="{gpu}"'
        return {"series": f"DCGM_FI_PROF_SM_ACTIVE{{{labels}}}", "values": values}

    wanted = [(a, 0.7), (b, 0.2)]
    case = {
        "interval": "1m",
        "input_series": [
            series(a, 0, "0.1x9 0.5x20"),
            series(a, 1, "_x9 0.9x20"),
            series(b, 0, "0.2x30"),
            {"series": 'DCGM_FI_PROF_SM_ACTIVE{run="",namespace="",gpu="2"}', "values": "1x30"},
        ],
        "promql_expr_test": [
            {
                "expr": promql([a, b]),
                "eval_time": "40m",
                "exp_samples": [
                    {"labels": f'{{uid="{uid_of(run)}"}}', "value": share} for run, share in wanted
                ],
            }
        ],
    }
    file = tmp_path / "use.json"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [case]}))
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    not PROMTOOL.exists(),
    reason="needs promtool: `python -m rehearsal build --also promtool` builds it",
)
def test_pods_of_a_gang_that_was_restarted_count_by_their_time(tmp_path: Path) -> None:
    """The first attempt loaded for 5 minutes, the second trained for 10 hours."""
    began = (datetime.fromtimestamp(seconds, UTC) for seconds in (60, 605 * 60))
    run = replace(_runs("a")[0], **dict(zip(("began", "ended"), began, strict=True)))
    labels = f'namespace="{run.job.namespace}",run="{run.job.name}"'
    values = {"first": "0x4 _x600", "second": "_x5 0.8x599"}
    name = "DCGM_FI_PROF_SM_ACTIVE"
    case = {
        "interval": "1m",
        "input_series": [
            {"series": f'{name}{{{labels},pod="{pod}"}}', "values": f"_ {of}"}
            for pod, of in values.items()
        ],
        "promql_expr_test": [
            {
                "expr": f"round({promql([run])}, 0.01)",
                "eval_time": "610m",
                "exp_samples": [{"labels": f'{{uid="{uid_of(run)}"}}', "value": 0.79}],
            }
        ],
    }
    file = tmp_path / "use.json"
    file.write_text(json.dumps({"rule_files": [], "evaluation_interval": "1m", "tests": [case]}))
    done = subprocess.run(
        [str(PROMTOOL), "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _answer(runs: list[Run], share: str) -> str:
    found = [{"metric": {"uid": uid_of(run)}, "value": [0, share]} for run in runs]
    return json.dumps({"status": "success", "data": {"result": found}})


def test_many_runs_are_asked_for_in_few_questions_and_old_ones_not_at_all() -> None:
    runs, asked = _runs(*(f"run-{number:03}" for number in range(LAST + 20))), list[str]()

    def kubectl(*words: str) -> str:
        asked.append(unquote(words[-1]))
        assert words[:2] == ("get", "--raw") and len(words[-1]) < 8192
        return _answer([run for run in runs if f'"{uid_of(run)}"' in asked[-1]], "0.25")

    found = sms_at_work(kubectl, runs)  # type: ignore[arg-type]
    assert len(asked) == LAST // AT_ONCE and len(found) == LAST and {*found.values()} == {0.25}


@pytest.mark.parametrize("answer", ["forbidden", "not JSON", "{}"])
def test_where_prometheus_cannot_be_asked_nothing_is_known(answer: str) -> None:
    def kubectl(*_: str) -> str:
        if answer == "forbidden":
            raise RuntimeError(answer)
        return answer

    assert sms_at_work(kubectl, _runs("a")) == {}  # type: ignore[arg-type]


def test_list_page_and_json_have_the_share_or_say_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    known, page = runs_of(cluster(), [], KEPT), tmp_path / "runs.html"

    def printed(busy: dict[str, float], *options: str) -> Any:
        monkeypatch.setattr(runs, "_read", lambda stack: (known, {}, {}, busy))
        assert run_word("runs", ["dev", *options]) == 0
        return capsys.readouterr().out

    busy = {uid_of(known.finished[0]): 0.624}
    assert "SMs at work: 62" in printed(busy)
    assert json.loads(printed(busy, "--json"))["runs"][0]["sms_at_work"] == 0.624
    printed(busy, "--html", str(page))
    assert "62.4%" in page.read_text() and "known of no run" not in page.read_text()
    assert "SMs at work is known of no run here" in " ".join(printed({}).split())
    printed({}, "--html", str(page))
    assert "SMs at work is known of no run here" in page.read_text()
