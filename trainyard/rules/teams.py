"""Errors about teams of an environment that cannot work, and about the stack of a listed team:
settings that the environment's entry has already, or that its roles and policies refuse.

Sources: EKS has one access entry for a role (EKS API, CreateAccessEntry); the advanced tier of
Parameter Store takes 8 KiB.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from trainyard.derive.cluster import named_roles
from trainyard.derive.pools import TYPES, gpus_of
from trainyard.derive.queues import gpus_of_node
from trainyard.derive.teams import Share, principals, setting_of
from trainyard.objects.jobs.pod_template import NO_DEVICES, VISIBLE
from trainyard.objects.teams.team_admission import LONGEST_GRACE_SECONDS
from trainyard.objects.teams.teams import ADVANCED_BYTES, REACHED_BYTES, TeamEntryPlan
from trainyard.plans.access import AccessPlan
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import JobPlan, maps_in
from trainyard.problems import REMOVE, At, InputError, InputWarning, write_one_of
from trainyard.rules.environment import SYSTEM_NAMESPACES, TAGS, tag_errors
from trainyard.rules.principals import deployer_errors, foreign_warnings
from trainyard.rules.queues import (
    fetch_warnings,
    maximum_warnings,
    outside_errors,
    placed_job_errors,
    queue_errors,
    queued_job_errors,
)
from trainyard.rules.team_buckets import bucket_errors
from trainyard.rules.team_stores import past_the_wall_errors, read_only_errors, wall_warnings
from trainyard.rules.workers import dispatched_job_errors, isolated_workers, nodes_of_workers
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import AnyJob, JobConfig, manifests, typed
from trainyard.settings.team_entry import TeamEntryConfig

OF_THE_ENVIRONMENT = re.compile(r"\b(?:environment|pools)\.[a-z]")
"""A setting of the environment, in a fix."""


def of_the_team(errors: Iterable[InputError], environment: str) -> tuple[InputError, ...]:
    """Errors of a team's stack. A fix in the stack file of the `environment`, whose owner pays for it, says so."""
    asks = f" (that is in the stack file of {environment}: ask whoever runs it)"
    return tuple(
        replace(error, fix=f"{error.fix}{asks}")
        if error.path.startswith("team.")
        and OF_THE_ENVIRONMENT.search(error.fix)
        and "Pulumi." not in error.fix
        else error
        for error in errors
    )


def entry_errors(
    wanted: EnvironmentConfig, access: AccessPlan, me: Identity
) -> Iterator[InputError]:
    """Every error of the teams that an environment lists. `me`: the environment."""
    yield from _namespaces(wanted)
    yield from _roles(wanted, access)
    yield from deployer_errors(wanted, access.accounts)
    yield from bucket_errors(wanted, me)
    yield from _images_and_keys(wanted)
    yield from queue_errors(wanted)
    for name, own in wanted.trainer.own_runtimes.items() if wanted.teams else ():
        if own.env.get(VISIBLE, NO_DEVICES[0]) not in NO_DEVICES:
            yield At(f"environment.trainer.own_runtimes.{name}.env.{VISIBLE}").must(
                "not be set where the environment lists teams: the cluster refuses it in their pods",
                got=own.env[VISIBLE],
                write=REMOVE,
            )
    for name, entry in wanted.teams.items():
        at = f"environment.teams.{name}"
        yield from _unknown(f"{at}.stores", entry.stores or (), "storage", wanted.storage)
        priorities = entry.allowed_priorities
        yield from _unknown(f"{at}.allowed_priorities", priorities, "priorities", wanted.priorities)
        yield from _tags(f"{at}.tags", entry, wanted, access)


def _tags(
    path: str, entry: TeamEntryConfig, wanted: EnvironmentConfig, access: AccessPlan
) -> Iterator[InputError]:
    """Tags of a team by themselves, and beside those of all."""
    yield from tag_errors(path, entry.tags)
    of_all = {**dict(access.default_tags), **wanted.tags}
    together = len({**of_all, **entry.tags})
    if max(len(of_all), len(entry.tags)) <= TAGS < together:
        yield At(path).must(
            f"have at most {TAGS} tags together with environment.tags and aws:defaultTags",
            got=together,
            fix=f"delete {together - TAGS} of them",
        )


