"""FSx for Lustre: the kind of store in the zone of the GPUs, for checkpoints and data sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from trainyard.catalog import versions
from trainyard.catalog.aws import latencies
from trainyard.catalog.aws.questions import BUCKET_QUESTIONS
from trainyard.catalog.aws.service_roles import FSX, ServiceRole
from trainyard.catalog.aws.storage import (
    LUSTRE_EFA_STEP_GIB,
    LUSTRE_KERNELS,
    LUSTRE_SERVER_GIB,
    LUSTRE_SMALLEST_GIB,
    LUSTRE_STEP_GIB,
    LUSTRE_USABLE,
    SCRATCH_2_PER_TIB,
    Driver,
)
from trainyard.existing.bucket_faults import BucketUse
from trainyard.objects.iam.s3 import bucket_of
from trainyard.plans.identity import Identity
from trainyard.plans.stores import LustrePlan
from trainyard.plans.unchangeable import Fixed, Output
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.pools import PoolConfig
from trainyard.settings.stores import DAYS, LustreConfig
from trainyard.stores.acts import AT_LUSTRE
from trainyard.stores.figures import FixedCost, Stage, StoreRow, UsageCost, took
from trainyard.stores.kind import Shown, StoreKind, Surroundings
from trainyard.stores.lustre_efa import efa_errors, efa_warnings, lnet_devices, tcp_warnings
from trainyard.stores.lustre_repositories import repository_errors
from trainyard.stores.lustre_rules import (
    backup_errors,
    key_errors,
    quota_warnings,
    restore_errors,
    size_errors,
)
from trainyard.stores.lustre_sizing import LustreSize, sized
from trainyard.stores.lustre_updates import (
    FILE_SYSTEM,
    LINK,
    link_errors,
    restored_errors,
    restored_warnings,
    speed_warnings,
)

COMPRESSION = "LZ4"
"""FSx's only one."""
METADATA_OVER_EFA = "AUTOMATIC"
"""A file system made for EFA must have a metadata configuration; in this mode its speed grows with
the capacity."""
NO_IMPORT = "FSx imports changes from no other region"
"""FSx for Lustre user guide, overview-dra-data-repo; it exports to any."""


