"""FSx for Lustre, which is all ours, and EFS, which is moto's with the time and the interfaces it takes.

Sizes and throughputs: https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
"""

from __future__ import annotations

import secrets
import time
from typing import Any

from rehearsal.account import backends, network
from rehearsal.account.clock import CLOCK
from rehearsal.account.operations import Call, Fields, NotBuilt, Refused, answers, follows, refuses

THROUGHPUTS = {("PERSISTENT_1", "SSD"): (50, 100, 200), ("PERSISTENT_1", "HDD"): (12, 40),
               ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000), ("SCRATCH_1", "SSD"): (None,),
               ("SCRATCH_2", "SSD"): (None,)}
"""(deployment type, storage type) → MB/s per TiB to choose from."""
SMALLEST, STEPS = 1200, {("SCRATCH_1", None): 3600, ("PERSISTENT_1", 12): 6000, ("PERSISTENT_1", 40): 1800}
"""GiB. SSD starts with 1200 and 2400, then goes in steps of 2400 or the one here, by deployment type and throughput."""
LUSTRE_PORT = 988
VERSIONS = ("2.10", "2.12", "2.15")
_KNOWN = frozenset({"WeeklyMaintenanceStartTime", "DeploymentType", "PerUnitStorageThroughput", "EfaEnabled",
                    "DailyAutomaticBackupStartTime", "AutomaticBackupRetentionDays", "CopyTagsToBackups",
                    "DataCompressionType", "RootSquashConfiguration", "MetadataConfiguration"})

FILE_SYSTEMS: dict[str, Fields] = {}
"""Lustre file systems by id, as the API shows them."""


def _lustre(call: Call) -> Fields:
    return {"DeploymentType": "SCRATCH_1"} | (call["LustreConfiguration"] or {})


def _bad_size(capacity: int, storage: str, lustre: Fields) -> str:
    """What is wrong with it, if anything."""
    kind, throughput = lustre["DeploymentType"], lustre.get("PerUnitStorageThroughput")
    step = STEPS.get((kind, throughput), 2400)
    if (kind, storage) not in THROUGHPUTS:
        return f"{storage} storage is not supported with deployment type {kind}"
    if throughput not in THROUGHPUTS[kind, storage]:
        return f"PerUnitStorageThroughput {throughput} is not one of {THROUGHPUTS[kind, storage]} for {kind} {storage}"
    if capacity < 1 or (capacity % step and (storage != "SSD" or capacity not in (SMALLEST, 2 * SMALLEST))):
        return f"StorageCapacity {capacity} is invalid for {kind} {storage}: increments of {step} GiB"
    if kind != "PERSISTENT_2" and (lustre.get("MetadataConfiguration") or lustre.get("EfaEnabled")):
        return f"MetadataConfiguration and EfaEnabled need PERSISTENT_2, not {kind}"
    return "EfaEnabled needs a MetadataConfiguration" if _efa_without_metadata(lustre) else ""


def _efa_without_metadata(lustre: Fields) -> bool:
    return bool(lustre.get("EfaEnabled")) and not lustre.get("MetadataConfiguration")


def _closed_to_lustre(call: Call) -> bool:
    """FSx checks at creation that clients could reach it."""
    rules = [rule for id_ in _groups(call) for rule in call.ec2.get_security_group_from_id(id_).ingress_rules]
    return not any(rule.ip_protocol == "-1" or (rule.ip_protocol == "tcp" and rule.from_port <= LUSTRE_PORT
                                                <= rule.to_port) for rule in rules)


def _groups(call: Call) -> list[str]:
    vpc = network.placed(call.region, call["SubnetIds"], call["SecurityGroupIds"] or (), _NETWORK)[0].vpc_id
    return call["SecurityGroupIds"] or [call.ec2.get_default_security_group(vpc).id]


_NETWORK = "InvalidNetworkSettings"
refuses("fsx", "CreateFileSystem", "NotImplemented", "the rehearsal's account does not implement fsx:CreateFileSystem "
        "with {hit}", lambda call: ", ".join(sorted(set(_lustre(call)) - _KNOWN)) or (
            call["FileSystemType"] != "LUSTRE" and call["FileSystemType"]), status=501)
refuses("fsx", "CreateFileSystem", "BadRequest", "{hit}",
        lambda call: _bad_size(call["StorageCapacity"] or 0, call["StorageType"] or "SSD", _lustre(call)))
refuses("fsx", "CreateFileSystem", "BadRequest", "FileSystemTypeVersion {FileSystemTypeVersion} is not supported",
        lambda call: call["FileSystemTypeVersion"] not in (None, *VERSIONS))
