"""Trainyard: a training environment, or a team on one, from a stack file."""

import gc
from typing import Any

import pulumi

from stacks import environment, team
from stacks.engine import read_deployed, read_engine
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.problems import Refused, told
from trainyard.replacing.replacing import compared
from trainyard.reports.check import judged
from trainyard.reports.plan import summary

# Most garbage of the SDK dies young; what survives lives until exit. So the collector looks at young
# objects every 20,000 allocations, and almost never at older ones.
gc.set_threshold(20_000, 1_000)
try:
    reading = read_engine()
    planned = judged(plan_stack(reading), reading.lines)
    planned = compared(planned, reading.lines, read_deployed)
    plan = planned.accepted()
except Refused as refused:
    raise pulumi.RunError(str(refused)) from None
for line in told(planned.warnings):
    pulumi.warn(line)


async def program() -> dict[str, Any]:
    """Make everything; returns the stack's outputs."""
    made = await environment.build(plan) if isinstance(plan, EnvironmentPlan) else team.build(plan)
    return made | {"plan": summary(plan)}


pulumi.run(program)
