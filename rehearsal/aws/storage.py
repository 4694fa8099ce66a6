"""FSx for Lustre, which is all ours.

What it refuses in a file system: lustre_limits.py. Links to S3:
https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html. Every bucket
exists and lets FSx in, and nothing is carried over.
"""

from __future__ import annotations

import secrets
import time

from rehearsal.aws import backends, lustre_limits, network
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, refuse, refuses

FILE_SYSTEMS: dict[str, Fields] = {}
"""Lustre file systems by id, as the API shows them."""

ASSOCIATIONS: dict[str, Fields] = {}
"""Links of theirs to S3 by id, as the API shows them."""
LINKS_AT_MOST = 8
SCALED: dict[str, float] = {}
"""File system → when its size or throughput was changed last."""
BETWEEN_CHANGES = 6 * 3600
"""Seconds from one such change to the next, at least (managing-storage-capacity and
managing-throughput-capacity of the user guide)."""


def here(call: Call, held: dict[str, Fields] = FILE_SYSTEMS) -> dict[str, Fields]:
    """Things in `held` that are in the region of the call."""
    return {
        id_: view for id_, view in held.items() if f":fsx:{call.region}:" in view["ResourceARN"]
    }


def _absent(call: Call, word: str, held: dict[str, Fields]) -> str:
    """Ids that the call names and `held` does not have, in one line."""
    return ", ".join({*(call[f"{word}s"] or [call[word] or ""])} - {*here(call, held), ""})


def linked(file_system: str) -> list[Fields]:
    """Its links to S3."""
    return [link for link in ASSOCIATIONS.values() if link["FileSystemId"] == file_system]


def _overlapping(call: Call) -> str:
    """Id of a link of the file system whose path holds the new link's path, or lies in it."""

    def ends(link: Fields | Call, key: str) -> str:
        return f"{(link[key] or '').rstrip('/')}/"

    return next(
        (
            link["AssociationId"]
            for link in linked(call["FileSystemId"])
            for key in ("FileSystemPath", "DataRepositoryPath")
            if ends(link, key).startswith(ends(call, key))
            or ends(call, key).startswith(ends(link, key))
        ),
        "",
    )


refuses(
    "fsx",
    "CreateFileSystem",
    "NotImplemented",
    "the rehearsal's account does not implement fsx:CreateFileSystem with {hit}",
    lustre_limits.not_built,
    status=501,
)
refuses(
    "fsx",
    "CreateFileSystem",
    "BadRequest",
    "{hit}",
    lambda call: lustre_limits.bad_size(call["StorageCapacity"] or 0, call["LustreConfiguration"]),
)
refuses(
    "fsx",
    "CreateFileSystem",
    "BadRequest",
    "FileSystemTypeVersion {FileSystemTypeVersion} is not supported",
    lambda call: call["FileSystemTypeVersion"] not in lustre_limits.VERSIONS,
)
refuses(
    "fsx",
    "CreateFileSystem UpdateFileSystem",
    "BadRequest",
    "WeeklyMaintenanceStartTime is invalid",
    lambda call: lustre_limits.bad_window(call["LustreConfiguration"]),
)
refuses(
    "fsx",
    "CreateFileSystem",
    "InvalidNetworkSettings",
    "The file system cannot be created because the security "
    f"groups do not permit Lustre LNET network traffic on port {lustre_limits.LUSTRE_PORT}",
    lustre_limits.closed_to_lustre,
)
refuses(
    "fsx",
    "CreateFileSystem",
    "InvalidNetworkSettings",
    "The file system cannot be created because no security "
    "group allows all traffic to and from itself, which EFA needs",
    lustre_limits.closed_to_efa,
)
refuses(
    "fsx",
    "DescribeFileSystems UpdateFileSystem DeleteFileSystem CreateDataRepositoryAssociation",
    "FileSystemNotFound",
    "File system '{hit}' does not exist.",
    lambda call: _absent(call, "FileSystemId", FILE_SYSTEMS),
)
refuses(
    "fsx",
    "UpdateFileSystem DeleteFileSystem",
    "BadRequest",
    "{FileSystemId} is {hit}, not AVAILABLE",
    lambda call: (
        (state := FILE_SYSTEMS[call["FileSystemId"]]["Lifecycle"]) != "AVAILABLE" and state
    ),
)

