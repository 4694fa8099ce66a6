"""Errors about queues that cannot work: guarantees that the pools do not have, jobs that no queue
can start, and what would take nodes past the queues.

Sources: Kueue's ClusterQueue and Cohort (nominalQuota, borrowingLimit); a ResourceQuota refuses pods
of jobs that Kueue has started already. Examples of each rule: tests/trainyard/rules/test_queues.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.catalog.aws.latencies import IMAGE_GB, LATENCIES
from trainyard.catalog.fabric import NETWORK_LAYERS, network_layers
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.kueue_types import PLACES_GPUS_ONLY
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.pools import first_type, gpus_of, largest_gang
from trainyard.derive.queues import (
    FETCH_MINUTES,
    fetching,
    gang_minutes,
    kept_nodes,
    queued_pools,
    ready_minutes,
    team_queue_plan,
)
from trainyard.derive.teams import Share
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.queues.queues import URGENCIES
from trainyard.plans.jobs import JobPlan, maps_in
from trainyard.problems import REMOVE, At, InputError, InputWarning, few, write_one_of
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import AnyJob, JobConfig, typed
from trainyard.settings.team_entry import TeamEntryConfig

AT = "environment.queues"
_LIKE_UNSET = TeamEntryConfig(deployer="")


def queue_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Every error of the queues of an environment and of the shares of its teams."""
    if wanted.queues is None:
        yield from _without_queues(wanted)
        return
    yield from _nobody(wanted)
    yield from _own_jobs(wanted)
    yield from _guarantees(wanted)
    yield from _topology(wanted)
    kept = kept_nodes(wanted)
    for name, entry in wanted.teams.items():
        at = f"environment.teams.{name}"
        sound = True
        for error in _shares(at, entry, wanted):
            sound = False
            yield error
        if sound:
            yield from _quota(name, entry, wanted, kept)
        if entry.allowed_priorities:
            yield At(f"{at}.allowed_priorities").must(
                "be empty where environment.queues decide whose job goes first",
                got=", ".join(entry.allowed_priorities),
                fix="delete it, and set urgency in jobs",
                write=REMOVE,
            )


def _without_queues(wanted: EnvironmentConfig) -> Iterator[InputError]:
    for name, entry in wanted.teams.items():
        for setting in ("guaranteed_nodes", "max_nodes", "lends_nodes", "max_urgency"):
            if (said := getattr(entry, setting)) != getattr(_LIKE_UNSET, setting):
                yield At(f"environment.teams.{name}.{setting}").must(
                    "be set only where the environment has queues",
                    got=said,
                    fix=f"add {AT}: {{}}, or delete it",
                    write=REMOVE,
                )
    yield from _urgencies("environment.jobs", wanted.jobs)


def _nobody(wanted: EnvironmentConfig) -> Iterator[InputError]:
    if not wanted.teams:
        yield At(AT).must(
            "have teams whose jobs wait in them",
            got="no entry under environment.teams",
            fix="delete it, or list the teams",
            write=REMOVE,
        )


