"""Plans that follow from what jobs read of AWS, secrets of Secrets Manager and buckets: the add-on that
mounts secrets, and the identity of the environment's own jobs. Of a team's pods: trainyard/derive/teams.py; of a job:
trainyard/derive/jobs.py."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog import versions
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.objects.iam.secrets import ADD_ON, CONFIGURATION, ManagedSecret
from trainyard.objects.teams.team_identity import TeamIdentityPlan, s3_statements
from trainyard.plans.clusters import AddOnPlan
from trainyard.plans.identity import Identity
from trainyard.settings.job import AnyJob, typed
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.settings.training.loads import LoadConfig

Jobs = Mapping[str, AnyJob]
Teams = Mapping[str, TeamEntryConfig]


def of_jobs(jobs: Jobs) -> list[ManagedSecret]:
    """The secrets of Secrets Manager that jobs read, or what is loaded before them."""
    found = [each for job in typed(jobs).values() for each in job.managed_secrets.values()]
    tokens = (at.from_huggingface.token for at in _loads(jobs) if at.from_huggingface)
    return [*found, *(each for each in tokens if isinstance(each, ManagedSecret))]


def _loads(jobs: Jobs) -> list[LoadConfig]:
    return [each for job in typed(jobs).values() for each in job.loads.values()]


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
    secrets, buckets = of_jobs(jobs), [at.from_s3 for at in _loads(jobs) if at.from_s3]
    if not secrets and not buckets:
        return None
    return TeamIdentityPlan(
        role_name=me.short_name("job-pods", ROLE_NAME),
        namespace=namespace,
        statements=s3_statements(
            reads={each.address for each in buckets},
            writes=(),
            keys=sorted({each.kms_key_arn for each in buckets if each.kms_key_arn}),
        ),
        secrets=tuple(sorted({each.secrets_manager for each in secrets})),
        secret_keys=tuple(sorted({each.kms_key_arn for each in secrets if each.kms_key_arn})),
    )
