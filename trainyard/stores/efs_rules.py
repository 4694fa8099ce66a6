"""Errors and warnings about a throughput or a lifecycle that EFS refuses.

Sources: EFS API, CreateFileSystem (ThroughputMode, ProvisionedThroughputInMibps) and LifecyclePolicy;
EFS user guide, lifecycle-management-efs (Archive needs elastic throughput, and comes after Infrequent
Access), and availability-durability (no other throughput once there is data in Archive).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from trainyard.catalog.aws.storage import efs_mibps
from trainyard.plans.stores import EfsPlan
from trainyard.plans.unchangeable import Output
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.stores import EfsConfig, EfsDays, LifecycleConfig

FILE_SYSTEM = "aws:efs/fileSystem:FileSystem"


def throughput_errors(path: str, efs: EfsConfig) -> Iterator[InputError]:
    """A number without its mode, and the mode without a number."""
    provisioned, mibps = efs.throughput == "provisioned", efs.throughput_mibps
    if provisioned and mibps is None:
        yield InputError(
            path=f"{path}.throughput_mibps",
            must="be set with throughput: provisioned",
            got="nothing",
            fix="write 128, or delete throughput for elastic, which grows with the use",
            write=128,
        )
    if not provisioned and mibps is not None:
        yield InputError(
            path=f"{path}.throughput_mibps",
            must=f"be set only with throughput: provisioned, and not with {efs.throughput}",
            got=str(mibps),
            fix="delete it, or write throughput: provisioned",
            write=REMOVE,
        )


def throughput_warnings(path: str, efs: EfsConfig, region: str) -> Iterator[InputWarning]:
    """More than EFS provisions in the region for an account that did not ask: whether it did, only AWS knows."""
    most = efs_mibps(region)
    if efs.throughput == "provisioned" and (efs.throughput_mibps or 0) > most:
        yield InputWarning(
            path=f"{path}.throughput_mibps",
            text=(
                f"EFS refuses {efs.throughput_mibps} MiB/s in {region} to an account that asked for no more than"
                f" the default of {most}: open a case with AWS Support before `pulumi up`, or write {most}"
            ),
        )


def archive_warnings(path: str, name: str, plan: EfsPlan, was: Output) -> Iterator[InputWarning]:
    """Another throughput than elastic of a file system whose deployed lifecycle archives: whether a file is in
    Archive, only EFS knows."""
    moves = was(FILE_SYSTEM, name, "lifecyclePolicies") or ()
    if plan.throughput != "elastic" and any(move.get("transitionToArchive") for move in moves):
        yield At(f"{path}.throughput").warning(
            f"EFS refuses {plan.throughput} once {name} has a file in Archive, where its deployed lifecycle moves"
            " files, and this update fails then. This prints the bytes there: aws efs describe-file-systems"
            f" --region {plan.identity.region} --creation-token {plan.creation_token}"
            " --query 'FileSystems[0].SizeInBytes.ValueInArchive'. Where it prints more than 0, delete throughput"
        )


def lifecycle_errors(path: str, efs: EfsConfig, lifecycle: LifecycleConfig) -> Iterator[InputError]:
    """Files that would be archived before they are infrequent, or by a mode that has no archive."""
    path = f"{path}.lifecycle"
    infrequent, archive = lifecycle.infrequent_after_days, lifecycle.archive_after_days
    if archive and efs.throughput != "elastic":
        yield InputError(
            path=f"{path}.archive_after_days",
            must=f"not be set with throughput: {efs.throughput}: EFS archives with elastic only",
            got=str(archive),
            fix="delete it, or delete throughput",
            write=REMOVE,
        )
    if archive and infrequent and archive <= infrequent:
        later = next((days for days in get_args(EfsDays) if days > infrequent), None)
        yield InputError(
            path=f"{path}.archive_after_days",
            must=f"be more than infrequent_after_days, which is {infrequent}",
            got=str(archive),
            fix=f"write {later}" if later else "delete it, or write fewer infrequent_after_days",
            write=later or REMOVE,
        )
    if not infrequent and not archive:
        yield InputError(
            path=path,
            must="say after how many days files move to a cheaper class of storage",
            got="neither infrequent_after_days nor archive_after_days",
            fix=f"write infrequent_after_days: 30 under {path}, or delete it",
        )
