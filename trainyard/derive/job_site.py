"""Everything that the plan of a job reads of its environment, decided once for all jobs of a namespace."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.objects.teams.teams import STARTER
from trainyard.parts.parts import job_variables
from trainyard.plans.jobs import RuntimePlan
from trainyard.settings.environment import EnvironmentConfig, OwnRuntimeConfig
from trainyard.settings.pools import PoolConfig
from trainyard.stores.kinds import claim_name


@dataclass(frozen=True, kw_only=True)
class JobSite:
    """The environment as its jobs find it."""

    region: str
    zone: str
    namespace: str
    """Namespace of the jobs."""
    pools: Mapping[str, PoolConfig]
    claims: Mapping[str, str]
    """Store → name of its claim, which is the same in every namespace."""
    trainer: str
    """Release of the Trainer."""
    own_runtimes: Mapping[str, OwnRuntimeConfig]
    runtimes: Mapping[str, RuntimePlan]
    """Every runtime, the own ones among them."""
    env: Mapping[str, str]
    """Variables that the environment gives to every job."""
    has_workers: bool
    """Jobs can run in other environments, each of which has a zone of its own."""
    starter: str | None
    """Service account of schedules that the environment has made in the namespace."""


def _with_schedules(wanted: EnvironmentConfig) -> set[str]:
    """Namespaces of the teams that the environment lists and whose jobs can have schedules."""
    return {entry.namespace_of(name) for name, entry in wanted.teams.items() if entry.schedules}


def job_site(
    wanted: EnvironmentConfig, runtimes: Sequence[RuntimePlan], namespace: str, region: str
) -> JobSite:
    """The environment as the jobs of a namespace find it. `runtimes`: of `runtime_plans`."""
    return JobSite(
        region=region,
        zone=wanted.zone,
        namespace=namespace,
        pools=wanted.pools,
        claims={
            name: claim_name(name, store, wanted.zone, wanted.kms_key_arn)
            for name, store in wanted.storage.items()
        },
        trainer=wanted.trainer.version,
        own_runtimes=wanted.trainer.own_runtimes,
        runtimes={runtime.name: runtime for runtime in runtimes},
        env=job_variables(wanted),
        has_workers=wanted.has_workers,
        starter=STARTER if namespace in _with_schedules(wanted) else None,
    )
