"""File systems that fail under a machine: full, or away. A checkpoint that is damaged.

Only what this machine mounts is concerned: to fill a file system everywhere is to fill it on each
machine. Sources of the words: mount.nfs(8), mount.lustre and errno(3).
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

from rehearsal import paths
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.process import Sandboxed

STATE = "stores"
"""File of a machine's folder that says how its file systems are; absent while they work."""
FULL, AWAY = "full", "away"
MOUNTS = {"fsx.csi.aws.com": "mount.lustre", "efs.csi.aws.com": "mount.nfs4"}
"""CSI driver → the program whose words it repeats."""
PAGE = 4096
"""Bytes of the smallest file system of memory. One file fills it."""


def break_down(folder: Path, state: str) -> None:
    """From now on the file systems of the machine with this folder are FULL or AWAY."""
    (folder / STATE).write_text(state)


def mend(folder: Path) -> None:
    """They work again for whoever mounts them from now on."""
    (folder / STATE).unlink(missing_ok=True)
    for place in (folder / FULL).glob("*"):
        subprocess.run(["umount", "--lazy", place], check=False, capture_output=True)
        place.rmdir()


def state(folder: Path) -> str:
    """FULL, AWAY or nothing."""
    file = folder / STATE
    return file.read_text() if file.exists() else ""


def seen(folder: Path, place: str) -> str:
    """Folder that a container that starts now sees in place of one that stands for a file system:
    where it is full, a copy in which nothing can be written."""
    whole = Path(place)
    if state(folder) != FULL or not whole.is_relative_to(paths.FILE_SYSTEMS):
        return place
    name = whole.relative_to(paths.FILE_SYSTEMS).parts[0]
    copy = folder / FULL / name
    if not copy.exists():
        copy.mkdir(parents=True)
        held = sum(f.stat().st_size // PAGE + 1 for f in (whole, *whole.rglob("*")))
        mount_memory(copy, held * PAGE)
        shutil.copytree(paths.FILE_SYSTEMS / name, copy, dirs_exist_ok=True, symlinks=True)
        _fill(copy / ".full")
    return str(copy / whole.relative_to(paths.FILE_SYSTEMS / name))


def reached(folder: Path, place: Path, driver: str) -> None:
    """NotReady where a file system cannot be mounted, since it does not answer. `driver`: of CSI."""
    if state(folder) == AWAY:
        name = place.relative_to(paths.FILE_SYSTEMS).parts[0]
        raise NotReady(f"{MOUNTS.get(driver, driver)}: {name}: Connection timed out")


def mount_memory(place: Path, size: int) -> None:
    """An empty file system of so many bytes."""
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", place],
        check=True,
        capture_output=True,
    )


def _fill(file: Path) -> None:
    """Until there is no space."""
    try:
        with file.open("wb", buffering=0) as out:
            while True:
                out.write(bytes(PAGE))
    except OSError:
        pass


def fill_under(process: Sandboxed, plan: Path) -> None:
    """A running container can write no more to its file systems: over each comes one of a page, which is full."""
    [first] = process.inside()[:1] or [0]
    for target in mounted(plan):
        covers = f"mount -t tmpfs -o size={PAGE} tmpfs {target} && head -c {PAGE} /dev/zero > {target}/.full"
        subprocess.run(
            ["nsenter", "-t", str(first), "-m", "sh", "-c", covers],
            check=False,
            capture_output=True,
        )


def empty_under(process: Sandboxed, plan: Path) -> None:
    """After `fill_under`."""
    [first] = process.inside()[:1] or [0]
    for target in mounted(plan):
        bared = f"test -e {target}/.full && umount --lazy {target}"
        subprocess.run(
            ["nsenter", "-t", str(first), "-m", "sh", "-c", bared], check=False, capture_output=True
        )


def mounted(plan: Path) -> list[str]:
    """Where a container mounts file systems, by its plan."""
    listed = json.loads(plan.read_text())["mounts"]
    return [one["target"] for one in listed if one["source"].startswith(str(paths.FILE_SYSTEMS))]


def damage_checkpoint(plan: Path) -> str:
    """Cut the newest file of a container's checkpoints in half; its name, or nothing."""
    for folder in _checkpoints(plan):
        files = [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > 1]
        if files:
            newest = max(files, key=lambda file: file.stat().st_mtime)
            os.truncate(newest, newest.stat().st_size // 2)
            return newest.name
    return ""


def _checkpoints(plan: Path) -> Iterator[Path]:
    """The folder of this machine behind CHECKPOINT_DIR."""
    said = json.loads(plan.read_text())
    wanted = Path(said["env"].get("CHECKPOINT_DIR", "/dev/null"))
    for one in sorted(said["mounts"], key=lambda one: -len(one["target"])):
        if one["source"] and wanted.is_relative_to(one["target"] or "/"):
            yield Path(one["source"], one["inside"], wanted.relative_to(one["target"]))
            return
