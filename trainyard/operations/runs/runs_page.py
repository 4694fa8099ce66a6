"""`trainyard runs --html`: the runs of a stack as one page to look at, in one file without a script.

The page shows what `trainyard runs` prints and `--json` has; it computes no figure of its own. How a page is
drawn: trainyard/reports/page/drawing.py.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from trainyard.operations.runs.facts import Told, share_said, time_said
from trainyard.operations.runs.node_time import duration
from trainyard.reports.page.charts import ACROSS, bars
from trainyard.reports.page.drawing import (
    ROW,
    box,
    drawing,
    page,
    paragraph,
    path,
    section,
    table,
    text,
    wide,
)

COLOURS = {"Complete": "kept", "Succeeded": "kept", "Failed": "way", "Running": "main"}
"""Outcome → colour of a bar; others have that of a bar that is calm."""
HEAD = (
    *("run", "created", "waited", "ran", "expected", "nodes", "instance", "restarts"),
    *("evictions", "GPU hours", "USD", "planned USD", "outcome", "why"),
)


def runs_page(stack: str, runs: Sequence[Told], beside: str, notes: Iterable[str]) -> str:
    """The whole page. `beside`: the sentence about runs beside their plans; `notes`: what the list lacks."""
    return page(
        f"Runs of {stack}",
        [
            section("Summary", paragraph(_summary(runs)), paragraph(beside)),
            section("When", _times(runs)),
            section("Dollars, and what the plan counted", _dollars(runs)),
            section("Seconds of a step", _steps(runs)),
            section("Goodput: share of the time that trains", _goodput(runs)),
            section("GPUs: share of their SMs at work", _busy(runs)),
            section("Every run", table(HEAD, map(_row, runs)) if runs else ""),
            section("Notes", *map(paragraph, notes)),
        ],
    )


def _name(run: Told) -> str:
    return f"{run.namespace}/{run.job}, {run.created:%Y-%m-%d %H:%M}"


def _summary(runs: Sequence[Told]) -> str:
    if not runs:
        return "no run is known"
    outcomes = Counter(run.outcome for run in runs)
    counted = ", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items()))
    return f"{len(runs)} run{'s' * (len(runs) > 1)}: {counted}. USD without tax, of nodes alone"


def _times(runs: Sequence[Told]) -> str:
    """A bar for each run: how long it waited, how long it ran."""
    if not runs:
        return ""
    begin = min(run.created for run in runs)
    spans = [_span(run) for run in runs]
    last = max((end for _, end in spans), default=begin)
    scale = ACROSS / max((last - begin).total_seconds(), 1.0)
    names = max(wide(_name(run)) for run in runs) + 12

    def at(moment: datetime) -> float:
        return names + (moment - begin).total_seconds() * scale

    parts = [
        path([(names, 18), (names, 18 + ROW * len(runs))], "axis"),
        text(names, 12, f"{begin:%Y-%m-%d %H:%M}", "soft"),
        text(names + ACROSS, 12, f"{last:%Y-%m-%d %H:%M}", "soft", "end"),
    ]
    for number, (run, (began, ended)) in enumerate(zip(runs, spans, strict=True)):
        y, said = 18 + number * ROW, _said(run)
        parts += [
            text(names - 8, y + 14, _name(run), anchor="end"),
            box(at(run.created), y + 4, (began - run.created).total_seconds() * scale, 12, "late"),
            box(
                at(began),
                y + 4,
                (ended - began).total_seconds() * scale,
                12,
                COLOURS.get(run.outcome, "calm"),
                f"{_name(run)}: {said}",
            ),
            text(at(ended) + 6, y + 14, said, "soft"),
        ]
    width = names + ACROSS + max(wide(_said(run)) for run in runs) + 20
    return drawing(width, 24 + ROW * len(runs), "when each run waited and ran", parts)


def _span(run: Told) -> tuple[datetime, datetime]:
    """When a run got its first node, and when it ended; what is not known takes no time."""
    began = run.created + timedelta(seconds=run.waited_seconds or 0)
    return began, began + timedelta(seconds=run.ran_seconds or 0)


def _said(run: Told) -> str:
    return (
        f"{run.outcome}, waited {time_said(run.waited_seconds)}, ran {time_said(run.ran_seconds)}"
    )


def _dollars(runs: Sequence[Told]) -> str:
    found = [run for run in runs if run.usd is not None]
    return bars((_name(run), float(run.usd or 0), _money(run)) for run in found)


def _money(run: Told) -> str:
    known = f"{run.usd_known} " if run.usd_known else ""
    plan = "" if run.usd_planned is None else f", planned {run.usd_planned:,.2f}"
    return f"{known}{run.usd:,.2f} USD{plan}"


def _steps(runs: Sequence[Told]) -> str:
    return bars(
        (_name(run), run.step_seconds, f"{run.step_seconds:.3g} s, step {run.step}")
        for run in runs
        if run.step_seconds is not None
    )


def _goodput(runs: Sequence[Told]) -> str:
    return bars(
        (
            _name(run),
            run.goodput_measured,
            f"{run.goodput_measured:.1%}, planned {share_said(run.goodput_planned)}",
        )
        for run in runs
        if run.goodput_measured is not None
    )


def _busy(runs: Sequence[Told]) -> str:
    return bars(
        (_name(run), run.sms_at_work, f"{run.sms_at_work:.1%}")
        for run in runs
        if run.sms_at_work is not None
    )


def _row(run: Told) -> tuple[str, ...]:
    expected = run.hours_expected
    return (
        f"{run.namespace}/{run.job}",
        f"{run.created:%Y-%m-%d %H:%M}",
        time_said(run.waited_seconds),
        time_said(run.ran_seconds),
        "-" if expected is None else duration(round(expected * 3600)),
        str(run.nodes),
        ", ".join(run.instance_types) or "-",
        str(run.restarts),
        "-" if run.evictions is None else str(run.evictions),
        f"{run.gpu_hours:,.2f}",
        "no price" if run.usd is None else f"{run.usd_known} {run.usd:,.2f}".strip(),
        "-" if run.usd_planned is None else f"{run.usd_planned:,.2f}",
        run.outcome,
        run.nothing_to_do or run.why or run.reason,
    )
