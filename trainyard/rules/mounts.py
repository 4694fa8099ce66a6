"""Errors about mounts that hide something a container needs."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from trainyard.problems import At, InputError

SYSTEM = (
    *("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/sbin", "/sys", "/usr"),
    *("/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/local/lib", "/usr/sbin"),
)
"""Folders in which a container has its programs and devices; folders below may be mounted."""
PROC = "/proc/"
"""runc refuses mounts below it (libcontainer, checkProcMount)."""


def mount_path_errors(path: str, place: At) -> Iterator[InputError]:
    """Every error of a path at which something is mounted; a relative one begins at /, as kubelet
    reads it."""
    plain = posixpath.normpath(f"/{path.lstrip('/')}")
    if plain in SYSTEM or plain.startswith(PROC):
        yield place.must(
            f"not hide {plain} of the container, without which no program starts",
            got=path[:60],
            fix="write a folder of its own, such as /data",
        )
    elif ".." in path.split("/"):
        yield place.must("not contain `..`", got=path[:60], write=plain)
