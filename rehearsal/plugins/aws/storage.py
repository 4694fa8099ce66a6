"""File systems: FSx for Lustre, EFS and its mount targets."""

from __future__ import annotations

from typing import Any

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.aws.kind import Minutes, Pascal, Seen, Tagging, lower, pairs, unpaired
from rehearsal.plugins.wire import Properties, words


class LustreFileSystem(Pascal):
    token = "aws:fsx/lustreFileSystem:LustreFileSystem"
    service = "fsx"
    tagging = Tagging(target="ResourceARN", by="arn")
    general = words("storageCapacity storageType subnetIds securityGroupIds kmsKeyId fileSystemTypeVersion")
    repository = words("importPath exportPath autoImportPolicy importedFileChunkSize")
    """Lustre's inputs that AWS tells back in a part of their own."""
    lustre = repository | words(
        "deploymentType perUnitStorageThroughput dataCompressionType driveCacheType efaEnabled copyTagsToBackups "
        "automaticBackupRetentionDays dailyAutomaticBackupStartTime weeklyMaintenanceStartTime metadataConfiguration "
        "logConfiguration rootSquashConfiguration throughputCapacity"
    )
    local = words("skipFinalBackup")
    inputs = general | lustre | local
    replaces = words(
        "storageType subnetIds securityGroupIds kmsKeyId fileSystemTypeVersion deploymentType driveCacheType "
        "efaEnabled importPath exportPath importedFileChunkSize copyTagsToBackups"
    )
    chosen = words(
        "storageType kmsKeyId fileSystemTypeVersion automaticBackupRetentionDays dailyAutomaticBackupStartTime "
        "weeklyMaintenanceStartTime metadataConfiguration logConfiguration efaEnabled importedFileChunkSize"
    )
    defaults = {"deploymentType": "SCRATCH_1", "dataCompressionType": "NONE"}
    minutes = Minutes(create=30, update=30, delete=30)

    def create(self, aws: Account, new: Properties) -> str:
        general = {"FileSystemType": "LUSTRE", "Tags": pairs(new["tags"]) or None, **self.split(new, self.inputs)}
        return aws.call("fsx", "create_file_system", **general)["FileSystem"]["FileSystemId"]

    def split(self, new: Properties, only: frozenset[str]) -> dict[str, Any]:
        """The parameters: the general ones, and Lustre's in an object of their own."""
        general = self.arguments(new, only & self.general)
        if "SubnetIds" in general:
            general["SubnetIds"] = [new["subnetIds"]]
        lustre = self.arguments(new, only & self.lustre)
        return general | ({"LustreConfiguration": lustre} if lustre else {})

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("fsx", "describe_file_systems", FileSystemIds=[id_])
        if not answer or not answer["FileSystems"]:
            return None
        found = answer["FileSystems"][0]
        lustre = found.get("LustreConfiguration", {})
        state = self.known({**found, **lustre, **lustre.get("DataRepositoryConfiguration", {})}) | {
            "subnetIds": found["SubnetIds"][0],
            "arn": found["ResourceARN"],
            "dnsName": found["DNSName"],
            "mountName": lustre.get("MountName", ""),
            **{lower(key): found.get(key) for key in ("NetworkInterfaceIds", "OwnerId", "VpcId")},
            **self.groups(aws, found.get("NetworkInterfaceIds", [])),
        }
        actions = [action.get("Status") for action in found.get("AdministrativeActions", [])]
        status = "UPDATING" if {"PENDING", "IN_PROGRESS"} & {*actions} else found["Lifecycle"]
        reason = found.get("FailureDetails", {}).get("Message", "")
        return Seen(state=state, tags=unpaired(found.get("Tags")), status=status, reason=reason)

    def groups(self, aws: Account, interfaces: list[str]) -> Properties:
        """FSx does not tell its security groups, but its network interfaces do."""
        answer = aws.seen("ec2", "describe_network_interfaces", NetworkInterfaceIds=interfaces) if interfaces else None
        groups = {group["GroupId"] for one in (answer or {}).get("NetworkInterfaces", []) for group in one["Groups"]}
        return {"securityGroupIds": sorted(groups)} if groups else {}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if parts := self.split({**self.defaults, **new}, changed - self.local):
            aws.call("fsx", "update_file_system", FileSystemId=id_, **parts)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        scratch = str(state.get("deploymentType", "SCRATCH_1")).startswith("SCRATCH")
        backup = None if scratch else {"SkipFinalBackup": state.get("skipFinalBackup", True)}
        aws.call("fsx", "delete_file_system", FileSystemId=id_, LustreConfiguration=backup)


