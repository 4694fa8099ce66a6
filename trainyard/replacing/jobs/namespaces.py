"""Namespaces that another name takes away, with all jobs in them: of the environment, of a team that it lists, or of
a team's own stack.

An object keeps its name, so pulumi-kubernetes makes another one (4.34, provider/pkg/provider/diff.go,
metadataForceNewProperties) and deletes the old one. Kubernetes then deletes everything in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Show, ends_one, going_of_others
from trainyard.replacing.leaving import NAMESPACE, PREFIX, TEAMS

TYPES = frozenset({NAMESPACE})
"""Types of resources that the rule looks at."""
WORKSPACE = "workspace"
"""Name of a stack's own namespace among its resources."""


@dataclass(frozen=True, kw_only=True)
class _Moved:
    """A namespace that gets another name."""

    path: str
    was: str
    wanted: str
    runs: str
    """The jobs of a stack file start anew, as the beginning of a sentence."""


def namespace_errors(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, show: Show
) -> Iterator[InputError]:
    """Namespaces that go while jobs go on in them. Those of the stack file itself get another run, in the new one.
    `show`: what is in the cluster."""
    moved = [*_moved(plan, deployed)]
    jobs = going_of_others(plan, deployed, show) if moved else ()
    for each in moved:
        inside = [name for name, _, job in jobs if job["metadata"]["namespace"] == each.was]
        if inside:
            yield At(each.path).must(
                f"stay {each.was} while jobs go on in it, whoever sent them: another name makes another namespace, and"
                " the old one is deleted with every job in it",
                got=f"{each.wanted}, and in {each.was} {few(sorted(inside), SHOWN)}",
                fix=f"write {each.was} again, and change it when they have ended; {ends_one(each.was)}",
            )


def namespace_warnings(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed
) -> Iterator[InputWarning]:
    """Other things that go with each namespace."""
    for each in _moved(plan, deployed):
        yield At(each.path).warning(
            f"this update deletes the namespace {each.was} and makes {each.wanted}. With {each.was} go all jobs and"
            " schedules in it, whoever sent them, and Secrets that somebody made there. Files on stores stay."
            f" {each.runs} in {each.wanted}"
        )


def _moved(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> Iterator[_Moved]:
    here = "This update starts another run of each job of this stack file"
    stack = "environment" if isinstance(plan, EnvironmentPlan) else "team"
    spaces = {f"{stack}.namespace": (WORKSPACE, plan.workspace, here)}
    if isinstance(plan, EnvironmentPlan):
        there = "The next `pulumi up` of the team's stack starts another run of each of its jobs"
        for team, entry in plan.teams.items():
            path = f"{TEAMS}.{team}.namespace"
            spaces[path] = (f"{PREFIX}{team}", entry.workspace, there)
    for path, (logical, space, runs) in spaces.items():
        was = deployed.output(NAMESPACE, logical, "metadata.name")
        if was not in (None, space.namespace):
            yield _Moved(path=path, was=was, wanted=space.namespace, runs=runs)
