"""`trainyard dashboards`: the dashboards of an environment as files that Grafana imports.

What is on them: trainyard/objects/metrics/dashboards.py.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from trainyard.objects.metrics.dashboards import pages
from trainyard.objects.metrics.metrics import VIEW
from trainyard.parts.parts import HISTORY, METRICS
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports.stack_file import report_on
from trainyard.settings.reading.reader import Reading


def main(options: argparse.Namespace) -> int:
    """Write the dashboards of one stack; 1 where the stack is refused or has no metrics, 2 where it
    has no file."""
    stack = options.stack

    def report(_: Reading, plan: EnvironmentPlan | TeamPlan) -> int:
        if not isinstance(plan, EnvironmentPlan) or METRICS.of(plan) is None:
            print(
                f"{stack}: no metrics; write environment.metrics: {{}} in the environment's stack"
                " file"
            )
            return 1
        for path in write(plan, options.to / stack):
            print(path)
        print("in Grafana: Dashboards, New, Import; its data source is the Prometheus behind")
        print(f"  {VIEW}")
        return 0

    return report_on(stack, report)


def write(plan: EnvironmentPlan, folder: Path) -> list[Path]:
    """One file a dashboard; that of teams only where the environment has queues."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    history = HISTORY.of(plan)
    follows = bool(history and history.progress)
    found = pages(plan.identity.stack, queues=bool(plan.queues), follows=follows)
    for name, page in found.items():
        path = folder / f"{name}.json"
        path.write_text(page)
        written.append(path)
    return written
