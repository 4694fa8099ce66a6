"""From what is wanted to what will be built: every derived fact, decided once, without the engine.

`plan_environment` and `plan_team` return the plan together with every error and every warning
(rules/). A stack file with errors has no plan.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog import versions
from catalog.storage import DRIVERS
from catalog.zones import zone_names
from plans.parts import (
    AccessPlan,
    AddOnPlan,
    AddOnsPlan,
    ChartPlan,
    ClaimPlan,
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
    ZonePlan,
    digest,
)
from stacks.derive.access import access_plan
from stacks.derive.capacity import CNI, PoolUse, pool_plan, pool_use
from stacks.derive.goodput import Verdict
from stacks.derive.jobs import claim_name, file_errors, job_plan, runtime_plans
from stacks.derive.mount_targets import efs_plans, mount_zones
from stacks.derive.stores import job_verdict, lustre_plans, sized
from stacks.manifests.admission import Manifest, manifest_plan, read_manifests, stand_in
from stacks.rules.access import (
    access_warnings,
    environment_access_errors,
    team_access_errors,
)
from stacks.rules.environment import (
    environment_errors,
    environment_warnings,
    first_types,
    share_errors,
    team_errors,
)
from stacks.rules.jobs import job_warnings
from stacks.rules.network import stack_errors
from stacks.settings.environment import ArtifactsConfig, EnvironmentConfig, StackConfig, StoreConfig
from stacks.settings.job import AnyJob, JobConfig, manifests, typed
from stacks.settings.problems import InputError, InputWarning, Refused
from stacks.settings.reader import Reading, environments, read_file
from stacks.settings.yaml_file import Lines

ZONES = 3
"""Zones of a network whose stack file lists none, the training zone among them; EKS wants two, three
keep the system nodes up when one fails."""

CHARTS: dict[str, ChartPlan] = {
    "karpenter-crd": ChartPlan(
        chart="oci://public.ecr.aws/karpenter/karpenter-crd", version=versions.KARPENTER
    ),
    "karpenter": ChartPlan(
        chart="oci://public.ecr.aws/karpenter/karpenter", version=versions.KARPENTER
    ),
    "nvidia-device-plugin": ChartPlan(
        chart="nvidia-device-plugin",
        version=versions.NVIDIA_DEVICE_PLUGIN,
        repository="https://nvidia.github.io/k8s-device-plugin",
    ),
    "kubeflow-trainer": ChartPlan(chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer"),
    "training-operator": ChartPlan(chart="./components/charts/training-operator"),
}
TRAINER_CRDS = "./components/charts/kubeflow-trainer-crds-{version}"
"""A chart of ours, as upstream publishes none."""


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
    zones = _zones(config.region, wanted)
    access = access_plan(config.region, config.aws, wanted.cluster.deployer_role_arn)
    read, wrong = read_manifests(
        "environment.jobs", manifests(wanted.jobs), wanted, wanted.namespace, folder
    )
    errors = (
        *reading.errors,
        *stack_errors(config.stack),
        *environment_access_errors(access, config.aws, wanted.cluster, wanted.tags),
        *environment_errors(config.region, wanted, zones, reading.skipped, now),
        *_file_errors("environment.jobs", wanted.jobs, folder),
        *wrong,
    )
    warnings = (
        *access_warnings(access),
        *environment_warnings(config.region, wanted, now),
        *(n for m in read.values() for n in m.warnings),
    )
    plan = (
        None
        if errors
        else _environment(config, _sized(config.region, wanted), access, zones, _Jobs(folder, read))
    )
    return Planned(plan=plan, errors=errors, warnings=warnings)


def plan_team(config: StackConfig, reading: Reading, folder: Path, now: datetime) -> Planned:
    """Plan a team from its stack file and its environment's, without a cluster."""
    team = config.team
    if team is None:
        return Planned(plan=None, errors=reading.errors)
    base = _environment_of(team.environment, folder)
    if isinstance(base, InputError):
        return Planned(plan=None, errors=(*reading.errors, base))
    planned = Planned(plan=None, errors=base.errors)
    if base.config:
        planned = plan_environment(base.config, base, folder, now)
    if (
        base.config is None
        or base.config.environment is None
        or not isinstance(planned.plan, EnvironmentPlan)
    ):
        broken = InputError(
            path="team.environment",
            must="be an environment whose stack file has no errors",
            got=team.environment,
            fix=f"run make check STACK={team.environment}, and correct what it names",
        )
        return Planned(plan=None, errors=(*reading.errors, broken))
    environment = _sized(base.config.region, base.config.environment)
    read, wrong = read_manifests(
        "team.jobs", manifests(team.jobs), environment, team.namespace, folder
    )
    jobs = _Jobs(folder, read)
    access = access_plan(config.region, config.aws, environment.cluster.deployer_role_arn)
    errors = (
        *reading.errors,
        *team_access_errors(access, config.aws),
        *team_errors(config.region, team, base.config, reading.skipped),
        *share_errors(team, jobs.described(team.jobs), environment),
        *_file_errors("team.jobs", team.jobs, folder),
        *wrong,
    )
    if errors:
        return Planned(plan=None, errors=errors)
    return Planned(
        plan=_team(config, environment, planned.plan, access, jobs),
        errors=(),
        warnings=(
            *access_warnings(access),
            *job_warnings(typed(team.jobs), environment, config.region, "team.jobs"),
            *(n for m in read.values() for n in m.warnings),
        ),
    )


