"""Plan of an S3 store, and the rights that IAM and the bucket give.

Permissions: doc/CONFIGURATION.md of Mountpoint for Amazon S3, "IAM permissions".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from trainyard.objects.iam.policies import Document, document
from trainyard.plans.stores import StorePlan

BUCKET = re.compile(r"(?!\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
"""S3 user guide, bucketnamingrules."""
OWNED_NAMES = re.compile(
    r"^(xn--|sthree-|amzn-s3-demo-)|(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)$"
)
"""Beginnings and ends that no general purpose bucket has (S3 user guide, bucketnamingrules)."""


@dataclass(frozen=True, kw_only=True)
class S3Plan(StorePlan):
    path: str
    """The setting that names the bucket."""
    existing: str | None
    """Name of an existing bucket; None: the stack creates one."""
    name: str
    """Name of the bucket that the stack creates, without the account's id at its end: a bucket's
    name is unique among all accounts."""
    writable: bool
    """Jobs may create files."""
    kms_key_arn: str | None
    """ARN of the key that encrypts the objects. None: S3's own key."""
    abort_uploads_days: int
    """After so many days S3 removes the parts of an upload that never ended."""
    delete_after_days: tuple[tuple[str, int], ...]
    """Prefix and days after which S3 deletes the objects below it."""
    versioning: bool
    """The bucket keeps what is deleted or overwritten as an old version."""
    old_versions_days: int
    """Days that such a version stays."""


def bucket_of(url: str) -> str:
    """Name of the bucket of s3://bucket/prefix/."""
    return url.removeprefix("s3://").partition("/")[0]


def of_no_bucket(name: str) -> str:
    """The beginning or end of a name that no general purpose bucket has, such as "ends with --x-s3"; empty where
    it has none."""
    owned = OWNED_NAMES.search(name)
    if owned is None:
        return ""
    return f"{'begins' if owned.start() == 0 else 'ends'} with {owned[0]}"


def mount_statements(plan: S3Plan, bucket: str, prefix: str = "") -> list[Document]:
    """Rights of whoever mounts the bucket. `prefix`: up to a slash, and all that it sees."""
    key = [key_statement(plan.kms_key_arn, writable=plan.writable)] if plan.kms_key_arn else []
    return [
        list_statement(bucket, prefix),
        object_statement(bucket, writable=plan.writable, prefix=prefix),
        *key,
    ]


def list_statement(bucket: str, prefix: str = "") -> Document:
    """See which objects there are. `prefix`: up to a slash, which limits it to what is below."""
    limit = {"Condition": {"StringLike": {"s3:prefix": [prefix, f"{prefix}*"]}}} if prefix else {}
    return {"Sid": "List", "Action": "s3:ListBucket", "Resource": f"arn:aws:s3:::{bucket}", **limit}


def object_statement(bucket: str, *, writable: bool, prefix: str = "") -> Document:
    """Read objects, or also create them. Deleting is not allowed: the mount has no option for
    it."""
    writes = ["s3:AbortMultipartUpload", "s3:PutObject"] if writable else []
    return {
        "Sid": "Objects",
        "Action": ["s3:GetObject", *writes],
        "Resource": f"arn:aws:s3:::{bucket}/{prefix}*",
    }


def key_statement(kms_key_arn: str, *, writable: bool) -> Document:
    """Use the key of the objects."""
    writes = ["kms:GenerateDataKey"] if writable else []
    return {"Sid": "Key", "Action": ["kms:Decrypt", *writes], "Resource": kms_key_arn}


def tls_only(bucket: str) -> Document:
    """The policy of a bucket that answers nobody without TLS."""
    return document(
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "s3:*",
            "Resource": [f"arn:aws:s3:::{bucket}", f"arn:aws:s3:::{bucket}/*"],
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        }
    )
