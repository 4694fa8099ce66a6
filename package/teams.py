"""The component of a team on an environment, and that of one job of a team."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import pulumi
from pulumi.output import UNKNOWN

from components.jobs.shown import can_ask
from package.arguments import Arguments, Values, plain
from package.deployed import of_team
from package.making import Asked, reading_of, renamed
from package.schema import TRAINING_JOB
from stacks import team
from stacks.caller import as_caller, shown_to_caller
from trainyard.decide import plan_stack
from trainyard.plan import Planned, TeamPlan
from trainyard.problems import At, InputError
from trainyard.replacing.compared import compared
from trainyard.replacing.contracts import compare
from trainyard.reports.check import judged
from trainyard.reports.plan import summary
from trainyard.settings.reading.contracts import PATH
from trainyard.settings.reading.reader import Reading

ACCESS = "access"
"""Argument with the parts of a contract that AWS adds. It decides nothing, so it need not be known in a
preview."""


async def make_team(asked: Asked, inputs: pulumi.Inputs) -> str:
    """Make a team, or one job of it; returns its URN."""
    given = await plain(inputs)
    access = _taken(given)
    contract = given.values.get("contract")
    whole = contract if isinstance(contract, Mapping) else None

    def reading(values: Values) -> Reading:
        own = dict(values)
        if whole is not None:
            del own["contract"]
        if asked.kind == TRAINING_JOB and "job" in own:
            own["jobs"] = {asked.name: own.pop("job")}
        return reading_of("team", own)

    def judge(values: Values) -> Planned:
        read = reading(values)
        found = judged(plan_stack(read, contract=whole), read.lines)
        found = compared(found, read.lines, of_team(asked), shown_to_caller, asks=can_ask())
        errors = (*_access_errors(whole is not None, access), *found.errors)
        return renamed(replace(found, errors=errors), _names(asked))

    begun = asked.begin(given, judge)
    plan = begun.settled.planned.plan
    assert isinstance(plan, TeamPlan)
    deployed = None
    if whole is not None:
        known = UNKNOWN if access is UNKNOWN else {**whole, **access}
        deployed = pulumi.Output.from_input(known)
    made = team.build(
        as_caller(plan),
        partial(compare, reading(begun.settled.values), plan),
        deployed=deployed,
        prefix=f"{asked.name}-",
    )
    made["kubeconfig"] = pulumi.Output.secret(made["kubeconfig"])
    return await begun.end(made | {"plan": summary(plan)})


def _names(asked: Asked) -> dict[str, str]:
    of_job = {f"team.jobs.{asked.name}": "job"} if asked.kind == TRAINING_JOB else {}
    return {**of_job, "team.": ""}


def _taken(given: Arguments) -> Any:
    """The access, which is then no argument that the plan follows from; UNKNOWN where a part of it is."""
    access = given.values.pop(ACCESS, None)
    unknown = [steps for steps in given.unknown if steps[0] == ACCESS]
    given.unknown = [steps for steps in given.unknown if steps[0] != ACCESS]
    given.secret = [steps for steps in given.secret if steps[0] != ACCESS]
    return UNKNOWN if unknown else access


def _access_errors(has_contract: bool, access: Any) -> Iterator[InputError]:
    at = At(f"team.{ACCESS}")
    if has_contract and access is None:
        yield At(at.path).must(
            "be set with a contract that is no file",
            got="nothing",
            fix="write the output `access` of the environment",
        )
    if access is not None and not has_contract:
        yield at.not_set("without a contract that is no file", got="a map", instead=f"set {PATH}")
