"""From what is wanted to what will be built: every derived fact, decided once, without the engine.

`plan_environment` and `plan_team` return the plan together with every fault (rules.py) and every notice. A stack file
with faults has no plan.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from catalog import fabric, versions
from catalog.zones import zone_names
from components.plans import (
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
    KarpenterPlan,
    LustrePlan,
    NetworkPlan,
    RuntimePlan,
    SystemNodesPlan,
    TrainerPlan,
    TrainJobPlan,
    WorkspacePlan,
    ZonePlan,
    digest,
)
from components.trainer_objects import pod_jobs, resilient_torch, train_job_spec, upstream_runtimes
from components.training import Mount, Training
from stacks import rules
from stacks.capacity import CNI, TYPES, PoolUse, node_selector, pool_plan, pool_use, resources
from stacks.config import Reading, read_file
from stacks.faults import Fault, Notice, Refused
from stacks.goodput import Verdict
from stacks.job_rules import job_notices
from stacks.settings import ArtifactsConfig, EnvironmentConfig, JobConfig, StackConfig, StoreConfig
from stacks.storage import job_verdict, sized

ZONES = 3
"""Zones of the network, the training zone among them; EKS wants two, three keep the system nodes up when one fails."""
CHECKPOINTS = "/checkpoints"
"""Where a job finds its checkpoint directory, whatever store it lies on."""

CHARTS: dict[str, ChartPlan] = {
    "karpenter-crd": ChartPlan(chart="oci://public.ecr.aws/karpenter/karpenter-crd", version=versions.KARPENTER),
    "karpenter": ChartPlan(chart="oci://public.ecr.aws/karpenter/karpenter", version=versions.KARPENTER),
    "nvidia-device-plugin": ChartPlan(chart="nvidia-device-plugin", version=versions.NVIDIA_DEVICE_PLUGIN,
                                      repository="https://nvidia.github.io/k8s-device-plugin"),
    "kubeflow-trainer": ChartPlan(chart="oci://ghcr.io/kubeflow/charts/kubeflow-trainer"),
}


@dataclass(frozen=True, kw_only=True)
class EnvironmentPlan:
    """A whole environment, decided."""

    identity: Identity
    zone: str
    network: NetworkPlan
    lustre: Mapping[str, LustrePlan]
    efs: Mapping[str, EfsPlan]
    cluster: ClusterPlan
    add_ons: AddOnsPlan
    system_nodes: SystemNodesPlan
    gpu_nodes: GpuNodesPlan
    karpenter: KarpenterPlan
    pools: Mapping[str, GpuPoolPlan]
    device_plugins: DevicePluginsPlan
    trainer: TrainerPlan
    runtimes: tuple[RuntimePlan, ...]
    workspace: WorkspacePlan
    jobs: Mapping[str, TrainJobPlan]
    capacity: Mapping[str, PoolUse]
    checkpoints: Mapping[str, Verdict]
    """Of the jobs that say how large their model is."""
    contract: Mapping[str, Any]
    """What teams may rely on: plain, versioned, without a secret and without an id that AWS gives."""


@dataclass(frozen=True, kw_only=True)
class TeamPlan:
    """A team's share of an environment, decided."""

    identity: Identity
    environment: str
    """Name of the stack to refer to."""
    contract: Mapping[str, Any]
    """What the environment's stack file in this checkout promises; compared with what is deployed."""
    deployer_role_arn: str | None
    workspace: WorkspacePlan
    jobs: Mapping[str, TrainJobPlan]
    checkpoints: Mapping[str, Verdict]


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan, or the reasons why there is none."""

    plan: EnvironmentPlan | TeamPlan | None
    faults: tuple[Fault, ...]
    notices: tuple[Notice, ...] = ()

    def accepted(self) -> EnvironmentPlan | TeamPlan:
        """The plan; raises Refused with every fault where there are any."""
        if self.plan is None or self.faults:
            raise Refused(self.faults)
        return self.plan


def plan_stack(reading: Reading, folder: Path = Path("."), now: datetime | None = None) -> Planned:
    """Plan whatever the stack file describes. `folder` holds the stack files a team refers to; `now` decides which
    reservations are over, and nothing else."""
    config, now = reading.config, now or datetime.now(UTC)
    if config is None:
        return Planned(plan=None, faults=reading.faults)
    if config.team is not None:
        return plan_team(config, reading, folder, now)
    return plan_environment(config, reading, now)


def plan_environment(config: StackConfig, reading: Reading, now: datetime) -> Planned:
    """Plan an environment; a plan is only made where nothing is refused."""
    wanted = config.environment
    if wanted is None:
        return Planned(plan=None, faults=reading.faults)
    zones = _zones(config.region, wanted.zone)
    faults = (*reading.faults, *rules.environment_faults(config.region, wanted, zones, reading.set_aside, now))
    notices = tuple(rules.environment_notices(config.region, wanted, now))
    return Planned(plan=None if faults else _environment(config, _sized(config.region, wanted), zones), faults=faults,
                   notices=notices)


def plan_team(config: StackConfig, reading: Reading, folder: Path, now: datetime) -> Planned:
    """Plan a team from its stack file and its environment's, without a cluster."""
    team = config.team
    if team is None:
        return Planned(plan=None, faults=reading.faults)
    try:
        base = read_file(team.environment, folder)
    except FileNotFoundError:
        missing = Fault(path="team.environment", rule="names an environment's stack file", value=team.environment,
                        way_out=f"no Pulumi.{team.environment}.yaml in this checkout")
        return Planned(plan=None, faults=(*reading.faults, missing))
    planned = plan_environment(base.config, base, now) if base.config else Planned(plan=None, faults=base.faults)
    if base.config is None or base.config.environment is None or not isinstance(planned.plan, EnvironmentPlan):
        broken = Fault(path="team.environment", rule="needs an environment without faults", value=team.environment,
                       way_out=f"make check STACK={team.environment}")
        return Planned(plan=None, faults=(*reading.faults, broken))
    faults = (*reading.faults, *rules.team_faults(config.region, team, base.config, reading.set_aside))
    if faults:
        return Planned(plan=None, faults=faults)
    environment = _sized(base.config.region, base.config.environment)
    return Planned(plan=_team(config, environment, planned.plan), faults=(),
                   notices=tuple(job_notices(team.jobs, environment, config.region, "team.jobs")))


