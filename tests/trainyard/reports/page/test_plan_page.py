"""The page of a plan: the figures of `--json`, in one file that needs nothing else. No browser is asked: the
machine has none. What a browser would find is looked for in the parsed page."""

from __future__ import annotations

import json
import re
import time
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import at, environment_plan, planned, team_plan
from tests.support.stacks import STACKS
from tests.support.tool import run_word
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports import plan as report
from trainyard.reports.box import box_of, rows
from trainyard.reports.minutes.timeline import schedule
from trainyard.stores.goodput import goodput_at

VOID = {"meta", "br", "link"}
ON_SAVES = (
    at("storage.scratch.lustre", {"capacity_gib": 2400, "throughput_mbps_per_tib": 250}),
    at("jobs.t5-large.parameters_billion", 30),
)


class Page(HTMLParser):
    """Elements of a page with their texts, and whether each is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.placed: list[tuple[dict[str, str | None], str, float]] = []
        self.width = 0.0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "svg":
            self.width = float((dict(attrs)["viewbox"] or "").split()[2])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        where = self.open[-1] if self.open else ""
        self.texts.append((where, data))
        if where == "text":
            self.placed.append((self.elements[-1][1], data, self.width))


PLANS: dict[str, Any] = {
    **{name: lambda name=name: environment_plan(*STACKS[name]) for name in STACKS},
    "a team": team_plan,
    "no jobs": lambda: environment_plan(at("jobs", {})),
    "with checkpoints": lambda: environment_plan(*ON_SAVES),
}


@pytest.mark.parametrize("name", PLANS)
def test_a_page_is_whole_and_needs_nothing_but_itself(name: str) -> None:
    text = report.html(PLANS[name]())
    page = Page(text)
    assert page.open == [] and len(text) < 1_500_000
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"script", "link", "img", "iframe", "object"}
    assert not re.search(r"(?:src|href)=|url\(|@import|https?://\S+\.(?:js|css)", text)
    assert "nan" not in re.findall(r'[xywd]="(\w+)', text)


@pytest.mark.parametrize("name", PLANS)
def test_no_text_of_a_drawing_is_cut(name: str) -> None:
    """By 6.7 px a character, as wide as Arial's widest usual words at 12 px."""
    for place, said, width in Page(report.html(PLANS[name]())).placed:
        x, long = float(place["x"] or 0), 6.7 * len(said)
        begin = x - {"start": 0, "end": long, "middle": long / 2}[place["text-anchor"] or "start"]
        assert begin >= 0 and begin + long <= width, (said, begin, long, width)


def _json(plan: EnvironmentPlan | TeamPlan) -> dict[str, Any]:
    return json.loads(report.as_json(report.data(plan)))


@pytest.mark.parametrize("name", PLANS)
def test_the_figures_are_those_of_the_json(name: str) -> None:
    plan = PLANS[name]()
    found, page = _json(plan), Page(report.html(plan))
    cells = [said for where, said in page.texts if where == "td"]
    drawn = [said for where, said in page.texts if where == "text"]
    box = rows(box_of(plan, report.estimate(plan), schedule(plan)))
    for name_of_row, words in box.items():
        assert cells[cells.index(name_of_row.replace("_", " ")) + 1] == str(words)
    assert str(found["box"]["minutes_to_first_step"]) in cells
    for stage in found["time"]["stages"]:
        assert stage["name"] in drawn
        slow = max(stage["seconds"], stage["slow_seconds"])
        assert f"{stage['seconds']:,.0f} s, one in ten {slow:,.0f} s" in drawn
    for line in [*found["money"].get("fixed", ()), *found["money"].get("storage", ())]:
        usd = line["usd_per_hour"]
        said = "no price" if usd is None else f"{float(usd):,.4f} USD an hour"
        if guess := line["guess"]:
            said += f", a guess is {float(guess['usd']):,.4f} to {float(guess['most_usd']):,.4f} USD an hour"
        assert (line["what"], said) in zip(drawn, drawn[1:], strict=False)


def test_the_curve_of_goodput_has_its_top_at_the_best_interval_and_shows_the_plans_point() -> None:
    plan = environment_plan(*ON_SAVES)
    [verdict] = plan.checkpoints.values()
    best = verdict.interval_seconds
    assert goodput_at(verdict, best) == pytest.approx(verdict.goodput)
    assert all(goodput_at(verdict, best * by) < verdict.goodput for by in (0.5, 0.9, 1.1, 2))
    drawn = [said for where, said in Page(report.html(plan)).texts if where == "text"]
    assert f"{verdict.goodput:.1%} every {best / 60:,.0f} min" in drawn


@pytest.mark.parametrize("asynchronous", [False, True])
def test_goodput_at_another_interval_is_what_a_plan_with_it_has(asynchronous: bool) -> None:
    late = at("jobs.t5-large.checkpoints.asynchronous", asynchronous)
    first = environment_plan(*ON_SAVES, late).checkpoints["t5-large"]
    for minutes in (12, 60, 400):
        other = environment_plan(
            *ON_SAVES, late, at("jobs.t5-large.checkpoints.interval_minutes", minutes)
        ).checkpoints["t5-large"]
        assert goodput_at(first, minutes * 60) == pytest.approx(other.goodput), minutes


def test_what_a_stack_file_says_is_text_on_the_page_and_no_element() -> None:
    said = [report.InputWarning(path="<b>", text='<script>alert("1")</script>')]
    text = report.html(environment_plan(), said)
    assert "<script>" not in text and "&lt;script&gt;" in text and "<b>" not in text


def test_the_word_writes_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target, began = tmp_path / "plan.html", time.process_time()
    assert run_word("plan", ["dev", "--html", str(target)]) == 0
    assert time.process_time() - began < 1, "0.3 s on a quiet machine"
    assert target.read_text() == report.html(environment_plan(), planned().warnings)
    assert str(target) in capsys.readouterr().out
