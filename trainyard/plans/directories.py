"""The directory of one team on a store that keeps teams apart: what a component is told to make it.

What a team sees of a store: `storage.<name>.teams` in the stack file. Why it is so:
docs/decisions/0014-each-team-mounts-its-own-directory.md.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.catalog.versions import BUSYBOX_IMAGE
from trainyard.plans.identity import Identity, digest

PARENT = "teams"
"""Directory of a store with the directories of all teams."""
NAMESPACE = "trainyard-stores"
"""Namespace whose pods mount Lustre stores whole and make the directories of teams in them."""
FIRST_OWNER = 1_000_000_000
"""Above the ids that images give to their users."""


@dataclass(frozen=True, kw_only=True)
class DirectoryPlan:
    """The directory of one team on one store."""

    identity: Identity
    name: str
    """Logical name of what makes it."""
    store: str
    team: str
    path: str
    """From the root of the store."""
    image: str
    """Image of the pod that makes the directory, if a pod is needed."""
    owner: int
    """User and group that the files belong to, where the store gives them one of its own."""


def directory_plan(identity: Identity, store: str, team: str) -> DirectoryPlan:
    """The directory of a team on a store."""
    return DirectoryPlan(
        identity=identity,
        name=f"team-{team}-{store}",
        store=store,
        team=team,
        path=path_of(team),
        image=BUSYBOX_IMAGE,
        owner=owner_of(team),
    )


def path_of(team: str) -> str:
    """Where a team's directory is, from the root of the store."""
    return f"{PARENT}/{team}"


def owner_of(team: str) -> int:
    """A user id that follows from the team's name, so that a team that comes back owns its files: a
    user id has 31 bits that every program reads alike."""
    return FIRST_OWNER + int(digest([team])[:7], 16)
