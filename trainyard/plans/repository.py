"""A link between a Lustre file system and S3: a setting of the stack file that the component gets
as it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

S3Event = Literal["NEW", "CHANGED", "DELETED"]


@dataclass(frozen=True, kw_only=True)
class Repository:
    """Links a directory of the file system to an S3 prefix (a data repository association of
    FSx)."""

    s3: str
    """The bucket and, optionally, a prefix: s3://bucket/prefix/. The bucket must exist. FSx reads
    it with a role of its own."""
    path: str
    """The directory, from the root of the file system: /data. A job finds it below the path where
    it mounts the store."""
    auto_import: tuple[S3Event, ...] = ("NEW", "CHANGED", "DELETED")
    """Changes in the bucket that appear in the directory. The bucket must be in `aws:region`."""
    auto_export: tuple[S3Event, ...] = ()
    """Changes in the directory that are written to the bucket. By default nothing is written, which
    is the recommended value."""
    import_at_creation: bool = True
    """`true`: files that are in the bucket before the link appear in the directory. Their contents
    are loaded when a file is first read."""
    delete_data_in_filesystem: bool = False
    """`true`: the directory's files are deleted from the file system when the link is removed. The bucket
    keeps its files."""