def _own_jobs(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Jobs that take nodes which the queues hand out."""
    pools = queued_pools(wanted)
    for name, job in wanted.jobs.items():
        if job.pool in pools:
            yield At(f"environment.jobs.{name}.pool").must(
                "not be a pool with GPUs where the environment has queues, which hand out its nodes to jobs of teams",
                got=job.pool,
                fix="move the job to the stack file of a team, or take a pool without GPUs, or delete"
                " environment.queues",
            )
    yield from _urgencies("environment.jobs", wanted.jobs)


def _urgencies(path: str, jobs: Mapping[str, AnyJob]) -> Iterator[InputError]:
    """Jobs that are in no queue and have an urgency."""
    for name, job in jobs.items():
        if job.urgency:
            yield At(f"{path}.{name}.urgency").must(
                "be set only for a job of a team that environment.teams lists, beside queues",
                got=job.urgency,
                write=REMOVE,
            )


def _topology(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Kueue counts the nodes that stand, and starts no job on others (kueue, concepts/
    topology_aware_scheduling). Beside a flavor without topology it would refuse jobs that do not ask
    for one."""
    if wanted.queues is None or wanted.queues.topology is None:
        return
    for name, pool in queued_pools(wanted).items():
        without = [kind for kind in pool.instance_types if not network_layers(kind)]
        if without or pool.replicas is None:
            yield At(f"{AT}.topology").must(
                "be set only where all pools with GPUs have replicas, of types for which EC2 names"
                f" the parts of the network: {', '.join(NETWORK_LAYERS)}",
                got=f"pool {name} {f'of {without[0]}' if without else 'without replicas'}",
                fix=(
                    "delete it"
                    if without
                    else f"set environment.pools.{name}.replicas: {largest_gang(pool)}, or delete it"
                ),
                write=REMOVE,
            )


def _guarantees(wanted: EnvironmentConfig) -> Iterator[InputError]:
    for pool, config in queued_pools(wanted).items():
        given = {
            name: entry.guaranteed_nodes[pool]
            for name, entry in wanted.teams.items()
            if pool in entry.guaranteed_nodes
        }
        nodes, total = largest_gang(config), sum(given.values())
        if total > nodes:
            listed = ", ".join(f"{name} {number}" for name, number in given.items())
            yield At("environment.teams").must(
                f"be guaranteed at most the {nodes} nodes that jobs can have of pool {pool}",
                got=f"{total}: {listed}",
                fix=f"lower guaranteed_nodes, or raise the nodes of environment.pools.{pool}",
            )


def maximum_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Warnings of teams whose most nodes the pool does not have, so that the setting keeps nobody from anything."""
    if wanted.queues is None:
        return
    pools = queued_pools(wanted)
    for name, entry in wanted.teams.items():
        for pool, most in entry.max_nodes.items():
            nodes = largest_gang(pools[pool]) if pool in pools else most
            if most > nodes:
                yield At(f"environment.teams.{name}.max_nodes.{pool}").warning(
                    f"jobs can have at most {nodes} nodes of pool {pool}, so {most} limits nothing"
                )


def fetch_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Runtimes of upstream that nobody may need, and for which Kueue leaves half of any gang its nodes for longer: it
    has one waitForPodsReady for all jobs (0.16.9 and 0.19.2, Configuration)."""
    gangs = any(largest_gang(pool) > 1 for pool in queued_pools(wanted).values())
    names = fetching(wanted)
    if wanted.queues and gangs and names and set(names) <= set(wanted.trainer.runtimes):
        minutes = ready_minutes(wanted)
        yield At("environment.trainer.runtimes").warning(
            f"a gang that lacks nodes holds the others for {minutes + FETCH_MINUTES} minutes, and not for {minutes},"
            f" before it gives them back: {', '.join(names)} fetch their model first, and Kueue has one time for all"
            " jobs. Leave out those that no job names"
        )


def _shares(at: str, entry: TeamEntryConfig, wanted: EnvironmentConfig) -> Iterator[InputError]:
    pools = queued_pools(wanted)
    # Nobody knows yet whether a pool of an unknown type has GPUs: the error about the type says what to write.
    untyped = {name for name, pool in wanted.pools.items() if first_type(pool) is None}
    for setting in ("guaranteed_nodes", "max_nodes"):
        said: Mapping[str, int] = getattr(entry, setting)
        if unknown := [pool for pool in said if pool not in pools and pool not in untyped]:
            yield At(f"{at}.{setting}").must(
                "name pools with GPUs of environment.pools",
                got=", ".join(unknown),
                fix=write_one_of(pools, "delete it"),
            )
    for pool, most in entry.max_nodes.items():
        guaranteed = entry.guaranteed_nodes.get(pool, 0)
        if pool in pools and most < guaranteed:
            yield At(f"{at}.max_nodes.{pool}").must(
                f"be at least the {guaranteed} nodes in guaranteed_nodes",
                got=most,
                write=guaranteed,
            )


def _quota(
    name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig, kept: Mapping[str, int]
) -> Iterator[InputError]:
    """A ResourceQuota below what the queue admits. `kept`: of kept_nodes."""
    queue = team_queue_plan(name, wanted, kept)
    if queue and entry.max_gpus is not None and entry.max_gpus < queue.possible_gpus:
        yield At(f"environment.teams.{name}.max_gpus").must(
            f"be at least the {queue.possible_gpus} GPUs that its queue can give it: beyond it, a"
            " started job gets a part of its pods",
            got=entry.max_gpus,
            fix=f"write {queue.possible_gpus} or delete it, and limit the team by max_nodes",
            write=queue.possible_gpus,
        )


def outside_errors(team: TeamConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    """A team past the queues."""
    if environment.queues is not None and team.name is None:
        yield At("team").must(
            "be listed by the environment, because it has queues",
            got=f"namespace {team.namespace}",
            fix=f"add an entry under environment.teams in Pulumi.{team.environment}.yaml, and write"
            " its name here",
        )


def queued_job_errors(
    share: Share,
    jobs: Mapping[str, AnyJob],
    described: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
) -> Iterator[InputError]:
    """Jobs of a team that its queue could never start. `described`: all of them in the words of
    settings."""
    if share.queue is None or share.entry is None:
        yield from _urgencies("team.jobs", jobs)
        return
    yield from _ends(jobs)
    most = share.entry.max_urgency
    for name, job in jobs.items():
        if job.urgency and URGENCIES[job.urgency] > URGENCIES[most]:
            yield At(f"team.jobs.{name}.urgency").must(
                "be at most the max_urgency in the environment's entry of the team",
                got=job.urgency,
                write=most,
            )
    shares = {each.pool: each for each in share.queue.shares}
    for name, job in described.items():
        if (of := shares.get(job.pool)) is None:
            continue
        need = gpus_of(job, environment)
        if need > of.possible * of.gpus and job.nodes <= environment.pools[job.pool].max_nodes:
            yield At(f"team.jobs.{name}.nodes").must(
                f"need at most the {of.possible * of.gpus} GPUs of pool {job.pool} that the queue"
                " can ever give the team",
                got=f"{job.nodes}, which need {need} GPUs",
                fix=(
                    f"write {of.possible}, or have more nodes for the team in the environment"
                    if of.possible
                    else "take another pool: other teams keep all nodes of this one"
                ),
            )


def placed_job_errors(
    path: str, plan: JobPlan, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """A job that Kueue never starts, because it finds no place in the network for pods without GPUs."""
    release = TRAINER_RELEASES[environment.trainer.version].kueue
    chooses = environment.queues is not None and environment.queues.topology is not None
    if not chooses or release not in PLACES_GPUS_ONLY:
        return
    if pods := _without_gpus(plan, environment):
        yield At(path).must(
            f"have GPUs requested in all its pods, because the environment has queues.topology: Kueue {release} never"
            " starts another job there",
            got=f"none in {pods}",
            fix="request GPUs in them, or name a runtime that fetches no model, or move a job that needs no GPUs to the"
            " environment's own stack, which has no queue",
        )


def _without_gpus(plan: JobPlan, environment: EnvironmentConfig) -> str:
    """Pods of a job that request no GPUs; empty where all do, or where a runtime says it."""
    kind = JOB_KINDS[plan.kind]
    if not kind.has_runtime:
        roles: Mapping[str, Any] = plan.spec[kind.replicas]
        return few([role for role, each in roles.items() if not _names_gpus(each)])
    if plan.runtime in fetching(environment):
        return f"those of runtime {plan.runtime} that fetch its model"
    asked = plan.spec.get("trainer", {}).get("resourcesPerNode")
    return "" if asked is None or _names_gpus(asked) else "those that train"


def _names_gpus(value: Any) -> bool:
    return any(GPU in each for each in maps_in(value))


def _ends(jobs: Mapping[str, AnyJob]) -> Iterator[InputError]:
    """Pods that keep the GPUs of a job that has ended: trainyard/objects/teams/queue_admission.py refuses them."""
    for name, job in typed(jobs).items():
        if job.pytorch_job and job.pytorch_job.clean_pods == "none":
            yield At(f"team.jobs.{name}.pytorch_job.clean_pods").must(
                "be running or all in a queue, which gives the GPUs of a job that has ended to others: pods that go on"
                " keep them",
                got="none",
                write="running",
            )


def image_warnings(
    share: Share, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs of a team whose image takes longer than Kueue waits for their pods. It has one time for all jobs."""
    if share.queue is None:
        return
    most = gang_minutes(environment)
    for name, job in jobs.items():
        pool = environment.pools.get(job.pool)
        start = LATENCIES["job.image-pull"].slow * job.image_gb / float(IMAGE_GB) / 60
        if pool and start > most and job.image not in (pool.prefetch or ()):
            yield At(f"team.jobs.{name}.image_gb").warning(
                f"a slow pull of {job.image_gb:g} GB takes {math.ceil(start)} minutes, and Kueue takes the nodes back"
                f" from a job whose pods do not all run after {most}: it begins again and again. Take a smaller image,"
                f" or let the environment list it in prefetch of pool {job.pool}"
            )


def parted_warnings(
    share: Share, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs of a team on a part of a node. Quotas of Kueue are GPUs of a pool (0.16.2 and 0.19.2, ResourceFlavor without
    a level of hosts), and the scheduler puts a pod on the node with most room (NodeResourcesFit, LeastAllocated)."""
    if share.queue is None:
        return
    shares = {each.pool: each for each in share.queue.shares}
    for name, job in jobs.items():
        of, taken = shares.get(job.pool), job.gpus_per_node
        if of and taken and taken < of.gpus and largest_gang(environment.pools[job.pool]) > 1:
            yield At(f"team.jobs.{name}").warning(
                f"it takes {taken} of the {of.gpus} GPUs of a node, and queues count the GPUs of a pool and not its"
                f" nodes: several such jobs can lie on all nodes of {job.pool}. A job of whole nodes then starts by its"
                " quota, gets no node and gives it back in vain, also where its team is guaranteed nodes. Take whole"
                " nodes, or let the environment add a pool for parts of nodes"
            )
