"""Plan of a namespace in which jobs run: the claims of its stores, and the rights of its pods."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.plans.directories import NAMESPACE
from trainyard.plans.jobs import JobNamespacePlan
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import AnyJob, manifests, typed
from trainyard.settings.stores import StoreConfig
from trainyard.stores.kinds import claim_plan, directories_by_pod


def job_namespace_plan(
    namespace: str,
    stores: Mapping[str, StoreConfig],
    zone: str,
    key: str | None,
    jobs: Mapping[str, AnyJob],
    max_gpus: int | None = None,
    team: str | None = None,
) -> JobNamespacePlan:
    """A namespace with a claim of each store. `key`: `environment.kms_key_arn`. `jobs`: those that it
    runs. `team`: that the environment lists, and whose namespace it is."""
    return JobNamespacePlan(
        namespace=namespace,
        claims=tuple(
            claim_plan(namespace, name, store, zone, key, team) for name, store in stores.items()
        ),
        max_gpus=max_gpus,
        host_paths=any(job.host_paths for job in typed(jobs).values())
        or any(job.privileged_pods for job in manifests(jobs).values()),
    )


def directory_roots_plan(wanted: EnvironmentConfig) -> JobNamespacePlan | None:
    """The namespace from which the directories of teams are made, with a claim of each such store as
    a whole; None where no pod makes directories."""
    stores = directories_by_pod(wanted.storage)
    if not stores or not wanted.teams:
        return None
    return job_namespace_plan(NAMESPACE, stores, wanted.zone, wanted.kms_key_arn, jobs={})
