"""`python -m trainyard.reports.previewable`: the stacks of this folder that an empty account can preview,
one a line. CI previews these.

A stack that uses an existing VPC, cluster or store looks it up in every preview, and fails where there
is none. `trainyard check --policies` judges all stacks.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trainyard import command_line
from trainyard.plan import EnvironmentPlan
from trainyard.reports.stack_file import HAS_ERRORS, errors_of, planned_file


def main(arguments: list[str]) -> int:
    """Print the stacks; 1 where a stack file has errors."""
    parser = command_line.parser(
        "trainyard.reports.previewable", "Print the stacks that an empty account can preview."
    )
    parser.parse_args(arguments)
    stacks = [file.name.split(".", 1)[1][: -len(".yaml")] for file in Path().glob("Pulumi.*.yaml")]
    return max(map(_judged, sorted(stacks)), default=0)


def _judged(stack: str) -> int:
    """Print the stack, or on the other stream why it is not printed; the exit status."""
    found = planned_file(stack)
    assert found is not None, "its file was there a moment ago"
    _, planned = found
    if planned.plan is None:
        print(errors_of(stack, planned.errors), file=sys.stderr)
        return HAS_ERRORS
    existing = planned.plan.existing if isinstance(planned.plan, EnvironmentPlan) else ()
    if existing:
        print(
            f"{stack}: no preview, because an empty account has nothing of {', '.join(existing)}",
            file=sys.stderr,
        )
    else:
        print(stack)
    return 0


if __name__ == "__main__":
    command_line.run(main)
