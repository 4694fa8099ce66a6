"""The way of every component: arguments, plan, the component itself, outputs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import pulumi
from pulumi.errors import InputPropertiesError

from package.arguments import NO_ACCOUNT, Arguments, Judge, Settled, Steps, path_of, settled
from package.outer import outer, provider_errors
from package.shadows import Shadows
from stacks.engine import configuration
from trainyard.plan import Planned
from trainyard.problems import Problem, counted, listed, told
from trainyard.settings.reading.reader import Reading, read_arguments

P = TypeVar("P", bound=Problem)


@dataclass(frozen=True)
class Asked:
    """A component that a program asks for."""

    kind: str
    name: str
    options: pulumi.ResourceOptions
    outputs: dict[str, Any]
    """Gets the outputs."""

    def begin(self, given: Arguments, judge: Judge) -> Begun:
        """Plan the component and make it, without what is in it.

        Raises InputPropertiesError with every error, each in the words of a stack file. They are lines of
        its message and no details of it: the engine prints the value of an argument that has a problem,
        and an error can be about a secret in clear."""
        config = configuration()
        accounts = json.loads(config.get("aws:allowedAccountIds", "[]"))
        account, region = str([*accounts, NO_ACCOUNT][0]), config.get("aws:region", "")
        found = settled(given, judge, region=region, account=account)
        errors = [*provider_errors(self.options), *found.planned.errors]
        shadows = Shadows(secrets=given.secret_texts(), stood_in=bool(found.stood_in))
        if errors:
            lines = [f"{counted(errors)} in the arguments of {self.name}", *listed(errors)]
            raise InputPropertiesError(shadows.without("\n".join(lines)), [])
        made = outer(self.kind, self.name, self.options, needs=given.needs, shadows=shadows)
        for line in [*told(found.planned.warnings), *map(_stands_in, found.stood_in)]:
            pulumi.warn(shadows.without(line), made)
        return Begun(settled=found, made=made, outputs=self.outputs, shadows=shadows)


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A component of which everything else is still to be made."""

    settled: Settled
    made: pulumi.ComponentResource
    outputs: dict[str, Any]
    shadows: Shadows

    async def end(self, outputs: Mapping[str, Any]) -> str:
        """Give it its outputs; returns its URN."""
        self.outputs.update(self.shadows.over(dict(outputs)))
        self.made.register_outputs(self.outputs)
        return await self.made.urn.future() or ""


def reading_of(kind: str, values: Mapping[str, Any]) -> Reading:
    """Arguments as the settings of a stack file. `kind`: environment or team."""
    stack, project = pulumi.get_stack(), pulumi.get_project()
    return read_arguments(kind, values, configuration(), stack=stack, project=project)


def renamed(planned: Planned, names: Mapping[str, str]) -> Planned:
    """A result whose problems have the paths of arguments. `names`: beginning of a path of a stack file →
    what stands for it; the first that fits counts."""

    def of(problem: P) -> P:
        fits = (each for each in names if problem.path.startswith(each))
        began = next(fits, "")
        return replace(problem, path=names.get(began, "") + problem.path.removeprefix(began))

    return replace(
        planned,
        errors=tuple(map(of, planned.errors)),
        warnings=tuple(map(of, planned.warnings)),
    )


def _stands_in(steps: Steps) -> str:
    return (
        f"{path_of(steps)}: it is not known before `pulumi up`; what the preview shows that follows from it,"
        " such as the end of a name, can be different then"
    )
