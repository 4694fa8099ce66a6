"""`trainyard dashboards` writes the pages that the environment has data for."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.stackfile import at, environment_plan
from tests.support.teams import with_queues
from tests.support.tool import run_word
from trainyard.reports import dashboards


def test_the_pages_of_an_environment_are_written(tmp_path: Path) -> None:
    written = dashboards.write(environment_plan(at("metrics", {})), tmp_path / "dev")
    assert [path.name for path in written] == ["fleet.json", "run.json", "platform.json"]
    assert json.loads(written[0].read_text())["title"] == "Fleet of dev"


def test_teams_have_a_page_where_the_environment_has_queues(tmp_path: Path) -> None:
    plan = environment_plan(at("metrics", {}), with_queues)
    assert "team.json" in [path.name for path in dashboards.write(plan, tmp_path)]


def test_the_page_of_a_run_has_its_steps_where_the_history_follows_them(tmp_path: Path) -> None:
    quiet = environment_plan(at("metrics", {}), at("history", {}))
    follows = environment_plan(at("metrics", {}), at("history", {"progress": True}))
    for plan, expected in ((quiet, False), (follows, True)):
        dashboards.write(plan, tmp_path)
        page = json.loads((tmp_path / "run.json").read_text())
        titles = [panel["title"] for panel in page["panels"]]
        assert ("Goodput, measured · Goodput, planned" in titles) is expected
        assert [panel["id"] for panel in page["panels"]] == [*range(1, len(titles) + 1)]


def test_a_stack_without_metrics_is_told_the_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_word("dashboards", ["dev", "--to", str(tmp_path)]) == 1
    assert "write environment.metrics: {}" in capsys.readouterr().out
    assert [*tmp_path.iterdir()] == []
