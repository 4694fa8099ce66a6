"""Teams that an environment lists, and the stack of one of them, as stack files of a checkout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.recording import CHECKOUT, stack_values, write_stack
from tests.support.stackfile import ENVIRONMENT, TEAM, Edit
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.settings.reading.reader import read_file

ROLE = "arn:aws:iam::111122223333:role"
DEPLOYER = f"{ROLE}/vision-deployer"


def listed(settings: dict[str, Any]) -> None:
    """The environment with a team and its limits, and a team without any."""
    settings["priorities"] = {"high": 1000}
    settings["teams"] = {
        "vision": {
            "deployer": DEPLOYER,
            "members": [f"{ROLE}/vision"],
            "viewers": [f"{ROLE}/auditors"],
            "max_gpus": 16,
            "stores": ["scratch"],
            "image_prefixes": ["public.ecr.aws/deep-learning-containers/"],
        },
        "nlp": {"deployer": f"{ROLE}/nlp-deployer"},
    }


def by_name(settings: dict[str, Any]) -> None:
    """The team's stack as that of a listed team."""
    del settings["namespace"], settings["max_gpus"]
    settings["name"] = "vision"


def checkout(folder: Path, environment: Edit, team: Edit, **more: Edit) -> Path:
    """A folder with both stack files, edited. `more`: stack → edits of another copy of the
    team's."""
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    edits = {"dev": environment, "team-vision": team} | {
        stack.replace("_", "-"): edit for stack, edit in more.items()
    }
    for stack, edit in edits.items():
        values = stack_values("dev" if stack == "dev" else "team-vision")
        edit(values[ENVIRONMENT if stack == "dev" else TEAM])
        write_stack(stack, folder, values)
    return folder


def both(*edits: Edit) -> Edit:
    """One edit after the other."""

    def edit(settings: dict[str, Any]) -> None:
        for each in edits:
            each(settings)

    return edit


def planned(stack: str, folder: Path) -> Planned:
    return plan_stack(read_file(stack, folder), folder)


Folder = Callable[[Edit, Edit], Path]


def environment_of(folder: Path) -> EnvironmentPlan:
    plan = planned("dev", folder).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


def team_of(folder: Path) -> TeamPlan:
    plan = planned("team-vision", folder).accepted()
    assert isinstance(plan, TeamPlan)
    return plan


def with_queues(settings: dict[str, Any]) -> None:
    """The environment with two teams in queues: the one is guaranteed half of a pool, the other at
    most two nodes of it. It has no jobs of its own."""
    listed(settings)
    settings["queues"] = {}
    settings["jobs"] = {}
    del settings["teams"]["vision"]["max_gpus"]
    settings["teams"]["vision"]["guaranteed_nodes"] = {"g6e": 2}
    settings["teams"]["nlp"]["max_nodes"] = {"g6e": 2}
