"""What follows from `environment.repair`: the program that replaces sick nodes, and the add-on that
finds them."""

from __future__ import annotations

import json

from trainyard.catalog import versions
from trainyard.derive.programs import program_files
from trainyard.objects.programs.repair import AGENT, AGENT_CONFIGURATION, RepairPlan
from trainyard.plans.node_parts import AddOnPlan
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig


def repair_plan(me: Identity, wanted: EnvironmentConfig) -> RepairPlan | None:
    """None where the stack file wants no repair."""
    if wanted.repair is None:
        return None
    return RepairPlan(
        image=versions.PYTHON_IMAGE,
        role_name=me.name("repair"),
        region=me.region,
        files=program_files("repair"),
        nodes_an_hour=wanted.repair.nodes_an_hour,
        hung_minutes=wanted.repair.hung_minutes,
    )


def agent_plan(wanted: EnvironmentConfig) -> tuple[AddOnPlan, ...]:
    """The add-on, where it is wanted."""
    if wanted.repair is None:
        return ()
    return (
        AddOnPlan(
            name=AGENT,
            version=versions.KUBERNETES[wanted.cluster.version].add_ons[AGENT],
            configuration=json.dumps(AGENT_CONFIGURATION, sort_keys=True),
        ),
    )