def _environment_of(stack: str, folder: Path) -> Reading | InputError:
    """The stack file of a team's environment."""
    path = "team.environment"
    try:
        base = read_file(stack, folder)
    except FileNotFoundError:
        return InputError(
            path=path,
            must="be a stack with a stack file in this checkout",
            got=stack,
            **_other_environment(folder),
        )
    if base.config and base.config.team:
        return InputError(
            path=path,
            must="be an environment, not a team",
            got=stack,
            **_other_environment(folder, base.config.team.environment),
        )
    return base


def _other_environment(folder: Path, first: str = "") -> dict[str, Any]:
    """`fix` and `write` of an error that proposes an environment of the checkout. `first`: the one
    that is likeliest."""
    known = environments(folder)
    known = [first, *known] if first in known else known
    if not known:
        return {"fix": "write the stack file of the environment first: Pulumi.dev.yaml"}
    return {"fix": f"write {' or '.join(dict.fromkeys(known))}", "write": known[0]}


def zone_cidrs(cidr: str, zones: tuple[str, ...]) -> tuple[ZonePlan, ...]:
    """Divide the VPC into eighths: one for the private subnet of each of zones a to f, the last for
    public ones.

    A zone's ranges follow from its own letter, so another training zone moves no subnet. A private
    subnet of a /16 has 8,192 addresses, a public one 256.
    """
    eighths = list(ipaddress.ip_network(cidr).subnets(prefixlen_diff=3))
    public = list(eighths[7].subnets(prefixlen_diff=5))
    place = {zone: ord(zone[-1]) - ord("a") for zone in zones}
    return tuple(
        ZonePlan(
            name=zone,
            letter=zone[-1],
            public_cidr=str(public[place[zone]]),
            private_cidr=str(eighths[place[zone]]),
        )
        for zone in zones
    )


def _sized(region: str, wanted: EnvironmentConfig) -> EnvironmentConfig:
    """The environment with every store's size decided."""
    kinds = first_types(wanted)
    return replace(
        wanted,
        storage={name: sized(store, region, kinds) for name, store in wanted.storage.items()},
    )


@dataclass(frozen=True)
class _Jobs:
    """What jobs consist of beside their settings."""

    folder: Path
    """Where the files lie that they bring."""
    read: Mapping[str, Manifest]
    """Those that are files themselves."""

    def planned(
        self, jobs: Mapping[str, AnyJob], environment: EnvironmentConfig, namespace: str
    ) -> dict[str, JobPlan]:
        runtimes = {runtime.name: runtime for runtime in runtime_plans(environment)}
        made = {
            name: manifest_plan(job, self.read[name], namespace, runtimes)
            for name, job in manifests(jobs).items()
        }
        made |= {
            name: job_plan(name, job, environment, namespace, self.folder, runtimes)
            for name, job in typed(jobs).items()
        }
        return {name: made[name] for name in jobs}

    def described(self, jobs: Mapping[str, AnyJob]) -> dict[str, JobConfig]:
        """All of them in the words of settings, as far as capacity goes."""
        return typed(jobs) | {
            name: stand_in(job, self.read[name])
            for name, job in manifests(jobs).items()
            if name in self.read
        }


def _file_errors(at: str, jobs: Mapping[str, AnyJob], folder: Path) -> Iterator[InputError]:
    for name, job in typed(jobs).items():
        yield from file_errors(f"{at}.{name}", job, folder)


