"""Acts of programs that not every kind of store can do: one row for each kind, act → what stands in its
way there. The words follow "is on store x,", and {by} is the program. An act that a row lacks works as on a
disk of the node. Who does what: trainyard/rules/writes.py.
"""

from __future__ import annotations

from collections.abc import Mapping

RENAME = "rename"
"""To write under a temporary name and rename, to change or to lock a file."""
APPEND = "append"
"""To write at the end of a file that is there."""
LINK = "link"
"""To make a symbolic link."""
DATABASE = "database"
"""To share a database of SQLite among the processes of several nodes."""
MANY = "many"
"""To make thousands of small files."""
Row = Mapping[str, str]

NO_CHANGES = "whose files cannot be renamed, appended to or locked, which {by} must do there"
OVER_THE_NETWORK = "where {by} is for the processes of one node: with several nodes it is locked for long, or damaged"
AT_S3: Row = {
    RENAME: NO_CHANGES,
    APPEND: NO_CHANGES,
    DATABASE: NO_CHANGES,
    LINK: "which has no links, and {by} makes one there",
    MANY: "which takes a request to S3 for each of the many small files that {by} makes there",
}
"""Mountpoint for Amazon S3, doc/SEMANTICS.md."""
AT_EFS: Row = {
    DATABASE: OVER_THE_NETWORK,
    MANY: "which takes some milliseconds for each of the many small files that {by} makes there",
}
"""EFS user guide, performance and limits: each operation is a round trip over NFS, and locks are NFS's. SQLite,
wal.html and faq.html (5)."""
AT_LUSTRE: Row = {DATABASE: OVER_THE_NETWORK}
"""SQLite, wal.html. Clients mount with flock, so that locks hold for all nodes."""
