"""The program that replaces sick nodes, and the add-on that finds them."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping

from trainyard import command_line
from trainyard.catalog import versions
from trainyard.catalog.repair import FOUND_SECONDS, PATIENCE_SECONDS, SHARE
from trainyard.objects.metrics.metrics import Target
from trainyard.objects.programs.repair import AGENT, AGENT_CONFIGURATION, APP, RepairPlan
from trainyard.parts.part import Around, Part, Silence
from trainyard.parts.programs import program_files, program_pod, program_target
from trainyard.plans.clusters import AddOnPlan
from trainyard.plans.identity import Identity
from trainyard.plans.system_nodes import SystemPod
from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.repair import RepairConfig


class Repair(Part[RepairConfig, RepairPlan]):
    """`environment.repair`: broken nodes are replaced."""

    name = section = "repair"
    namespace = APP
    ends_reclaimed_pods = True

    def plan(self, me: Identity, settings: RepairConfig, around: Around) -> RepairPlan:
        return RepairPlan(
            image=versions.PYTHON_IMAGE,
            role_name=me.name("repair"),
            region=me.region,
            files=program_files("repair"),
            nodes_an_hour=settings.nodes_an_hour,
            hung_minutes=settings.hung_minutes,
        )

    def warnings(
        self, settings: RepairConfig, region: str, wanted: EnvironmentConfig
    ) -> Iterator[InputWarning]:
        """Pools whose capacity is taken in full: the slot of an instance that ends comes back minutes
        later."""
        for name, pool in wanted.pools.items():
            if pool.reservation and pool.replicas and not pool.warm_spares:
                yield InputWarning(
                    path=f"environment.pools.{name}.warm_spares",
                    text=(
                        "without a warm spare a gang that loses a node waits until the reservation"
                        " gives the place of its instance back, for a p5 more than a quarter of an"
                        " hour; lower replicas and write warm_spares: 1"
                    ),
                )

    def add_ons(
        self, settings: RepairConfig, published: Mapping[str, str]
    ) -> tuple[AddOnPlan, ...]:
        return (
            AddOnPlan(
                name=AGENT,
                version=published[AGENT],
                configuration=json.dumps(AGENT_CONFIGURATION, sort_keys=True),
            ),
        )

    def system_pods(
        self, settings: RepairConfig, wanted: EnvironmentConfig
    ) -> tuple[SystemPod, ...]:
        return (program_pod(APP),)

    def targets(self, settings: RepairConfig) -> tuple[Target, ...]:
        return (program_target(APP),)

    def silence(self, plan: RepairPlan) -> Silence | None:
        return Silence(plan.hung_minutes, "starts anew") if plan.hung_minutes else None

    def report(self, plan: RepairPlan, most_nodes: Mapping[str, int]) -> list[str]:
        """Report: the time until nodes that break are replaced, and their most in each pool. It is
        in the price of the nodes."""
        limit, hung = plan.nodes_an_hour, plan.hung_minutes
        rows = [("repair", "nodes", "replaced in an hour")]
        rows += [
            (name, str(most), f"at most {limit or max(1, math.ceil(SHARE * most))}")
            for name, most in most_nodes.items()
        ]
        note = (
            f"a broken node leaves after {FOUND_SECONDS} s, a silent one when EC2 calls its instance"
            f" dead, or after {PATIENCE_SECONDS // 60} minutes; its gangs start anew on a warm spare or"
            " wait for a new node; a run that "
            + (
                f"logs nothing for {hung} minutes starts anew"
                if hung
                else "hangs is told, and goes on: repair.hung_minutes starts it anew"
            )
        )
        return [*command_line.table(rows), *command_line.wrapped(note)]
