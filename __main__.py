"""Trainyard: a training environment, or a team on one, from a stack file."""

import gc
from functools import partial
from typing import Any

import pulumi

from components.jobs.shown import can_ask
from stacks import environment, team
from stacks.caller import as_caller, shown_to_caller
from stacks.engine import read_deployed, read_engine
from stacks.outputs import prices_of_runs
from trainyard.catalog.versions import TRAINYARD
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.problems import Refused, told
from trainyard.replacing.compared import compared
from trainyard.replacing.contracts import compare
from trainyard.reports.check import judged
from trainyard.reports.plan import summary

# Most garbage of the SDK dies young; what survives lives until exit. So the collector looks at young
# objects every 20,000 allocations, and almost never at older ones.
gc.set_threshold(20_000, 1_000)
try:
    reading = read_engine()
    planned = judged(plan_stack(reading), reading.lines)
    planned = compared(planned, reading.lines, read_deployed, shown_to_caller, asks=can_ask())
    plan = planned.accepted()
except Refused as refused:
    raise pulumi.RunError(str(refused)) from None
for line in told(planned.warnings):
    pulumi.warn(line)
for line in prices_of_runs(plan, planned.starts):
    pulumi.info(line)


async def program() -> dict[str, Any]:
    """Make everything; returns the stack's outputs."""
    if isinstance(plan, EnvironmentPlan):
        made = (await environment.build(as_caller(plan))).outputs
    else:
        made = team.build(as_caller(plan), partial(compare, reading, plan))
    return made | {"plan": summary(plan), "release": TRAINYARD}


pulumi.run(program)
