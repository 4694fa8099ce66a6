"""Errors about size, speed and backups of a Lustre store that cannot work, and a warning about its quota.

Over EFA: lustre_efa.py. Linked to S3: lustre_repositories.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trainyard.catalog.aws.quotas import more_of_quota
from trainyard.catalog.aws.storage import (
    LUSTRE_QUOTA_GIB,
    LUSTRE_QUOTAS,
    LUSTRE_SIZES,
    LUSTRE_TIERS,
    lustre_near,
    lustre_sold,
)
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.stores import LustreConfig
from trainyard.stores.lustre_efa import efa_step
from trainyard.stores.lustre_sizing import LARGEST_GIB, chosen, needs_of


def size_errors(
    path: str, lustre: LustreConfig, region: str, instance_types: Sequence[str]
) -> Iterator[InputError]:
    """Every error of its size and speed, stated or for a model."""
    if lustre.for_model is not None:
        yield from _sized_for_model(path, lustre, region, instance_types)
    else:
        yield from _size_and_speed(path, lustre)


def quota_warnings(stores: Mapping[str, LustreConfig], region: str) -> Iterator[InputWarning]:
    """File systems that a new account has no quota for: FSx refuses the one that exceeds it. `stores`: all of the
    stack, with size and speed decided."""
    for deployment, code in LUSTRE_QUOTAS.items():
        sizes = {
            name: lustre.capacity_gib or 0
            for name, lustre in stores.items()
            if lustre.deployment == deployment
        }
        if (total := sum(sizes.values())) > LUSTRE_QUOTA_GIB:
            yield At("environment.storage").warning(
                f"{', '.join(sizes)} take {total} GiB of {deployment}, and quota {code} is {LUSTRE_QUOTA_GIB}"
                " GiB in an account that asked for no more: run"
                f" `{more_of_quota('fsx', code, total, region)}` before `pulumi up`"
            )


def backup_errors(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    """Backups that FSx does not make."""
    if lustre.backup_days and lustre.deployment == "SCRATCH_2":
        yield At(f"{path}.backup_days").not_set(
            "with deployment: SCRATCH_2, of which FSx makes no backups",
            got=lustre.backup_days,
            instead=_of_persistent(),
        )


def restore_errors(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    """Backups from which no such file system can be created (FSx API, CreateFileSystemFromBackup)."""
    if lustre.restore_from is None:
        return
    if lustre.deployment == "SCRATCH_2":
        yield At(f"{path}.restore_from").not_set(
            "with deployment: SCRATCH_2, of which FSx has no backups",
            got=lustre.restore_from,
            instead="put PERSISTENT_2 as deployment, with the capacity_gib and throughput_mbps_per_tib that this"
            f" prints: aws fsx describe-backups --backup-ids {lustre.restore_from} --query 'Backups[0].FileSystem.["
            "StorageCapacity, LustreConfiguration.PerUnitStorageThroughput]'",
        )
    if lustre.for_model is not None:
        yield At(f"{path}.restore_from").not_set(
            "with for_model: a restored file system has the size and speed of the one"
            " that was backed up",
            got=lustre.restore_from,
            instead="write that size and speed as capacity_gib and"
            " throughput_mbps_per_tib in the place of for_model",
        )


def key_errors(path: str, lustre: LustreConfig, key: str | None) -> Iterator[InputError]:
    """A file system that FSx encrypts with no key but its own (FSx API, CreateFileSystem,
    KmsKeyId)."""
    if key and lustre.deployment == "SCRATCH_2":
        yield At(f"{path}.deployment").must(
            "be PERSISTENT_2 with environment.kms_key_arn: FSx encrypts SCRATCH_2 with a key of"
            " its own only",
            got="SCRATCH_2",
            fix="write PERSISTENT_2, with throughput_mbps_per_tib: 125",
        )


def _of_persistent(tier: int | None = None) -> str:
    """The deployment that has speeds; with one of them, where it does not have the one that is written."""
    more = "" if tier in LUSTRE_TIERS else " and throughput_mbps_per_tib: 125"
    return f"write deployment: PERSISTENT_2{more}"


def _size_and_speed(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    size, tier = lustre.capacity_gib, lustre.throughput_mbps_per_tib
    if size is None:
        yield At(f"{path}.capacity_gib").must(
            "be set, unless for_model is",
            got="nothing",
            fix="add capacity_gib: 4800, or for_model: {parameters_billion: 70, nodes: 16} in the"
            " place of capacity_gib and throughput_mbps_per_tib",
            write=4800,
        )
    elif size != (near := lustre_sold(size)) and efa_step(lustre) is None:
        yield At(f"{path}.capacity_gib").must(
            f"be {LUSTRE_SIZES}, as FSx sells it",
            got=size,
            fix=f"write {lustre_near(size)}",
            write=near,
        )
    elif size > LARGEST_GIB:
        largest = LARGEST_GIB // 2400 * 2400
        yield At(f"{path}.capacity_gib").must(
            f"be at most {largest}, about 1 PiB",
            got=size,
            fix=f"write at most {largest}; the setting is in GiB",
            write=largest,
        )
    if lustre.deployment == "PERSISTENT_2" and tier not in LUSTRE_TIERS:
        near = min(LUSTRE_TIERS, key=lambda sold: abs(sold - (tier or 500)))
        yield At(f"{path}.throughput_mbps_per_tib").must(
            f"be one of {', '.join(map(str, LUSTRE_TIERS))} with deployment: PERSISTENT_2",
            got="nothing" if tier is None else str(tier),
            fix=f"write {near}, or another of them: 500 on 4800 GiB takes a checkpoint of 30 billion"
            " parameters (360 GB) in about 2.5 minutes",
            write=near,
        )
    if lustre.deployment == "SCRATCH_2" and tier is not None:
        yield At(f"{path}.throughput_mbps_per_tib").not_set(
            "with deployment: SCRATCH_2, which has one speed",
            got=tier,
            instead=_of_persistent(tier),
        )


def _sized_for_model(
    path: str, lustre: LustreConfig, region: str, instance_types: Sequence[str]
) -> Iterator[InputError]:
    wanted = lustre.for_model
    assert wanted is not None  # the caller has looked
    for key in ("capacity_gib", "throughput_mbps_per_tib"):
        if (given := getattr(lustre, key)) is not None:
            yield At(f"{path}.{key}").not_set(
                "beside for_model, which decides it", got=given, instead="delete for_model"
            )
    if lustre.deployment == "SCRATCH_2":
        yield At(f"{path}.deployment").must(
            "be PERSISTENT_2 with for_model: SCRATCH_2 loses the checkpoints when a server fails",
            got="SCRATCH_2",
            write="PERSISTENT_2",
        )
    if instance_types and chosen(needs_of(wanted, lustre, region, instance_types)) is None:
        yield At(f"{path}.for_model.goodput_percent").must(
            "be a goodput that the fastest Lustre of FSx reaches for this model on these nodes",
            got=wanted.goodput_percent,
            fix=_lower(lustre, region, instance_types),
        )


def _lower(lustre: LustreConfig, region: str, instance_types: Sequence[str]) -> str:
    """The goodput that can be reached, and the Lustre that reaches the wanted one with saves beside the training."""
    model = lustre.for_model
    assert model is not None  # the caller has looked
    needs = needs_of(model, lustre, region, instance_types)
    reachable = next(
        (
            percent
            for percent in range(int(model.goodput_percent), 0, -1)
            if chosen(replace(needs, goodput=percent / 100))
        ),
        None,
    )
    ways = [f"write {reachable}"] if reachable else []
    if beside := chosen(replace(needs, blocking=False)):
        ways.append(
            "save asynchronously: write asynchronous: true in checkpoints of the job, and"
            f" capacity_gib: {beside.store.capacity_gib} and throughput_mbps_per_tib: {beside.store.tier} in the place"
            " of for_model"
        )
    return "; or ".join(ways) or "name more nodes, or a smaller model, in for_model"