def _environment(
    config: StackConfig,
    wanted: EnvironmentConfig,
    access: AccessPlan,
    zones: tuple[str, ...],
    given: _Jobs,
) -> EnvironmentPlan:
    me = Identity(
        project=config.project,
        stack=config.stack,
        region=config.region,
        extra_tags=tuple(sorted(wanted.tags.items())),
    )
    cluster_name = me.name(
        "cluster", wanted.network.cidr, *sorted(zones)
    )  # EKS never leaves the zones it began in
    efa_lustre = any(store.lustre and store.lustre.efa for store in wanted.storage.values())
    # Karpenter makes the nodes, which the AWS provider does not tag.
    nodes = replace(
        me, extra_tags=tuple(sorted({**dict(access.default_tags), **wanted.tags}.items()))
    )
    used = {job.pool for job in wanted.jobs.values()}
    pools = {
        name: pool_plan(
            nodes, name, pool, wanted.zone, efa_lustre=efa_lustre, has_jobs=name in used
        )
        for name, pool in wanted.pools.items()
    }
    runtimes = runtime_plans(wanted)
    jobs = typed(wanted.jobs)
    claims = tuple(
        _claim(wanted.namespace, name, store, wanted.zone) for name, store in wanted.storage.items()
    )
    return EnvironmentPlan(
        identity=me,
        access=access,
        zone=wanted.zone,
        network=NetworkPlan(
            identity=me,
            cidr=wanted.network.cidr,
            cluster_name=cluster_name,
            zones=zone_cidrs(wanted.network.cidr, zones),
        ),
        lustre=lustre_plans(me, wanted.storage),
        efs=efs_plans(me, wanted.storage, mount_zones(zones, wanted.pools)),
        registries={
            name: RegistryPlan(identity=me, name=f"{config.stack}/{name}", keep=each.data == "keep")
            for name, each in wanted.registries.items()
        },
        cluster=ClusterPlan(
            identity=me,
            name=cluster_name,
            version=wanted.cluster.version,
            service_cidr=_service_cidr(wanted),
            public=wanted.cluster.endpoint != "private",
            public_access_cidrs=wanted.cluster.public_access_cidrs,
            admins=tuple((name, admin.role_arn) for name, admin in wanted.cluster.admins.items()),
            access=access,
        ),
        add_ons=_add_ons(me, wanted),
        system_nodes=SystemNodesPlan(
            identity=me,
            name=me.name("system", wanted.system_nodes.instance_type),
            role_name=me.name("system-nodes"),
            instance_type=wanted.system_nodes.instance_type,
            nodes=wanted.system_nodes.nodes,
        ),
        gpu_nodes=GpuNodesPlan(
            identity=me, role_name=me.name("gpu-nodes"), profile_name=me.name("gpu-nodes")
        ),
        karpenter=KarpenterPlan(
            identity=me,
            cluster_name=cluster_name,
            role_name=me.name("karpenter"),
            queue_name=me.name("interruptions"),
            static_capacity=any(pool.replicas for pool in wanted.pools.values()),
            dry_run=wanted.karpenter.dry_run,
            crds=_chart("karpenter-crd", wanted.artifacts),
            controller=_chart("karpenter", wanted.artifacts),
        ),
        pools=pools,
        device_plugins=DevicePluginsPlan(
            nvidia=_chart("nvidia-device-plugin", wanted.artifacts),
            efa_image=versions.EFA_DEVICE_PLUGIN_IMAGE,
            efa_instance_types=tuple(
                sorted({t.instance_type for p in pools.values() for t in p.types if t.efa})
            ),
        ),
        trainer=TrainerPlan(
            version=wanted.trainer.version,
            image_tag=versions.TRAINERS[wanted.trainer.version],
            chart=_chart("kubeflow-trainer", wanted.artifacts, wanted.trainer.version),
            crds=ChartPlan(chart=TRAINER_CRDS.format(version=wanted.trainer.version)),
        ),
        runtimes=runtimes,
        training_operators=(
            {
                "PyTorchJob": TrainingOperatorPlan(
                    version=wanted.training_operator.version, chart=CHARTS["training-operator"]
                )
            }
            if wanted.training_operator
            else {}
        ),
        priorities=dict(sorted(wanted.priorities.items())),
        workspace=WorkspacePlan(
            namespace=wanted.namespace, claims=claims, host_paths=_host_paths(jobs)
        ),
        jobs=given.planned(wanted.jobs, wanted, wanted.namespace),
        capacity={
            name: pool_use(name, pool, wanted.zone, given.described(wanted.jobs))
            for name, pool in wanted.pools.items()
        },
        checkpoints=_verdicts(jobs, wanted, config.region),
        contract=_contract(config.region, wanted, pools, runtimes),
    )


