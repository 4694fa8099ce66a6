"""Backups of FSx for Lustre, and file systems that are created from one.

Which file systems have backups: FSx user guide, using-backups-fsx. What must match: FSx API,
CreateFileSystemFromBackup. A backup that somebody made stays when its file system goes; nothing is in
it here, and automatic ones are never made.
"""

from __future__ import annotations

import secrets
import time

from rehearsal.aws import backends, lustre_limits, storage
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, refuse, refuses

BACKUPS: dict[str, Fields] = {}
"""By id, as the API shows them."""
SAME = ("DeploymentType", "PerUnitStorageThroughput", "EfaEnabled")
"""Fields that a restored file system takes from the one that was backed up, besides its size."""


def _here(call: Call) -> dict[str, Fields]:
    return {
        id_: one for id_, one in BACKUPS.items() if f":fsx:{call.region}:" in one["ResourceARN"]
    }


def _absent(call: Call) -> str:
    named = {*(call["BackupIds"] or [call["BackupId"] or ""])} - {""}
    return ", ".join(sorted(named - _here(call).keys()))


refuses(
    "fsx",
    "CreateFileSystemFromBackup DescribeBackups DeleteBackup",
    "BackupNotFound",
    "Backup {hit} does not exist.",
    _absent,
)
refuses(
    "fsx",
    "CreateFileSystemFromBackup",
    "BadRequest",
    "The backup is {hit}, not AVAILABLE",
    lambda call: (state := BACKUPS[call["BackupId"]]["Lifecycle"]) != "AVAILABLE" and state,
)
refuses(
    "fsx",
    "CreateFileSystemFromBackup",
    "BadRequest",
    "{hit} must be that of the backup",
    lambda call: _another(call),
)
refuses(
    "fsx",
    "CreateFileSystemFromBackup",
    "BadRequest",
    "FileSystemTypeVersion {FileSystemTypeVersion} is older than that of the backup, {hit}",
    lambda call: (
        (was := BACKUPS[call["BackupId"]]["FileSystem"]["FileSystemTypeVersion"])
        > (call["FileSystemTypeVersion"] or was)
        and was
    ),
)
refuses(
    "fsx",
    "CreateFileSystemFromBackup",
    "InvalidNetworkSettings",
    "The file system cannot be created because the security "
    f"groups do not permit Lustre LNET network traffic on port {lustre_limits.LUSTRE_PORT}",
    lustre_limits.closed_to_lustre,
)


def _another(call: Call) -> str:
    """The first property that is not that of the file system that was backed up."""
    was = BACKUPS[call["BackupId"]]["FileSystem"]
    capacity, lustre = call["StorageCapacity"], call["LustreConfiguration"] or {}
    if capacity not in (None, was["StorageCapacity"]):
        return "StorageCapacity"
    old = was["LustreConfiguration"]
    return next((key for key in SAME if key in lustre and lustre[key] != old.get(key)), "")


@answers("fsx", "CreateBackup")
def _create(call: Call) -> Fields:
    held = storage.FILE_SYSTEMS.get(call["FileSystemId"] or "")
    if held is None:
        refuse(True, "FileSystemNotFound", f"File system '{call['FileSystemId']}' does not exist.")
        raise AssertionError
    scratch = held["LustreConfiguration"]["DeploymentType"].startswith("SCRATCH")
    refuse(scratch, "BadRequest", "Backups are for persistent file systems")
    refuse(
        storage.linked(held["FileSystemId"]),
        "BadRequest",
        f"{held['FileSystemId']} is linked to a data repository: it has no backups",
    )
    id_ = f"backup-0{secrets.token_hex(8)}"
    view = BACKUPS[id_] = {
        "BackupId": id_,
        "Lifecycle": "CREATING",
        "Type": "USER_INITIATED",
        "CreationTime": time.time(),
        "OwnerId": backends.ACCOUNT,
        "ResourceType": "FILE_SYSTEM",
        "ResourceARN": f"arn:aws:fsx:{call.region}:{backends.ACCOUNT}:backup/{id_}",
        "KmsKeyId": held["KmsKeyId"],
        "Tags": list(call["Tags"] or ()),
        "FileSystem": {**held, "LustreConfiguration": dict(held["LustreConfiguration"])},
    }
    CLOCK.later("fsx.backup", lambda: view.update(Lifecycle="AVAILABLE"))
    return {"Backup": view}


@answers("fsx", "DescribeBackups")
def _describe(call: Call) -> Fields:
    asked = {one["Name"]: one["Values"] for one in call["Filters"] or ()}
    of = asked.get("file-system-id")
    return {
        "Backups": [
            view
            for id_, view in _here(call).items()
            if id_ in (call["BackupIds"] or BACKUPS)
            and (of is None or view["FileSystem"]["FileSystemId"] in of)
        ]
    }


@answers("fsx", "DeleteBackup")
def _delete(call: Call) -> Fields:
    BACKUPS.pop(call["BackupId"])
    return {"BackupId": call["BackupId"], "Lifecycle": "DELETED"}


@answers("fsx", "CreateFileSystemFromBackup")
def _restore(call: Call) -> Fields:
    """Restore a file system. Fields that the call does not give are as they were."""
    was = BACKUPS[call["BackupId"]]["FileSystem"]
    return storage.create(
        call,
        capacity=was["StorageCapacity"],
        version=call["FileSystemTypeVersion"] or was["FileSystemTypeVersion"],
        lustre=_kept(was["LustreConfiguration"]) | (call["LustreConfiguration"] or {}),
    )


def _kept(lustre: Fields) -> Fields:
    return {key: value for key, value in lustre.items() if key != "MountName"}
