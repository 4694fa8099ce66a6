"""Errors about S3 repositories of a Lustre store that FSx refuses.

Sources: FSx for Lustre user guide, create-dra-linked-data-repo (GUIDE), and
CreateDataRepositoryAssociation of the FSx API as botocore 1.44.5 documents it (API); read
2026-11-21. SCRATCH_2 may have repositories as PERSISTENT_2 may: "all FSx for Lustre 2.12 and 2.15
file systems, excluding scratch_1" (API).

Not to be known here: whether the bucket exists, and whether it lies in the file system's region,
without which nothing is imported automatically (GUIDE); export crosses regions. Whoever runs the
stack needs iam:CreateServiceLinkedRole, iam:AttachRolePolicy and iam:PutRolePolicy, since FSx makes
itself a role for the bucket (user guide, setting-up).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from itertools import combinations, islice

from trainyard.catalog.aws.storage import REPOSITORIES_AT_MOST
from trainyard.objects.iam.s3 import bucket_of, of_no_bucket
from trainyard.plans.repository import Repository
from trainyard.problems import REMOVE, At, InputError
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.stores import LustreConfig

S3_URI = re.compile(
    r"s3://(?!\d+\.\d+\.\d+\.\d+(?:/|$))(?!.*\.\.[^/]*(?:/|$))[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
    r"(?:/[^\x00-\x1f\x85\u2028\u2029]*)?"
)
"""Bucket names: S3 user guide, bucketnamingrules."""
S3_URI_LENGTH, PATH_LENGTH = 900, 4096
"""Characters at most: terraform-provider-aws, data_repository_association.go, stricter than the
API's 4,357; API."""


def repository_errors(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    """Every error of a store's repositories. `path`: the store's `lustre`."""
    named = lustre.repositories
    if named and lustre.backup_days:  # GUIDE: disable backups before linking
        restored = lustre.restore_from is not None  # which goes on with the backups that it had
        yield At(f"{path}.backup_days").must(
            "not be set with repositories: FSx makes no backups of a file system with links to S3",
            got=lustre.backup_days,
            fix=f"{'write 0' if restored else 'delete it'}; to copy new files to S3, write auto_export: [NEW, CHANGED]"
            f" under repositories.{next(iter(named))}",
            write=0 if restored else REMOVE,
        )
    buckets = {each.s3.removeprefix("s3://").partition("/")[0] for each in named.values()}
    if len(named) > REPOSITORIES_AT_MOST:  # API
        yield At(f"{path}.repositories").must(
            f"have at most {REPOSITORIES_AT_MOST} repositories, as FSx allows for a file system",
            got=len(named),
            fix=f"move {len(named) - REPOSITORIES_AT_MOST} of them to a second store of Lustre"
            + ", or link the common prefix of those in one bucket" * (len(buckets) < len(named)),
        )
    for name, each in named.items():
        yield from _single(f"{path}.repositories.{name}", each)
    # Each with each of thousands takes minutes.
    allowed = islice(named.items(), REPOSITORIES_AT_MOST)
    for (name, each), (other, second) in combinations(allowed, 2):
        at = f"{path}.repositories.{other}"
        if overlap(
            each.path, second.path
        ):  # API: no overlapping file system paths, and / only alone
            yield At(f"{at}.path").must(
                f"not overlap with path {each.path} of repository {name}",
                got=second.path,
                fix=_own_path(other, named.values()),
                write=f"/{other}" if each.path != "/" else None,
            )
        if overlap(each.s3, second.s3):  # GUIDE: no overlapping data repository paths
            yield At(f"{at}.s3").must(
                f"not overlap with {each.s3} of repository {name}",
                got=second.s3,
                fix=f"delete one of the two, or write a prefix outside of {each.s3}",
            )


def _plain(path: str) -> str:
    """The directory to which a path leads; /data where FSx takes no such directory."""
    plain = posixpath.normpath(f"/{path.strip('/')}")
    taken = _directory(plain.strip("/").split("/")) and len(plain) <= PATH_LENGTH
    return plain if taken else "/data"


def _uri(text: str) -> str:
    """The URI of a bucket that a text means, such as an address of S3's web service; empty where none is."""
    host = re.fullmatch(r"https?://([\w.-]+?)\.s3[\w.-]*\.amazonaws\.com(/.*)?", text)
    path = re.fullmatch(r"https?://s3[\w.-]*\.amazonaws\.com/([^/]+)(/.*)?", text)
    found = (
        host or path or re.fullmatch(r"(?:[sS]3:|arn:aws:s3:::)?/*([a-z0-9.-]{3,63})(/.*)?", text)
    )
    uri = f"s3://{found[1]}{(found[2] or '').rstrip('/')}/" if found else ""
    return uri if S3_URI.fullmatch(uri) and len(uri) <= S3_URI_LENGTH else ""


def _no_uri(path: str, text: str) -> Iterator[InputError]:
    if not S3_URI.fullmatch(text) or len(text) > S3_URI_LENGTH:
        meant = _uri(text)
        yield At(f"{path}.s3").must(
            "begin with s3:// and a bucket, whose name has 3 to 63 of a-z, 0-9, - and .",
            got=text or "nothing",
            fix=f"write {meant}" if meant else "write one such as s3://bucket/prefix/",
            write=meant or "s3://bucket/prefix/",
        )
    elif owned := of_no_bucket(bucket_of(text)):
        yield At(f"{path}.s3").must(
            f"be in a general purpose bucket, whose name never {owned}",
            got=text,
            fix=f"name another bucket, or delete {path}",
        )


def _single(path: str, each: Repository) -> Iterator[InputError]:
    yield from _no_uri(path, each.s3)
    steps = each.path.strip("/").split("/")
    if not each.path.startswith("/"):
        yield At(f"{path}.path").must(
            "begin with /, the root of the file system",
            got=each.path or "nothing",
            fix=f"write /{each.path or 'data'}",
            write=f"/{each.path or 'data'}",
        )
    elif each.path != "/" and not _directory(steps) or len(each.path) > PATH_LENGTH:
        yield At(f"{path}.path").must(
            "be a directory without empty names, . and ..",
            got=repr(each.path)[:80],
            write=_plain(each.path),
        )
    yield from _events(path, each)


def _events(path: str, each: Repository) -> Iterator[InputError]:
    for policy in ("auto_import", "auto_export"):
        events = getattr(each, policy)
        once = list(dict.fromkeys(events))
        if len(once) < len(events):
            yield At(f"{path}.{policy}").must(
                "list each event once",
                got=as_yaml(events),
                fix=f"write {as_yaml(once)}",
                write=once,
            )


def _directory(steps: list[str]) -> bool:
    return all(step not in ("", ".", "..") and step.isprintable() for step in steps)


def _own_path(name: str, named: Iterable[Repository]) -> str:
    if any(each.path == "/" for each in named):
        return "delete one of the two, or write another path than /, which is the whole file system"
    return f"write a directory of its own, such as /{name}"


def overlap(one: str, other: str) -> bool:
    """True where one path contains the other or equals it; a / at the end means nothing."""
    one, other = sorted((f"{path.rstrip('/')}/" for path in (one, other)), key=len)
    return other.startswith(one)
