"""The page of runs: the figures of `--json`, in one file that needs nothing else. No browser is asked: the
machine has none. What a browser would find is looked for in the parsed page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.finished import cluster, expecting, pod, train_job
from tests.trainyard.reports.page.test_plan_page import Page
from trainyard.operations.runs import runs
from trainyard.operations.runs.rank_lines import Printed
from trainyard.operations.runs.records import KEPT, Known, runs_of
from trainyard.operations.runs.runs_page import runs_page
from trainyard.plans.jobs import GOODPUT

SAID = Printed(step=1200, step_seconds=0.5234, goodput=0.9181)


def several() -> Known:
    """A complete run with a plan, one that failed and one that goes on."""
    complete = expecting(train_job(), 1.25)
    complete["metadata"]["annotations"][GOODPUT] = "0.953"
    failed = train_job("unet <b>", "team-vision", ended=40)
    failed["status"]["conditions"][0] |= {"type": "Failed", "reason": "Backoff", "message": "a & b"}
    going = train_job("llama", ended=None)
    pods = [pod(0), pod(1), pod(0, "llama"), pod(1, "llama")]
    return runs_of(cluster(trainjobs=[complete, failed, going], pods=pods), [], KEPT)


@pytest.fixture
def both(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> tuple[str, dict[str, Any]]:
    """The page, and what `--json` says of the same runs."""
    known = several()
    monkeypatch.setattr(runs, "_read", lambda stack: (known, {"uid-of-training-t5": SAID}, {}, {}))
    file = tmp_path / "runs.html"
    assert run_word("runs", ["dev", "--html", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}\n"
    assert run_word("runs", ["dev", "--json"]) == 0
    return file.read_text(), json.loads(capsys.readouterr().out)


def test_a_page_is_whole_and_needs_nothing_but_itself(both: tuple[str, dict[str, Any]]) -> None:
    text, _ = both
    page = Page(text)
    assert page.open == [] and len(text) < 1_500_000
    assert not {tag for tag, _ in page.elements} & {
        "script",
        "link",
        "img",
        "iframe",
        "object",
        "b",
    }
    assert not re.search(r"(?:src|href)=|url\(|@import|https?://\S+\.(?:js|css)", text)
    assert "nan" not in re.findall(r'[xywd]="(\w+)', text)


def test_the_figures_are_those_of_the_json(both: tuple[str, dict[str, Any]]) -> None:
    text, found = both
    texts = Page(text).texts
    cells = [said for where, said in texts if where == "td"]
    drawn = [said for where, said in texts if where == "text"]
    assert len(found["runs"]) == 3
    for run in found["runs"]:
        assert f"{run['namespace']}/{run['job']}" in cells and run["outcome"] in cells
        assert f"{float(run['gpu_hours']):,.2f}" in cells
        if run["usd"] is not None:
            money = f"{run['usd_known']} {float(run['usd']):,.2f}".strip()
            assert money in cells and any(money in each for each in drawn)
    [t5] = [run for run in found["runs"] if run["job"] == "t5"]
    assert f"{float(t5['usd_planned']):,.2f}" in cells
    assert "0.523 s, step 1200" in drawn and "91.8%, planned 95.3%" in drawn
    assert "Complete, waited 5 min, ran 1 h 05 min" in drawn
    said = [words for where, words in texts if where == "p"]
    assert any("3 runs: 1 Complete, 1 Failed, 1 Running" in words for words in said)
    assert "the last complete run ran 0.87 × expected_hours, and cost 0.80 × the plan" in said
    assert all(note in said for note in found["notes"])


def test_no_text_of_a_drawing_is_cut(both: tuple[str, dict[str, Any]]) -> None:
    text, _ = both
    for place, said, width in Page(text).placed:
        x, long = float(place["x"] or 0), 6.7 * len(said)
        begin = x - {"start": 0, "end": long, "middle": long / 2}[place["text-anchor"] or "start"]
        assert begin >= 0 and begin + long <= width, (said, begin, long, width)


def test_bars_stand_at_their_times() -> None:
    """t5 waited 5 minutes and ran 65, so its bars are in this proportion."""
    known = runs_of(cluster(), [], KEPT)
    text = runs_page("dev", [runs.told(run, {}, going=False) for run in known.finished], "", [])
    found = re.findall(r'width="([\d.]+)" height="12.0" rx="2" class="(?:late|kept)"', text)
    late, main = map(float, found)
    assert main / late == pytest.approx(13, rel=0.01)


def test_a_cluster_without_runs_has_a_page_that_says_so() -> None:
    page = Page(runs_page("dev", [], "", ["a note"]))
    assert "no run is known" in [said for _, said in page.texts]
    assert not [tag for tag, _ in page.elements if tag == "svg"]


def test_what_is_not_known_has_no_bar_and_is_said() -> None:
    known = runs_of(cluster(pods=[]), [], KEPT)
    [run] = [runs.told(each, {}, going=False) for each in known.finished]
    text = runs_page("dev", [replace(run, waited_seconds=None)], "", [])
    assert "waited not known, ran not known" in text
    assert "Seconds of a step" not in text and "Goodput" not in text
