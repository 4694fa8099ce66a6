"""Resource types of data: FSx for Lustre and its links to S3, EFS and its mount targets, ECR."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging, lower, renamed, snake, upper
from rehearsal.providers.wire import Properties, words

SPELLED = {"transitionToIa": "TransitionToIA"}
"""A word that EFS writes otherwise than in its own case."""
WORDS = {there: here for here, there in SPELLED.items()}
LUSTRE = words(
    "deploymentType perUnitStorageThroughput dataCompressionType automaticBackupRetentionDays"
    " metadataConfiguration efaEnabled weeklyMaintenanceStartTime"
)
"""Inputs that FSx takes and tells in a part of their own."""


@dataclass(frozen=True, kw_only=True)
class Lustre(Kind):
    def status_of(self, found: dict[str, Any]) -> str:
        """An update goes on beside the life cycle."""
        actions = {action.get("Status") for action in found.get("AdministrativeActions") or []}
        return "updating" if actions & {"PENDING", "IN_PROGRESS"} else super().status_of(found)

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        """FSx does not tell its security groups, but its network interfaces do."""
        if not (ids := found.get("NetworkInterfaceIds")):
            return {}
        answer = aws.seen("ec2", "describe_network_interfaces", NetworkInterfaceIds=ids) or {}
        groups = {
            group["GroupId"]
            for one in answer.get("NetworkInterfaces", [])
            for group in one["Groups"]
        }
        return {"networkInterfaceIds": ids, "securityGroupIds": sorted(groups)}

    def make(self, aws: Account, new: Properties) -> str:
        """From a backup, whose size FSx takes."""
        if not new.get("backupId"):
            return super().make(aws, new)
        backed = {key: value for key, value in new.items() if key != "storageCapacity"}
        kind = replace(self, create="create_file_system_from_backup")
        return super(Lustre, kind).make(aws, backed)

    def arguments(self, new: Properties, only: Any = None) -> dict[str, Any]:
        born = only is None and not new.get("backupId")
        return ({"FileSystemType": "LUSTRE"} if born else {}) | super().arguments(new, only)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """Without a last backup, which is the provider's default; a scratch file system has none anyway."""
        persistent = not str(state.get("deploymentType", "SCRATCH")).startswith("SCRATCH")
        backup = {"SkipFinalBackup": True} if persistent else None
        aws.call("fsx", "delete_file_system", FileSystemId=id_, LustreConfiguration=backup)


@dataclass(frozen=True, kw_only=True)
class Association(Kind):
    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """With its files in the file system, where the program said so."""
        aws.call(
            "fsx",
            "delete_data_repository_association",
            AssociationId=id_,
            DeleteDataInFileSystem=bool(state.get("deleteDataInFilesystem")),
        )


@dataclass(frozen=True, kw_only=True)
class FileSystem(Kind):
    """File system of EFS. Its lifecycle has calls of its own."""

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        id_ = found["FileSystemId"]
        answer = aws.seen("efs", "describe_lifecycle_configuration", FileSystemId=id_) or {}
        policies = answer.get("LifecyclePolicies")
        return {"lifecyclePolicies": self.inward("", policies)} if policies else {}

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """EFS takes a throughput with its mode only."""
        if operation == "update_file_system":
            given = self.arguments(new, words("throughputMode provisionedThroughputInMibps"))
        super().update(aws, operation, which, given, new)

    def withdraw(self, aws: Account, id_: str, keys: Collection[str], state: Properties) -> None:
        if "lifecyclePolicies" in keys and state.get("lifecyclePolicies"):
            aws.call("efs", "put_lifecycle_configuration", FileSystemId=id_, LifecyclePolicies=[])

    def outward(self, value: Any) -> Any:
        return renamed(value, lambda key: SPELLED.get(key) or upper(key))

    def inward(self, path: str, value: Any) -> Any:
        return renamed(value, lambda key: WORDS.get(key) or lower(key))


@dataclass(frozen=True, kw_only=True)
class Repository(Kind):
    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        """With its images, where the program said so; AWS refuses to otherwise."""
        aws.call(
            "ecr", "delete_repository", repositoryName=id_, force=bool(state.get("forceDelete"))
        )


@dataclass(frozen=True, kw_only=True)
class MountTarget(Kind):
    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        id_ = found["MountTargetId"]
        answer = aws.seen("efs", "describe_mount_target_security_groups", MountTargetId=id_) or {}
        return {"securityGroups": answer.get("SecurityGroups", [])}


def described(service: str, word: str, noun: str = "", *, asks: str = "") -> dict[str, Any]:
    """Row of most types: create_x, describe_xs and delete_x, by the id that AWS gives the object."""
    name, noun = snake(word), noun or word
    return {
        "token": f"aws:{service}/{lower(word)}:{word}",
        "service": service,
        "create": f"create_{name}",
        "read": f"describe_{name}s",
        "delete": f"delete_{name}",
        "found": f"{noun}s.0",
        "id": f"{{{noun}Id}}",
        "asks": {asks or f"{noun}Id": "id"},
        "status": "Lifecycle" if service == "fsx" else "LifeCycleState",
    }


