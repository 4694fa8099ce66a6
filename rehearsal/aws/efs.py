"""EFS, which is moto's with the time and the interfaces it takes."""

from __future__ import annotations

import time
from typing import Any

from rehearsal.aws import backends, principals
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, follows, refuse, refuses
from rehearsal.aws.policies import Ask

refuses(
    "efs",
    "CreateMountTarget",
    "IncorrectFileSystemLifeCycleState",
    "{FileSystemId} is {hit}",
    lambda call: next(
        (
            state
            for id_, one in backends.efs(call.region).file_systems_by_id.items()
            if id_ == call["FileSystemId"] and (state := one.life_cycle_state) != "available"
        ),
        "",
    ),
)
refuses(
    "efs",
    "DeleteMountTarget",
    "MountTargetNotFound",
    "Mount target '{MountTargetId}' does not exist.",
    lambda call: call["MountTargetId"] not in backends.efs(call.region).mount_targets_by_id,
)


refuses(
    "efs",
    "CreateFileSystem UpdateFileSystem",
    "BadRequest",
    "{hit}",
    lambda call: _bad_throughput(call["ThroughputMode"], call["ProvisionedThroughputInMibps"]),
)
refuses(
    "efs",
    "UpdateFileSystem DescribeLifecycleConfiguration PutLifecycleConfiguration"
    " PutFileSystemPolicy DescribeFileSystemPolicy DeleteFileSystemPolicy",
    "FileSystemNotFound",
    "File system '{FileSystemId}' does not exist.",
    lambda call: call["FileSystemId"] not in backends.efs(call.region).file_systems_by_id,
)
refuses(
    "efs",
    "PutLifecycleConfiguration",
    "BadRequest",
    "{hit}",
    lambda call: _bad_lifecycle(
        backends.efs(call.region).file_systems_by_id[call["FileSystemId"]].throughput_mode,
        call["LifecyclePolicies"] or [],
    ),
)


def _bad_throughput(mode: str | None, mibps: float | None) -> str:
    """EFS API, CreateFileSystem."""
    if (mode == "provisioned") == (mibps is not None):
        return ""
    return f"ThroughputMode {mode or 'bursting'} and ProvisionedThroughputInMibps {mibps}"


def _bad_lifecycle(mode: str, policies: list[Fields]) -> str:
    """EFS API, PutLifecycleConfiguration: each transition in an object of its own; the archive needs
    elastic throughput, and comes after Infrequent Access."""
    if any(len(policy) != 1 for policy in policies):
        return "each LifecyclePolicy has one transition"
    moves = {key: value for policy in policies for key, value in policy.items()}
    if "TransitionToArchive" not in moves:
        return ""
    if mode != "elastic":
        return f"Archive is not supported with throughput mode {mode}"
    infrequent, archive = (
        int(moves.get(key, "AFTER_0_DAYS").split("_")[1])
        for key in ("TransitionToIA", "TransitionToArchive")
    )
    return "" if archive > infrequent else "TransitionToArchive must be later than TransitionToIA"


@answers("efs", "UpdateFileSystem")
def _update(call: Call) -> Fields:
    """Another throughput, at once; EFS takes one change of the mode, or one decrease, in 24 hours."""
    system = backends.efs(call.region).file_systems_by_id[call["FileSystemId"]]
    mode, mibps = call["ThroughputMode"], call["ProvisionedThroughputInMibps"]
    less = (mibps or 0) < (system.provisioned_throughput_in_mibps or 0)
    if mode != system.throughput_mode or less:
        refuse(
            time.time() - _LOWERED.get(system.file_system_id, 0) < A_DAY,
            "TooManyRequests",
            f"the throughput of {system.file_system_id} was changed less than 24 hours ago",
        )
        _LOWERED[system.file_system_id] = time.time()
    system.throughput_mode, system.provisioned_throughput_in_mibps = mode, mibps
    return system.info_json


_LOWERED: dict[str, float] = {}
"""File system → when its mode changed last, or its throughput became less."""
A_DAY = 86_400


@answers("efs", "DeleteFileSystemPolicy")
def _delete_policy(call: Call) -> Fields:
    backends.efs(call.region).file_systems_by_id[call["FileSystemId"]].file_system_policy = None
    return {}


CLIENT = ("ClientMount", "ClientWrite", "ClientRootAccess")


def client_actions(region: str, id_: str, role: str, *, tls: bool) -> list[str]:
    """Actions that a client of a mount target may do: without a policy all, whoever it is (user
    guide, iam-access-control-nfs-efs). `role`: ARN; empty of a client that mounts without one."""
    system = backends.efs(region).file_systems_by_id[id_]
    if not system.file_system_policy:
        return [*CLIENT]
    context = {
        "aws:SecureTransport": str(tls).lower(),
        "elasticfilesystem:AccessedViaMountTarget": "true",
    }
    arn = system.file_system_arn
    return [
        action
        for action in CLIENT
        if principals.says(
            role,
            system.file_system_policy,
            Ask(action=f"elasticfilesystem:{action}", resource=arn, context=context),
        )
        == "Allow"
    ]


@follows("efs", "CreateFileSystem")
def _system_comes_up(call: Call, answer: Fields) -> None:
    _comes_up(
        "efs.file-system",
        backends.efs(call.region).file_systems_by_id[answer["FileSystemId"]],
        answer,
    )


@follows("efs", "CreateMountTarget")
def _target_comes_up(call: Call, answer: Fields) -> None:
    target = backends.efs(call.region).mount_targets_by_id[answer["MountTargetId"]]
    eni = call.ec2.enis[target.network_interface_id]
    eni.requester_managed, eni.status, eni.description = (
        True,
        "in-use",
        f"EFS mount target for {target.file_system_id} ({target.mount_target_id})",
    )
    _comes_up("efs.mount-target", target, answer)


def _comes_up(what: str, part: Any, answer: Fields) -> None:
    part.life_cycle_state = answer["LifeCycleState"] = "creating"
    CLOCK.later(what, lambda: setattr(part, "life_cycle_state", "available"))


@answers("efs", "DeleteMountTarget")
def _delete_target(call: Call) -> Fields:
    backend, id_ = backends.efs(call.region), call["MountTargetId"]
    if backend.mount_targets_by_id[id_].life_cycle_state != "deleting":
        backend.mount_targets_by_id[id_].life_cycle_state = "deleting"
        CLOCK.later("efs.mount-target.delete", lambda: backend.delete_mount_target(id_))
    return {}
