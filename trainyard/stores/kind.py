"""A kind of store: one class with everything in which one kind differs from another.

A kind is asked with its settings, which a stack file states, or with its plan, which follows from
them. The table of kinds: kinds.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from trainyard.catalog.aws.service_roles import ServiceRole
from trainyard.catalog.aws.storage import Driver
from trainyard.existing.bucket_faults import BucketUse
from trainyard.objects.iam.policies import Document, OptionalService
from trainyard.plans.identity import Identity
from trainyard.plans.stores import StorePlan
from trainyard.plans.unchangeable import Fixed, Output
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import PoolConfig
from trainyard.stores.acts import Row
from trainyard.stores.figures import FixedCost, Stage, StoreRow, UsageCost
from trainyard.stores.goodput import CheckpointStore

Settings = TypeVar("Settings")
Plan = TypeVar("Plan", bound=StorePlan)
Pools = Mapping[str, PoolConfig]


@dataclass(frozen=True, kw_only=True)
class Shown:
    """A part of an S3 bucket whose objects are files of a store."""

    bucket: str
    """Pattern of its name."""
    prefix: str
    """Beginning of the keys, up to a slash; '' for all."""
    path: str
    """Directory of the files, from the root of the store."""


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """Facts that a store is judged by, beside its own settings."""

    region: str
    pools: Pools
    """All of the environment; empty where they are not known."""
    instance_types: Sequence[str]
    """The first type of each pool, those with the most GPUs first."""
    key: str | None = None
    """`environment.kms_key_arn`."""


class StoreKind(ABC, Generic[Settings, Plan]):
    """A kind of store. `Settings`: its class in trainyard/settings/stores.py. `Plan`: its class in
    plans/."""

    name: ClassVar[str]
    """Its field of `StoreConfig`."""
    example: ClassVar[Mapping[str, Any]]
    """Settings that a message may propose."""
    plans: ClassVar[type[StorePlan]]
    """The class of its plans."""
    existing: ClassVar[bool] = False
    """The file system exists before the stack and after it, so that the stack's costs do not
    include it."""
    driver: ClassVar[Driver]
    services: ClassVar[tuple[OptionalService, ...]] = ()
    """Services of AWS that only stores of this kind use, beside that of the kind itself."""
    directories_by_pod: ClassVar[bool] = False
    """A pod must make a team's directory before it can be mounted."""
    mounted_by_pods: ClassVar[bool] = False
    """A team's directory is mounted with the AWS identity of the pod."""
    zonal: ClassVar[bool] = False
    """The store is in `environment.zone` only, so that nodes of other zones pay for its data. Its
    resource with the data then has `subnetIds`."""
    root_is_roots: ClassVar[bool] = False
    """The root of a new store belongs to root, and no setting of a pod changes that."""
    mount_gib: ClassVar[int] = 0
    """Memory that a mount of it takes of a node under load, in GiB; 0: none that counts."""
    needs_client: ClassVar[bool] = False
    """Nodes that mount it need programs of its client, which EKS's AMI lacks."""
    weak_at: ClassVar[Row]
    """Acts of programs that it cannot do."""
    keeps_its_key: ClassVar[bool] = False
    """AWS makes another store for another KMS key."""
    holds_data: ClassVar[str]
    """Type of the resource that the data goes with."""
    compared: ClassVar[tuple[str, ...]] = ()
    """Types of the other resources that `update_errors` and `update_warnings` ask about."""

    # What it is made from, and how jobs mount it.

    @abstractmethod
    def plan(
        self, me: Identity, name: str, settings: Settings, *, keep: bool, zones: tuple[str, ...]
    ) -> Plan:
        """Plan of its component, once its size is decided. `zones`: those in which a pool may
        launch nodes, the training zone first. Which teams see what of it is added to the plan."""

    @abstractmethod
    def made_from(self, settings: Settings, zone: str) -> list[str]:
        """Values for which AWS would make another store. The name of the claim follows from it."""

    def interfaces(self, settings: Settings, zones: tuple[str, ...]) -> Mapping[str, int]:
        """Zone → network interfaces of it that the stack makes there, each with an address. `zones`:
        those in which a pool may launch nodes, the training zone first."""
        return {}

    @abstractmethod
    def capacity(self, settings: Settings) -> str:
        """Size of the PersistentVolume, as a Kubernetes quantity."""

    def access_mode(self, settings: Settings) -> str:
        """Access mode of the PersistentVolume and its claim."""
        return "ReadWriteMany"

    def mount_options(self, settings: Settings) -> tuple[str, ...]:
        return ()

    def service_account(self, settings: Settings) -> str:
        """ServiceAccount of the pods that need a role to mount it; empty where they need none."""
        return self.driver.service_account

    def read_only_options(self, settings: Settings) -> tuple[str, ...]:
        """Options of a mount that cannot write. An access mode would not do: the drivers of Lustre
        and EFS refuse ReadOnlyMany (volumeCaps, 1.9.0 and 3.4), and the kubelet does not hand
        `csi.readOnly` of a volume to a driver (getReadOnlyFromSpec, Kubernetes 1.34)."""
        return (*self.mount_options(settings), "ro")

    def directory_options(self, settings: Settings, path: str) -> tuple[str, ...]:
        """Options of a mount that shows one team's directory. `path`: from the root of the store."""
        return self.mount_options(settings)

    # Size, speed and checkpoints.

    def sized(self, settings: Settings, region: str, instance_types: Sequence[str]) -> Settings:
        """The settings with size and speed decided."""
        return settings

    def without_speed(self, settings: Settings) -> str:
        """Reason for which sound settings do not say how fast the store is, behind "a store"; empty where they do."""
        return ""

    @abstractmethod
    def checkpoint_store(self, settings: Settings, region: str) -> CheckpointStore | None:
        """Its speed for checkpoints; None where that cannot be told, or where it takes none."""

    def made_for_efa(self, settings: Settings) -> bool:
        """True where nodes can mount it over EFA."""
        return False

    def mounts_over_efa(self, settings: Settings, pool: PoolConfig, instance_type: str) -> bool:
        """True where nodes of the type in the pool mount it over EFA."""
        return False

    # Rules.

    @abstractmethod
    def errors(self, path: str, settings: Settings, around: Surroundings) -> Iterator[InputError]:
        """Every error of one store. `path`: of its settings."""

    def errors_together(
        self, names: Sequence[str], wanted: EnvironmentConfig, zones: tuple[str, ...]
    ) -> Iterator[InputError]:
        """Stores of this kind that cannot stand beside each other. `names`: all of this kind.
        `zones`: those of the network, the training zone first."""
        yield from ()

    def warnings(
        self, path: str, settings: Settings, around: Surroundings
    ) -> Iterator[InputWarning]:
        """Warnings about settings that work. `path`: of its settings."""
        yield from ()

    def warnings_together(
        self, stores: Mapping[str, Settings], region: str
    ) -> Iterator[InputWarning]:
        """Warnings about stores of this kind that work beside each other. `stores`: all of this kind, with size
        and speed decided."""
        yield from ()

    def mount_warnings(
        self, path: str, name: str, settings: Settings, pool: PoolConfig
    ) -> Iterator[InputWarning]:
        """Warnings about a job that mounts the store. `path`: of the job's pool."""
        yield from ()

    def checkpoint_warnings(
        self, path: str, name: str, settings: Settings
    ) -> Iterator[InputWarning]:
        """Warnings about checkpoints on the store. `path`: where the job names the store."""
        yield from ()

    def write_errors(self, path: str, name: str) -> Iterator[InputError]:
        """Reasons why checkpoints, logs and models cannot be written to the store; nothing where
        they can. `path`: where a job or a runtime names the store."""
        yield from ()

    def larger(self, path: str, gib: float, settings: Settings, decided: Settings) -> str:
        """Fix that makes the store so large that files can fill `gib`. `path`: of its settings.
        `decided`: the settings with size and speed, where they follow from others."""
        return f"write a larger store than {path}"

    # AWS.

    @abstractmethod
    def resource_types(self, plan: Plan) -> tuple[str, ...]:
        """The types of its resources in AWS, as Pulumi's AWS provider calls them."""

    def fixed(self, path: str, plan: Plan) -> Iterator[Fixed]:
        """Properties that the resource with the data cannot change in place, beside its region and,
        of a zonal kind, its subnet. `path`: of its settings."""
        yield from ()

    def update_errors(self, path: str, name: str, plan: Plan, was: Output) -> Iterator[InputError]:
        """Changes of a deployed store that AWS would refuse, or by which data is lost although the store stays.
        `path`: of its settings. `was`: tells what is deployed."""
        yield from ()

    def update_warnings(
        self, path: str, name: str, plan: Plan, was: Output
    ) -> Iterator[InputWarning]:
        """Changes of a deployed store that work, and what somebody should know about them."""
        yield from ()

    def service_roles(self, plan: Plan) -> tuple[ServiceRole, ...]:
        """The service-linked roles that AWS needs for it."""
        return ()

    def questions(self, plan: Plan) -> tuple[str, ...]:
        """Calls of AWS that a preview and `trainyard check --live` ask about it, beside those of its
        resources."""
        return ()

    def bucket_uses(
        self, path: str, settings: Settings, region: str, *, isolated: bool
    ) -> Iterator[BucketUse]:
        """Settings that name buckets which exist before the stack. `path`: of its settings.
        `isolated`: nodes have no way to the internet."""
        yield from ()

    def shown(self, me: Identity, name: str, settings: Settings) -> tuple[Shown, ...]:
        """Parts of S3 in which a new object is a file of the store `name`."""
        return ()

    def key_use(self, plan: Plan) -> Document | None:
        """The statement of IAM by which pods use the KMS key of its objects; None where they use
        none."""
        return None

    def linked_buckets(self, plan: Plan) -> tuple[str, ...]:
        """Names of the S3 buckets that AWS links to it."""
        return ()

    def own_buckets(self, plan: Plan) -> tuple[str, ...]:
        """Names of the S3 buckets that the stack creates for it; `*` stands for the account's id."""
        return ()

    # Reports.

    @abstractmethod
    def row(self, plan: Plan) -> StoreRow:
        """Its row of `trainyard plan`."""

    def notes(self, name: str, plan: Plan) -> Iterator[str]:
        """Lines of `trainyard plan` below the table."""
        yield from ()

    def costs(self, name: str, plan: Plan) -> Iterator[FixedCost]:
        """Costs of the store, used or not."""
        yield from ()

    def usage_costs(self, name: str, plan: Plan) -> Iterator[UsageCost]:
        """Costs of the store that grow with use."""
        yield from ()

    def save_costs(self, name: str, plan: Plan) -> Iterator[UsageCost]:
        """Costs of each GB of a checkpoint that is written to the store."""
        yield from ()

    def stages(self, name: str, plan: Plan) -> Iterator[Stage]:
        """Stages for which AWS takes noticeable time."""
        yield from ()

    def last_stages(self, name: str, plan: Plan) -> tuple[str, ...]:
        """Names of the stages that a job which mounts it waits for, beside that of the driver."""
        return ()
