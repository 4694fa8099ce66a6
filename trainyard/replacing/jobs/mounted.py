"""Claims of stores that an update takes away from jobs: of a store that leaves or that AWS would make anew, of one
whose `teams` changes, or of a team that loses it.

Kubernetes keeps a claim until no pod that mounts it is left (1.35, pkg/controller/volume/pvcprotection), and schedules
no new pod that mounts one which is being deleted (pkg/scheduler/framework/plugins/volumebinding). Nobody takes a
deletion back. pulumi-kubernetes waits 10 minutes (provider/pkg/await/await.go, Deletion).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import JobNamespacePlan, maps_in
from trainyard.problems import At, InputError, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, ends_one, going_of_others
from trainyard.replacing.jobs.runtimes import runtime_of
from trainyard.replacing.replacing import RUNTIME

CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
TYPES = frozenset({CLAIM, RUNTIME})
"""Types of resources that the rule looks at."""


def mount_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Claims that go while jobs mount them that have not ended. `show`: what is in the cluster."""
    lost = [*_lost(plan, deployed)]
    if not lost:
        return
    jobs = going_jobs(plan, deployed, show)
    for path, space, claim in lost:
        mounting = [
            name for name, where, specs in jobs if where == space and claim in _claims(specs)
        ]
        if mounting:
            yield At(path).must(
                "stay as it is while jobs that have not ended mount it: Kubernetes keeps a claim until its last pod is"
                " gone and lets no new pod mount it, so `pulumi up` fails after 10 minutes, and a gang that loses a"
                " pod never starts again",
                got=f"no claim {claim} in {space} beside {few(sorted(mounting), SHOWN)}",
                fix=f"write it as it was, and change it when they have ended; {ends_one(space)}",
            )


def going_jobs(
    plan: EnvironmentPlan, deployed: Deployed, show: Show
) -> list[tuple[str, str, list[Object]]]:
    """Name, namespace and specs of each job of others that has not ended: its own, and that of its runtime."""
    return [
        (
            name,
            job["metadata"]["namespace"],
            [job["spec"], deployed.output(RUNTIME, runtime_of(job), "spec") or {}],
        )
        for name, _, job in going_of_others(plan, deployed, show)
    ]


def mounts(store: str, plan: EnvironmentPlan, namespace: str, specs: list[Object]) -> bool:
    """True of a job that mounts the store by a claim of its namespace."""
    _, workspace = _spaces(plan).get(namespace, ("", None))
    own = {each.name for each in workspace.claims if each.store == store} if workspace else set()
    return not own.isdisjoint(_claims(specs))


def _lost(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[tuple[str, str, str]]:
    """Setting, namespace and name of each claim that is deployed and that the plan does not have, in namespaces that
    stay: with another one goes each job in it."""
    spaces = _spaces(plan)
    for logical in sorted(deployed.names(CLAIM)):
        space, name = (deployed.output(CLAIM, logical, f"metadata.{it}") for it in _PLACE)
        if space in spaces and name not in {each.name for each in spaces[space][1].claims}:
            store = logical.removeprefix(f"{space}-").removesuffix("-claim")
            yield _path(plan, spaces[space][0], store), space, name


_PLACE = ("namespace", "name")


def _spaces(plan: EnvironmentPlan) -> Mapping[str, tuple[str, JobNamespacePlan]]:
    """Namespace → its team, empty for the environment's own, and its plan."""
    teams = {each.workspace.namespace: (name, each.workspace) for name, each in plan.teams.items()}
    return {plan.workspace.namespace: ("", plan.workspace), **teams}


def _path(plan: EnvironmentPlan, team: str, store: str) -> str:
    """The setting that takes the claim away."""
    keeps = not team or store in {each.store for each in plan.teams[team].workspace.claims}
    of_a_team = store in plan.stores and not keeps
    return f"environment.teams.{team}.stores" if of_a_team else f"environment.storage.{store}"


def _claims(specs: list[Object]) -> set[str]:
    """Claims that the specs of a job name."""
    return {each["claimName"] for each in maps_in(specs) if isinstance(each.get("claimName"), str)}
