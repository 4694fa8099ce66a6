"""`trainyard check`: say whether a stack file can work, without the engine, a cluster or an account.

With --live (`--live`) the account that `pulumi up` would work in is asked as well, for DEADLINE
seconds: preflight.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace

from trainyard.parts.parts import monthly_limit, wanted_parts
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.problems import InputError, InputWarning, counted, listed
from trainyard.reports.charts import chart_problems
from trainyard.reports.minutes.limits import below
from trainyard.reports.stack_file import HAS_ERRORS, NO_FILE, planned_file
from trainyard.rules.principals import unasked
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import Reading
from trainyard.settings.reading.yaml_file import Lines

DEADLINE = 60.0
"""Seconds after which the questions without an answer are given up: several slow pages would take
minutes."""


def main(options: argparse.Namespace) -> int:
    """Check one stack; 0 when it can work, 1 where it has errors, 2 where it has no file."""
    deadline = options.deadline if options.deadline is not None else DEADLINE
    return _check(options.stack, deadline if options.asks else None)


def _check(stack: str, deadline: float | None) -> int:
    """The exit status of one stack. `deadline`: seconds for the account's answers, None where it is
    not asked."""
    found = planned_file(stack)
    if found is None:
        return NO_FILE
    reading, planned = found[0], judged(found[1], found[0].lines)
    problems: list[InputError | InputWarning] = [*planned.warnings, *planned.errors]
    beside = _beside(reading, planned, asks=deadline is not None)
    problems += map(reading.lines.locate, beside)
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
    print(f"{stack}: {summary}")
    return 0


def _beside(
    reading: Reading, planned: Planned, *, asks: bool
) -> Iterator[InputError | InputWarning]:
    """Problems of what must be there beside the stack file, and warnings about what only a plan without errors
    tells. `asks`: the account is asked for roles."""
    config = reading.config
    wanted = config and config.environment
    if config is None or wanted is None:
        return
    if planned.plan is None:
        yield from _not_compared(wanted)
    if reading.errors:
        return  # values stand in for wrong ones
    yield from chart_problems(wanted, config.stack)
    if not asks:
        yield from unasked(wanted)


def _not_compared(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """A warning about each setting, such as a budget, that is compared with the cost of a plan."""
    for part, _ in wanted_parts(wanted):
        if part.compared:
            yield InputWarning(
                path=f"environment.{part.section}.{part.compared}",
                text="it is not compared yet with what the plan costs; correct the errors first",
            )


def judged(planned: Planned, lines: Lines) -> Planned:
    """The plan with the problems that only a whole plan shows: time limits of parts below, and a budget that is
    too small. A preview and an update are refused for them as `check` is. `lines`: of the stack file."""
    plan = planned.plan
    if plan is None:
        return planned
    found: list[InputError | InputWarning] = [*below(plan)]
    if isinstance(plan, EnvironmentPlan) and monthly_limit(plan):
        # Only here: a check without a budget needs no prices.
        from trainyard.reports.costs.budget import budget_problems

        found += budget_problems(plan)
    errors = [each for each in found if isinstance(each, InputError)]
    warnings = [each for each in found if isinstance(each, InputWarning)]
    return replace(
        planned,
        errors=(*planned.errors, *errors),
        warnings=(*planned.warnings, *warnings),
    ).located(lines)


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
