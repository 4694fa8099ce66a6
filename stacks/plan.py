"""From what is wanted to what will be built: every derived fact, decided once, without the engine.

`plan_environment` and `plan_team` return the plan together with every error and every warning
(rules/). A stack file with errors has no plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from plans.access import AccessPlan
from plans.parts import (
    AddOnsPlan,
    ClusterPlan,
    DevicePluginsPlan,
    EfsPlan,
    GpuNodesPlan,
    GpuPoolPlan,
    Identity,
    JobPlan,
    KarpenterPlan,
    LustrePlan,
    NetworkPlan,
    RegistryPlan,
    RuntimePlan,
    SystemNodesPlan,
    TrainerPlan,
    TrainingOperatorPlan,
    WorkspacePlan,
)
from stacks.derive.access import access_plan
from stacks.derive.capacity import PoolUse, pool_plans, pool_uses
from stacks.derive.cluster import (
    add_ons_plan,
    cluster_name,
    cluster_plan,
    gpu_nodes_plan,
    system_nodes_plan,
)
from stacks.derive.contract import contract
from stacks.derive.controllers import (
    device_plugins_plan,
    karpenter_plan,
    trainer_plan,
    training_operator_plans,
)
from stacks.derive.goodput import Verdict
from stacks.derive.jobs import file_errors, job_plan, runtime_plans
from stacks.derive.mount_targets import efs_plans, mount_zones
from stacks.derive.network import network_plan, network_zones
from stacks.derive.stores import job_verdicts, lustre_plans, registry_plans, sized
from stacks.derive.workspace import workspace_plan
from stacks.manifests.admission import Manifest, manifest_plan, read_manifests, stand_in
from stacks.rules.access import (
    access_warnings,
    environment_access_errors,
    team_access_errors,
)
from stacks.rules.entries import job_warnings
from stacks.rules.environment import (
    environment_errors,
    environment_warnings,
    first_types,
    share_errors,
    team_errors,
)
from stacks.rules.network import stack_errors
from stacks.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from stacks.settings.job import AnyJob, JobConfig, manifests, typed
from stacks.settings.problems import InputError, InputWarning, Refused
from stacks.settings.reader import Reading, environments, read_file
from stacks.settings.yaml_file import Lines


@dataclass(frozen=True, kw_only=True)
class EnvironmentPlan:
    """A whole environment, decided."""

    identity: Identity
    access: AccessPlan
    zone: str
    network: NetworkPlan
    lustre: Mapping[str, LustrePlan]
    efs: Mapping[str, EfsPlan]
    registries: Mapping[str, RegistryPlan]
    cluster: ClusterPlan
    add_ons: AddOnsPlan
    system_nodes: SystemNodesPlan
    gpu_nodes: GpuNodesPlan
    karpenter: KarpenterPlan
    pools: Mapping[str, GpuPoolPlan]
    device_plugins: DevicePluginsPlan
    trainer: TrainerPlan
    runtimes: tuple[RuntimePlan, ...]
    training_operators: Mapping[str, TrainingOperatorPlan]
    """Kind of job → its legacy controller: PyTorchJob, or nothing."""
    priorities: Mapping[str, int]
    workspace: WorkspacePlan
    jobs: Mapping[str, JobPlan]
    capacity: Mapping[str, PoolUse]
    checkpoints: Mapping[str, Verdict]
    """Of the jobs that say how large their model is."""
    contract: Mapping[str, Any]
    """What teams may rely on: plain, versioned, without a secret and without an id that AWS
    gives."""


@dataclass(frozen=True, kw_only=True)
class TeamPlan:
    """A team's share of an environment, decided."""

    identity: Identity
    environment: str
    """Name of the stack to refer to."""
    contract: Mapping[str, Any]
    """What the environment's stack file in this checkout promises; compared with what is
    deployed."""
    access: AccessPlan
    workspace: WorkspacePlan
    jobs: Mapping[str, JobPlan]
    checkpoints: Mapping[str, Verdict]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan, or the reasons why there is none."""

    plan: EnvironmentPlan | TeamPlan | None
    errors: tuple[InputError, ...]
    warnings: tuple[InputWarning, ...] = ()

    def accepted(self) -> EnvironmentPlan | TeamPlan:
        """The plan; raises Refused with every error where there are any."""
        if self.plan is None or self.errors:
            raise Refused(self.errors)
        return self.plan

    def located(self, lines: Lines) -> Planned:
        """The same, each problem with its place in the stack file."""
        return replace(
            self,
            errors=tuple(map(lines.locate, self.errors)),
            warnings=tuple(map(lines.locate, self.warnings)),
        )


def plan_stack(reading: Reading, folder: Path = Path("."), now: datetime | None = None) -> Planned:
    """Plan whatever the stack file describes. `folder` holds the stack files a team refers to;
    `now` decides which reservations are over, and nothing else."""
    config, now = reading.config, now or datetime.now(UTC)
    if config is None:
        planned = Planned(plan=None, errors=reading.errors)
    elif config.team is not None:
        planned = plan_team(config, reading, folder, now)
    else:
        planned = plan_environment(config, reading, folder, now)
    return planned.located(reading.lines)


def plan_environment(config: StackConfig, reading: Reading, folder: Path, now: datetime) -> Planned:
    """Plan an environment; a plan is only made where nothing is refused. `folder` holds the files
    of its jobs."""
    wanted = config.environment
    if wanted is None:
        return Planned(plan=None, errors=reading.errors)
    zones = network_zones(config.region, wanted)
    access = access_plan(config.region, config.aws, wanted.cluster)
    jobs = _read_jobs("environment.jobs", wanted.jobs, wanted, wanted.namespace, folder)
    errors = (
        *reading.errors,
        *stack_errors(config.stack),
        *environment_access_errors(access, config.aws, wanted.cluster, wanted.tags),
        *environment_errors(config.region, wanted, zones, reading.skipped, now),
        *jobs.errors,
    )
    warnings = (
        *access_warnings(access),
        *environment_warnings(config.region, wanted, now),
        *jobs.warnings,
    )
    if errors:
        return Planned(plan=None, errors=errors, warnings=warnings)
    plan = _environment(config, _sized(config.region, wanted), access, zones, jobs)
    return Planned(plan=plan, errors=(), warnings=warnings)


def plan_team(config: StackConfig, reading: Reading, folder: Path, now: datetime) -> Planned:
    """Plan a team from its stack file and its environment's, without a cluster."""
    team = config.team
    if team is None:
        return Planned(plan=None, errors=reading.errors)
    base = _base(team, folder, now)
    if isinstance(base, InputError):
        return Planned(plan=None, errors=(*reading.errors, base))
    environment = base.environment
    jobs = _read_jobs("team.jobs", team.jobs, environment, team.namespace, folder)
    access = access_plan(config.region, config.aws, environment.cluster)
    errors = (
        *reading.errors,
        *team_access_errors(access, config.aws),
        *team_errors(config.region, team, base.config, reading.skipped),
        *share_errors(team, jobs.described(), environment),
        *jobs.errors,
    )
    if errors:
        return Planned(plan=None, errors=errors)
    warnings = (
        *access_warnings(access),
        *job_warnings(typed(team.jobs), environment, config.region, "team.jobs"),
        *jobs.warnings,
    )
    return Planned(plan=_team(config, team, base, access, jobs), errors=(), warnings=warnings)


