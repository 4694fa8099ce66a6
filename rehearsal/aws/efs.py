"""EFS, which is moto's with the time and the interfaces it takes."""

from __future__ import annotations

from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, follows, refuses

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
