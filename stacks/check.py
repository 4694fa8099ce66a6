"""`make check`: say whether a stack file can work, without the engine, a cluster or an account."""

from __future__ import annotations

import json
import sys

from stacks.config import json_schema, read_file
from stacks.plan import EnvironmentPlan, TeamPlan, plan_stack


def main(arguments: list[str]) -> int:
    """Check each named stack; 0 when all can work. `--schema` prints the JSON schema of stack files instead."""
    if arguments == ["--schema"]:
        print(json.dumps(json_schema(), indent=1))
        return 0
    return max((_check(stack) for stack in arguments), default=2)


def _check(stack: str) -> int:
    try:
        planned = plan_stack(read_file(stack))
    except FileNotFoundError as error:
        print(f"{stack}: no stack file ({error.filename}); copy Pulumi.dev.yaml")
        return 2
    for notice in planned.notices:
        print(f"  note   {notice}")
    for fault in planned.faults:
        print(f"  fault  {fault}")
    if planned.plan is None:
        print(f"{stack}: {len(planned.faults)} fault{'s' * (len(planned.faults) != 1)}, nothing was created")
        return 1
    print(f"{stack}: {_summary(planned.plan)}\nnext: make preview STACK={stack}")
    return 0


def _summary(plan: EnvironmentPlan | TeamPlan) -> str:
    jobs = f"{len(plan.jobs)} job{'s' * (len(plan.jobs) != 1)}"
    if isinstance(plan, TeamPlan):
        return f"namespace {plan.workspace.namespace} on {plan.environment}, {jobs}"
    pools = ", ".join(f"{p.name} {p.max_nodes} x {p.types[0].instance_type}" for p in plan.pools.values())
    return f"zone {plan.zone}, pools {pools}, {jobs}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