def zone_cidrs(cidr: str, zones: tuple[str, ...]) -> tuple[ZonePlan, ...]:
    """Divide the VPC into eighths: one for the private subnet of each of zones a to f, the last for public ones.

    A zone's ranges follow from its own letter, so another training zone moves no subnet. A private subnet of a /16 has
    8,192 addresses, a public one 256.
    """
    eighths = list(ipaddress.ip_network(cidr).subnets(prefixlen_diff=3))
    public = list(eighths[7].subnets(prefixlen_diff=5))
    place = {zone: ord(zone[-1]) - ord("a") for zone in zones}
    return tuple(ZonePlan(name=zone, letter=zone[-1], public_cidr=str(public[place[zone]]),
                          private_cidr=str(eighths[place[zone]])) for zone in zones)


def _sized(region: str, wanted: EnvironmentConfig) -> EnvironmentConfig:
    """The environment with every store's size decided."""
    kinds = rules.first_types(wanted) or [""]
    return replace(wanted, storage={name: sized(store, region, kinds[0]) for name, store in wanted.storage.items()})


def _environment(config: StackConfig, wanted: EnvironmentConfig, zones: tuple[str, ...]) -> EnvironmentPlan:
    me = Identity(project=config.project, stack=config.stack, region=config.region,
                  extra_tags=tuple(sorted(wanted.tags.items())))
    cluster_name = me.name("cluster", wanted.network.cidr, *sorted(zones))  # EKS never leaves the zones it began in
    pools = {name: pool_plan(me, name, pool, wanted.zone) for name, pool in wanted.pools.items()}
    runtimes = _runtimes(wanted)
    claims = tuple(_claim(wanted.namespace, name, store, wanted.zone) for name, store in wanted.storage.items())
    return EnvironmentPlan(
        identity=me,
        zone=wanted.zone,
        network=NetworkPlan(identity=me, cidr=wanted.network.cidr, cluster_name=cluster_name,
                            zones=zone_cidrs(wanted.network.cidr, zones)),
        lustre={name: LustrePlan(identity=me, capacity_gib=s.lustre.capacity_gib, deployment=s.lustre.deployment,
                                 version=versions.LUSTRE,
                                 throughput_mbps_per_tib=s.lustre.throughput_mbps_per_tib,
                                 backup_days=s.lustre.backup_days, keep=s.data == "keep")
                for name, s in wanted.storage.items() if s.lustre and s.lustre.capacity_gib},
        efs={name: EfsPlan(identity=me, keep=s.data == "keep") for name, s in wanted.storage.items() if s.efs},
        cluster=ClusterPlan(
            identity=me, name=cluster_name, version=wanted.cluster.version, service_cidr=_service_cidr(wanted),
            public=wanted.cluster.endpoint != "private", public_access_cidrs=wanted.cluster.public_access_cidrs,
            admins=tuple((name, admin.role_arn) for name, admin in wanted.cluster.admins.items()),
            deployer_role_arn=wanted.cluster.deployer_role_arn),
        add_ons=_add_ons(me, wanted),
        system_nodes=SystemNodesPlan(
            identity=me, name=me.name("system", wanted.system_nodes.instance_type), role_name=me.name("system-nodes"),
            instance_type=wanted.system_nodes.instance_type, nodes=wanted.system_nodes.nodes),
        gpu_nodes=GpuNodesPlan(identity=me, role_name=me.name("gpu-nodes"), profile_name=me.name("gpu-nodes")),
        karpenter=KarpenterPlan(
            identity=me, cluster_name=cluster_name, role_name=me.name("karpenter"),
            queue_name=me.name("interruptions"),
            static_capacity=any(pool.replicas for pool in wanted.pools.values()),
            crds=_chart("karpenter-crd", wanted.artifacts), controller=_chart("karpenter", wanted.artifacts)),
        pools=pools,
        device_plugins=DevicePluginsPlan(
            nvidia=_chart("nvidia-device-plugin", wanted.artifacts), efa_image=versions.EFA_DEVICE_PLUGIN_IMAGE,
            efa_instance_types=tuple(sorted({t.instance_type for p in pools.values() for t in p.types if t.efa}))),
        trainer=TrainerPlan(version=wanted.trainer.version, image_tag=versions.TRAINERS[wanted.trainer.version],
                            chart=_chart("kubeflow-trainer", wanted.artifacts, wanted.trainer.version)),
        runtimes=runtimes,
        workspace=WorkspacePlan(namespace=wanted.namespace, claims=claims),
        jobs={name: _job(name, job, wanted, wanted.namespace) for name, job in wanted.jobs.items()},
        capacity={name: pool_use(name, pool, wanted.zone, wanted.jobs) for name, pool in wanted.pools.items()},
        checkpoints=_verdicts(wanted.jobs, wanted, config.region),
        contract=_contract(config.region, wanted, pools, runtimes),
    )


