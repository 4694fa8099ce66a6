"""What follows for a namespace in which jobs run: the claims of its stores, and what its pods may
do."""

from __future__ import annotations

from collections.abc import Mapping

from plans.parts import ClaimPlan, JobNamespacePlan
from stacks.derive.jobs import claim_name
from stacks.settings.environment import StoreConfig
from stacks.settings.job import JobConfig

EFS_CAPACITY = "1024Gi"
"""EFS grows by itself and ignores the figure, but a PersistentVolume must state one."""


def job_namespace_plan(
    namespace: str,
    stores: Mapping[str, StoreConfig],
    zone: str,
    jobs: Mapping[str, JobConfig],
    max_gpus: int | None = None,
) -> JobNamespacePlan:
    """A namespace with a claim of each store. `jobs`: those that it runs."""
    return JobNamespacePlan(
        namespace=namespace,
        claims=tuple(_claim(namespace, name, store, zone) for name, store in stores.items()),
        max_gpus=max_gpus,
        host_paths=any(job.host_paths for job in jobs.values()),
    )


def _claim(namespace: str, name: str, store: StoreConfig, zone: str) -> ClaimPlan:
    claim = claim_name(name, store, zone)
    return ClaimPlan(
        store=name,
        kind="lustre" if store.lustre else "efs",
        name=claim,
        volume_name=f"{namespace}-{claim}",
        capacity=f"{store.lustre.capacity_gib}Gi" if store.lustre else EFS_CAPACITY,
    )
