"""What a stack makes in its cluster under names of its own choice, which nobody else may have taken: by
Helm, and by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from trainyard.catalog.chart_objects import ObjectName, chart_objects
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan
from trainyard.plans.parts import EFA_PLUGIN

CLUSTER = "environment.cluster.name"
DEVICES = "kube-system"
"""Namespace of device plugins and of what pulls images."""
KEPT = "kubeflow-trainer-crds"
"""Release whose CRDs stay when a stack goes. Its chart is of this program, so others of that name do no
harm."""


@dataclass(frozen=True, kw_only=True)
class OwnNames:
    """Names of everything that one setting creates in the cluster."""

    what: str
    """What people call it."""
    path: str
    """The setting."""
    instead: str
    """What the stack file can say so that the stack does without it; empty where it cannot."""
    releases: tuple[str, ...] = ()
    """Helm releases, which make what trainyard/catalog/chart_objects.json lists."""
    objects: tuple[ObjectName, ...] = ()
    """What the stack makes without Helm."""

    @property
    def names(self) -> dict[ObjectName, tuple[str, str] | None]:
        """Object → name and namespace of its Helm release; None without one."""
        made: dict[ObjectName, tuple[str, str] | None] = dict.fromkeys(self.objects)
        for release in self.releases:
            row = chart_objects()[release]
            made |= dict.fromkeys(row.objects, (release, row.namespace))
        return made


def own_names(plan: EnvironmentPlan) -> Iterator[OwnNames]:
    """Everything with a name that another one can have taken. ClusterRoles, policies and DaemonSets
    whose names begin with trainyard- are left out."""
    yield from _controllers(plan)
    yield from _namespaces(plan)
    for name in plan.priorities:
        path = f"environment.priorities.{name}"
        yield OwnNames(
            what=f"the urgency {name}",
            path=path,
            instead="write another name here and in the jobs that have it",
            objects=(ObjectName("PriorityClass", name),),
        )


def _controllers(plan: EnvironmentPlan) -> Iterator[OwnNames]:
    yield OwnNames(
        what="Karpenter", path=CLUSTER, instead="", releases=("karpenter-crd", "karpenter")
    )
    plugins = [EFA_PLUGIN] if plan.device_plugins.efa_instance_types else []
    yield OwnNames(
        what="the device plugins of GPUs and EFA",
        path=CLUSTER,
        instead="",
        releases=("nvidia-device-plugin",),
        objects=tuple(ObjectName("DaemonSet", name, DEVICES) for name in plugins),
    )
    yield OwnNames(
        what="Kubeflow Trainer with JobSet",
        path=CLUSTER,
        instead="",
        releases=(KEPT, "kubeflow-trainer"),
    )
    if plan.training_operators:
        yield OwnNames(
            what="the training-operator",
            path="environment.training_operator",
            instead="delete training_operator, with its jobs",
            releases=("training-operator",),
        )
    if plan.queues:
        yield OwnNames(
            what="Kueue",
            path="environment.queues",
            instead="delete queues",
            releases=("kueue",),
        )
    for pool in (name for name, one in plan.pools.items() if one.images):
        yield OwnNames(
            what=f"the images of pool {pool}",
            path=f"environment.pools.{pool}",
            instead="give the pool another name",
            objects=(ObjectName("DaemonSet", f"{pool}-images", DEVICES),),
        )


def _namespaces(plan: EnvironmentPlan) -> Iterator[OwnNames]:
    """Those that Helm does not make: it takes one that exists."""
    roots, other = plan.directory_roots, "write another namespace"
    made = {
        plan.workspace.namespace: ("environment.namespace", f"{other}: <name>"),
        **({roots.namespace: ("environment.storage", "delete teams: apart")} if roots else {}),
        **{
            part.namespace: (
                f"environment.{part.section}",
                f"delete {part.setting or part.section}",
            )
            for part, _ in planned_parts(plan)
            if part.namespace
        },
        **{
            team.workspace.namespace: (f"environment.teams.{name}.namespace", f"{other}: <name>")
            for name, team in plan.teams.items()
        },
    }
    for name, (path, instead) in made.items():
        yield OwnNames(
            what=f"the namespace {name}",
            path=path,
            instead=instead,
            objects=(ObjectName("Namespace", name),),
        )
