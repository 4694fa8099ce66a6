"""`make dashboards`: the dashboards of an environment as files that Grafana imports.

What is on them: plans/dashboards.py.
"""

from __future__ import annotations

from pathlib import Path

import command_line
from plans.dashboards import DASHBOARDS, grafana
from plans.metrics import VIEW
from stacks.plan import plan_stack
from stacks.planned import EnvironmentPlan
from stacks.settings.problems import counted, listed
from stacks.settings.reader import read_file

FOLDER = "dashboards"


def main(arguments: list[str]) -> int:
    """Write the dashboards of one stack; 1 where the stack is refused or has no metrics, 2 where it
    has no file."""
    parser = command_line.parser(
        "stacks.reports.dashboards", "Write the dashboards of a stack, as Grafana imports them."
    )
    parser.add_argument("stack", metavar="STACK", help="read Pulumi.STACK.yaml of this folder")
    parser.add_argument(
        "--to", type=Path, default=Path(FOLDER), help=f"folder to write to (default: {FOLDER})"
    )
    options = parser.parse_args(arguments)
    stack = options.stack
    try:
        planned = plan_stack(read_file(stack))
    except FileNotFoundError as error:
        print(f"{stack}: no stack file ({error.filename}); copy Pulumi.dev.yaml")
        return 2
    plan = planned.plan
    if plan is None:
        print("\n".join([*listed(planned.errors), f"{stack}: {counted(planned.errors)}"]))
        return 1
    if not isinstance(plan, EnvironmentPlan) or plan.metrics is None:
        print(
            f"{stack}: no metrics; write environment.metrics: {{}} in the environment's stack file"
        )
        return 1
    for path in write(plan, options.to / stack):
        print(path)
    print("in Grafana: Dashboards, New, Import; its data source is the Prometheus behind")
    print(f"  {VIEW}")
    return 0


def write(plan: EnvironmentPlan, folder: Path) -> list[Path]:
    """One file a dashboard; that of teams only where the environment has queues."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for page in DASHBOARDS:
        if plan.queues or not page.queues:
            path = folder / f"{page.name}.json"
            path.write_text(grafana(page, plan.identity.stack) + "\n")
            written.append(path)
    return written


if __name__ == "__main__":
    command_line.run(main)
