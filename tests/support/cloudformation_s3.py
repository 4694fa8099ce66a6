"""Resources of a bucket in CloudFormation's words: all but its policy are properties of one
AWS::S3::Bucket there, and each is judged as a bucket with that property alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

Properties = dict[str, Any]
ENCRYPTION = {
    "applyServerSideEncryptionByDefault": "ServerSideEncryptionByDefault",
    "bucketKeyEnabled": "BucketKeyEnabled",
    "kmsMasterKeyId": "KMSMasterKeyID",
    "sseAlgorithm": "SSEAlgorithm",
}
EXPIRATION = {
    "days": "ExpirationInDays",
    "expiredObjectDeleteMarker": "ExpiredObjectDeleteMarker",
}
"""Input of a rule of expiration → property of the rule of the lifecycle."""


def _bucket(inputs: Properties) -> Properties:
    """Deleting the objects first is the provider's."""
    tags = [{"Key": key, "Value": value} for key, value in inputs["tags"].items()]
    return {"BucketName": inputs["bucket"], "Tags": tags}


def _policy(inputs: Properties) -> Properties:
    return {"Bucket": inputs["bucket"], "PolicyDocument": json.loads(inputs["policy"])}


def _private(inputs: Properties) -> Properties:
    blocks = {_title(key): value for key, value in inputs.items() if key != "bucket"}
    return _with(inputs, "PublicAccessBlockConfiguration", blocks)


def _encrypted(inputs: Properties) -> Properties:
    rules = [_renamed(rule, ENCRYPTION) for rule in inputs["rules"]]
    return _with(inputs, "BucketEncryption", {"ServerSideEncryptionConfiguration": rules})


def _aging(inputs: Properties) -> Properties:
    return _with(inputs, "LifecycleConfiguration", {"Rules": [_rule(r) for r in inputs["rules"]]})


def _rule(rule: Properties) -> Properties:
    """CloudFormation has prefix and expiration in the rule itself."""
    found = {key: value for key, value in rule.items() if key not in ("filter", "expiration")}
    return {
        **_renamed(found, {}),
        **_renamed(rule["filter"], {}),
        **_renamed(rule.get("expiration", {}), EXPIRATION),
    }


def _versions(inputs: Properties) -> Properties:
    return _with(inputs, "VersioningConfiguration", _renamed(inputs["versioningConfiguration"], {}))


def _with(inputs: Properties, name: str, value: Properties) -> Properties:
    return {"BucketName": inputs["bucket"], name: value}


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    """Keys by the table, and all others with a capital letter."""
    if not isinstance(value, dict):
        return value
    return {
        names.get(key) or _title(key): _renamed(inner, names)
        for key, inner in value.items()
        if inner is not None
    }


def _title(key: str) -> str:
    return key[0].upper() + key[1:]


BUCKETS: Mapping[str, Callable[[Properties], Properties]] = {
    "aws:s3/bucket:Bucket": _bucket,
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": _aging,
    "aws:s3/bucketPolicy:BucketPolicy": _policy,
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": _private,
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
        _encrypted
    ),
    "aws:s3/bucketVersioning:BucketVersioning": _versions,
}
"""Type of a resource of a bucket → its translation."""
