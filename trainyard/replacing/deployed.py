"""Resources that a stack has since its last update, as the engine knows them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trainyard.catalog.job_kinds import ENGINE_TYPES, ENTRY_KINDS, outcome, resource_of
from trainyard.plan import EnvironmentPlan, TeamPlan

Outputs = Mapping[str, Any]
Object = Mapping[str, Any]
"""An object of Kubernetes."""
PROVIDER = "pulumi:providers:kubernetes"
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Text that Pulumi writes for a value that is not known yet (pulumi 3.259,
sdk/python/lib/pulumi/runtime/rpc.py)."""


class UnknownStackError(LookupError):
    """The engine's backend has no stack of this name."""


@dataclass(frozen=True, kw_only=True)
class Deployed:
    """Resources of a stack, as far as somebody asks for them."""

    resources: Mapping[tuple[str, str], Outputs] = field(default_factory=dict)
    """(type, logical name) → outputs, without the id."""

    def names(self, *types: str) -> set[str]:
        """Logical names of the resources of these types."""
        return {name for kind, name in self.resources if kind in types}

    def output(self, kind: str, name: str, path: str) -> Any:
        """One output, by its path such as vpcConfig.vpcId; None where there is none."""
        found: Any = self.resources.get((kind, name))
        for step in path.split("."):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found

    def places(self, *types: str) -> set[tuple[Any, Any]]:
        """Namespace and name, in the cluster, of the resources of these types."""
        return {
            (self.output(*found, "metadata.namespace"), self.output(*found, "metadata.name"))
            for found in self.resources
            if found[0] in types
        }

    @property
    def kubeconfig(self) -> str | None:
        """The kubeconfig of the last update; None before there was a cluster. The provider of pulumi-eks has no
        identifier of a cluster."""
        every = (it for (kind, _), it in self.resources.items() if kind == PROVIDER)
        ours = (it.get("kubeconfig") for it in every if it.get("clusterIdentifier"))
        return next((it for it in ours if isinstance(it, str)), None)


Ask = Callable[[Collection[str], str | None], Deployed]
"""Ask the engine: types of resources, and a stack of this project, by default the one that is updated →
what it holds. Raises UnknownStackError where there is no such stack."""
SHOWN = 10
"""Jobs that an error names."""
Show = Callable[[str, str, str | None], Sequence[Object]]
"""Ask a cluster: kubeconfig, kind of object, and a namespace, or None for all of them → the objects there; none
where nobody answers."""


def ends_one(namespace: str = "<its namespace>") -> str:
    """The command that ends one of the jobs that an error names, with its verb: the end of a fix."""
    return f"kubectl --namespace {namespace} delete <kind> <name> ends one"


def going(
    show: Show, kubeconfig: str, namespace: str | None, kinds: Iterable[str] = ENTRY_KINDS
) -> list[tuple[str, Object]]:
    """Kind and object of each job of a namespace, or of all, that has not ended, whoever sent it."""
    return [
        (kind, job)
        for kind in kinds
        for job in show(kubeconfig, resource_of(kind), namespace)
        if not outcome(job)
    ]


def going_of_others(
    plan: EnvironmentPlan | TeamPlan,
    deployed: Deployed,
    show: Show,
    kinds: Iterable[str] = ENTRY_KINDS,
) -> list[tuple[str, str, Object]]:
    """Name, kind and object of each job that has not ended and that is not of the stack: an entry gets another run,
    which asks for what is there, and the job of one that is gone ends before what it needs. None where no cluster
    answers."""
    if deployed.kubeconfig is None:
        return []
    own = {(job.namespace, job.name) for job in plan.jobs.values()} | deployed.places(
        *ENGINE_TYPES.values()
    )
    return [
        (f"{kind} {meta['namespace']}/{meta['name']}", kind, job)
        for kind, job in going(show, deployed.kubeconfig, None, kinds)
        if ((meta := job["metadata"])["namespace"], meta["name"]) not in own
    ]
