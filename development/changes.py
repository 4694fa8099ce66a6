"""Lines about the changes that a preview has found, from its log of the engine's events: those of the comment on a
pull request, for a terminal."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from trainyard.command_line import wrapped
from trainyard.operations.reach.stack import plan_of
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.replacing.previewed import deployed_figures, previewed
from trainyard.reports.plan import summary
from trainyard.reports.pull_request import figure_rows, is_same

Event = dict[str, Any]


def changes(stack: str, events: Path) -> list[str]:
    """Lines about changes of the update, and each figure that becomes another one. Nothing for a stack without a plan,
    and where nothing changes."""
    plan = plan_of(stack)
    if plan is None or not events.exists():
        return []
    preview = preview_of(map(json.loads, events.read_text().splitlines()))
    if not any(step["op"] != "same" for step in preview["steps"]):
        return []
    lines = [line for line in previewed(preview, plan.jobs) if line]
    plain = (line.removeprefix("- ").replace("**", "") for line in lines)
    return [each for line in (*plain, *_figures(plan, preview)) for each in wrapped(line)]


def figures(stack: str) -> list[str]:
    """Figures of a stack that is not there yet; nothing for one without a plan."""
    plan = plan_of(stack)
    rows = figure_rows(summary(plan)) if plan else ()
    return [each for name, value in rows for each in wrapped(f"{name}: {value}")]


def preview_of(events: Iterable[Event]) -> dict[str, Any]:
    """The events of a preview in the form of `pulumi preview --json`, without its messages."""
    steps, counts = list[dict[str, Any]](), {}
    for event in events:
        if step := (event.get("resourcePreEvent") or {}).get("metadata"):
            steps.append(
                {
                    "op": step["op"],
                    "urn": step["urn"],
                    "oldState": step.get("old") or {},
                    "newState": step.get("new") or {},
                    "replaceReasons": step.get("keys") or [],
                    "diffReasons": step.get("diffs") or [],
                }
            )
        counts = (event.get("summaryEvent") or {}).get("resourceChanges") or counts
    return {"steps": steps, "changeSummary": counts}


def _figures(plan: EnvironmentPlan | TeamPlan, preview: Mapping[str, Any]) -> Iterator[str]:
    """Each figure of the plan that was another one at the last update."""
    was = dict(figure_rows(deployed_figures(preview)))
    for name, value in figure_rows(summary(plan)) if was else ():
        if not is_same(value, was.get(name)):
            yield f"{name}: {value} (deployed: {was.get(name, 'nothing')})"
