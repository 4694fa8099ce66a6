"""What follows from secrets of Secrets Manager: the add-on that mounts them, and the identity of the
environment's own jobs. Of a team's pods: trainyard/derive/teams.py; of a job: trainyard/derive/jobs.py."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.objects.iam.secrets import ADD_ON, CONFIGURATION, ManagedSecret
from trainyard.objects.teams.team_identity import TeamIdentityPlan
from trainyard.plans.node_parts import AddOnPlan
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import typed


def of_jobs(wanted: EnvironmentConfig) -> list[ManagedSecret]:
    """The secrets of Secrets Manager that the environment's own jobs read."""
    jobs = typed(wanted.jobs).values()
    return [each for job in jobs for each in job.managed_secrets.values()]


def mounts_secrets(wanted: EnvironmentConfig) -> bool:
    """Whether a job of the environment, or a team that it lists, reads Secrets Manager."""
    return bool(of_jobs(wanted)) or any(entry.secrets for entry in wanted.teams.values())


def secrets_add_on(wanted: EnvironmentConfig) -> tuple[AddOnPlan, ...]:
    """Driver and provider; nothing where nobody reads a secret. Pods have the identity, not they."""
    if not mounts_secrets(wanted):
        return ()
    build = versions.KUBERNETES[wanted.cluster.version].add_ons[ADD_ON]
    return (AddOnPlan(name=ADD_ON, version=build, configuration=CONFIGURATION),)


def job_pods_plan(me: Identity, wanted: EnvironmentConfig) -> TeamIdentityPlan | None:
    """What pods of the environment's own jobs may do in AWS; None where they need nothing there."""
    secrets = of_jobs(wanted)
    if not secrets:
        return None
    return TeamIdentityPlan(
        role_name=me.short_name("job-pods", ROLE_NAME),
        namespace=wanted.namespace,
        statements=(),
        secrets=tuple(sorted({each.secrets_manager for each in secrets})),
        secret_keys=tuple(sorted({each.kms_key_arn for each in secrets if each.kms_key_arn})),
    )