def _team(config: StackConfig, environment: EnvironmentConfig, base: EnvironmentPlan) -> TeamPlan:
    team = config.team
    assert team is not None  # plan_team has looked
    used = {store for job in team.jobs.values() for store in _stores(job)}
    claims = tuple(_claim(team.namespace, name, store, environment.zone)
                   for name, store in environment.storage.items() if name in used)
    return TeamPlan(
        identity=Identity(project=config.project, stack=config.stack, region=config.region),
        environment=team.environment,
        contract=base.contract,
        deployer_role_arn=base.cluster.deployer_role_arn,
        workspace=WorkspacePlan(namespace=team.namespace, claims=claims, max_gpus=team.max_gpus),
        jobs={name: _job(name, job, environment, team.namespace) for name, job in team.jobs.items()},
        checkpoints=_verdicts(team.jobs, environment, config.region),
    )


def _zones(region: str, training: str) -> tuple[str, ...]:
    others = [zone for zone in zone_names(region) if zone != training]
    return (training, *others[: ZONES - 1])


def _service_cidr(wanted: EnvironmentConfig) -> str:
    """One of the two ranges EKS itself chooses from: the one that does not touch the VPC."""
    vpc = ipaddress.ip_network(wanted.network.cidr)
    return next(c for c in ("172.20.0.0/16", "10.100.0.0/16") if not vpc.overlaps(ipaddress.ip_network(c)))


def _add_ons(me: Identity, wanted: EnvironmentConfig) -> AddOnsPlan:
    published = versions.KUBERNETES[wanted.cluster.version]
    drivers = [name for name, used in (("aws-fsx-csi-driver", any(s.lustre for s in wanted.storage.values())),
                                       ("aws-efs-csi-driver", any(s.efs for s in wanted.storage.values()))) if used]
    return AddOnsPlan(
        identity=me,
        before_nodes=(
            AddOnPlan(name="vpc-cni", version=published["vpc-cni"], configuration=json.dumps(
                {"env": {name: str(value) for name, value in CNI.items()}}, sort_keys=True)),
            *(AddOnPlan(name=n, version=published[n]) for n in ("kube-proxy", "eks-pod-identity-agent"))),
        after_nodes=tuple(AddOnPlan(name=n, version=published[n]) for n in ("coredns", *drivers)),
    )


def _chart(name: str, artifacts: ArtifactsConfig | None, version: str | None = None) -> ChartPlan:
    public = CHARTS[name]
    if artifacts is None:
        return ChartPlan(chart=public.chart, version=version or public.version, repository=public.repository)
    if artifacts.charts.startswith("oci://"):
        return ChartPlan(chart=f"{artifacts.charts.rstrip('/')}/{name}", version=version or public.version)
    return ChartPlan(chart=f"{artifacts.charts.rstrip('/')}/{name}")


