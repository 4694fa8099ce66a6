"""Plans that follow from secrets of Secrets Manager: the add-on that mounts them, and the identity
of the environment's own jobs. Of a team's pods: trainyard/derive/teams.py; of a job:
trainyard/derive/jobs.py."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog import versions
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.objects.iam.secrets import ADD_ON, CONFIGURATION, ManagedSecret
from trainyard.objects.teams.team_identity import TeamIdentityPlan
from trainyard.plans.clusters import AddOnPlan
from trainyard.plans.identity import Identity
from trainyard.settings.job import AnyJob, typed
from trainyard.settings.team_entry import TeamEntryConfig

Jobs = Mapping[str, AnyJob]
Teams = Mapping[str, TeamEntryConfig]


def of_jobs(jobs: Jobs) -> list[ManagedSecret]:
    """The secrets of Secrets Manager that jobs read."""
    return [each for job in typed(jobs).values() for each in job.managed_secrets.values()]


def mounts_secrets(jobs: Jobs, teams: Teams) -> bool:
    """True where a job of the environment, or a team that it lists, reads Secrets Manager."""
    return bool(of_jobs(jobs)) or any(entry.secrets for entry in teams.values())


def secrets_add_on(kubernetes: str, jobs: Jobs, teams: Teams) -> tuple[AddOnPlan, ...]:
    """Driver and provider; nothing where nobody reads a secret. Pods have the identity, not they.
    `kubernetes`: version of the cluster."""
    if not mounts_secrets(jobs, teams):
        return ()
    build = versions.KUBERNETES[kubernetes].add_ons[ADD_ON]
    return (AddOnPlan(name=ADD_ON, version=build, configuration=CONFIGURATION),)


def job_pods_plan(me: Identity, namespace: str, jobs: Jobs) -> TeamIdentityPlan | None:
    """Rights of the environment's own jobs in AWS; None where they need nothing there. `namespace`:
    of the jobs."""
    secrets = of_jobs(jobs)
    if not secrets:
        return None
    return TeamIdentityPlan(
        role_name=me.short_name("job-pods", ROLE_NAME),
        namespace=namespace,
        statements=(),
        secrets=tuple(sorted({each.secrets_manager for each in secrets})),
        secret_keys=tuple(sorted({each.kms_key_arn for each in secrets if each.kms_key_arn})),
    )
