"""What follows for a namespace in which jobs run: the claims of its stores, and what its pods may
do."""

from __future__ import annotations

from collections.abc import Mapping

from plans.parts import WorkspacePlan
from stacks.settings.job import JobConfig
from stacks.settings.stores import StoreConfig
from stacks.stores.kinds import claim_plan


def workspace_plan(
    namespace: str,
    stores: Mapping[str, StoreConfig],
    zone: str,
    jobs: Mapping[str, JobConfig],
    max_gpus: int | None = None,
) -> WorkspacePlan:
    """A namespace with a claim of each store. `jobs`: those that it runs."""
    return WorkspacePlan(
        namespace=namespace,
        claims=tuple(claim_plan(namespace, name, store, zone) for name, store in stores.items()),
        max_gpus=max_gpus,
        host_paths=any(job.host_paths for job in jobs.values()),
    )