refuses("fsx", "CreateFileSystem", _NETWORK, "A Lustre file system takes exactly one subnet",
        lambda call: len(call["SubnetIds"]) != 1)
refuses("fsx", "CreateFileSystem", _NETWORK, "The file system cannot be created because the default security group in "
        "the subnet provided or the provided security groups do not permit Lustre LNET network traffic on port "
        f"{LUSTRE_PORT}", _closed_to_lustre)
refuses("fsx", "UpdateFileSystem DeleteFileSystem", "FileSystemNotFound", "File system '{FileSystemId}' does not "
        "exist.", lambda call: call["FileSystemId"] not in _here(call))
refuses("fsx", "DescribeFileSystems", "FileSystemNotFound", "File system '{hit}' does not exist.",
        lambda call: ", ".join(sorted(set(call["FileSystemIds"] or ()) - set(_here(call)))))
refuses("fsx", "UpdateFileSystem DeleteFileSystem", "BadRequest", "{FileSystemId} is {hit}, not AVAILABLE",
        lambda call: (state := FILE_SYSTEMS[call["FileSystemId"]]["Lifecycle"]) != "AVAILABLE" and state)
refuses("fsx", "UpdateFileSystem", "BadRequest", "The storage capacity of a file system can only grow",
        lambda call: call["StorageCapacity"] and call["StorageCapacity"] <= FILE_SYSTEMS[
            call["FileSystemId"]]["StorageCapacity"])


def _here(call: Call) -> dict[str, Fields]:
    return {id_: view for id_, view in FILE_SYSTEMS.items() if f":fsx:{call.region}:" in view["ResourceARN"]}


@answers("fsx", "CreateFileSystem")
def _create(call: Call) -> Fields:
    id_, lustre, subnet = f"fs-0{secrets.token_hex(8)}", _lustre(call), call.ec2.get_subnet(call["SubnetIds"][0])
    eni = network.own_interface(call.region, subnet.id, _groups(call), f"Created by Amazon FSx for {id_}")
    view = FILE_SYSTEMS[id_] = {
        "OwnerId": backends.ACCOUNT, "CreationTime": time.time(), "FileSystemId": id_, "FileSystemType": "LUSTRE",
        "Lifecycle": "CREATING", "StorageCapacity": call["StorageCapacity"], "VpcId": subnet.vpc_id,
        "StorageType": call["StorageType"] or "SSD", "SubnetIds": [subnet.id], "NetworkInterfaceIds": [eni],
        "DNSName": f"{id_}.fsx.{call.region}.amazonaws.com", "Tags": list(call["Tags"] or ()),
        "KmsKeyId": call["KmsKeyId"],
        "ResourceARN": f"arn:aws:fsx:{call.region}:{backends.ACCOUNT}:file-system/{id_}",
        "FileSystemTypeVersion": call["FileSystemTypeVersion"] or (
            "2.15" if lustre.get("MetadataConfiguration") else "2.10"),
        "LustreConfiguration": {
            "WeeklyMaintenanceStartTime": "7:00:00", "DataCompressionType": "NONE", "CopyTagsToBackups": False,
            "AutomaticBackupRetentionDays": 0, "LogConfiguration": {"Level": "DISABLED"}, **lustre,
            "MountName": "fsx" if lustre["DeploymentType"] == "SCRATCH_1" else secrets.token_hex(4)}}
    CLOCK.later("fsx.lustre", lambda: view.update(Lifecycle="AVAILABLE"))
    return {"FileSystem": view}


@answers("fsx", "DescribeFileSystems")
def _describe(call: Call) -> Fields:
    asked = call["FileSystemIds"] or FILE_SYSTEMS
    return {"FileSystems": [view for id_, view in _here(call).items() if id_ in asked]}


@answers("fsx", "UpdateFileSystem")
def _update(call: Call) -> Fields:
    view = FILE_SYSTEMS[call["FileSystemId"]]
    lustre = view["LustreConfiguration"] | (call["LustreConfiguration"] or {})
    capacity = call["StorageCapacity"] or view["StorageCapacity"]
    if wrong := _bad_size(capacity, view["StorageType"], lustre):
        raise Refused("BadRequest", wrong)
    view.update(LustreConfiguration=lustre, StorageCapacity=capacity, Lifecycle="UPDATING")
    CLOCK.later("fsx.lustre.update", lambda: view.update(Lifecycle="AVAILABLE"))
    return {"FileSystem": view}


