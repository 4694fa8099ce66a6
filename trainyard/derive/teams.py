"""Plans that follow from `environment.teams`: for the environment, what it makes for each team; for
the stack of a team, its namespace and share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from trainyard.catalog.job_kinds import resource_of
from trainyard.catalog.versions import PYTHON_IMAGE
from trainyard.derive.contract import team_contract
from trainyard.derive.controllers import job_kinds
from trainyard.derive.mirror import prefixes
from trainyard.derive.namespace import job_namespace_plan
from trainyard.derive.queues import kept_nodes, team_queue_plan
from trainyard.derive.team_stores import stores_of
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.objects.queues.queues import TeamQueuePlan, urgencies_up_to
from trainyard.objects.teams.team_access import EVERYBODY, group_name
from trainyard.objects.teams.team_identity import TeamIdentityPlan, s3_statements
from trainyard.objects.teams.teams import (
    ALLOWED_URGENCIES,
    IMAGE_PREFIXES,
    PRIORITIES,
    SCHEDULES,
    STARTER,
    EntrantPlan,
    TeamEntryPlan,
    parameter_name,
)
from trainyard.parts.parts import job_variables
from trainyard.plans import push_gateway
from trainyard.plans.directories import DirectoryPlan, directory_plan
from trainyard.plans.identity import Identity, digest
from trainyard.plans.jobs import TEAM, JobNamespacePlan
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.stores.kinds import mounted_by_pods


@dataclass(frozen=True, kw_only=True)
class Share:
    """Share of an environment that a team's stack has."""

    namespace: str
    max_gpus: int | None
    limit: str
    """The setting that has max_gpus."""
    entry: TeamEntryConfig | None
    """Entry of the team in its environment; None where the stack makes its namespace itself."""
    queue: TeamQueuePlan | None = None
    """None: the environment has no queues, or does not list the team."""


def share_of(team: TeamConfig, environment: EnvironmentConfig, stack: str) -> Share:
    """The share of a team, also of one that the rules refuse. `stack`: the team's."""
    entry = environment.teams.get(team.name or "")
    if entry is None or team.name is None:
        return Share(
            namespace=team.namespace or stack,
            max_gpus=team.max_gpus,
            limit="team.max_gpus",
            entry=None,
        )
    return Share(
        namespace=entry.namespace_of(team.name),
        max_gpus=entry.max_gpus,
        limit=f"environment.teams.{team.name}.max_gpus",
        entry=entry,
        queue=team_queue_plan(team.name, environment, kept_nodes(environment)),
    )


def team_entry_plans(me: Identity, wanted: EnvironmentConfig) -> dict[str, TeamEntryPlan]:
    """Plans of what the environment makes for each team that it lists."""
    kept = kept_nodes(wanted)
    return {
        name: _entry_plan(me.of_team(name, entry.tags), name, entry, wanted, kept)
        for name, entry in wanted.teams.items()
    }


def _entry_plan(
    me: Identity,
    name: str,
    entry: TeamEntryConfig,
    wanted: EnvironmentConfig,
    kept: Mapping[str, int],
) -> TeamEntryPlan:
    """`me`: whose resources those of the team are. `kept`: nodes that teams are guaranteed."""
    return TeamEntryPlan(
        identity=me,
        name=name,
        workspace=_workspace(name, entry, wanted, me.region),
        directories=_directories(me, name, entry, wanted),
        pods=_identity(me, name, entry, wanted),
        max_jobs=entry.max_jobs,
        job_kinds=_job_kinds(wanted),
        max_pods=entry.max_pods,
        entrants=_entrants(name, entry),
        parameter=parameter_name(me.stack, name),
        contract=team_contract(me.stack, me.region, name, wanted, kept),
        queue=team_queue_plan(name, wanted, kept),
        pushes=push_gateway.VARIABLE in job_variables(wanted),
        schedules=entry.schedules,
    )


def principals(entry: TeamEntryConfig) -> list[tuple[str, str]]:
    """(role in the team, ARN) of everybody who enters the cluster for it."""
    return [
        ("deployer", entry.deployer),
        *(("member", arn) for arn in entry.members),
        *(("viewer", arn) for arn in entry.viewers),
    ]


def setting_of(team: str, role: str) -> str:
    """The setting that names the roles of a team, by a role in principals()."""
    return f"environment.teams.{team}.{role}{'' if role == 'deployer' else 's'}"


def _workspace(
    name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig, region: str
) -> JobNamespacePlan:
    plan = job_namespace_plan(
        entry.namespace_of(name),
        stores_of(entry, wanted),
        wanted.zone,
        wanted.kms_key_arn,
        jobs={},
        max_gpus=entry.max_gpus,
        team=name,
    )
    lists = {
        IMAGE_PREFIXES: prefixes(_images(entry), region, wanted.artifacts),
        PRIORITIES: entry.allowed_priorities,
        ALLOWED_URGENCIES: urgencies_up_to(entry.max_urgency) if wanted.queues else (),
        SCHEDULES: (STARTER,) if entry.schedules else (),
    }
    return replace(
        plan,
        labels={TEAM: name},
        annotations={key: ",".join(values) for key, values in lists.items() if values},
    )


def _images(entry: TeamEntryConfig) -> tuple[str, ...]:
    """Beginnings of the images that pods of the team have; none: all images. The stack of the team can be of
    another release than the environment, so the Python of its schedules is named without its version."""
    if not entry.image_prefixes or not entry.schedules:
        return entry.image_prefixes
    return (*entry.image_prefixes, f"{PYTHON_IMAGE.rpartition(':')[0]}:")


def _directories(
    me: Identity, name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig
) -> dict[str, DirectoryPlan]:
    return {
        store: directory_plan(me, store, name)
        for store, settings in stores_of(entry, wanted).items()
        if settings.teams == "apart"
    }


def _identity(
    me: Identity, name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig
) -> TeamIdentityPlan | None:
    statements = s3_statements(
        reads=entry.s3_reads, writes=entry.s3_writes, keys=entry.kms_key_arns
    )
    if not statements and not entry.secrets and not mounted_by_pods(stores_of(entry, wanted)):
        return None
    return TeamIdentityPlan(
        role_name=me.short_name(f"team-{name}-pods", ROLE_NAME),
        namespace=entry.namespace_of(name),
        statements=statements,
        secrets=entry.secrets,
        secret_keys=entry.kms_key_arns if entry.secrets else (),
    )


def _job_kinds(wanted: EnvironmentConfig) -> tuple[str, ...]:
    return tuple(map(resource_of, job_kinds(wanted)))


def _entrants(name: str, entry: TeamEntryConfig) -> dict[str, EntrantPlan]:
    """By logical names that do not change with the order of a list."""
    return {
        role if role == "deployer" else f"{role}-{digest([arn])[:8]}": EntrantPlan(
            role_arn=arn,
            role=role,
            groups=(group_name(entry.namespace_of(name), role), EVERYBODY),
        )
        for role, arn in principals(entry)
    }