refuses(
    "fsx",
    "UpdateFileSystem",
    "BadRequest",
    "{FileSystemId} is linked to a data repository: it has no backups",
    lambda call: (
        (call["LustreConfiguration"] or {}).get("AutomaticBackupRetentionDays")
        and linked(call["FileSystemId"])
    ),
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "BadRequest",
    "{FileSystemId} is {hit}",
    lambda call: (state := FILE_SYSTEMS[call["FileSystemId"]]["Lifecycle"]) == "DELETING" and state,
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "BadRequest",
    "{FileSystemId} has backups, so it cannot be linked to a data repository",
    lambda call: FILE_SYSTEMS[call["FileSystemId"]]["LustreConfiguration"][
        "AutomaticBackupRetentionDays"
    ],
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "BadRequest",
    "FileSystemPath {FileSystemPath} must begin with /",
    lambda call: not (call["FileSystemPath"] or "").startswith("/"),
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "BadRequest",
    "DataRepositoryPath {DataRepositoryPath} must begin with s3://",
    lambda call: not call["DataRepositoryPath"].startswith("s3://"),
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "BadRequest",
    "The path overlaps with that of {hit}",
    _overlapping,
)
refuses(
    "fsx",
    "CreateDataRepositoryAssociation",
    "ServiceLimitExceeded",
    "{FileSystemId} has {hit} data repository associations",
    lambda call: (held := len(linked(call["FileSystemId"]))) >= LINKS_AT_MOST and held,
)
refuses(
    "fsx",
    "DescribeDataRepositoryAssociations UpdateDataRepositoryAssociation"
    " DeleteDataRepositoryAssociation",
    "DataRepositoryAssociationNotFound",
    "Data repository association '{hit}' does not exist.",
    lambda call: _absent(call, "AssociationId", ASSOCIATIONS),
)
refuses(
    "fsx",
    "UpdateDataRepositoryAssociation",
    "BadRequest",
    "{AssociationId} is {hit}, not AVAILABLE",
    lambda call: (
        (state := ASSOCIATIONS[call["AssociationId"]]["Lifecycle"]) != "AVAILABLE" and state
    ),
)


@answers("fsx", "CreateFileSystem")
def _create(call: Call) -> Fields:
    return create(
        call,
        capacity=call["StorageCapacity"],
        version=call["FileSystemTypeVersion"],
        lustre=call["LustreConfiguration"],
    )


def create(call: Call, *, capacity: int, version: str, lustre: Fields) -> Fields:
    """A new file system, in the subnet and with the groups of the call."""
    id_, subnet = f"fs-0{secrets.token_hex(8)}", call.ec2.get_subnet(call["SubnetIds"][0])
    eni = network.own_interface(
        call.region, subnet.id, call["SecurityGroupIds"], f"Created by Amazon FSx for {id_}"
    )
    view = FILE_SYSTEMS[id_] = {
        "OwnerId": backends.ACCOUNT,
        "CreationTime": time.time(),
        "FileSystemId": id_,
        "FileSystemType": "LUSTRE",
        "Lifecycle": "CREATING",
        "StorageCapacity": capacity,
        "VpcId": subnet.vpc_id,
        "StorageType": "SSD",
        "SubnetIds": [subnet.id],
        "NetworkInterfaceIds": [eni],
        "KmsKeyId": call["KmsKeyId"],
        "DNSName": f"{id_}.fsx.{call.region}.amazonaws.com",
        "Tags": list(call["Tags"] or ()),
        "ResourceARN": f"arn:aws:fsx:{call.region}:{backends.ACCOUNT}:file-system/{id_}",
        "FileSystemTypeVersion": version,
        "LustreConfiguration": {
            "WeeklyMaintenanceStartTime": "7:00:00",
            "DataCompressionType": "NONE",
            "CopyTagsToBackups": False,
            "AutomaticBackupRetentionDays": 0,
            "LogConfiguration": {"Level": "DISABLED"},
            "MountName": secrets.token_hex(4),
            **lustre,
        },
    }
    CLOCK.later("fsx.lustre", lambda: view.update(Lifecycle="AVAILABLE"))
    return {"FileSystem": view}


answers("fsx", "DescribeFileSystems")(
    lambda call: {
        "FileSystems": [
            view
            for id_, view in here(call).items()
            if id_ in (call["FileSystemIds"] or FILE_SYSTEMS)
        ]
    }
)


