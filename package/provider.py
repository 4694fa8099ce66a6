"""The provider of the package: it makes a component from arguments, by the reader, the rules and the program
of a stack file."""

from __future__ import annotations

import json
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pulumi
import pulumi.provider
from pulumi.errors import InputPropertiesError
from pulumi.runtime import settings

from package.arguments import Arguments, Steps, plain
from package.schema import ENVIRONMENT, schema
from stacks import environment
from stacks.engine import read_deployed
from trainyard.catalog.versions import TRAINYARD
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned
from trainyard.problems import At, InputError, counted, listed, told
from trainyard.replacing.replacing import compared
from trainyard.reports.check import judged
from trainyard.reports.plan import summary
from trainyard.settings.reading.reader import read_arguments

HOME = Path(__file__).resolve().parents[1]
LINK = Path(".trainyard")
"""Link in the folder of the program to the folder of the package. The state names charts by a path from
there. The folder of a plugin would be another path on each machine, and each would update the releases."""
OWN_CHARTS = "./components/charts/"
"""Beginning of the paths of our own charts, as plans have them."""
OWN_PROVIDERS = ("aws", "eks", "kubernetes")
"""Packages whose providers a component makes itself."""


class Components(pulumi.provider.Provider):
    """Everything that the package offers."""

    def __init__(self) -> None:
        super().__init__(TRAINYARD, json.dumps(schema()))

    def construct(
        self,
        name: str,
        resource_type: str,
        inputs: pulumi.Inputs,
        options: pulumi.ResourceOptions | None = None,
    ) -> pulumi.provider.ConstructResult:
        """Make a component. The state is there as soon as the URN is."""
        state: dict[str, Any] = {}
        make = MAKERS[resource_type]
        urn = make(name, inputs, options or pulumi.ResourceOptions(), state)
        return pulumi.provider.ConstructResult(pulumi.Output.from_input(urn), state)


def serve() -> None:
    """Serve the engine until it ends this process."""
    pulumi.provider.main(Components(), sys.argv[1:])


async def _environment(
    name: str, inputs: pulumi.Inputs, options: pulumi.ResourceOptions, state: dict[str, Any]
) -> str:
    """Make an environment; returns its URN. `state`: gets the outputs."""
    given = await plain(inputs)
    errors = [*_provider_errors(options), *_value_errors(given)]
    config = pulumi.runtime.config.CONFIG.get()
    reading = read_arguments(
        "environment",
        given.values,
        config,
        stack=pulumi.get_stack(),
        project=pulumi.get_project(),
    )
    planned = judged(plan_stack(reading), reading.lines)
    planned = compared(planned, reading.lines, partial(_deployed, ENVIRONMENT))
    plan = _accepted(name, "environment", replace(planned, errors=(*errors, *planned.errors)))
    assert isinstance(plan, EnvironmentPlan)
    outer = _outer(ENVIRONMENT, name, options)
    for line in told(planned.warnings):
        pulumi.warn(line.removeprefix("environment."), outer)
    made = await environment.build(plan)
    outputs = _outputs(plan, made)
    state.update(outputs)
    outer.register_outputs(outputs)
    return await outer.urn.future() or ""


Maker = Callable[
    [str, pulumi.Inputs, pulumi.ResourceOptions, dict[str, Any]],
    Awaitable[str],
]
MAKERS: Mapping[str, Maker] = {ENVIRONMENT: _environment}
"""Type of a component → what makes it."""


def _deployed(outer: str, types: Collection[str], stack: str | None = None) -> Any:
    """What the stack holds inside components of a type."""
    return read_deployed(types, stack, within=outer)


def _accepted(name: str, kind: str, planned: Planned) -> Any:
    """The plan. Raises InputPropertiesError with every error, each in the words of a stack file and with
    the path of the argument.

    The errors are lines of the message and no details of it: the engine prints the value of a property
    that has a problem, and an error can be about a secret in clear."""
    if planned.plan is None or planned.errors:
        errors = [replace(each, path=each.path.removeprefix(f"{kind}.")) for each in planned.errors]
        lines = [f"{counted(errors)} in the arguments of {name}", *listed(errors)]
        raise InputPropertiesError("\n".join(lines), [])
    return planned.plan


def _provider_errors(options: pulumi.ResourceOptions) -> Iterable[InputError]:
    """A provider that would be accepted and ignored."""
    given = options.providers or {}
    named = given if isinstance(given, Mapping) else {each.package: each for each in given}
    for package in sorted({*named} & {*OWN_PROVIDERS}):
        yield At("providers").must(
            "not be set: the component makes its own providers, from the aws: settings of the stack",
            got=package,
            fix="leave the option out, and set aws:region, aws:profile or aws:assumeRoles",
        )


def _value_errors(given: Arguments) -> Iterable[InputError]:
    for steps in given.unknown:
        yield At(_path(steps)).must(
            "be known in a preview, because the plan follows from it",
            got="an output of a resource that does not exist yet",
            fix="write the value, or make that resource first: pulumi up --target <its URN>",
        )
    for steps in given.secret:
        yield At(_path(steps)).must(
            "not be a secret, because names, tags and the plan show it",
            got="a secret, which is not shown",
            fix="write the value in clear, or by unsecret() of the SDK where it is none",
        )


def _path(steps: Steps) -> str:
    return ".".join(steps)


class _Outer(pulumi.ComponentResource):
    """The component as the program sees it."""


def _outer(kind: str, name: str, options: pulumi.ResourceOptions) -> _Outer:
    """The component, to which everything belongs that is made from here on without a parent, as
    everything belongs to the stack in the program of a stack file."""
    if not LINK.exists() or LINK.is_symlink() and LINK.resolve() != HOME:
        LINK.unlink(missing_ok=True)
        LINK.symlink_to(HOME)
    options.transformations = [*(options.transformations or ()), _chart_from_link]
    outer = _Outer(kind, name, None, options)
    settings.set_root_resource(outer)
    return outer


def _chart_from_link(
    made: pulumi.ResourceTransformationArgs,
) -> pulumi.ResourceTransformationResult | None:
    """Name a chart of ours by the link: the program can have a folder `components` of its own."""
    chart = made.props.get("chart")
    if made.type_ != "kubernetes:helm.sh/v3:Release" or not str(chart).startswith(OWN_CHARTS):
        return None
    there = f"./{LINK}/{str(chart).removeprefix('./')}"
    return pulumi.ResourceTransformationResult({**made.props, "chart": there}, made.opts)


def _outputs(plan: EnvironmentPlan, made: environment.Environment) -> dict[str, Any]:
    """Outputs by the names of the schema."""
    of_stack, at, network = dict(made.outputs), made.cluster.coordinates, made.network
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
        "kubeconfig": pulumi.Output.secret(of_stack.pop("kubeconfig")),
        "contract": of_stack.pop("contract"),
        "registries": of_stack.pop("registries"),
        "jobs": of_stack.pop("jobs"),
        "plan": summary(plan),
        "more": of_stack,
    }
