"""Everything that takes the jobs of an environment: controllers, runtimes and queues; and
its own jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_kubernetes as k8s

from components.cluster.cluster_access import ClusterAccess
from components.jobs.dispatch import Dispatch
from components.jobs.jobs import Jobs
from components.jobs.loads import Loads, Waits
from components.jobs.namespace import JobNamespace
from components.jobs.priority import Priority
from components.jobs.queues import Queues
from components.jobs.trainer import API, Runtimes, Trainer
from components.jobs.training_operator import TrainingOperator
from components.nodes.gpu_pool import GpuPool
from components.teams.team_identity import TeamIdentity
from stacks.outputs import job_starts
from stacks.reference import cluster_of
from trainyard.objects.iam.secrets import ADD_ON
from trainyard.parts.parts import DISPATCH
from trainyard.plan import EnvironmentPlan

Needs = Mapping[str, Sequence[pulumi.Resource]]


@dataclass(frozen=True, kw_only=True)
class Training:
    """Resources that a job, and the queue of a team, wait for."""

    controllers: Sequence[pulumi.Resource]
    admits: Needs
    """Runtime, or kind of job that has none → what takes such a job."""
    crds: Mapping[str, k8s.helm.v3.Release]
    """API version → the release that brings its kinds."""
    queues: Queues | None
    dispatch: Dispatch | None


def take_jobs(plan: EnvironmentPlan, cluster: ClusterAccess) -> Training:
    """Make what takes jobs and starts them: the Trainer, its runtimes, and queues where there are any."""
    nodes, opts = cluster.nodes, cluster.opts
    trainer = Trainer("trainer", plan.trainer, nodes=nodes, opts=opts)
    runtimes = Runtimes("runtimes", plan.runtimes, trainer=trainer, opts=opts)
    legacy = {
        kind: TrainingOperator("training-operator", each, nodes=nodes, opts=opts)
        for kind, each in plan.training_operators.items()
    }
    controllers = [*trainer.ready, *(one for each in legacy.values() for one in each.ready)]
    queues = (
        Queues("queues", plan.queues, controllers=controllers, opts=opts) if plan.queues else None
    )
    admission = queues.admission if queues else []
    dispatched = DISPATCH.of(plan)
    dispatch = (
        Dispatch(
            "dispatch",
            dispatched,
            cluster=cluster,
            workers={each: cluster_of(each, plan.identity) for each in dispatched.workers},
            kueue=admission,
            opts=opts,
        )
        if dispatched
        else None
    )
    admits = {
        "TrainJob": [*trainer.ready, *admission],
        **{kind: [*each.ready, *admission] for kind, each in legacy.items()},
        **{
            kind: legacy[first].ready
            for first, each in plan.training_operators.items()
            for kind in each.more_kinds
        },
        **{name: [runtime, *admission] for name, runtime in runtimes.ready.items()},
    }
    return Training(
        controllers=controllers,
        admits=admits,
        crds={API: trainer.crds},
        queues=queues,
        dispatch=dispatch,
    )


def job_identity(
    plan: EnvironmentPlan, cluster: ClusterAccess, add_ons: Mapping[str, pulumi.Resource]
) -> list[pulumi.Resource]:
    """Resources that a job with secrets, or a load from AWS, needs: pods that start before their role have no
    identity, and no secrets without the driver."""
    if not plan.job_pods:
        return []
    identity = TeamIdentity("jobs", plan.job_pods, cluster=cluster, mounts=(), opts=cluster.opts)
    return [identity.ready, *([add_ons[ADD_ON]] if ADD_ON in add_ons else [])]


def run_jobs(
    plan: EnvironmentPlan,
    training: Training,
    *,
    pools: Mapping[str, GpuPool],
    workspace: JobNamespace,
    add_ons: Mapping[str, pulumi.Resource],
    secrets: Sequence[pulumi.Resource],
    kubeconfig: pulumi.Output[str],
    opts: pulumi.ResourceOptions,
) -> None:
    """The jobs of the environment, and priorities for all. `secrets`: what a job with secrets needs."""
    waits = Waits(kubeconfig)
    loads = _load(
        plan,
        pools=pools,
        workspace=workspace,
        add_ons=add_ons,
        aws=secrets,
        waits=waits,
        opts=opts,
    )
    priorities = {key: Priority(key, value, opts=opts) for key, value in plan.priorities.items()}
    needs = {
        key: [
            *training.admits[job.runtime or job.kind],
            # Ranks find each other by name, and at the end a checkpoint finds its store.
            add_ons["coredns"],
            *pools[job.pool].ready,
            *(workspace.claims[store] for store in job.stores),
            *(priorities[each].ready for each in job.priorities),
            *(secrets if job.secrets else ()),
            *(loads[each.name] for each in job.loads),
        ]
        for key, job in plan.jobs.items()
    }
    if plan.jobs:
        Jobs(
            "jobs",
            plan.jobs,
            identity=plan.identity,
            starts=job_starts(plan),
            namespace=workspace.namespace,
            kubeconfig=kubeconfig,
            needs=needs,
            waits=waits,
            crds=training.crds,
            opts=opts,
        )


def _load(
    plan: EnvironmentPlan,
    *,
    pools: Mapping[str, GpuPool],
    workspace: JobNamespace,
    add_ons: Mapping[str, pulumi.Resource],
    aws: Sequence[pulumi.Resource],
    waits: Waits,
    opts: pulumi.ResourceOptions,
) -> Mapping[str, pulumi.Resource]:
    """Everything that is loaded before jobs, by name. `aws`: what a load with an AWS identity needs."""
    wanted = {each.name: each for job in plan.jobs.values() for each in job.loads}
    if not wanted:
        return {}
    needs = {
        key: [add_ons["coredns"], *pools[load.pool].ready, *(aws if load.reads_aws else ())]
        for key, load in wanted.items()
    }
    loads = Loads(
        "loads",
        wanted,
        namespace=workspace.namespace,
        claims=workspace.claims,
        needs=needs,
        waits=waits,
        opts=opts,
    )
    return loads.jobs
