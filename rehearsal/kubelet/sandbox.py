"""Program inside a container's namespaces: builds its root file system from a Plan in JSON, then
becomes its command.

It runs as `python -I -S sandbox.py plan.json` under unshare and must need nothing but the standard
library. What is mounted into which kind of container is decided in process.py.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC = 1, 2, 4, 0x1000, 0x4000
MNT_DETACH = 2
SYS_MOUNT_SETATTR, AT_FDCWD, AT_RECURSIVE, MOUNT_ATTR_RDONLY = 442, -100, 0x8000, 1
START_ERROR = 128
"""Exit code containerd reports when a command cannot be executed."""
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")

libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, what: str) -> None:
    """Turn a failed system call into an OSError that says which."""
    if result:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")


def mount(source: str, target: str, kind: str = "", flags: int = 0, data: str = "") -> None:
    """mount(2)."""
    check(
        libc.mount(
            source.encode(), target.encode(), kind.encode() or None, flags, data.encode() or None
        ),
        f"mount {source} on {target}",
    )


def read_only(target: str) -> None:
    """mount_setattr(2), recursively: a plain remount would have to repeat every locked flag of the
    host's mount."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    check(
        libc.syscall(
            SYS_MOUNT_SETATTR, AT_FDCWD, target.encode(), AT_RECURSIVE, ctypes.byref(attributes), 32
        ),
        f"make {target} read-only",
    )


def bind(root: str, source: str, target: str, readonly: bool) -> None:
    """A file or folder of the host at `target`; a symbolic link such as /lib of a merged /usr is
    repeated."""
    place = root + target
    os.makedirs(os.path.dirname(place), exist_ok=True)
    if os.path.islink(source) and source == target:
        os.symlink(os.readlink(source), place)
        return
    if os.path.isdir(source):
        os.makedirs(place, exist_ok=True)
    else:
        open(place, "a").close()
    mount(source, place, flags=MS_BIND | MS_REC)
    if readonly:
        read_only(place)


def tmpfs(root: str, target: str, size: str) -> None:
    """Memory of a limited size."""
    os.makedirs(root + target, exist_ok=True)
    mount("tmpfs", root + target, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=1777")


def populate(root: str, plan: dict[str, Any]) -> None:
    """Everything the container sees."""
    mount("tmpfs", root, "tmpfs", MS_NODEV, "mode=755")
    for folder in plan["folders"]:
        os.makedirs(root + folder, exist_ok=True)
    for device in DEVICES:
        bind(root, f"/dev/{device}", f"/dev/{device}", False)
    os.makedirs(root + "/proc")
    mount("proc", root + "/proc", "proc")
    for one in sorted(plan["mounts"], key=lambda m: m["target"].count("/")):
        if one["size"]:
            tmpfs(root, one["target"], one["size"])
        else:
            bind(root, one["source"], one["target"], one["read_only"])
    for link, target in plan["links"].items():
        os.makedirs(os.path.dirname(root + link), exist_ok=True)
        os.symlink(target, root + link)
    for path, text in plan["files"].items():
        os.makedirs(os.path.dirname(root + path), exist_ok=True)
        with open(root + path, "w") as file:
            file.write(text)


def enter(root: str) -> None:
    """Make `root` the root and forget the host's."""
    os.chdir(root)
    check(libc.pivot_root(b".", b"."), "pivot_root")
    check(libc.umount2(b".", MNT_DETACH), "leave the host's root")
    os.chdir("/")


def main(path: str) -> None:
    """Never returns where the command can be executed."""
    with open(path) as file:
        plan = json.load(file)
    name = plan["hostname"].encode()
    check(libc.sethostname(name, len(name)), "sethostname")
    populate(plan["root"], plan)
    enter(plan["root"])
    os.makedirs(plan["folder"], exist_ok=True)
    os.chdir(plan["folder"])
    try:
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])
    except OSError as error:
        print(f'exec: "{plan["argv"][0]}": {error.strerror}', file=sys.stderr)
        sys.exit(START_ERROR)


if __name__ == "__main__":
    main(sys.argv[1])
