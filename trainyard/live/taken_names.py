"""`trainyard check --live`: names in an existing cluster that the stack needs and somebody else has.

Helm and the Kubernetes provider refuse them too, in the middle of `pulumi up`. The CRDs of Trainer and
JobSet would even be taken over (components/jobs/trainer.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainyard.catalog.chart_objects import ObjectName
from trainyard.live.own_names import CLUSTER, KEPT, OwnNames, own_names
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import OwnerFound
from trainyard.plan import EnvironmentPlan
from trainyard.problems import InputError, InputWarning

Finding = InputError | InputWarning
ENGINE = "pulumi"
"""Begins the name under which Pulumi writes objects."""
SHOWN = 2
"""Names in a message; of the others it says the number."""


def taken_findings(account: Account, plan: EnvironmentPlan, cluster: str) -> Iterator[Finding]:
    """An error for each part of the stack whose names are taken; a warning where the cluster does not
    tell."""
    every = [*own_names(plan)]
    try:
        found = account.cluster_objects(cluster, [name for part in every for name in part.names])
        # It is the first thing that `up` makes, and one of the last that `destroy` deletes.
        begun = account.has_role(plan.karpenter.role_name)
    except NotAnswered as reason:
        yield InputWarning(
            path=CLUSTER,
            text=(
                f"whether {cluster} has controllers, CRDs or namespaces of others that this stack"
                f" would need is not checked: {reason}. `pulumi up` would end half-way at one"
            ),
        )
        return
    for part in every:
        if theirs := taken(part, found, begun=begun):
            yield taken_error(part, cluster, theirs)


def taken(
    part: OwnNames, found: Mapping[ObjectName, OwnerFound], *, begun: bool
) -> dict[ObjectName, OwnerFound]:
    """What others have of a part. `begun`: the stack has made something, so what has the release or
    the writer of the part is the stack's."""
    return {
        name: found[name]
        for name, release in part.names.items()
        if name in found and not _is_ours(found[name], release, begun)
    }


def _is_ours(owner: OwnerFound, release: tuple[str, str] | None, begun: bool) -> bool:
    if release is None:
        wrote = any(one.startswith(ENGINE) for one in owner.managers)
        return begun and wrote and owner.release is None
    kept = release[0] == KEPT
    if owner.release is None:  # CRDs that an earlier chart of upstream created are taken over
        return begun and kept
    return owner.release == release and (begun or kept)


def taken_error(
    part: OwnNames, cluster: str, theirs: Mapping[ObjectName, OwnerFound]
) -> InputError:
    """What is said of a part with names that others have."""
    ways = [_removal([*theirs.values()]), "write the name of another cluster"]
    by_name = part.path == CLUSTER
    return InputError(
        path=part.path,
        must=(
            f"be a cluster in which the names of {part.what} are free"
            if by_name
            else f"use names that are free in {cluster}, for {part.what}"
        ),
        got=f"{cluster}, with {_listed(theirs)}" if by_name else _listed(theirs),
        fix=", or ".join([part.instead, *ways] if part.instead else ways),
    )


def _listed(theirs: Mapping[ObjectName, OwnerFound]) -> str:
    told = [
        f"{name} of Helm release {owner.release[0]} in {owner.release[1]}"
        if owner.release
        else f"{name}, written by {', '.join(owner.managers) or 'a program without a name'}"
        for name, owner in [*theirs.items()][:SHOWN]
    ]
    more = len(theirs) - SHOWN
    return "; ".join([*told, *([f"{more} more objects"] if more > 0 else [])])


def _removal(owners: Sequence[OwnerFound]) -> str:
    """How the owner of the cluster makes room."""
    releases = sorted({owner.release for owner in owners if owner.release})
    commands = [f"`helm uninstall {name} --namespace {space}`" for name, space in releases]
    steps = [f"run {' and '.join(commands)}"] if commands else []
    if any(owner.release is None for owner in owners):
        steps.append("delete what Helm does not know" if commands else "delete them")
    return f"have the owner of the cluster {' and '.join(steps)}"