@dataclass(frozen=True)
class _Base:
    """The environment that a team runs on."""

    config: StackConfig
    environment: EnvironmentConfig
    """With the size of every store decided."""
    plan: EnvironmentPlan


def _base(team: TeamConfig, folder: Path, now: datetime) -> _Base | InputError:
    """The environment that a team refers to, from its stack file in `folder`; an error where there
    is none, or none that can be planned."""
    try:
        reading = read_file(team.environment, folder)
    except FileNotFoundError:
        return InputError(
            path="team.environment",
            must="be a stack with a stack file in this checkout",
            got=team.environment,
            **_other_environment(folder),
        )
    config = reading.config
    if config and config.team:
        return InputError(
            path="team.environment",
            must="be an environment, not a team",
            got=team.environment,
            **_other_environment(folder, config.team.environment),
        )
    environment = config.environment if config else None
    if config and environment:
        plan = plan_environment(config, reading, folder, now).plan
        if isinstance(plan, EnvironmentPlan):
            return _Base(config, _sized(config.region, environment), plan)
    return InputError(
        path="team.environment",
        must="be an environment whose stack file has no errors",
        got=team.environment,
        fix=f"run make check STACK={team.environment}, and correct what it names",
    )


def _other_environment(folder: Path, first: str = "") -> dict[str, Any]:
    """`fix` and `write` of an error that proposes an environment of the checkout. `first`: the one
    that is likeliest."""
    known = environments(folder)
    known = [first, *known] if first in known else known
    if not known:
        return {"fix": "write the stack file of the environment first: Pulumi.dev.yaml"}
    return {"fix": f"write {' or '.join(dict.fromkeys(known))}", "write": known[0]}


def _sized(region: str, wanted: EnvironmentConfig) -> EnvironmentConfig:
    """The environment with every store's size decided."""
    types = first_types(wanted)
    return replace(
        wanted,
        storage={name: sized(store, region, types) for name, store in wanted.storage.items()},
    )


