"""`make check`: say whether a stack file can work, without the engine, a cluster or an account.

With LIVE=1 (`--live`) the account that `pulumi up` would work in is asked as well, for DEADLINE
seconds: preflight.py.
"""

from __future__ import annotations

if __name__ == "__main__":
    # What a check makes is there until it ends. To look for garbage takes a tenth of its time.
    import gc

    gc.disable()

import json

from trainyard import command_line
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import InputError, InputWarning, counted, listed
from trainyard.reports.charts import chart_errors
from trainyard.reports.stack_file import HAS_ERRORS, NO_FILE, planned_file
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import json_schema

DEADLINE = 60.0
"""Seconds after which the questions without an answer are given up: several slow pages would take
minutes."""


def main(arguments: list[str]) -> int:
    """Check each named stack; 0 when all can work. `--schema` prints the JSON schema of stack files
    instead."""
    parser = command_line.parser(
        "trainyard.reports.check", "Say whether stack files can work, and name every error in them."
    )
    parser.add_argument(
        "stacks", nargs="*", metavar="STACK", help="check Pulumi.STACK.yaml of this folder"
    )
    parser.add_argument(
        "--live", action="store_true", help="ask the AWS account as well, which is only read"
    )
    parser.add_argument(
        "--deadline",
        type=float,
        metavar="SECONDS",
        help=f"with --live: stop asking the account after so long ({DEADLINE:g} by default)",
    )
    parser.add_argument(
        "--schema", action="store_true", help="print the JSON schema of stack files, and no more"
    )
    options = parser.parse_args(arguments)
    if options.schema:
        if options.stacks or options.live:
            parser.error("--schema is the same for every stack: leave STACK and --live out")
        print(json.dumps(json_schema(), indent=1))
        return 0
    if not options.stacks:
        parser.error(
            "STACK is missing: `python -m trainyard.reports.check dev` checks Pulumi.dev.yaml"
        )
    if options.deadline is not None and not options.live:
        parser.error("--deadline needs --live: it limits the questions to the account")
    deadline = options.deadline if options.deadline is not None else DEADLINE
    return max(_check(stack, deadline if options.live else None) for stack in options.stacks)


def _check(stack: str, deadline: float | None) -> int:
    """The exit status of one stack. `deadline`: seconds for the account's answers, None where it is
    not asked."""
    found = planned_file(stack)
    if found is None:
        return NO_FILE
    reading, planned = found
    problems: list[InputError | InputWarning] = [*planned.warnings, *planned.errors]
    if planned.plan and reading.config and (wanted := reading.config.environment):
        problems += map(reading.lines.locate, chart_errors(wanted, stack))
    if deadline is not None and planned.plan and reading.config:
        answers = _answers(planned.plan, reading.config.environment, deadline)
        asked = {answer.path for answer in answers}
        problems = [problem for problem in problems if problem.path not in asked]
        problems += map(reading.lines.locate, answers)
    print("\n".join([*listed(problems), ""] if problems else []), end="")
    if planned.plan is None or any(isinstance(problem, InputError) for problem in problems):
        print(f"{stack}: {counted(problems)}")
        return HAS_ERRORS
    summary = f"{counted(problems)}; {_summary(planned.plan)}"
    print(f"{stack}: {summary}\nnext: make preview STACK={stack}")
    return 0


def _answers(
    plan: EnvironmentPlan | TeamPlan, wanted: EnvironmentConfig | None, deadline: float
) -> list[InputError | InputWarning]:
    """Every error and warning that the account's answers give."""
    # Only here: a check without the account needs none of this, and is a tenth faster without it.
    from trainyard.live.preflight import preflight
    from trainyard.live.questions.account import Account

    return preflight(Account(plan.access), plan, wanted, deadline)


def _summary(plan: EnvironmentPlan | TeamPlan) -> str:
    jobs = f"{len(plan.jobs)} job{'s' * (len(plan.jobs) != 1)}"
    if isinstance(plan, TeamPlan):
        return f"namespace {plan.workspace.namespace} on {plan.environment}, {jobs}"
    pools = ", ".join(
        f"{p.name} {p.max_nodes} x {p.types[0].instance_type}" for p in plan.pools.values()
    )
    return f"zone {plan.zone}, pools {pools}, {jobs}"


if __name__ == "__main__":
    command_line.run(main)
