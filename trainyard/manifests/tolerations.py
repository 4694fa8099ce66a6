"""The toleration that the pods of a YAML file need for their pool's taint: added where it is missing,
because the taint is this program's and not the file's."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.pools import TYPES
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Workload, items, mapping
from trainyard.objects.jobs.pod_template import GPU, POOL, TAINT_VALUE
from trainyard.objects.jobs.trainer import changed_pods
from trainyard.plans.jobs import Spec
from trainyard.problems import InputWarning
from trainyard.settings.environment import EnvironmentConfig


def toleration_warnings(
    context: ManifestContext, name: str, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Warnings about tolerations that are added to the file. `name`: the pool's."""
    if _lacking(context, name, environment) and not context.view.means_gpus:
        taint = _taint(context, name, environment)
        yield context.warning(
            ("spec",),
            f"its pods get a toleration for the taint of pool {name}, which the file does not have:"
            f" tolerations: [{{key: {taint}, operator: Exists}}]",
        )


def tolerating(
    context: ManifestContext, name: str, environment: EnvironmentConfig, release: str
) -> Workload:
    """The object, with the toleration where its pods lack it. `release`: of the Trainer."""
    lacking = _lacking(context, name, environment)
    if not lacking:
        return context.workload
    added = {"key": _taint(context, name, environment), "operator": "Exists"}
    wanted = {role: [*tolerations, added] for role, tolerations in lacking.items()}
    body = context.workload.body
    spec = {**body["spec"]}
    kind = JOB_KINDS[context.workload.kind]
    if kind.has_runtime:
        field = TRAINER_RELEASES[release].pod_changes
        spec[field] = [
            *(spec.get(field) or []),
            *changed_pods(field, {role: {"tolerations": given} for role, given in wanted.items()}),
        ]
    else:
        spec[kind.replicas] = {
            role: _replica(replica, wanted[role]) if role in wanted else replica
            for role, replica in spec[kind.replicas].items()
        }
    return replace(context.workload, body={**body, "spec": spec})


def _replica(replica: Any, tolerations: list[Spec]) -> Spec:
    template = replica["template"]
    pod = {**template["spec"], "tolerations": tolerations}
    return {**replica, "template": {**template, "spec": pod}}


def _taint(context: ManifestContext, name: str, environment: EnvironmentConfig) -> str | None:
    """The taint of the pool's nodes that nobody else lets the job's pods tolerate."""
    gpus = min(TYPES[kind].gpus for kind in environment.pools[name].instance_types)
    if gpus and context.gpus:
        return None  # the API server adds the toleration (ExtendedResourceToleration)
    return GPU if gpus else POOL


def _lacking(
    context: ManifestContext, name: str, environment: EnvironmentConfig
) -> dict[str, list[Mapping[str, Any]]]:
    """Role of the pods that do not tolerate the taint → the tolerations that they have."""
    kind = JOB_KINDS.get(context.workload.kind)
    taint = _taint(context, name, environment) if kind else None
    if kind is None or taint is None:
        return {}
    pods = context.runtime_pods if kind.has_runtime else context.workload.pods
    had = {pod.role: items(pod.spec.get("tolerations")) for pod in pods if pod.spec}
    if kind.has_runtime:
        for changed in context.workload.pods:
            if "tolerations" in changed.spec:
                had |= dict.fromkeys(changed.jobs, items(changed.spec["tolerations"]))
    return {
        role: list(map(mapping, tolerations))
        for role, tolerations in had.items()
        if not any(_tolerates(toleration, taint) for toleration in tolerations)
    }


def _tolerates(toleration: Mapping[str, Any], taint: str) -> bool:
    same = toleration.get("operator") == "Exists" or toleration.get("value") == TAINT_VALUE
    return (
        same
        and toleration.get("key") in (None, taint)
        and toleration.get("effect") in (None, "NoSchedule")
    )
