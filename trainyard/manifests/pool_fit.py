"""Problems of an object of a YAML file with its pool: its size, its selectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.pools import CAPACITY_TYPES, TYPES
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Requirement
from trainyard.manifests.pod_rules import has_its_own_error, is_preferred
from trainyard.objects.jobs.pod_template import NODES_FOR, POOL
from trainyard.problems import InputError, InputWarning
from trainyard.rules.gangs import gang_errors, gpu_errors, switched_off
from trainyard.rules.pod_resources import request_problems
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import node_type_names

OF_NODES = ("karpenter.k8s.aws/", "topology.k8s.aws/")
"""Beginnings of labels of which Karpenter and EKS give nodes more than are known here."""
OLD_LABELS = {
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""Deprecated, and still on every node; Karpenter knows both names (karpenter v1,
NormalizedLabels)."""


def pool_problems(
    context: ManifestContext, name: str, environment: EnvironmentConfig
) -> Iterator[InputError | InputWarning]:
    """Problems about what no node of the pool can be or has. `name`: the pool's."""
    pool = environment.pools[name]
    yield from _selectors(context, name, _labels(name, environment))
    yield from _topologies(context, name, _labels(name, environment))
    if context.workload.kind in JOB_KINDS:
        yield from gang_errors(context.view, name, pool)
        yield from switched_off(context.view.where("job"), name, pool)
    else:
        yield from gpu_errors(context.view, name, pool)
    named = [each for each in context.view.requests if not has_its_own_error(each.resource)]
    yield from request_problems(
        replace(context.view, requests=tuple(named)),
        name,
        pool,
        others_may_serve=environment.cluster.name is not None or pool.replicas is not None,
    )


def _topologies(
    context: ManifestContext, name: str, labels: Mapping[str, set[str] | None]
) -> Iterator[InputError]:
    """Labels by which pods are to be spread or kept together, and that no node has: the scheduler then
    takes no node (Kubernetes 1.35, podtopologyspread and interpodaffinity, filtering.go)."""
    for path in context.workload.find("** topologyKey"):
        key = str(context.get(*path))
        is_known = key in labels or key.startswith(OF_NODES)
        if is_known or "podAntiAffinity" in path or is_preferred(context, path):
            continue
        must = f"be a label that nodes of pool {name} have: pods stay Pending without it"
        yield context.error(path, must, key, "write kubernetes.io/hostname, or delete it")


def _selectors(
    context: ManifestContext, name: str, labels: Mapping[str, set[str] | None]
) -> Iterator[InputError]:
    """One term of each selector must fit the pool."""
    for terms in context.workload.selectors:
        wrong = [[r for r in term if _fits_no_node(r, labels)] for term in terms]
        if wrong and all(wrong):
            requirement = wrong[0][0]
            theirs = ", ".join(sorted(labels.get(requirement.label) or ()))
            selected = f"write {POOL}: {name} in its place"
            fixes = {"In": f"write {theirs}" if theirs else selected, "Exists": selected}
            fix = fixes.get(requirement.operator, f"delete it: the nodes have {theirs or 'it'}")
            yield context.error(requirement.path, f"select nodes of pool {name}", requirement, fix)


def _fits_no_node(requirement: Requirement, labels: Mapping[str, set[str] | None]) -> bool:
    label = requirement.label
    # Karpenter has more labels of its own than are known here.
    unknown = label.startswith("karpenter.k8s.aws/") and label not in labels and "gpu" not in label
    return not unknown and not requirement.can_hold(labels)


def _labels(name: str, environment: EnvironmentConfig) -> dict[str, set[str] | None]:
    """Labels of the pool's nodes → their values, before there is any; None where only a node itself
    has them."""
    pool = environment.pools[name]
    kinds = [TYPES[kind] for kind in pool.instance_types]
    known: dict[str, set[str] | None] = {
        POOL: {name},
        NODES_FOR: {"training"},
        "kubernetes.io/arch": {"amd64"},
        "kubernetes.io/os": {"linux"},
        "karpenter.sh/capacity-type": {CAPACITY_TYPES[pool.capacity]},
        "karpenter.sh/nodepool": {*node_type_names(name, pool)},
        "node.kubernetes.io/instance-type": {*pool.instance_types},
        "topology.kubernetes.io/zone": {environment.zone, *pool.fallback_zones},
        "topology.kubernetes.io/region": {environment.zone[:-1]},
        "karpenter.k8s.aws/instance-family": {kind.family for kind in kinds},
        "karpenter.k8s.aws/instance-cpu": {str(kind.vcpus) for kind in kinds},
        **dict.fromkeys(("kubernetes.io/hostname", "topology.k8s.aws/zone-id"), None),
    }
    if all(kind.gpus for kind in kinds):
        known |= {
            "karpenter.k8s.aws/instance-gpu-name": {kind.gpu for kind in kinds},
            "karpenter.k8s.aws/instance-gpu-count": {str(kind.gpus) for kind in kinds},
            "karpenter.k8s.aws/instance-gpu-manufacturer": {"nvidia"},
            "karpenter.k8s.aws/instance-gpu-memory": {str(kind.gpu_memory_mib) for kind in kinds},
        }
    return known | {old: known[new] for old, new in OLD_LABELS.items()}
