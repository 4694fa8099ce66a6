"""Owners of directories of an EFS file system, and rights of an access point's user in them.

One user writes every file of this machine, so owners are remembered beside the file system.
Source: EFS user guide, efs-access-points and accessing-fs-nfs-permissions.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT, USUAL = 0, "0755"
"""The owner and the mode of what nobody has set, such as the root of a new file system."""
BITS = {"r": 4, "w": 2, "x": 1}


def make(whole: Path, path: str, info: dict[str, Any]) -> None:
    """The root directory of an access point, with the owner of its CreationInfo. Directories above it
    that are missing are made as well, with the same owner."""
    known, place = _owners(whole), whole
    for part in path.strip("/").split("/"):
        place /= part
        if not place.exists():
            place.mkdir()
            known[str(place.relative_to(whole))] = info
    _register(whole).write_text(json.dumps(known))


def rights(whole: Path, path: str, user: dict[str, Any] | None) -> str:
    """Letters of r, w and x that the user of an access point has in a directory. Without a user it
    is the client's, which is root in a pod, and EFS does not squash root."""
    if user is None or user["Uid"] == ROOT:
        return "rwx"
    info = _owners(whole).get(path.strip("/"), {})
    mode = int(info.get("Permissions", USUAL), 8)
    groups = {user["Gid"], *user.get("SecondaryGids", ())}
    if info.get("OwnerUid", ROOT) == user["Uid"]:
        mode >>= 6
    elif info.get("OwnerGid", ROOT) in groups:
        mode >>= 3
    return "".join(letter for letter, bit in BITS.items() if mode & bit)


def _register(whole: Path) -> Path:
    return whole.parent / f".{whole.name}.owners"


def _owners(whole: Path) -> dict[str, Any]:
    """Directory, from the root of the file system → its CreationInfo."""
    file = _register(whole)
    return json.loads(file.read_text()) if file.exists() else {}
