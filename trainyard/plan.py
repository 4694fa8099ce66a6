"""Result of a stack file: the plan of an environment or of a team, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.derive.model_memory.fit import Fit
from trainyard.derive.pools import PoolUse
from trainyard.objects.queues.queues import QueuesPlan
from trainyard.objects.teams.team_identity import TeamIdentityPlan
from trainyard.objects.teams.teams import TeamEntryPlan
from trainyard.parts.parts import part_types
from trainyard.plans.access import AccessPlan, Entrant
from trainyard.plans.clusters import (
    AddOnsPlan,
    AnyClusterPlan,
    ExistingClusterPlan,
    OwnClusterPlan,
    own_log_days,
)
from trainyard.plans.controllers import (
    DevicePluginsPlan,
    KarpenterPlan,
    TrainerPlan,
    TrainingOperatorPlan,
)
from trainyard.plans.identity import Identity
from trainyard.plans.images import Copy, RegistryPlan
from trainyard.plans.jobs import JobNamespacePlan, JobPlan, RuntimePlan
from trainyard.plans.networks import AnyNetworkPlan, OwnNetworkPlan, has_flow_logs
from trainyard.plans.pools import GpuNodesPlan, GpuPoolPlan
from trainyard.plans.stores import ExistingStorePlan, StorePlan
from trainyard.plans.system_nodes import SystemNodesPlan
from trainyard.problems import InputError, InputWarning, Refused
from trainyard.settings.reading.yaml_file import Lines
from trainyard.stores.goodput import Verdict

LOG_GROUP = "aws:cloudwatch/logGroup:LogGroup"


@dataclass(frozen=True, kw_only=True)
class EnvironmentPlan:
    """A whole environment, decided."""

    identity: Identity
    access: AccessPlan
    zone: str
    network: AnyNetworkPlan
    stores: Mapping[str, StorePlan]
    registries: Mapping[str, RegistryPlan]
    cluster: AnyClusterPlan
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
    workspace: JobNamespacePlan
    job_pods: TeamIdentityPlan | None
    """Rights of the environment's own jobs in AWS; None: they have no identity there."""
    directory_roots: JobNamespacePlan | None
    """Namespace of the pods that make directories of teams on Lustre."""
    queues: QueuesPlan | None
    parts: Mapping[str, Any]
    """Name of each optional part → its plan; None where the environment does without it. The class of
    a part gives it with its type, as `METRICS.of(plan)`."""
    teams: Mapping[str, TeamEntryPlan]
    """Teams that the environment lists."""
    entrants: tuple[Entrant, ...]
    """Roles that enter the cluster."""
    jobs: Mapping[str, JobPlan]
    allow_replace: tuple[str, ...]
    """Resources that an update can replace, as trainyard/replacing/replacing.py calls them."""
    capacity: Mapping[str, PoolUse]
    checkpoints: Mapping[str, Verdict]
    """Effects of stores on checkpoints, for each job that states the size of its model."""
    fits: Mapping[str, Fit]
    """Memory of the model of each job, where settings or script say it."""
    contract: Mapping[str, Any]
    """Promises to teams: plain, versioned, without secrets and without ids that AWS gives."""
    copies: tuple[Copy, ...] = ()
    """Images that nodes pull from a registry of the account; empty where they pull from any."""
    prices: OwnPrices = LIST
    """Prices that its dollars are counted at."""

    @property
    def own_network(self) -> bool:
        """True where the stack makes its network."""
        return isinstance(self.network, OwnNetworkPlan)

    @property
    def leads_out(self) -> bool:
        """True where the stack makes NAT gateways."""
        return isinstance(self.network, OwnNetworkPlan) and bool(self.network.ways_out)

    @property
    def has_log_groups(self) -> bool:
        """True where the stack makes groups of CloudWatch Logs."""
        of_aws = own_log_days(self.cluster) is not None or has_flow_logs(self.network)
        return of_aws or LOG_GROUP in part_types(self)

    @property
    def existing(self) -> tuple[str, ...]:
        """Settings that name existing resources, which a preview looks up in the account."""
        return (
            *(["environment.network.vpc_id"] if not self.own_network else []),
            *(
                ["environment.cluster.name"]
                if isinstance(self.cluster, ExistingClusterPlan)
                else []
            ),
            *(store.path for store in self.stores.values() if isinstance(store, ExistingStorePlan)),
        )

    @property
    def own_cluster(self) -> bool:
        """True where the stack makes its cluster, and pays the control plane."""
        return isinstance(self.cluster, OwnClusterPlan)


@dataclass(frozen=True, kw_only=True)
class TeamPlan:
    """A team's share of an environment, decided."""

    identity: Identity
    environment: str
    """Name of the stack to refer to."""
    contract: Mapping[str, Any]
    """Promises of the environment's stack file; compared with what is deployed."""
    parameter: str | None
    """SSM parameter with the deployed contract of a team that the environment lists: its namespace
    exists then. None: the stack reads the environment's outputs and makes its namespace itself."""
    access: AccessPlan
    leads_out: bool
    """The environment makes NAT gateways, and pays their data."""
    workspace: JobNamespacePlan
    jobs: Mapping[str, JobPlan]
    capacity: Mapping[str, PoolUse]
    """Pools of the environment, each with the team's own jobs."""
    at_once: Mapping[str, int]
    """job → how many of its size run at once within the team's quota, when nothing else runs."""
    checkpoints: Mapping[str, Verdict]
    fits: Mapping[str, Fit]
    copies: tuple[Copy, ...] = ()
    """As of an environment."""
    prices: OwnPrices = LIST
    """Prices of its environment, which its dollars are counted at."""


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A plan, or the reasons why there is none."""

    plan: EnvironmentPlan | TeamPlan | None
    errors: tuple[InputError, ...]
    warnings: tuple[InputWarning, ...] = ()
    starts: tuple[str, ...] = ()
    """Jobs of which the update starts a run, once it is compared with what is deployed."""

    def accepted(self) -> EnvironmentPlan | TeamPlan:
        """The plan; raises Refused with every error where there are any."""
        if self.plan is None or self.errors:
            raise Refused(self.errors)
        return self.plan

    def located(self, lines: Lines) -> Planned:
        """Result with the place of each problem in the stack file."""
        return replace(
            self,
            errors=tuple(map(lines.locate, self.errors)),
            warnings=tuple(map(lines.locate, self.warnings)),
        )
