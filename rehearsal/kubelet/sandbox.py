"""Program inside a container's namespaces: builds its root file system from a Plan in JSON, then becomes its command.

It runs as `python -I -S sandbox.py plan.json` under unshare and must need nothing but the standard library. What is
mounted into which kind of container is decided in process.py.

A job writes into its volumes what it likes, symbolic links, too. So sources are opened before anything is mounted,
those in a volume without leaving it; and targets are resolved after a chroot."""

from __future__ import annotations

import ctypes
import json
import os
import select
import stat
import sys
from typing import Any

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_BIND, MS_REC = 1, 2, 4, 0x1000, 0x4000
MNT_DETACH = 2
SYS_OPENAT2, RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH = 437, 0x02, 0x08
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
    """mount_setattr(2), recursively: a plain remount would have to repeat every locked flag of the host's mount."""
    attributes = (ctypes.c_uint64 * 4)(MOUNT_ATTR_RDONLY, 0, 0, 0)
    check(
        libc.syscall(
            SYS_MOUNT_SETATTR, AT_FDCWD, target.encode(), AT_RECURSIVE, ctypes.byref(attributes), 32
        ),
        f"make {target} read-only",
    )


def resolve(folder: int, path: str) -> int:
    """openat2(2): a descriptor of a path below a folder; OSError where the path, or a symbolic link
    on its way, leaves the folder."""
    flags = os.O_PATH | os.O_CLOEXEC, 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS
    how = (ctypes.c_uint64 * 3)(*flags)
    found = libc.syscall(SYS_OPENAT2, folder, path.encode(), ctypes.byref(how), ctypes.sizeof(how))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
    return int(found)


def beneath(folder: str, path: str, *, make: bool = True) -> int:
    """A descriptor of a path below a folder, as resolve() finds it. `make`: folders that are missing
    on the way."""
    top, there = os.open(folder, os.O_PATH), "."
    found = resolve(top, there)
    for word in filter(None, path.split("/")):
        there, parent = f"{there}/{word}", found
        try:
            found = resolve(top, there)
        except FileNotFoundError:
            if not make:
                raise
            os.mkdir(word, dir_fd=parent)
            found = resolve(top, there)
        os.close(parent)
    os.close(top)
    return found


def opened(one: dict[str, Any]) -> int | str:
    """A mount's source: its descriptor; or the text of a symbolic link such as /lib of a merged
    /usr, which is repeated."""
    if one["inside"]:
        return beneath(one["source"], one["inside"])
    if os.path.islink(one["source"]) and one["source"] == one["target"]:
        return os.readlink(one["source"])
    return os.open(one["source"], os.O_PATH)


def bind(source: int | str, target: str, readonly: bool) -> None:
    """An opened source at `target`."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if isinstance(source, str):
        os.symlink(source, target)
        return
    if stat.S_ISDIR(os.fstat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        open(target, "a").close()
    mount(f"/proc/self/fd/{source}", target, flags=MS_BIND | MS_REC)
    if readonly:
        read_only(target)


def tmpfs(target: str, size: str) -> None:
    """Memory of a limited size."""
    os.makedirs(target, exist_ok=True)
    mount("tmpfs", target, "tmpfs", MS_NOSUID | MS_NODEV, f"size={size},mode=1777")


def populate(plan: dict[str, Any], mounts: list[tuple[dict[str, Any], int | str]]) -> None:
    """Everything the container sees, with its root as ours. `mounts`: each with its opened
    source."""
    os.makedirs("/proc")
    mount("proc", "/proc", "proc")
    for folder in plan["folders"]:
        os.makedirs(folder, exist_ok=True)
    for one, source in mounts:
        if one["size"]:
            tmpfs(one["target"], one["size"])
        else:
            bind(source, one["target"], one["read_only"])
    for link, target in plan["links"].items():
        os.makedirs(os.path.dirname(link), exist_ok=True)
        os.symlink(target, link)
    for path, text in plan["files"].items():
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(text)


def build(root: str, plan: dict[str, Any]) -> None:
    """The container's file system at `root`."""
    devices = [
        {"source": place, "target": place, "inside": "", "size": "", "read_only": False}
        for place in (f"/dev/{device}" for device in DEVICES)
    ]
    wanted = [*devices, *sorted(plan["mounts"], key=lambda one: one["target"].count("/"))]
    mounts = [(one, "" if one["size"] else opened(one)) for one in wanted]
    outside = os.open("/", os.O_RDONLY)
    mount("tmpfs", root, "tmpfs", MS_NODEV, "mode=755")
    os.chroot(root)
    os.chdir("/")
    populate(plan, mounts)
    os.fchdir(outside)
    os.chroot(".")


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
    build(plan["root"], plan)
    enter(plan["root"])
    os.makedirs(plan["folder"], exist_ok=True)
    os.chdir(plan["folder"])
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    # Its reader, the machine, may have died before unshare had asked to be killed with it.
    if any(event & select.POLLERR for _, event in output.poll(0)):
        sys.exit(START_ERROR)
    try:
        os.execvpe(plan["argv"][0], plan["argv"], plan["env"])
    except OSError as error:
        print(f'exec: "{plan["argv"][0]}": {error.strerror}', file=sys.stderr)
        sys.exit(START_ERROR)


if __name__ == "__main__":
    main(sys.argv[1])