def _unknown(
    path: str, names: Iterable[str], setting: str, there: Collection[str]
) -> Iterator[InputError]:
    """Names that a setting of the environment lacks."""
    if unknown := [each for each in names if each not in there]:
        yield At(path).must(
            f"be names from environment.{setting}",
            got=", ".join(unknown),
            fix=write_one_of(there, f"delete it, or add it under environment.{setting}"),
        )


def _namespaces(wanted: EnvironmentConfig) -> Iterator[InputError]:
    taken = {wanted.namespace: "the environment's jobs"}
    taken |= dict.fromkeys(SYSTEM_NAMESPACES, "the system")
    for name, entry in wanted.teams.items():
        namespace = entry.namespace_of(name)
        owner = taken.get(namespace)
        owner = "the system" if namespace.startswith("kube-") else owner
        if owner:
            free = f"team-{name}" if f"team-{name}" not in taken else f"{name}-jobs"
            yield At(f"environment.teams.{name}.namespace").must(
                f"not be the namespace of {owner}", got=namespace, write=free
            )
        taken.setdefault(namespace, f"team {name}")


def _roles(wanted: EnvironmentConfig, access: AccessPlan) -> Iterator[InputError]:
    """A role that would need a second access entry."""
    owners = {role.arn: role.path for role in named_roles(wanted.cluster)}
    if access.role_arn:
        owners[access.role_arn] = "the role that creates the cluster"
    for name, entry in wanted.teams.items():
        for role, arn in principals(entry):
            path = setting_of(name, role)
            if arn in owners:
                yield At(path).must(
                    "be roles with one use: EKS has one access entry for a role",
                    got=f"{arn}, which is {owners[arn]} already",
                    fix="name another role"
                    + ", or make it one of environment.cluster.viewers, which read all namespaces"
                    * (role == "viewer"),
                )
            owners.setdefault(arn, path)


