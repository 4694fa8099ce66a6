"""Sweeps in `trainyard runs`: the runs of each, with their values and the figure by which they are compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trainyard import command_line
from trainyard.operations.runs.facts import Sweep, Told
from trainyard.plans.jobs import sweep_note


def sweep_of(job: Mapping[str, Any]) -> Sweep | None:
    """The sweep of a job; None for one that is no run of a sweep."""
    if (said := sweep_note(job)) is None:
        return None
    metric = said["metric"] or {}
    return Sweep(
        entry=said["entry"],
        values=said["values"],
        metric=metric.get("name"),
        goal=metric.get("goal"),
    )


def tables(runs: Iterable[Told]) -> list[str]:
    """A table for each sweep, the best run first; those without a figure last, as they were created."""
    of_sweep: dict[tuple[str, str], dict[str, Told]] = {}
    for run in sorted(runs, key=lambda run: run.created):
        if run.sweep:
            of_sweep.setdefault((run.namespace, run.sweep.entry), {})[run.job] = run
    return [line for found in of_sweep.values() for line in _table([*found.values()])]


def _table(runs: Sequence[Told]) -> list[str]:
    """The table of one sweep. `runs`: as they were created."""
    newest = runs[-1].sweep
    assert newest
    names = list(dict.fromkeys(name for run in runs if run.sweep for name in run.sweep.values))
    so_far = "best" if all(run.ended for run in runs) else "best so far"
    figure = [newest.metric] if newest.metric else []
    rows = [("RUN", *names, *figure, "OUTCOME", "")]
    for run in sorted(runs, key=lambda run: _order(run, newest)):
        best = so_far if len(rows) == 1 and newest.metric and run.metric is not None else ""
        rows.append((run.job, *_values(run, names), *_figure(run, newest), run.outcome, best))
    by = f", {newest.goal} {newest.metric}" if newest.metric else ""
    return ["", f"sweep {runs[0].namespace}/{newest.entry}{by}", *command_line.table(rows)]


def _values(run: Told, names: Sequence[str]) -> list[str]:
    values = run.sweep.values if run.sweep else {}
    return [values.get(name, "-") for name in names]


def _figure(run: Told, sweep: Sweep) -> list[str]:
    """The run's figure, where the sweep names one."""
    if not sweep.metric:
        return []
    return ["not known" if run.metric is None else f"{run.metric:g}"]


def _order(run: Told, sweep: Sweep) -> tuple[bool, float]:
    """Runs without a figure are last. Of those that go on a figure is not the last one yet, and counts all the
    same."""
    figure = run.metric if sweep.metric else None
    if figure is None:
        return True, 0.0
    return False, -figure if sweep.goal == "maximize" else figure