@answers("fsx", "DeleteFileSystem")
def _delete(call: Call) -> Fields:
    view = FILE_SYSTEMS[call["FileSystemId"]]
    if (call["LustreConfiguration"] or {}).get("SkipFinalBackup") is False:
        raise NotBuilt("final backups of FSx file systems")
    view["Lifecycle"] = "DELETING"

    def gone() -> None:
        network.drop_interfaces(call.region, view["NetworkInterfaceIds"])
        del FILE_SYSTEMS[view["FileSystemId"]]

    CLOCK.later("fsx.lustre.delete", gone)
    return {"FileSystemId": view["FileSystemId"], "Lifecycle": "DELETING"}


@answers("fsx", "TagResource", "UntagResource", "ListTagsForResource")
def _tags(call: Call) -> Fields:
    view = next((view for view in FILE_SYSTEMS.values() if view["ResourceARN"] == call["ResourceARN"]), None)
    if view is None:
        raise Refused("ResourceNotFound", f"No resource has the ARN {call['ResourceARN']}")
    replaced = {tag["Key"] for tag in call["Tags"] or ()} | set(call["TagKeys"] or ())
    view["Tags"] = [tag for tag in view["Tags"] if tag["Key"] not in replaced] + list(call["Tags"] or ())
    return {"Tags": view["Tags"]} if call.action == "ListTagsForResource" else {}


def _efs(call: Call) -> Any:
    return backends.efs(call.region).file_systems_by_id.get(call["FileSystemId"])


refuses("efs", "CreateFileSystem", "BadRequest", "ProvisionedThroughputInMibps goes with throughput mode provisioned",
        lambda call: (call["ThroughputMode"] == "provisioned") != bool(call["ProvisionedThroughputInMibps"]))
refuses("efs", "CreateFileSystem", "BadRequest", "Elastic throughput needs the performance mode generalPurpose",
        lambda call: (call["ThroughputMode"], call["PerformanceMode"]) == ("elastic", "maxIO"))
refuses("efs", "CreateMountTarget", "IncorrectFileSystemLifeCycleState", "{FileSystemId} is {hit}",
        lambda call: (system := _efs(call)) and system.life_cycle_state != "available" and system.life_cycle_state)
refuses("efs", "DeleteFileSystem UpdateFileSystem", "FileSystemNotFound", "'{FileSystemId}' does not exist.",
        lambda call: not _efs(call))
refuses("efs", "DeleteFileSystem", "FileSystemInUse", "Must delete all mount targets before deleting file system.",
        lambda call: _efs(call).number_of_mount_targets)
refuses("efs", "DeleteMountTarget", "MountTargetNotFound", "Mount target '{MountTargetId}' does not exist.",
        lambda call: call["MountTargetId"] not in backends.efs(call.region).mount_targets_by_id)



@answers("efs", "UpdateFileSystem")
def _update_system(call: Call) -> Fields:
    system = _efs(call)
    system.throughput_mode = call["ThroughputMode"] or system.throughput_mode
    system.provisioned_throughput_in_mibps = call["ProvisionedThroughputInMibps"]
    return system.info_json()


@follows("efs", "CreateFileSystem")
def _system_comes_up(call: Call, answer: Fields) -> None:
    system = backends.efs(call.region).file_systems_by_id[answer["FileSystemId"]]
    system.life_cycle_state = answer["LifeCycleState"] = "creating"
    CLOCK.later("efs.file-system", lambda: setattr(system, "life_cycle_state", "available"))


@follows("efs", "CreateMountTarget")
def _target_comes_up(call: Call, answer: Fields) -> None:
    target = backends.efs(call.region).mount_targets_by_id[answer["MountTargetId"]]
    eni = call.ec2.enis[target.network_interface_id]
    eni.requester_managed, eni.status = True, "in-use"
    eni.description = f"EFS mount target for {target.file_system_id} ({target.mount_target_id})"
    target.life_cycle_state = answer["LifeCycleState"] = "creating"
    CLOCK.later("efs.mount-target", lambda: setattr(target, "life_cycle_state", "available"))


@answers("efs", "DeleteMountTarget")
def _delete_target(call: Call) -> Fields:
    backend, target = backends.efs(call.region), backends.efs(call.region).mount_targets_by_id[call["MountTargetId"]]
    if target.life_cycle_state != "deleting":
        target.life_cycle_state = "deleting"
        CLOCK.later("efs.mount-target.delete", lambda: backend.delete_mount_target(call["MountTargetId"]))
    return {}


@answers("efs", "DeleteFileSystem")
def _delete_system(call: Call) -> Fields:
    system, backend = _efs(call), backends.efs(call.region)
    if system.life_cycle_state != "deleting":
        system.life_cycle_state = "deleting"
        CLOCK.later("efs.file-system.delete", lambda: backend.delete_file_system(system.file_system_id))
    return {}