class FileSystem(Pascal):
    token = "aws:efs/fileSystem:FileSystem"
    service = "efs"
    tagging = Tagging(target="ResourceId")
    later = words("lifecyclePolicies protection")
    replaces = words("creationToken performanceMode encrypted kmsKeyId availabilityZoneName")
    inputs = replaces | later | words("throughputMode provisionedThroughputInMibps")
    chosen = words("kmsKeyId protection encrypted")
    auto_name = "creationToken"
    defaults = {"performanceMode": "generalPurpose", "throughputMode": "bursting"}

    def create(self, aws: Account, new: Properties) -> str:
        tags = pairs(new["tags"]) or None
        return aws.call("efs", "create_file_system", **self.arguments(new), Tags=tags)["FileSystemId"]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("efs", "describe_file_systems", FileSystemId=id_)
        if not answer or not answer["FileSystems"]:
            return None
        found = answer["FileSystems"][0]
        policies = aws.seen("efs", "describe_lifecycle_configuration", FileSystemId=id_) or {}
        size = found.get("SizeInBytes", {})
        state = self.known(found) | {
            "arn": found["FileSystemArn"],
            "dnsName": f"{id_}.efs.{aws.region}.amazonaws.com",
            "name": found.get("Name", ""),
            "ownerId": found["OwnerId"],
            "numberOfMountTargets": found.get("NumberOfMountTargets", 0),
            "availabilityZoneId": found.get("AvailabilityZoneId", ""),
            "sizeInBytes": [{lower(key): size[key] for key in size if key != "Timestamp"}],
            "lifecyclePolicies": [from_lifecycle(policy) for policy in policies.get("LifecyclePolicies", [])],
        }
        if protection := found.get("FileSystemProtection"):
            state["protection"] = {"replicationOverwrite": protection.get("ReplicationOverwriteProtection")}
        return Seen(state=state, tags=unpaired(found.get("Tags")), status=found["LifeCycleState"])

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if "lifecyclePolicies" in changed:
            policies = [to_lifecycle(policy) for policy in new.get("lifecyclePolicies") or []]
            aws.call("efs", "put_lifecycle_configuration", FileSystemId=id_, LifecyclePolicies=policies)
        if "protection" in changed and (mode := (new.get("protection") or {}).get("replicationOverwrite")):
            operation = "update_file_system_protection"
            aws.call("efs", operation, FileSystemId=id_, ReplicationOverwriteProtection=mode)
        if parts := self.arguments({**self.defaults, **new}, changed - self.later):
            aws.call("efs", "update_file_system", FileSystemId=id_, **parts)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("efs", "delete_file_system", FileSystemId=id_)


def to_lifecycle(policy: dict[str, str]) -> dict[str, str]:
    return {"TransitionToIA" if k == "transitionToIa" else k[:1].upper() + k[1:]: v for k, v in policy.items()}


def from_lifecycle(policy: dict[str, str]) -> dict[str, str]:
    return {"transitionToIa" if k == "TransitionToIA" else lower(k): v for k, v in policy.items()}


class MountTarget(Pascal):
    token = "aws:efs/mountTarget:MountTarget"
    replaces = words("fileSystemId subnetId ipAddress")
    inputs = replaces | words("securityGroups")
    chosen = words("ipAddress securityGroups")
    minutes = Minutes(create=30, delete=10)

    def create(self, aws: Account, new: Properties) -> str:
        return aws.call("efs", "create_mount_target", **self.arguments(new))["MountTargetId"]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("efs", "describe_mount_targets", MountTargetId=id_)
        if not answer or not answer["MountTargets"]:
            return None
        found = answer["MountTargets"][0]
        groups = aws.seen("efs", "describe_mount_target_security_groups", MountTargetId=id_) or {}
        file_system, owner = found["FileSystemId"], found["OwnerId"]
        name = f"{file_system}.efs.{aws.region}.amazonaws.com"
        fields = "availabilityZoneId availabilityZoneName networkInterfaceId ownerId"
        state = self.known(found) | {
            **{key: found.get(key[:1].upper() + key[1:]) for key in words(fields)},
            "securityGroups": groups.get("SecurityGroups", []),
            "dnsName": name,
            "mountTargetDnsName": f"{found.get('AvailabilityZoneName')}.{name}",
            "fileSystemArn": aws.arn("elasticfilesystem", owner, f"file-system/{file_system}"),
        }
        return Seen(state=state, status=found["LifeCycleState"])

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        groups = new.get("securityGroups")
        aws.call("efs", "modify_mount_target_security_groups", MountTargetId=id_, SecurityGroups=groups)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("efs", "delete_mount_target", MountTargetId=id_)


KINDS = (LustreFileSystem, FileSystem, MountTarget)