def _team(
    config: StackConfig,
    environment: EnvironmentConfig,
    base: EnvironmentPlan,
    access: AccessPlan,
    given: _Jobs,
) -> TeamPlan:
    team = config.team
    assert team is not None  # plan_team has looked
    jobs = typed(team.jobs)
    made = given.planned(team.jobs, environment, team.namespace)
    used = {store for job in made.values() for store in job.stores}
    claims = tuple(
        _claim(team.namespace, name, store, environment.zone)
        for name, store in environment.storage.items()
        if name in used
    )
    return TeamPlan(
        identity=Identity(project=config.project, stack=config.stack, region=config.region),
        environment=team.environment,
        contract=base.contract,
        access=access,
        workspace=WorkspacePlan(
            namespace=team.namespace,
            claims=claims,
            max_gpus=team.max_gpus,
            host_paths=_host_paths(jobs),
        ),
        jobs=made,
        checkpoints=_verdicts(jobs, environment, config.region),
    )


def _host_paths(jobs: Mapping[str, JobConfig]) -> bool:
    return any(job.host_paths for job in jobs.values())


def _zones(region: str, wanted: EnvironmentConfig) -> tuple[str, ...]:
    """The zones of the network, the training zone first; the others in the order of their names,
    however the stack file lists them."""
    listed = wanted.network.zones or zone_names(region)
    others = sorted({*listed} - {wanted.zone})
    return (wanted.zone, *(others if wanted.network.zones else others[: ZONES - 1]))


def _service_cidr(wanted: EnvironmentConfig) -> str:
    """One of the two ranges EKS itself chooses from: the one that does not touch the VPC."""
    vpc = ipaddress.ip_network(wanted.network.cidr)
    return next(
        c for c in ("172.20.0.0/16", "10.100.0.0/16") if not vpc.overlaps(ipaddress.ip_network(c))
    )


def _add_ons(me: Identity, wanted: EnvironmentConfig) -> AddOnsPlan:
    published = versions.KUBERNETES[wanted.cluster.version]
    drivers = [
        driver.add_on
        for kind, driver in DRIVERS.items()
        if any(getattr(store, kind) for store in wanted.storage.values())
    ]
    return AddOnsPlan(
        identity=me,
        before_nodes=(
            AddOnPlan(
                name="vpc-cni",
                version=published["vpc-cni"],
                configuration=json.dumps(
                    {"env": {name: str(value) for name, value in CNI.items()}}, sort_keys=True
                ),
            ),
            *(
                AddOnPlan(name=n, version=published[n])
                for n in ("kube-proxy", "eks-pod-identity-agent")
            ),
        ),
        after_nodes=tuple(AddOnPlan(name=n, version=published[n]) for n in ("coredns", *drivers)),
    )


def _chart(name: str, artifacts: ArtifactsConfig | None, version: str | None = None) -> ChartPlan:
    public = CHARTS[name]
    if artifacts is None:
        return ChartPlan(
            chart=public.chart, version=version or public.version, repository=public.repository
        )
    if artifacts.charts.startswith("oci://"):
        return ChartPlan(
            chart=f"{artifacts.charts.rstrip('/')}/{name}", version=version or public.version
        )
    # A folder holds one version of a chart, but of charts whose version a stack chooses.
    return ChartPlan(
        chart=f"{artifacts.charts.rstrip('/')}/{name}{f'-{version}' if version else ''}"
    )


def _claim(namespace: str, name: str, store: StoreConfig, zone: str) -> ClaimPlan:
    claim = claim_name(name, store, zone)
    if store.lustre:
        return ClaimPlan(
            store=name,
            kind="lustre",
            name=claim,
            volume_name=f"{namespace}-{claim}",
            capacity=f"{store.lustre.capacity_gib}Gi",
        )
    # EFS grows by itself and ignores the figure, but a PersistentVolume must state one.
    return ClaimPlan(
        store=name, kind="efs", name=claim, volume_name=f"{namespace}-{claim}", capacity="1024Gi"
    )


def _verdicts(
    jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str
) -> dict[str, Verdict]:
    found = {name: job_verdict(job, environment, region) for name, job in jobs.items()}
    return {name: verdict for name, verdict in found.items() if verdict}


def _contract(
    region: str,
    wanted: EnvironmentConfig,
    pools: Mapping[str, GpuPoolPlan],
    runtimes: tuple[RuntimePlan, ...],
) -> dict[str, Any]:
    promised = {
        "version": 1,
        "region": region,
        "zone": wanted.zone,
        "trainer": wanted.trainer.version,
        "pools": {
            name: {
                "instance_types": [t.instance_type for t in p.types],
                "max_nodes": p.max_nodes,
                "capacity": wanted.pools[name].capacity,
            }
            for name, p in pools.items()
        },
        "storage": {
            name: "lustre" if store.lustre else "efs" for name, store in wanted.storage.items()
        },
        "runtimes": [r.name for r in runtimes],
    }
    return {**promised, "digest": digest(promised)}