def _images_and_keys(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Names of images with a scheme, and keys for nothing."""
    for name, entry in wanted.teams.items():
        at = f"environment.teams.{name}"
        yield from _image_prefixes(f"{at}.image_prefixes", entry.image_prefixes)
        if entry.kms_key_arns and not (entry.s3_reads or entry.s3_writes or entry.secrets):
            yield At(f"{at}.kms_key_arns").not_set(
                "without s3_reads, s3_writes or secrets: a key is for what they name",
                got=", ".join(entry.kms_key_arns),
            )


def _image_prefixes(path: str, prefixes: Sequence[str]) -> Iterator[InputError]:
    for prefix in prefixes:
        if "//" in prefix:
            yield At(path).must(
                "be beginnings of image names, which have no scheme",
                got=prefix,
                fix=f"write {prefix.rpartition('//')[2]}",
                write=[each.rpartition("//")[2] for each in prefixes],
            )


def contract_errors(plans: Mapping[str, TeamEntryPlan]) -> Iterator[InputError]:
    """Contracts that are too long for their SSM parameter."""
    most = ADVANCED_BYTES - REACHED_BYTES
    for name, plan in plans.items():
        if plan.contract_bytes > most:
            yield At(f"environment.teams.{name}").must(
                f"have a contract of at most {most} bytes: pools, runtimes and stores",
                got=f"{plan.contract_bytes} bytes",
                fix="list fewer stores for the team, or have fewer pools or runtimes",
            )


def entry_warnings(wanted: EnvironmentConfig, access: AccessPlan) -> Iterator[InputWarning]:
    """Warnings about the teams of an environment that work, and about roles of another account."""
    yield from foreign_warnings(wanted, access.accounts)
    yield from wall_warnings(wanted)
    yield from _shares_together(wanted)
    yield from maximum_warnings(wanted)
    yield from fetch_warnings(wanted)


def _shares_together(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Shares that the pools cannot give to all teams at once. With queues that is how it is meant:
    jobs wait before they have nodes."""
    if wanted.queues is not None:
        return
    held = sum(
        pool.max_nodes
        * max((TYPES[kind].gpus for kind in pool.instance_types if kind in TYPES), default=0)
        for pool in wanted.pools.values()
    )
    shares = {name: entry.max_gpus for name, entry in wanted.teams.items() if entry.max_gpus}
    total = sum(shares.values())
    if total > held:
        listed = ", ".join(f"{name} {gpus}" for name, gpus in shares.items())
        yield At("environment.teams").warning(
            f"the teams may request {total} GPUs together ({listed}), and the pools have at most"
            f" {held}: jobs wait when all teams use their share"
        )


def listing_errors(
    team: TeamConfig, environment: EnvironmentConfig, others: Mapping[str, TeamConfig]
) -> Iterator[InputError]:
    """A team's stack file against the environment's list. `others`: other teams, by the name of the
    stack."""
    if team.name is None:
        yield from _unlisted(team, environment)
        yield from outside_errors(team, environment)
        yield from past_the_wall_errors(team, environment)
        return
    if team.name not in environment.teams:
        otherwise = f"add it under environment.teams in Pulumi.{team.environment}.yaml"
        yield At("team.name").must(
            f"be a team that Pulumi.{team.environment}.yaml lists under environment.teams",
            got=team.name,
            fix=write_one_of(environment.teams, otherwise, team.name),
        )
    for setting, value in {"namespace": team.namespace, "max_gpus": team.max_gpus}.items():
        if value is not None:
            yield At(f"team.{setting}").not_set(
                f"beside team.name: environment.teams.{team.name} has it", got=value
            )
    for stack in (name for name, other in others.items() if other.name == team.name):
        yield At("team.name").must(
            f"not be the team of another stack, as of Pulumi.{stack}.yaml",
            got=team.name,
            fix="put the jobs of one team into one stack file",
        )


def _unlisted(team: TeamConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    if team.namespace is None:
        yield At("team").must(
            "have a name that the environment lists, or a namespace",
            got="neither",
            fix=f"write name: {next(iter(environment.teams), 'vision')}, or namespace: team-vision",
        )
    for name, entry in environment.teams.items():
        namespace = entry.namespace_of(name)
        if team.namespace == namespace:
            yield At("team.namespace").must(
                f"not be the namespace of team {name}, which the environment lists",
                got=namespace,
                fix=f"delete it, and write name: {name}",
            )


def listed_job_errors(
    share: Share,
    jobs: Mapping[str, AnyJob],
    described: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
) -> Iterator[InputError]:
    """Jobs of a listed team whose pods the cluster would refuse, or which its queue never starts.
    `described`: all of them in the words of settings."""
    yield from queued_job_errors(share, jobs, described, environment)
    if share.entry is None:
        return
    yield from read_only_errors(jobs, described, environment)
    for name, job in described.items():
        setting = "image" if name in typed(jobs) else "manifest"
        yield from _image(f"team.jobs.{name}.{setting}", share.entry, job.image)
    for name, job in typed(jobs).items():
        if job.host_paths:
            yield _not_for_teams(f"team.jobs.{name}.host_paths", ", ".join(job.host_paths))
    for name, job in manifests(jobs).items():
        if job.privileged_pods:
            yield _not_for_teams(f"team.jobs.{name}.privileged_pods", "true")


def _not_for_teams(path: str, got: str) -> InputError:
    return At(path).must(
        "not be set by a team that the environment lists",
        got=got,
        fix="delete it, and mount a store",
        write=REMOVE,
    )


def listed_plan_errors(
    share: Share,
    plans: Mapping[str, JobPlan],
    described: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
    folder: Path,
) -> Iterator[InputError]:
    """Jobs of a listed team that take what is not the team's, or that no worker of its environment can
    take. `described`: all of them in the words of settings. `folder`: with the stack files."""
    if share.entry is None:
        return
    queue = share.queue if share.queue and share.queue.check else None
    nodes = nodes_of_workers(environment, folder, queue.team) if queue else {}
    isolated = isolated_workers(environment, folder) if queue else {}
    for name, plan in plans.items():
        yield from _beyond(f"team.jobs.{name}", share.entry, plan)
        yield from placed_job_errors(f"team.jobs.{name}", plan, environment)
        if queue:
            needed = _whole_nodes(described[name], environment)
            yield from dispatched_job_errors(f"team.jobs.{name}", plan, needed, nodes, isolated)


def _whole_nodes(job: JobConfig, environment: EnvironmentConfig) -> float:
    """Nodes with as many GPUs as the job: queues count GPUs."""
    whole = gpus_of_node(environment.pools[job.pool])
    return gpus_of(job, environment) / whole if whole else job.nodes


def _beyond(path: str, entry: TeamEntryConfig, plan: JobPlan) -> Iterator[InputError]:
    """Errors about what a job takes that is not the team's."""
    allowed = plan.stores if entry.stores is None else entry.stores
    for store in set(plan.stores) - set(allowed):
        yield At(path).must(
            "mount only stores that the environment's entry of the team lists",
            got=store,
            fix=write_one_of(allowed, "mount none, or add it to stores in the entry"),
        )
    for priority in set(plan.priorities) - set(entry.allowed_priorities):
        yield At(path).must(
            "use only priorities that the environment's entry of the team allows",
            got=priority,
            fix=write_one_of(entry.allowed_priorities, "add it to allowed_priorities in the entry"),
        )
    yield from _devices(path, plan)
    yield from _held(path, plan)
    for made in plan.objects:
        if made["kind"] == "ClusterTrainingRuntime":
            yield At(path).must(
                "contain no ClusterTrainingRuntime: it is an object of the whole cluster",
                got=made["metadata"]["name"],
                fix="make it a TrainingRuntime, which is the team's own",
            )


def _devices(path: str, plan: JobPlan) -> Iterator[InputError]:
    """A variable that the policy of team_admission.py refuses in pods of teams, also on whole nodes: it would let a pod
    that asks for no GPU use those of other teams."""
    for each in maps_in([plan.spec, *plan.objects]):
        if each.get("name") == VISIBLE and each.get("value") not in NO_DEVICES:
            yield At(path).must(
                f"not set {VISIBLE} in a team: the cluster refuses it, and a pod has the GPUs that it requests",
                got=each.get("value", "a value from elsewhere"),
                fix="delete it",
            )


def _held(path: str, plan: JobPlan) -> Iterator[InputError]:
    """Affinity and a grace period that the same policy refuses: by them one team holds nodes of the others."""
    for each in maps_in([plan.spec, *plan.objects]):
        grace = each.get("terminationGracePeriodSeconds")
        if isinstance(grace, int) and grace > LONGEST_GRACE_SECONDS:
            yield At(path).must(
                f"end its pods within {LONGEST_GRACE_SECONDS} seconds in a team: the cluster refuses it, and the nodes"
                " of a job that is stopped wait for its pods",
                got=f"terminationGracePeriodSeconds: {grace}",
                fix=f"write {LONGEST_GRACE_SECONDS}",
            )
        named = each.get("namespaces")
        foreign = {*map(str, named if isinstance(named, list) else ())} - {plan.namespace}
        if "topologyKey" in each and ("namespaceSelector" in each or foreign):
            yield At(path).must(
                "have affinity to pods of its own namespace alone in a team: the cluster refuses it, and anti-affinity"
                " keeps the pods of others off nodes",
                got=", ".join(sorted(foreign)) or "namespaceSelector",
                fix="delete namespaces and namespaceSelector",
            )


def _image(path: str, entry: TeamEntryConfig, image: str | None) -> Iterator[InputError]:
    prefixes = entry.image_prefixes
    if image and prefixes and not image.startswith(prefixes):
        yield At(path).must(
            "begin with one of the image_prefixes in the environment's entry of the team",
            got=image,
            fix=f"push it to one of {', '.join(prefixes)}",
        )
