"""What follows for a namespace in which jobs run: the claims of its stores, and what its pods may
do."""

from __future__ import annotations

from collections.abc import Mapping

from plans.parts import JobNamespacePlan
from stacks.settings.job import AnyJob, manifests, typed
from stacks.settings.stores import StoreConfig
from stacks.stores.kinds import claim_plan


def job_namespace_plan(
    namespace: str,
    stores: Mapping[str, StoreConfig],
    zone: str,
    jobs: Mapping[str, AnyJob],
    max_gpus: int | None = None,
) -> JobNamespacePlan:
    """A namespace with a claim of each store. `jobs`: those that it runs."""
    return JobNamespacePlan(
        namespace=namespace,
        claims=tuple(claim_plan(namespace, name, store, zone) for name, store in stores.items()),
        max_gpus=max_gpus,
        host_paths=any(job.host_paths for job in typed(jobs).values())
        or any(job.privileged_pods for job in manifests(jobs).values()),
    )
