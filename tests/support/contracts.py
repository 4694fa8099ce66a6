"""Folders of a team that has the contract of its environment and no stack file of it."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.support.recording import CHECKOUT, stack_values, write_stack
from tests.support.stackfile import TEAM, Edit, environment_plan
from trainyard.plan import EnvironmentPlan
from trainyard.settings.reading.contracts import signature

FILE = "contract.yaml"


def handed_over(plan: EnvironmentPlan, team: str | None) -> dict[str, Any]:
    """The contract of a team, as its environment hands it over."""
    return dict(plan.teams[team].contract if team else plan.contract)


def contract_of(*edits: Edit, team: str | None = "vision") -> dict[str, Any]:
    return handed_over(environment_plan(*edits), team)


def alone(folder: Path, contract: Any, *edits: Edit, team: str | None = "vision") -> Path:
    """A folder with three files: Pulumi.yaml, the team's stack file and the contract. `edits`: of the
    team."""
    folder.mkdir(exist_ok=True)
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    values = stack_values("team-vision")
    settings = values[TEAM]
    settings["contract"] = FILE
    if team:
        del settings["namespace"], settings["max_gpus"]
        settings["name"] = team
    for edit in edits:
        edit(settings)
    write_stack("team-vision", folder, values)
    text = contract if isinstance(contract, str) else yaml.safe_dump(contract, sort_keys=False)
    (folder / FILE).write_text(text)
    return folder


WRONG: tuple[Any, ...] = (None, [], {}, "", "x", -1, 0, 3.5, True, [None], {"x": 1}, "1e999", [[1]])
"""Values that a key of a contract does not expect."""


def mutated(contract: dict[str, Any], seed: int) -> dict[str, Any]:
    """A contract in which one value is wrong, one key is missing or one is new. Mostly it is signed anew, as
    a program would that writes it so."""
    chance = random.Random(seed)
    found = copy.deepcopy(contract)
    places = [*_places(found)]
    holder, key = places[chance.randrange(len(places))]
    how = chance.randrange(4)
    if how == 0:
        del holder[key]
    elif how == 1 and isinstance(holder, dict):
        holder[f"{key}x"] = holder.pop(key)
    else:
        holder[key] = copy.deepcopy(chance.choice(WRONG))
    if chance.random() < 0.8 and "digest" in found:
        found["digest"] = signature(found)
    return found


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every value below another one, as its holder and its key there."""
    keys = (
        value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    )
    for key in list(keys):
        yield value, key
        yield from _places(value[key])
