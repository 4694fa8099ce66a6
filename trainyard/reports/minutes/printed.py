"""The time to the first step in print: a section of `trainyard plan`, and the chart of the documents."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard import command_line
from trainyard.reports.minutes.draws import logs
from trainyard.reports.minutes.timeline import Timeline, in_words, other_jobs, slowest
from trainyard.stores.figures import Stage

BAR = 40
"""Characters that the whole way to the first step takes."""


def time(timeline: Timeline, notes: Iterable[str] = ()) -> list[str]:
    """Every stage as a bar: # where it decides when the first step comes, - elsewhere."""
    each = BAR / timeline.seconds if timeline.seconds else 0
    rows = [("stage", "from", "takes", "logs", "# decides")]
    for stage in _in_time(timeline):
        start, mark = timeline.start[stage.name], "#" if stage.name in timeline.critical else "-"
        bar = " " * round(start * each) + mark * max(1, round(stage.seconds * each))
        from_to = _moment(start)[3:], _moment(stage.seconds)[3:]
        rows.append((stage.name, *from_to, str(logs(stage)), bar))
    said = [other_jobs(timeline), slowest(timeline), *notes]
    others = [line for each in said if each for line in command_line.wrapped(each)]
    return [f"time: {in_words(timeline)}", *others, *command_line.table(rows)]


def picture_of(timeline: Timeline, stack: str) -> str:
    """docs/critical-path.md: the timeline as a chart that GitHub draws."""
    rows = [
        f"    {s.name}"
        f" :{'crit, ' if s.name in timeline.critical else ''}{_moment(timeline.start[s.name])},"
        f" {max(1, round(s.seconds))}s"
        for s in _in_time(timeline)
    ]
    return "\n".join(
        [
            "# From nothing to the first training step",
            "",
            f"`Pulumi.{stack}.yaml` on AWS: {in_words(timeline)}.",
            "What is red is on the longest way: only a change there brings the first step forward.",
            "",
            "```mermaid",
            "gantt",
            "    dateFormat HH:mm:ss",
            "    axisFormat %M:%S",
            "    tickInterval 2minute",
            *rows,
            "```",
            "",
            (
                f"Made by `trainyard plan {stack} --picture > docs/critical-path.md`; a test"
                " compares."
            ),
        ]
    )


def _in_time(timeline: Timeline) -> list[Stage]:
    return sorted(
        timeline.stages, key=lambda stage: (timeline.start[stage.name], timeline.end[stage.name])
    )


def _moment(seconds: float) -> str:
    """00:01:05"""
    whole = round(seconds)
    return f"{whole // 3600:02d}:{whole // 60 % 60:02d}:{whole % 60:02d}"
