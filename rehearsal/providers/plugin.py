"""Base of every resource plugin of the rehearsal: a subclass of Plugin, plain Python in and out. It
calls protocol.serve()."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from rehearsal.providers.call import Call
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import Changes, Properties, changes


@dataclass(frozen=True, kw_only=True)
class Diff:
    """Changes that an update would make."""

    changes: Changes = field(default_factory=dict)
    replaces: frozenset[str] = frozenset()
    """The paths among them that need a new object."""
    delete_before_replace: bool = False


class Found(NamedTuple):
    """A live object: the inputs a program would give to have it, and its whole state."""

    inputs: Properties
    state: Properties
    id: str = ""
    """The object's id where it is another one than it was asked for by, as on import of some."""


class Plugin:
    """One package of resources. Inputs and state are plain dictionaries in Pulumi's (camelCase)
    names."""

    name: ClassVar[str]
    version: ClassVar[str]

    def check_config(self, inputs: Properties) -> Properties:
        return inputs

    def diff_config(self, old: Properties, new: Properties) -> Diff:
        return Diff(changes=changes(old, new))

    def configure(self, config: Properties) -> None: ...

    def check(self, call: Call, old: Properties, new: Properties) -> Properties:
        """The inputs completed (names) and approved; raises Invalid."""
        return new

    def diff(self, call: Call, old: Properties, new: Properties, state: Properties) -> Diff:
        """Old inputs against new ones."""
        return Diff(changes=changes(old, new))

    def create(self, call: Call, inputs: Properties) -> tuple[str, Properties]:
        """Id and state; with call.preview only what is known beforehand, and "" as id. May raise
        NotReady."""
        raise Refused(f"this {self.name} plugin does not create {call.type}")

    def read(self, call: Call, inputs: Properties, state: Properties) -> Found | None:
        """The live object by call.id; inputs and state are empty on import. None if it is gone."""
        raise Refused(f"this {self.name} plugin does not read {call.type}")

    def update(self, call: Call, old: Properties, new: Properties, state: Properties) -> Properties:
        """The new state; with call.preview what is known beforehand. May raise NotReady."""
        raise Refused(f"this {self.name} plugin does not update {call.type}")

    def delete(self, call: Call, state: Properties) -> None:
        raise Refused(f"this {self.name} plugin does not delete {call.type}")

    def invoke(self, token: str, arguments: Properties) -> Properties:
        raise Refused(f"this {self.name} plugin does not implement {token}")