def _runtimes(wanted: EnvironmentConfig) -> tuple[RuntimePlan, ...]:
    shipped = upstream_runtimes(wanted.trainer.version)
    upstream = [RuntimePlan(name=name, framework=shipped[name][0], spec=shipped[name][1])
                for name in wanted.trainer.runtimes]
    own = [RuntimePlan(name=name, framework="torch",
                       spec=resilient_torch(wanted.trainer.version, own.image, own.max_restarts))
           for name, own in wanted.trainer.own_runtimes.items()]
    return (*upstream, *own)


def _claim(namespace: str, name: str, store: StoreConfig, zone: str) -> ClaimPlan:
    claim = _claim_name(name, store, zone)
    if store.lustre:
        return ClaimPlan(store=name, kind="lustre", name=claim, volume_name=f"{namespace}-{claim}",
                         capacity=f"{store.lustre.capacity_gib}Gi")
    # EFS grows by itself and ignores the figure, but a PersistentVolume must state one.
    return ClaimPlan(store=name, kind="efs", name=claim, volume_name=f"{namespace}-{claim}", capacity="1024Gi")


def _claim_name(name: str, store: StoreConfig, zone: str) -> str:
    """Another where FSx would make another file system: jobs move to a new claim and nothing waits for the old one."""
    made = ["lustre", zone, store.lustre.deployment] if store.lustre else ["efs"]
    return f"{name}-{digest(made)[:8]}"


def _job(name: str, job: JobConfig, environment: EnvironmentConfig, namespace: str) -> TrainJobPlan:
    kind = TYPES[environment.pools[job.pool].instance_types[0]]
    env = fabric.environment(kind, job.nodes) | job.env
    claims = {name: _claim_name(name, store, environment.zone) for name, store in environment.storage.items()}
    mounts = [Mount(store=store, claim=claims[store], path=mount.path) for store, mount in sorted(job.storage.items())]
    if job.checkpoints and job.checkpoints.store in job.storage:
        # A pod mounts a claim once: the TrainJob CRD keys mounts by volume, and with a second volume of the same claim
        # kubelet up to 1.34 never starts the pod (kubernetes#122140).
        mounted_at = job.storage[job.checkpoints.store].path.rstrip("/")
        env["CHECKPOINT_DIR"] = f"{mounted_at}/{job.checkpoints.directory}"
    elif job.checkpoints:
        store = job.checkpoints.store
        mounts.append(Mount(store=store, claim=claims[store], path=CHECKPOINTS, directory=job.checkpoints.directory))
        env["CHECKPOINT_DIR"] = CHECKPOINTS
    spec = train_job_spec(environment.trainer.version, job.runtime, Training(
        image=job.image, command=_command(job), nodes=job.nodes,
        processes_per_node=job.processes_per_node,
        resources=resources(job, kind), node_selector=node_selector(job, environment),
        # Sorted, as the engine hands settings over: another order in the file is not another run.
        env=env, mounts=tuple(mounts), shared_memory_gib=job.shared_memory_gib),
        jobs=next(pod_jobs(each.spec) for each in _runtimes(environment) if each.name == job.runtime))
    return TrainJobPlan(name=name, namespace=namespace, runtime=job.runtime, pool=job.pool,
                        stores=_stores(job), spec=spec, expected_hours=job.expected_hours,
                        run=f"{digest(spec)[:12]}-{job.run}")


def _verdicts(jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str) -> dict[str, Verdict]:
    found = {name: job_verdict(job, environment, region) for name, job in jobs.items()}
    return {name: verdict for name, verdict in found.items() if verdict}


def _stores(job: JobConfig) -> tuple[str, ...]:
    """The stores a job mounts."""
    return tuple(sorted({*job.storage, *([job.checkpoints.store] if job.checkpoints else [])}))


def _command(job: JobConfig) -> tuple[str, ...]:
    if job.script is None:
        return job.command
    # A failed clone or pip must fail the pod, not end in a torchrun without its script.
    return ("/bin/bash", "-c", f"set -euo pipefail\n{job.script}")


def _contract(region: str, wanted: EnvironmentConfig, pools: Mapping[str, GpuPoolPlan],
              runtimes: tuple[RuntimePlan, ...]) -> dict[str, Any]:
    promised = {
        "version": 1,
        "region": region,
        "zone": wanted.zone,
        "trainer": wanted.trainer.version,
        "pools": {name: {"instance_types": [t.instance_type for t in p.types], "max_nodes": p.max_nodes,
                         "capacity": wanted.pools[name].capacity} for name, p in pools.items()},
        "storage": {name: "lustre" if store.lustre else "efs" for name, store in wanted.storage.items()},
        "runtimes": [r.name for r in runtimes],
    }
    return {**promised, "digest": digest(promised)}
