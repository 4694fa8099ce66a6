"""The provider of the package, which the engine asks for components."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pulumi
import pulumi.provider

from package.environments import make_environment
from package.making import Asked
from package.schema import ENVIRONMENT, TEAM, TRAINING_JOB, schema
from package.teams import make_team
from trainyard.catalog.versions import TRAINYARD

MAKERS: Mapping[str, Callable[[Asked, pulumi.Inputs], Awaitable[str]]] = {
    ENVIRONMENT: make_environment,
    TEAM: make_team,
    TRAINING_JOB: make_team,
}
"""Type of a component → what makes it and returns its URN."""


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
        """Make a component. Its outputs are there as soon as its URN is."""
        outputs: dict[str, Any] = {}
        asked = Asked(resource_type, name, options or pulumi.ResourceOptions(), outputs)
        urn = asyncio.ensure_future(MAKERS[resource_type](asked, inputs))
        return pulumi.provider.ConstructResult(pulumi.Output.from_input(urn), outputs)


def serve() -> None:
    """Serve the engine until it ends this process."""
    pulumi.provider.main(Components(), sys.argv[1:])
