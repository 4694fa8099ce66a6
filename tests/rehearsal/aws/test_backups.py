"""Backups of FSx for Lustre: of which file systems, what is created from one, and what stays."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rehearsal.aws.test_storage import PERSISTENT, account, create, network
from tests.rehearsal.aws_world import NEVER, Account, Network, refused

__all__ = ["account", "network"]


def restored(account: Account, network: Network, backup: str, **more: Any) -> Any:
    wanted = {
        "BackupId": backup,
        "SubnetIds": network.subnets[:1],
        "SecurityGroupIds": [network.group],
        "LustreConfiguration": PERSISTENT,
    }
    return account.client("fsx").create_file_system_from_backup(**(wanted | more))["FileSystem"]


def backed_up(account: Account, network: Network) -> tuple[str, str]:
    """A file system of 2400 GiB, and a backup of it."""
    made = create(account, network, StorageCapacity=2400)["FileSystemId"]
    fsx = account.client("fsx")
    return made, fsx.create_backup(FileSystemId=made)["Backup"]["BackupId"]


def test_a_file_system_from_a_backup_has_its_size_and_stays_another_one(
    account: Account, network: Network
) -> None:
    made, backup = backed_up(account, network)
    new = restored(account, network, backup, StorageCapacity=2400)
    assert new["StorageCapacity"] == 2400 and new["FileSystemTypeVersion"] == "2.15"
    assert new["FileSystemId"] != made
    old = account.client("fsx").describe_file_systems(FileSystemIds=[made])["FileSystems"][0]
    mounts = {each["LustreConfiguration"]["MountName"] for each in (old, new)}
    assert len(mounts) == 2


def test_a_backup_outlives_its_file_system_and_is_named_in_the_inventory(
    account: Account, network: Network
) -> None:
    made, backup = backed_up(account, network)
    fsx = account.client("fsx")
    fsx.delete_file_system(FileSystemId=made)
    [told] = fsx.describe_backups(Filters=[{"Name": "file-system-id", "Values": [made]}])["Backups"]
    assert told["BackupId"] == backup and told["Type"] == "USER_INITIATED"
    assert "fsx-backup" in account.types()
    assert restored(account, network, backup)["StorageCapacity"] == 2400
    fsx.delete_backup(BackupId=backup)
    assert "fsx-backup" not in account.types()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"StorageCapacity": 4800}, "BadRequest"),
        ({"LustreConfiguration": PERSISTENT | {"PerUnitStorageThroughput": 500}}, "BadRequest"),
        ({"LustreConfiguration": {"DeploymentType": "SCRATCH_2"}}, "BadRequest"),
        ({"FileSystemTypeVersion": "2.12"}, "BadRequest"),
        ({"BackupId": "backup-0123456789abcdef0"}, "BackupNotFound"),
    ],
)
def test_what_is_not_that_of_the_backup_is_refused(
    account: Account, network: Network, more: dict[str, Any], code: str
) -> None:
    _, backup = backed_up(account, network)
    with refused(code):
        restored(account, network, backup, **more)


def test_a_backup_that_is_being_made_cannot_be_used_yet(account: Account, network: Network) -> None:
    made = create(account, network)["FileSystemId"]
    account.speed(NEVER)
    backup = account.client("fsx").create_backup(FileSystemId=made)["Backup"]["BackupId"]
    with refused("BadRequest"):
        restored(account, network, backup)


def test_scratch_file_systems_and_linked_ones_have_no_backups(
    account: Account, network: Network
) -> None:
    fsx = account.client("fsx")
    scratch = create(account, network, {"DeploymentType": "SCRATCH_2"})["FileSystemId"]
    linked = create(account, network)["FileSystemId"]
    fsx.create_data_repository_association(
        FileSystemId=linked, FileSystemPath="/a", DataRepositoryPath="s3://sets/a/"
    )
    for each in (scratch, linked):
        with refused("BadRequest"):
            fsx.create_backup(FileSystemId=each)
    with refused("FileSystemNotFound"):
        fsx.create_backup(FileSystemId="fs-0123456789abcdef0")
