"""Errors and warnings about an update of a Lustre store: what is deployed beside what is wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard.plans.repository import Repository
from trainyard.plans.stores import LustrePlan
from trainyard.plans.unchangeable import Output
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.reading.yaml_file import as_yaml

FILE_SYSTEM = "aws:fsx/lustreFileSystem:LustreFileSystem"
LINK = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"


def link_errors(path: str, plan: LustrePlan, was: Output) -> Iterator[InputError]:
    """Links that the update makes anew, and that were deployed with delete_data_in_filesystem.

    The provider deletes the old link first, with DeleteDataInFileSystem as it was deployed
    (terraform-provider-aws, internal/service/fsx/data_repository_association.go, Delete).
    """
    for name, link in plan.repositories.items():
        if not was(LINK, name, "deleteDataInFilesystem"):
            continue
        for setting, before, wanted in _made_anew(name, link, was):
            yield At(f"{path}.repositories.{name.partition('.')[2]}.{setting}").must(
                f"stay {before} in this update: another value makes the link anew, and the link was deployed with"
                f" delete_data_in_filesystem: true, so FSx deletes the files in"
                f" {was(LINK, name, 'fileSystemPath')} with it",
                got=wanted,
                fix=f"write {before} again with delete_data_in_filesystem: false, run `pulumi up`, and change it in"
                " the next update",
            )


def speed_warnings(path: str, name: str, plan: LustrePlan, was: Output) -> Iterator[InputWarning]:
    """Another speed of a file system (FSx for Lustre user guide, managing-throughput-capacity: FSx switches out the
    file servers, and the file system is unavailable for up to one hour). With EFA it is replaced."""
    before, wanted = (
        was(FILE_SYSTEM, name, "perUnitStorageThroughput"),
        plan.throughput_mbps_per_tib,
    )
    if before and wanted and float(before) != wanted and not plan.efa:
        yield At(f"{path}.throughput_mbps_per_tib").warning(
            f"this update changes the speed of {name} from {before:g} to {wanted}: FSx exchanges the file servers, and"
            " the file system is not available for up to an hour. Let jobs end first: one that waits so long for its"
            " files can fail. FSx takes the next change of size or speed after 6 hours"
        )


def restored_errors(path: str, name: str, plan: LustrePlan, was: Output) -> Iterator[InputError]:
    """Links of a file system that goes on with the backups of the one that was backed up (FSx API,
    CreateFileSystemFromBackup: backup settings default to those of the file system that was backed up)."""
    days = was(FILE_SYSTEM, name, "automaticBackupRetentionDays")
    if plan.repositories and plan.backup_days is None and days:
        yield At(f"{path}.backup_days").must(
            "be 0 with repositories: FSx goes on with the daily backups of the file system that was backed up, and"
            " makes no link to S3 beside them",
            got="nothing",
            write=0,
        )


def restored_warnings(
    path: str, name: str, plan: LustrePlan, was: Output
) -> Iterator[InputWarning]:
    """Links in the update that creates the file system from a backup. The provider sends no 0 at creation; whether the
    file system of before had backups, `trainyard check --live` asks."""
    if plan.repositories and plan.restore_from and was(FILE_SYSTEM, name, "deploymentType") is None:
        yield At(f"{path}.repositories").warning(
            f"where the file system in {plan.restore_from} had daily backups, {name} begins with them, and FSx makes no"
            " link to S3 beside them. Then run `pulumi up` without repositories first, and with them and backup_days: 0"
            " afterwards"
        )


def _made_anew(name: str, link: Repository, was: Output) -> Iterator[tuple[str, str, str]]:
    """Setting, deployed value and wanted value of each change that makes a link anew: ForceNew of the provider, and
    policies that come or go (components/stores/lustre.py, replacement_trigger)."""
    for setting, output, wanted in (
        ("s3", "dataRepositoryPath", link.s3),
        ("path", "fileSystemPath", link.path),
    ):
        before = was(LINK, name, output)
        if before not in (None, wanted):
            yield setting, before, wanted
    for setting, output, events in (
        ("auto_import", "s3.autoImportPolicy.events", link.auto_import),
        ("auto_export", "s3.autoExportPolicy.events", link.auto_export),
    ):
        had: Any = was(LINK, name, output) or ()
        if bool(had) != bool(events):
            yield setting, as_yaml([*had]), as_yaml([*events])