class Lustre(StoreKind[LustreConfig, LustrePlan]):
    """One file system and its links to S3."""

    name = "lustre"
    plans = LustrePlan
    example = {"capacity_gib": 4800, "throughput_mbps_per_tib": 500}
    root_is_roots = True
    weak_at, needs_client = AT_LUSTRE, True
    driver = Driver(
        name="fsx.csi.aws.com",
        add_on="aws-fsx-csi-driver",
        attributes=("dnsname", "mountname"),
        kernels=LUSTRE_KERNELS,
    )
    """Source: static provisioning in the driver's README."""
    directories_by_pod = True
    """Its driver mounts a directory that exists, and makes none."""
    zonal = True
    keeps_its_key = True
    holds_data = FILE_SYSTEM
    compared = (LINK,)

    def plan(
        self, me: Identity, name: str, settings: LustreConfig, *, keep: bool, zones: tuple[str, ...]
    ) -> LustrePlan:
        return LustrePlan(
            identity=me,
            kind=self.name,
            capacity_gib=settings.capacity_gib or 0,
            deployment=settings.deployment,
            version=versions.LUSTRE,
            throughput_mbps_per_tib=settings.throughput_mbps_per_tib,
            backup_days=_backup_days(settings),
            restore_from=settings.restore_from,
            maintenance=_maintenance(settings.maintenance_window),
            efa=settings.efa,
            compression=COMPRESSION,
            metadata=METADATA_OVER_EFA if settings.efa else None,
            keep=keep,
            repositories={
                f"{name}.{link}": repository for link, repository in settings.repositories.items()
            },
        )

    def interfaces(self, settings: LustreConfig, zones: tuple[str, ...]) -> Mapping[str, int]:
        """Interfaces of its metadata server and its file servers, by zone."""
        capacity = settings.capacity_gib or LUSTRE_SMALLEST_GIB
        return {zones[0]: 1 + -(-capacity // LUSTRE_SERVER_GIB)}

    def made_from(self, settings: LustreConfig, zone: str) -> list[str]:
        efa = ["efa", str(settings.throughput_mbps_per_tib)] if settings.efa else []
        backup = ["backup", settings.restore_from] if settings.restore_from else []
        return ["lustre", zone, settings.deployment, *efa, *backup]

    def capacity(self, settings: LustreConfig) -> str:
        return f"{settings.capacity_gib}Gi"

    def mount_options(self, settings: LustreConfig) -> tuple[str, ...]:
        return ("flock",)

    def sized(
        self, settings: LustreConfig, region: str, instance_types: Sequence[str]
    ) -> LustreConfig:
        return sized(settings, region, instance_types)

    def checkpoint_store(self, settings: LustreConfig, region: str) -> LustreSize | None:
        scratch = settings.deployment == "SCRATCH_2"
        if not settings.capacity_gib or not (scratch or settings.throughput_mbps_per_tib):
            return None
        return LustreSize(
            capacity_gib=settings.capacity_gib,
            deployment=settings.deployment,
            tier=settings.throughput_mbps_per_tib,
            efa=settings.efa,
        )

    def made_for_efa(self, settings: LustreConfig) -> bool:
        return settings.efa

    def mounts_over_efa(self, settings: LustreConfig, pool: PoolConfig, instance_type: str) -> bool:
        return settings.efa and lnet_devices(pool, instance_type) > 0

    def errors(
        self, path: str, settings: LustreConfig, around: Surroundings
    ) -> Iterator[InputError]:
        yield from size_errors(path, settings, around.region, around.instance_types)
        yield from repository_errors(path, settings)
        yield from backup_errors(path, settings)
        yield from restore_errors(path, settings)
        yield from key_errors(path, settings, around.key)
        yield from efa_errors(path, settings, around.pools, around.region)

    def warnings(
        self, path: str, settings: LustreConfig, around: Surroundings
    ) -> Iterator[InputWarning]:
        yield from efa_warnings(path, settings, around.pools)

    def warnings_together(
        self, stores: Mapping[str, LustreConfig], region: str
    ) -> Iterator[InputWarning]:
        yield from quota_warnings(stores, region)

    def mount_warnings(
        self, path: str, name: str, settings: LustreConfig, pool: PoolConfig
    ) -> Iterator[InputWarning]:
        yield from tcp_warnings(path, name, settings, pool)

    def checkpoint_warnings(
        self, path: str, name: str, settings: LustreConfig
    ) -> Iterator[InputWarning]:
        if settings.deployment == "SCRATCH_2":
            yield At(path).warning(
                f"{name} is SCRATCH_2: when one of its servers fails, the checkpoints on it are"
                " lost"
            )

    def larger(self, path: str, gib: float, settings: LustreConfig, decided: LustreConfig) -> str:
        tier = decided.throughput_mbps_per_tib
        by_tier = LUSTRE_EFA_STEP_GIB if decided.efa else {}
        step = by_tier.get(tier or 0, LUSTRE_STEP_GIB)
        size = -(-(gib / LUSTRE_USABLE) // step) * step
        write = f"write capacity_gib: {size:.0f} or more"
        if settings.for_model is not None:
            return f"{write} and throughput_mbps_per_tib: {tier} under {path}, in the place of for_model"
        return f"{write} under {path}"

    def resource_types(self, plan: LustrePlan) -> tuple[str, ...]:
        return (self.holds_data, *((LINK,) if plan.repositories else ()))

    def fixed(self, path: str, plan: LustrePlan) -> Iterator[Fixed]:
        """Source: the resource aws_fsx_lustre_file_system of Terraform's AWS provider, which Pulumi's
        is made from: ForceNew, and CustomizeDiff for a smaller capacity."""
        yield Fixed(path=f"{path}.deployment", output="deploymentType", wanted=plan.deployment)
        yield Fixed(
            path=f"{path}.capacity_gib",
            output="storageCapacity",
            wanted=plan.capacity_gib,
            grows=True,
        )
        yield Fixed(path=f"{path}.restore_from", output="backupId", wanted=plan.restore_from)
        yield Fixed(path=f"{path}.efa", output="efaEnabled", wanted=plan.efa)
        if plan.efa:
            yield Fixed(
                path=f"{path}.throughput_mbps_per_tib",
                output="perUnitStorageThroughput",
                wanted=plan.throughput_mbps_per_tib,
            )

    def update_errors(
        self, path: str, name: str, plan: LustrePlan, was: Output
    ) -> Iterator[InputError]:
        yield from link_errors(path, plan, was)
        yield from restored_errors(path, name, plan, was)

    def update_warnings(
        self, path: str, name: str, plan: LustrePlan, was: Output
    ) -> Iterator[InputWarning]:
        yield from speed_warnings(path, name, plan, was)
        yield from restored_warnings(path, name, plan, was)

    def bucket_uses(
        self, path: str, settings: LustreConfig, region: str, *, isolated: bool
    ) -> Iterator[BucketUse]:
        for name, link in settings.repositories.items():
            yield BucketUse(
                bucket=bucket_of(link.s3),
                path=f"{path}.repositories.{name}.s3",
                region=region,
                only_here=NO_IMPORT if link.auto_import else "",
            )

    def shown(self, me: Identity, name: str, settings: LustreConfig) -> tuple[Shown, ...]:
        parts = [
            (bucket_of(link.s3), link.s3.removeprefix("s3://").partition("/")[2], link.path)
            for link in settings.repositories.values()
            if link.auto_import
        ]
        return tuple(
            Shown(bucket=re.escape(bucket), prefix=f"{key.rstrip('/')}/" if key else "", path=path)
            for bucket, key, path in parts
        )

    def linked_buckets(self, plan: LustrePlan) -> tuple[str, ...]:
        return tuple(
            sorted({bucket_of(repository.s3) for repository in plan.repositories.values()})
        )

    def questions(self, plan: LustrePlan) -> tuple[str, ...]:
        """Questions of `trainyard check --live` about the backup and the buckets."""
        backup = ("fsx:DescribeBackups",) if plan.restore_from else ()
        return (*backup, *(BUCKET_QUESTIONS if plan.repositories else ()))

    def service_roles(self, plan: LustrePlan) -> tuple[ServiceRole, ...]:
        return (FSX,)

    def row(self, plan: LustrePlan) -> StoreRow:
        speed = plan.throughput_mbps_per_tib or SCRATCH_2_PER_TIB.write / 1e6
        return StoreRow(
            kind=f"Lustre {plan.deployment}{', EFA' if plan.efa else ''}",
            size=f"{plan.capacity_gib} GiB",
            speed=f"{speed:.0f} MB/s per TiB",
        )

    def notes(self, name: str, plan: LustrePlan) -> Iterator[str]:
        if plan.restore_from:
            yield f"{name} is created from {plan.restore_from}, which stays and is paid for"
        for link in plan.repositories.values():
            yield (
                f"{name} {link.path} shows {link.s3}: imports {_events(link.auto_import)}, exports"
                f" {_events(link.auto_export)}"
            )

    def costs(self, name: str, plan: LustrePlan) -> Iterator[FixedCost]:
        sku = "-".join(str(p) for p in (plan.deployment, plan.throughput_mbps_per_tib) if p)
        yield FixedCost(
            what=f"Lustre {name}, {sku}",
            service="fsx-lustre",
            sku=sku,
            units=plan.capacity_gib,
        )

    def usage_costs(self, name: str, plan: LustrePlan) -> Iterator[UsageCost]:
        if plan.backup_days:
            yield UsageCost(what=f"backups of {name}", service="fsx-lustre", sku="backup")

    def stages(self, name: str, plan: LustrePlan) -> Iterator[Stage]:
        yield took(
            f"file system {name}",
            latencies.lustre(plan.capacity_gib, efa=plan.efa),
            ("subnets", "security groups"),
        )
        if linked := len(plan.repositories):  # FSx makes one after the other
            yield took(
                f"repositories {name}", "fsx.association", (f"file system {name}",), times=linked
            )

    def last_stages(self, name: str, plan: LustrePlan) -> tuple[str, ...]:
        return (f"{'repositories' if plan.repositories else 'file system'} {name}",)


def _backup_days(settings: LustreConfig) -> int | None:
    """To the provider a number that is taken out of the inputs is AWS's choice, so 0 is said, too
    (terraform-provider-aws, internal/service/fsx/lustre_file_system.go: automatic_backup_retention_days is
    Computed, and 0 is not sent at creation)."""
    if settings.deployment == "SCRATCH_2":
        return None
    restored = settings.restore_from is not None
    return settings.backup_days if restored else settings.backup_days or 0


def _maintenance(window: str | None) -> str | None:
    """As FSx writes it: the number of the day, hour and minute."""
    if window is None:
        return None
    day, _, time = window.partition(" ")
    return f"{DAYS.index(day) + 1}:{time}"


def _events(automatic: Iterable[str]) -> str:
    """Events of files that FSx carries over by itself."""
    return f"what is {', '.join(automatic).lower()}" if automatic else "nothing by itself"
