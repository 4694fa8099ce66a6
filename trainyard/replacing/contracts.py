"""The deployed contract of an environment beside the one that a team was planned by: what this team uses
differs, or something else.

Nobody lists what a team uses. The team's stack file is planned again by the deployed contract, by the same
reader and the same rules. The team is stopped where the rules refuse it now, where its jobs would be other
objects, or where it would be elsewhere: in another zone, in another namespace, on other nodes. Each other
difference is a note. Why so: docs/decisions/0025-a-contract-is-a-reduced-stack-file.md.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainyard.decide import plan_by_contract
from trainyard.parts.parts import PARTS
from trainyard.plan import Planned, TeamPlan
from trainyard.problems import InputError
from trainyard.replacing.contracts_before import from_before
from trainyard.settings.reading.contracts import (
    BEFORE,
    PROMISED,
    RELEASE,
    VERSION,
    command,
    core,
    signature,
    version_error,
    whole_numbers,
)
from trainyard.settings.reading.mistake import shown
from trainyard.settings.reading.reader import Reading

Way = tuple[str, ...]
REACHED = ("name", "arn", "endpoint", "certificate_authority")
"""Values of a deployed contract by which a team's stack finds the cluster."""
GONE = object()
"""Stands for a setting that is not there."""


@dataclass(frozen=True)
class Difference:
    """A setting that the deployed contract has otherwise."""

    path: Way
    planned: Any
    deployed: Any

    def __str__(self) -> str:
        return f"{'.'.join(self.path)} is {_shown(self.planned)} here and {_shown(self.deployed)} there"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The deployed contract beside that of the plan."""

    refusal: str = ""
    """Sentence about a stack that cannot be deployed, with the fix; empty where it can."""
    note: str = ""
    """Sentence about other differences; empty where there are none."""


def compare(
    reading: Reading, plan: TeamPlan, deployed: Mapping[str, Any], folder: Path = Path(".")
) -> Comparison:
    """Compare the contract of a plan with the one that its environment has deployed. `reading`: of the
    team's stack file. `deployed`: as AWS or the environment's outputs tell it, of any shape."""
    config = reading.config
    assert config and config.team
    team, by_file = config.team.name, config.team.contract
    way_out = _way_out(plan, team, by_file)
    if not deployed:
        return Comparison(refusal=f"{_of(plan)} is not deployed. {way_out}")
    deployed = whole_numbers(deployed)
    if wrong := _unreadable(deployed):
        return Comparison(refusal=f"{_of(plan)} has a contract that cannot be read: {wrong}")
    mine = core(plan.contract)
    theirs = core(deployed) if deployed["version"] == VERSION else from_before(mine, deployed)
    found = [*_differences(mine, theirs)] if signature(mine) != signature(theirs) else []
    if not found:
        return Comparison()

    def planned(contract: dict[str, Any]) -> tuple[Planned, dict[str, Any]]:
        used = _as_used(plan, mine, contract)
        return plan_by_contract(reading, used, folder), used

    by_theirs = planned(theirs)
    if newer := [each for each in by_theirs[0].errors if each.path == RELEASE]:
        return Comparison(
            refusal=f"{_of(plan)} has a contract that cannot be read: {_said(newer[0])}"
        )
    why = _stops(plan, *by_theirs)
    if not why:
        said = "; ".join(map(str, found))
        return Comparison(note=f"{_of(plan)} differs in what this stack does not use: {said}")
    own = [each for each in found if _stops(plan, *planned(_changed(mine, each)))] or found
    return Comparison(
        refusal=f"{_of(plan)} {_elsewhere(by_file)}, and this stack uses what differs:"
        f" {'; '.join(map(str, own))} ({why[0]}). {way_out}"
    )


def _of(plan: TeamPlan) -> str:
    return f"environment {plan.environment}"


def _elsewhere(by_file: str | None) -> str:
    """Words about an environment that is not the one of the plan. `by_file`: file of the contract."""
    if by_file:
        return f"is deployed with another contract than {by_file}"
    return "is deployed from another stack file than the one in this checkout"


def _way_out(plan: TeamPlan, team: str | None, by_file: str | None) -> str:
    if by_file:
        return (
            f"Fix: ask for `{command(plan.environment, team)}`, write it to {by_file}, and run `trainyard"
            f" check {plan.identity.stack}`"
        )
    return f"Fix: run `pulumi up -s {plan.environment}` first, or check out the commit it was made from"


ANEW = "Fix: ask for an update of the environment"


def _unreadable(deployed: Mapping[str, Any]) -> str:
    """Sentence about a deployed contract that cannot be compared, with the fix; empty where it can."""
    if deployed.get("version") not in (BEFORE, VERSION):
        return _said(version_error(deployed))
    reached = deployed.get("cluster")
    if not isinstance(reached, Mapping) or not all(
        isinstance(reached.get(key), str) for key in REACHED
    ):
        return f"it has no {', '.join(f'cluster.{key}' for key in REACHED)}. {ANEW}"
    if deployed["version"] == VERSION and not isinstance(deployed.get("environment"), Mapping):
        return f"it has no environment. {ANEW}"
    return ""


def _said(error: InputError) -> str:
    return f"{error.path} must {error.must}; got {error.got}. Fix: {error.fix}"


def _stops(plan: TeamPlan, planned: Planned, contract: Mapping[str, Any]) -> list[str]:
    """Reasons why a team cannot be deployed as it was planned, where a contract holds. `planned`: by that
    contract."""
    other = planned.plan
    if not isinstance(other, TeamPlan) or planned.errors:
        errors = [f"{each.path}: must {each.must}; got {each.got}" for each in planned.errors]
        return errors or ["it has no plan"]
    found: list[str] = []
    for name, job in plan.jobs.items():
        old, new = (set(each.capacity[job.pool].instance_types) for each in (plan, other))
        found += [f"{name} would run on {', '.join(sorted(new - old))}"] if new - old else []
    before, after = _settled(plan, plan.contract), _settled(other, contract)
    return found + [f"{what} would differ" for what, it in before.items() if after[what] != it]


def _settled(plan: TeamPlan, contract: Mapping[str, Any]) -> dict[str, Any]:
    """Words about what must be the same → its value."""
    return {
        "the zone": contract["environment"]["zone"],
        "the region": contract["region"],
        "the way to the cluster": plan.access,
        "the parameter of the contract": plan.parameter,
        "the namespace": plan.workspace.namespace,
        "the claims of stores": [
            (claim.store, claim.name, claim.driver.name, claim.access_mode, claim.options)
            for claim in plan.workspace.claims
        ],
        "the objects of its jobs": {
            name: (job.kind, job.runtime, job.labels, job.spec, job.objects)
            for name, job in plan.jobs.items()
        },
    }


def _as_used(plan: TeamPlan, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> dict[str, Any]:
    """The deployed contract, in which everything that the jobs of the plan do not name is as it was planned:
    a pool, a store or a runtime more may be one that this release does not know. So are parts: one more
    or less adds a variable or a note to a job, and breaks none."""
    contract = copy.deepcopy(dict(theirs))
    own, environment = mine["environment"], contract["environment"]
    for section in {part.section for part in PARTS} - {"queues"}:
        environment.pop(section, None)
        if section in own:
            environment[section] = own[section]
    jobs = plan.jobs.values()
    runtimes = {job.runtime for job in jobs}
    _take(environment, "pools", own, {job.pool for job in jobs})
    _take(environment, "storage", own, {store for job in jobs for store in job.stores})
    trainer = environment.get("trainer")
    if isinstance(trainer, dict):
        _take(trainer, "own_runtimes", own["trainer"], runtimes)
        said = trainer.get("runtimes")
        if isinstance(said, list):
            known = own["trainer"]["runtimes"]
            trainer["runtimes"] = [it for it in known if it in said or it not in runtimes]
    return contract


def _take(
    holder: dict[str, Any], key: str, own: Mapping[str, Any], used: Collection[str | None]
) -> None:
    """Put the entries of the plan in the place of the deployed ones that are not used."""
    said = holder.get(key, {})
    if isinstance(said, Mapping):
        kept = {name: it for name, it in own.get(key, {}).items() if name not in used}
        holder[key] = kept | {name: it for name, it in said.items() if name in used}
        if not holder[key]:
            del holder[key]


def _differences(mine: Any, theirs: Any, path: Way = ()) -> Iterator[Difference]:
    """Every setting in which two contracts differ. A map that only one of them has is one difference."""
    if isinstance(mine, Mapping) and isinstance(theirs, Mapping):
        for key in dict.fromkeys([*mine, *theirs]) if path else PROMISED:
            yield from _differences(mine.get(key, GONE), theirs.get(key, GONE), (*path, str(key)))
    elif mine != theirs:
        yield Difference(path, mine, theirs)


def _changed(mine: Mapping[str, Any], difference: Difference) -> dict[str, Any]:
    """The contract of the plan with one difference of the deployed one."""
    contract = copy.deepcopy(dict(mine))
    holder = contract
    for step in difference.path[:-1]:
        holder = holder.setdefault(step, {})
    if difference.deployed is GONE:
        holder.pop(difference.path[-1], None)
    else:
        holder[difference.path[-1]] = copy.deepcopy(difference.deployed)
    return contract


def _shown(value: Any) -> str:
    return "not there" if value is GONE else shown(value)