@answers("fsx", "UpdateFileSystem")
def _update(call: Call) -> Fields:
    """Another size, throughput or number of backups, at once."""
    view = FILE_SYSTEMS[call["FileSystemId"]]
    lustre = view["LustreConfiguration"] | (call["LustreConfiguration"] or {})
    capacity = call["StorageCapacity"] or view["StorageCapacity"]
    wrong = lustre_limits.bad_size(capacity, lustre)
    refuse(
        wrong or capacity < view["StorageCapacity"],
        "BadRequest",
        wrong or "A file system can only grow",
    )
    faster = lustre.get("PerUnitStorageThroughput") != view["LustreConfiguration"].get(
        "PerUnitStorageThroughput"
    )
    refuse(
        faster and lustre.get("EfaEnabled"),
        "BadRequest",
        "The throughput of a file system with EFA is fixed",
    )
    if capacity != view["StorageCapacity"] or faster:
        refuse(
            time.time() - SCALED.get(view["FileSystemId"], 0) < BETWEEN_CHANGES,
            "BadRequest",
            f"{view['FileSystemId']} was scaled less than 6 hours ago",
        )
        SCALED[view["FileSystemId"]] = time.time()
    view.update(LustreConfiguration=lustre, StorageCapacity=capacity)
    return {"FileSystem": view}


@answers("fsx", "DeleteFileSystem")
def _delete(call: Call) -> Fields:
    view = FILE_SYSTEMS[call["FileSystemId"]]
    view["Lifecycle"] = "DELETING"

    def gone() -> None:
        network.drop_interfaces(call.region, view["NetworkInterfaceIds"])
        for link in linked(view["FileSystemId"]):
            del ASSOCIATIONS[link["AssociationId"]]
        del FILE_SYSTEMS[view["FileSystemId"]]

    CLOCK.later("fsx.lustre.delete", gone)
    return {"FileSystemId": view["FileSystemId"], "Lifecycle": "DELETING"}


@answers("fsx", "CreateDataRepositoryAssociation")
def _link(call: Call) -> Fields:
    """Queued until the file system is there."""
    id_, file_system = f"dra-0{secrets.token_hex(8)}", call["FileSystemId"]
    view = ASSOCIATIONS[id_] = {
        "AssociationId": id_,
        "FileSystemId": file_system,
        "Lifecycle": "CREATING",
        "CreationTime": time.time(),
        "ResourceARN": (
            f"arn:aws:fsx:{call.region}:{backends.ACCOUNT}:association/{file_system}/{id_}"
        ),
        "FileSystemPath": call["FileSystemPath"],
        "DataRepositoryPath": call["DataRepositoryPath"],
        "BatchImportMetaDataOnCreate": bool(call["BatchImportMetaDataOnCreate"]),
        "ImportedFileChunkSize": call["ImportedFileChunkSize"] or 1024,
        "S3": call["S3"] or {},
        "Tags": list(call["Tags"] or ()),
    }

    def ready() -> None:
        if view["Lifecycle"] == "CREATING":  # and not on its way out, or gone with its file system
            view["Lifecycle"] = "AVAILABLE"

    CLOCK.later(
        "fsx.association",
        ready,
        ready=lambda: FILE_SYSTEMS.get(file_system, {}).get("Lifecycle") != "CREATING",
    )
    return {"Association": view}


@answers("fsx", "DescribeDataRepositoryAssociations")
def _describe_links(call: Call) -> Fields:
    asked = {one["Name"]: one["Values"] for one in call["Filters"] or ()}
    of = asked.get("file-system-id", FILE_SYSTEMS)
    return {
        "Associations": [
            view
            for id_, view in here(call, ASSOCIATIONS).items()
            if id_ in (call["AssociationIds"] or ASSOCIATIONS) and view["FileSystemId"] in of
        ]
    }


@answers("fsx", "UpdateDataRepositoryAssociation")
def _relink(call: Call) -> Fields:
    """Other policies, at once; one that is not named stays."""
    view = ASSOCIATIONS[call["AssociationId"]]
    view["S3"] = view["S3"] | (call["S3"] or {})
    return {"Association": view}


@answers("fsx", "DeleteDataRepositoryAssociation")
def _unlink(call: Call) -> Fields:
    view = ASSOCIATIONS[call["AssociationId"]]
    view["Lifecycle"] = "DELETING"

    def gone() -> None:
        ASSOCIATIONS.pop(view["AssociationId"], None)

    CLOCK.later("fsx.association.delete", gone)
    return {
        "AssociationId": view["AssociationId"],
        "Lifecycle": "DELETING",
        "DeleteDataInFileSystem": bool(call["DeleteDataInFileSystem"]),
    }


@answers("fsx", "TagResource", "UntagResource")
def _tags(call: Call) -> Fields:
    view = (FILE_SYSTEMS | ASSOCIATIONS)[call["ResourceARN"].rpartition("/")[2]]
    replaced = {tag["Key"] for tag in call["Tags"] or ()} | set(call["TagKeys"] or ())
    view["Tags"] = [tag for tag in view["Tags"] if tag["Key"] not in replaced] + list(
        call["Tags"] or ()
    )
    return {}