KINDS = (
    Lustre(
        token="aws:fsx/lustreFileSystem:LustreFileSystem",
        service="fsx",
        create="create_file_system",
        read="describe_file_systems",
        delete="delete_file_system",
        made="FileSystem",
        found="FileSystems.0",
        id="{FileSystemId}",
        asks={"FileSystemIds": "id"},
        status="Lifecycle",
        reason="FailureDetails.Message",
        unread=words("backupId"),
        fixed=words("dataCompressionType"),
        updates=dict.fromkeys(
            words(
                "storageCapacity perUnitStorageThroughput automaticBackupRetentionDays"
                " weeklyMaintenanceStartTime"
            ),
            "update_file_system",
        ),
        chosen=words(
            "fileSystemTypeVersion automaticBackupRetentionDays metadataConfiguration efaEnabled"
            " kmsKeyId weeklyMaintenanceStartTime"
        ),
        defaults={"deploymentType": "SCRATCH_1", "dataCompressionType": "NONE", "backupId": ""},
        names={"subnetIds": "SubnetIds.0"}
        | {key: f"LustreConfiguration.{upper(key)}" for key in LUSTRE},
        outputs={
            "arn": "ResourceARN",
            "dnsName": "DNSName",
            "mountName": "LustreConfiguration.MountName",
        },
        tagging=Tagging(target="ResourceARN", by="arn"),
        minutes=30,
    ),
    Association(
        **described("fsx", "DataRepositoryAssociation", "Association", asks="AssociationIds"),
        made="Association",
        reason="FailureDetails.Message",
        local=words("deleteDataInFilesystem"),
        fixed=words("batchImportMetaDataOnCreate"),
        updates={"s3": "update_data_repository_association"},
        chosen=words("s3"),
        defaults={"deleteDataInFilesystem": False, "batchImportMetaDataOnCreate": False},
        outputs={"arn": "ResourceARN", "associationId": "AssociationId"},
        tagging=Tagging(target="ResourceARN", by="arn"),
        minutes=30,
    ),
    FileSystem(
        **described("efs", "FileSystem"),
        updates={
            "throughputMode": "update_file_system",
            "provisionedThroughputInMibps": "update_file_system",
            "lifecyclePolicies": "put_lifecycle_configuration",
        },
        later=words("lifecyclePolicies"),
        undo={"lifecyclePolicies": "put_lifecycle_configuration"},
        chosen=words("encrypted kmsKeyId provisionedThroughputInMibps"),
        defaults={"throughputMode": "bursting"},
        outputs={"arn": "FileSystemArn"},
        tagging=Tagging(target="ResourceId"),
    ),
    MountTarget(
        **described("efs", "MountTarget"),
        alone=True,
        updates={"securityGroups": "modify_mount_target_security_groups"},
        chosen=words("securityGroups"),
        outputs={"ipAddress": "IpAddress"},
        minutes=10,
    ),
    Kind(
        token="aws:efs/fileSystemPolicy:FileSystemPolicy",
        service="efs",
        create="put_file_system_policy",
        read="describe_file_system_policy",
        delete="delete_file_system_policy",
        id="{FileSystemId}",
        asks={"FileSystemId": "id"},
        updates={"policy": "put_file_system_policy"},
    ),
    Kind(
        **described("efs", "AccessPoint"),
        outputs={"arn": "AccessPointArn", "fileSystemArn": "FileSystemArn"},
        tagging=Tagging(target="ResourceId"),
    ),
    Kind(
        token="aws:ecr/lifecyclePolicy:LifecyclePolicy",
        service="ecr",
        create="put_lifecycle_policy",
        read="get_lifecycle_policy",
        delete="delete_lifecycle_policy",
        id="{repositoryName}",
        asks={"repositoryName": "id"},
        updates={"policy": "put_lifecycle_policy"},
        names={"repository": "repositoryName", "policy": "lifecyclePolicyText"},
    ),
    Repository(
        token="aws:ecr/repository:Repository",
        service="ecr",
        create="create_repository",
        read="describe_repositories",
        delete="delete_repository",
        made="repository",
        found="repositories.0",
        id="{repositoryName}",
        asks={"repositoryNames": "id"},
        local=words("forceDelete"),
        fixed=words("imageScanningConfiguration"),
        updates={"imageTagMutability": "put_image_tag_mutability"},
        names={"name": "repositoryName"},
        drops={"repositoryName": "id"},
        outputs={"arn": "repositoryArn", "repositoryUrl": "repositoryUri"},
        tagging=Tagging(
            target="resourceArn",
            by="arn",
            tags="tags",
            keys="tagKeys",
            born="tags",
            listed="list_tags_for_resource",
        ),
    ),
)
