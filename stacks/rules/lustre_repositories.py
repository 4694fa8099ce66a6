"""What FSx refuses of a Lustre store's S3 repositories, before anything is created.

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

import re
from collections.abc import Iterable, Iterator
from itertools import combinations

from catalog.storage import REPOSITORIES_AT_MOST
from stacks.settings.environment import LustreConfig, RepositoryConfig
from stacks.settings.problems import InputError

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
        yield InputError(
            path=f"{path}.backup_days",
            must="be 0 with repositories: FSx backs up no file system that is linked to S3",
            got=str(lustre.backup_days),
            fix="drop backup_days; export keeps a copy",
        )
    if len(named) > REPOSITORIES_AT_MOST:  # API
        yield InputError(
            path=f"{path}.repositories",
            must=f"be at most {REPOSITORIES_AT_MOST} a file system",
            got=str(len(named)),
            fix="link a common prefix, or take a second store",
        )
    for name, each in named.items():
        yield from _alone(f"{path}.repositories.{name}", each)
    for (name, each), (other, second) in combinations(named.items(), 2):
        at = f"{path}.repositories.{other}"
        if _overlap(
            each.path, second.path
        ):  # API: no overlapping file system paths, and / only alone
            yield InputError(
                path=f"{at}.path",
                must=f"lie beside {name}'s {each.path}, neither in it nor around it",
                got=second.path,
                fix=f"a directory of its own, such as /{other}",
            )
        if _overlap(each.s3, second.s3):  # GUIDE: no overlapping data repository paths
            yield InputError(
                path=f"{at}.s3",
                must=f"lie beside {name}'s {each.s3}, neither in it nor around it",
                got=second.s3,
                fix="prefixes that do not hold each other, or one repository for both",
            )


def _alone(path: str, each: RepositoryConfig) -> Iterator[InputError]:
    if not S3_URI.fullmatch(each.s3) or len(each.s3) > S3_URI_LENGTH:
        yield InputError(
            path=f"{path}.s3",
            must="be s3://bucket/prefix/",
            got=each.s3,
            fix="a bucket has 3 to 63 of a-z, 0-9, - and .; the prefix may be left out",
        )
    steps = each.path.strip("/").split("/")
    if not each.path.startswith("/"):
        yield InputError(
            path=f"{path}.path",
            must="begin with /: it counts from the file system's root",
            got=each.path or "nothing",
            fix=f"/{each.path or 'data'}",
        )
    elif each.path != "/" and not _directory(steps) or len(each.path) > PATH_LENGTH:
        yield InputError(
            path=f"{path}.path",
            must="be a directory without empty steps, . and ..",
            got=repr(each.path),
            fix="such as /data or /sets/images",
        )
    for policy in ("auto_import", "auto_export"):
        if repeated := _repeated(getattr(each, policy)):
            yield InputError(
                path=f"{path}.{policy}",
                must="name an event once",
                got=repeated,
                fix="drop the second",
            )


def _directory(steps: list[str]) -> bool:
    return all(step not in ("", ".", "..") and step.isprintable() for step in steps)


def _repeated(events: Iterable[str]) -> str | None:
    found = list(events)
    return next((event for event in found if found.count(event) > 1), None)


def _overlap(one: str, other: str) -> bool:
    """Whether one path holds the other, or they are the same; a / at the end means nothing."""
    one, other = sorted((f"{path.rstrip('/')}/" for path in (one, other)), key=len)
    return other.startswith(one)
