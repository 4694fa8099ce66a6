"""Policies `encrypted`, `own-key` and `buckets-own-key`: what is encrypted, and with whose key."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Any

from policy_pack.kinds import (
    BUCKET,
    BUCKET_KEY,
    EFS,
    REPOSITORY,
    TRUE,
    VOLUME,
    boots_from_unnamed,
    disks,
    key_of,
)
from policy_pack.resource import Config, Resource, as_list
from trainyard.catalog.aws_types.table import AWS_TYPES

KEYS: dict[str, str] = {
    **{kind: row.key for kind, row in AWS_TYPES.items() if row.key},
    "aws:secretsmanager/secret:Secret": "kmsKeyId",
}
"""Type → path of the one key that encrypts it."""
BUCKET_RULE = "applyServerSideEncryptionByDefault"


def encrypted(resource: Resource, _: Config) -> Iterator[str]:
    """Disks, of nodes and by themselves, and EFS. FSx, S3, ECR, SNS and the secrets of EKS are always
    encrypted."""
    if resource.type == EFS and resource.part("encrypted") is not True:
        yield "must be encrypted at rest"
    if boots_from_unnamed(resource):
        yield "must name its disks: what the AMI brings need not be encrypted"
    for name, disk in disks(resource):
        if disk.get("encrypted") not in TRUE:
            is_one = resource.type == VOLUME
            yield "must be encrypted at rest" if is_one else f"must encrypt the disk {name}"


def own_key(resource: Resource, config: Config) -> Iterator[str]:
    """A key of AWS's own cannot be taken away from AWS, nor its use be read in the company's trail."""
    for what, key in _keys(resource):
        if not _is_ours(key, config):
            yield f"must encrypt {what} with a key of the company; got {key or 'a key of AWS'}"


def buckets_own_key(resources: list[Resource], _: Config) -> Iterator[tuple[str, str]]:
    """A bucket by itself is encrypted with a key of S3."""
    named = {urn for one in resources if one.type == BUCKET_KEY for urn in one.needs}
    for one in resources:
        if one.type == BUCKET and one.urn not in named:
            yield one.urn, "must have a BucketServerSideEncryptionConfiguration with a key"


def _keys(resource: Resource) -> Iterator[tuple[str, Any]]:
    """(what, key) of all that a resource stores."""
    if resource.type in KEYS:
        yield "what it stores", resource.part(*KEYS[resource.type].split("."))
    for name, disk in disks(resource):
        yield f"the disk {name}", key_of(disk)
    if resource.type == BUCKET_KEY:
        for rule in as_list(resource.part("rules")):
            yield "new objects", (rule.get(BUCKET_RULE) or {}).get("kmsMasterKeyId")
    if resource.type == REPOSITORY:
        given = as_list(resource.part("encryptionConfigurations"))
        yield "its images", given[0].get("kmsKey") if given else None


def _is_ours(key: Any, config: Config) -> bool:
    return any(fnmatch.fnmatchcase(str(key or ""), f"{each}*") for each in config["keys"])