@dataclass(frozen=True, kw_only=True)
class _Jobs:
    """The jobs of a stack, together with the files that they bring or are."""

    jobs: Mapping[str, AnyJob]
    folder: Path
    """Where their files lie."""
    read: Mapping[str, Manifest]
    """The jobs that are files themselves."""
    errors: tuple[InputError, ...]
    """What is wrong with the files."""

    @property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Of the jobs that are files themselves."""
        return tuple(warning for manifest in self.read.values() for warning in manifest.warnings)

    def planned(self, environment: EnvironmentConfig, namespace: str) -> dict[str, JobPlan]:
        """Every job, decided, in the order of the stack file."""
        runtimes = {runtime.name: runtime for runtime in runtime_plans(environment)}
        plans = {
            name: manifest_plan(job, self.read[name], namespace, runtimes)
            for name, job in manifests(self.jobs).items()
        }
        plans |= {
            name: job_plan(name, job, environment, namespace, self.folder, runtimes)
            for name, job in typed(self.jobs).items()
        }
        return {name: plans[name] for name in self.jobs}

    def described(self) -> dict[str, JobConfig]:
        """Every job in the words of settings, as far as capacity goes."""
        return typed(self.jobs) | {
            name: stand_in(job, self.read[name])
            for name, job in manifests(self.jobs).items()
            if name in self.read
        }


def _read_jobs(
    path: str,
    jobs: Mapping[str, AnyJob],
    environment: EnvironmentConfig,
    namespace: str,
    folder: Path,
) -> _Jobs:
    """Read the files of a stack's jobs. `path`: of the jobs in the stack file."""
    read, wrong = read_manifests(path, manifests(jobs), environment, namespace, folder)
    errors = (*_file_errors(path, jobs, folder), *wrong)
    return _Jobs(jobs=jobs, folder=folder, read=read, errors=errors)


def _file_errors(path: str, jobs: Mapping[str, AnyJob], folder: Path) -> Iterator[InputError]:
    for name, job in typed(jobs).items():
        yield from file_errors(f"{path}.{name}", job, folder)


def _environment(
    config: StackConfig,
    wanted: EnvironmentConfig,
    access: AccessPlan,
    zones: tuple[str, ...],
    jobs: _Jobs,
) -> EnvironmentPlan:
    """Every part of an environment, in the order of stacks/environment.py."""
    tags = tuple(sorted(wanted.tags.items()))
    me = Identity(project=config.project, stack=config.stack, region=config.region, extra_tags=tags)
    cluster = cluster_name(me, wanted.network.cidr, zones)
    pools = pool_plans(me, wanted, access)
    runtimes = runtime_plans(wanted)
    described = typed(wanted.jobs)
    return EnvironmentPlan(
        identity=me,
        access=access,
        zone=wanted.zone,
        network=network_plan(me, wanted, zones, cluster),
        lustre=lustre_plans(me, wanted.storage),
        efs=efs_plans(me, wanted.storage, mount_zones(zones, wanted.zone, wanted.pools)),
        registries=registry_plans(me, wanted.registries),
        cluster=cluster_plan(me, cluster, wanted, access),
        add_ons=add_ons_plan(me, wanted),
        system_nodes=system_nodes_plan(me, wanted.system_nodes, wanted.cluster),
        gpu_nodes=gpu_nodes_plan(me),
        karpenter=karpenter_plan(me, cluster, wanted),
        pools=pools,
        device_plugins=device_plugins_plan(pools, wanted.artifacts),
        trainer=trainer_plan(wanted.trainer.version, wanted.artifacts),
        runtimes=runtimes,
        training_operators=training_operator_plans(wanted.training_operator),
        priorities=dict(sorted(wanted.priorities.items())),
        workspace=workspace_plan(wanted.namespace, wanted.storage, wanted.zone, described),
        jobs=jobs.planned(wanted, wanted.namespace),
        capacity=pool_uses(wanted, jobs.described()),
        checkpoints=job_verdicts(described, wanted, config.region),
        contract=contract(config.region, wanted, pools, runtimes),
    )


def _team(
    config: StackConfig, team: TeamConfig, base: _Base, access: AccessPlan, jobs: _Jobs
) -> TeamPlan:
    """Every part of a team. Its namespace has the claims of the stores that its jobs mount."""
    environment, described = base.environment, typed(team.jobs)
    plans = jobs.planned(environment, team.namespace)
    mounted = {store for job in plans.values() for store in job.stores}
    stores = {name: store for name, store in environment.storage.items() if name in mounted}
    return TeamPlan(
        identity=Identity(project=config.project, stack=config.stack, region=config.region),
        environment=team.environment,
        contract=base.plan.contract,
        access=access,
        workspace=workspace_plan(
            team.namespace, stores, environment.zone, described, max_gpus=team.max_gpus
        ),
        jobs=plans,
        checkpoints=job_verdicts(described, environment, config.region),
    )
