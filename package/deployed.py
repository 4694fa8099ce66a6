"""Resources that a component has since the last update, by the names of a stack file.

The program can have several teams: everything of one begins with the name of its component (stacks/team.py), and a
URN names the types of its parents, not the parents.
"""

from __future__ import annotations

from collections.abc import Collection

from package.making import Asked
from package.schema import TRAINING_JOB
from stacks.engine import read_deployed
from trainyard.replacing.deployed import Ask, Deployed

PLACE = "metadata.namespace"
"""Output of the objects of a team."""
PROVIDER = "cluster"
"""Name, behind the prefix, of what a team reaches the cluster by."""


def of_team(asked: Asked) -> Ask:
    """The question for what a team, or a job of it, has. A resource has the name there that the team's stack file
    would give it, such as that of its job."""

    def ask(types: Collection[str], stack: str | None) -> Deployed:
        found = read_deployed({*types, asked.kind}, stack, within=asked.kind)
        return _own(asked.kind, asked.name, found)

    return ask


def _own(kind: str, name: str, found: Deployed) -> Deployed:
    """Resources of one component of a kind. `found`: those of all, and the components."""
    names = found.names(kind)
    return Deployed(
        resources={
            (each[0], each[1].removeprefix(f"{name}-")): outputs
            for each, outputs in found.resources.items()
            if each[0] != kind and _owner(kind, names, each, found) == name
        }
    )


def _owner(kind: str, names: Collection[str], each: tuple[str, str], found: Deployed) -> str:
    """The component that a resource belongs to; empty where none fits. One whose name begins with that of another
    is nearer to what begins with both, unless the resource is in the namespace of the other one."""
    place = found.output(*each, PLACE)
    places = {name: found.output(kind, name, "namespace") for name in names}
    fitting = [
        name
        for name, own in places.items()
        if _begins(kind, name, each[1]) and (None in (place, own) or place == own)
    ]
    return max(fitting, key=len, default="")


def _begins(kind: str, name: str, resource: str) -> bool:
    """True for a name of a resource that a component of this name can have made."""
    own = resource.removeprefix(f"{name}-")
    if own == resource:
        return False
    return kind != TRAINING_JOB or own == PROVIDER or f"{own}-".startswith(f"{name}-")
