"""What an optional part of an environment is: one class with everything that the rest of the program asks
about one part.

The stack file wants a part by a section of `environment`. A part is asked with the settings of that
section, or with its plan, which follows from them. The table of parts: parts.py. The table of what makes
their components: stacks/watching.py, because plans are made without Pulumi.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Generic, Protocol, TypeVar, cast

from trainyard.plans.parts import Identity
from trainyard.problems import InputError
from trainyard.settings.environment import EnvironmentConfig

Settings = TypeVar("Settings")
Plan = TypeVar("Plan")


class HasParts(Protocol):
    """The plan of an environment, as far as parts read it."""

    @property
    def parts(self) -> Mapping[str, Any]: ...


class Part(ABC, Generic[Settings, Plan]):
    """An optional part of an environment. `Settings`: its class in trainyard/settings/. `Plan`: its class
    in plans/. A method that a part does not define says nothing."""

    name: ClassVar[str]
    """Key of its plan in `EnvironmentPlan.parts`."""
    section: ClassVar[str]
    """The field of `EnvironmentConfig` that wants it."""

    def settings(self, wanted: EnvironmentConfig) -> Settings | None:
        """The section of the stack file; None where the environment does without."""
        return cast("Settings | None", getattr(wanted, self.section))

    def of(self, environment: HasParts) -> Plan | None:
        """Its plan; None where the environment does without it."""
        return cast("Plan | None", environment.parts[self.name])

    @abstractmethod
    def plan(self, me: Identity, settings: Settings) -> Plan | None:
        """What its component is told; None where the section does not want it."""

    # Rules.

    def errors(self, settings: Settings) -> Iterator[InputError]:
        """Settings that cannot work."""
        yield from ()

    # AWS.

    def resource_types(self, plan: Plan) -> tuple[str, ...]:
        """The types of its resources that not every environment has, as Pulumi's AWS provider calls
        them."""
        return ()
