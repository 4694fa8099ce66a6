"""The component of an environment."""

from __future__ import annotations

from functools import partial
from typing import Any

import pulumi

from components.jobs.shown import can_ask
from package.arguments import Values, plain
from package.making import Asked, reading_of, renamed
from stacks import environment
from stacks.caller import as_caller, shown_to_caller
from stacks.engine import read_deployed
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned
from trainyard.replacing.compared import compared
from trainyard.reports.check import judged
from trainyard.reports.plan import summary


async def make_environment(asked: Asked, inputs: pulumi.Inputs) -> str:
    """Make an environment; returns its URN."""

    def judge(values: Values) -> Planned:
        reading = reading_of("environment", values)
        found = judged(plan_stack(reading), reading.lines)
        deployed = partial(read_deployed, within=asked.kind)
        found = compared(found, reading.lines, deployed, shown_to_caller, asks=can_ask())
        return renamed(found, {"environment.": ""})

    begun = asked.begin(await plain(inputs), judge)
    plan = begun.settled.planned.plan
    assert isinstance(plan, EnvironmentPlan)
    return await begun.end(_outputs(plan, await environment.build(as_caller(plan))))


def _outputs(plan: EnvironmentPlan, made: environment.Environment) -> dict[str, Any]:
    """Outputs by the names of the schema."""
    of_stack, at, network = dict(made.outputs), made.cluster.coordinates, made.network
    del of_stack["contract"]
    # Whoever has the access has what a job needs, too, and is gone before it.
    there = [one.urn for one in made.ready]
    return {
        "cluster_name": at.name,
        "cluster_arn": at.arn,
        "endpoint": at.endpoint,
        "certificate_authority": at.certificate_authority,
        "vpc_id": network.vpc_id,
        "private_subnet_ids": list(network.private_subnet_ids),
        "training_subnet_id": network.training_subnet_id,
        "cluster_security_group_id": made.cluster.security_group_id,
        "node_security_group_id": network.node_security_group_id,
        "claims": {store: claim.metadata.name for store, claim in made.workspace.claims.items()},
        "job_namespace": made.workspace.namespace,
        "team_namespaces": {key: team.workspace.namespace for key, team in plan.teams.items()},
        "queues": {key: team.queue.team for key, team in plan.teams.items() if team.queue},
        "contract": plan.contract,
        "team_contracts": {key: team.contract for key, team in plan.teams.items()},
        "access": pulumi.Output.all(made.access, *there).apply(lambda known: known[0]),
        "kubeconfig": pulumi.Output.secret(of_stack.pop("kubeconfig")),
        "registries": of_stack.pop("registries"),
        "jobs": of_stack.pop("jobs"),
        "plan": summary(plan),
        "more": of_stack,
    }
