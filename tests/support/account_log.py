"""What the rehearsal's account was asked, by its own log."""

from __future__ import annotations

import json
from pathlib import Path

from plans.policies import Document
from rehearsal.aws import identity

IAM_ACTIONS = {
    "s3:DeleteBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:DeleteBucketLifecycle": "s3:PutLifecycleConfiguration",
    "s3:DeletePublicAccessBlock": "s3:PutBucketPublicAccessBlock",
    "s3:GetBucketEncryption": "s3:GetEncryptionConfiguration",
    "s3:GetBucketLifecycleConfiguration": "s3:GetLifecycleConfiguration",
    "s3:GetPublicAccessBlock": "s3:GetBucketPublicAccessBlock",
    "s3:HeadBucket": "s3:ListBucket",
    "s3:ListObjectsV2": "s3:ListBucket",
    "s3:PutBucketEncryption": "s3:PutEncryptionConfiguration",
    "s3:PutBucketLifecycleConfiguration": "s3:PutLifecycleConfiguration",
    "s3:PutPublicAccessBlock": "s3:PutBucketPublicAccessBlock",
}
"""Call of S3 → the action that a policy names for it, where the two differ (Service Authorization
Reference, Amazon S3)."""


def asked(logs: Path) -> set[str]:
    """Calls of the user that people and the program are. `logs`: the folder with the account's
    log."""
    lines = map(json.loads, (logs / "account.jsonl").read_text().splitlines())
    calls: list[str] = [
        line["call"]
        for line in lines
        if line.get("key") == identity.DEVELOPER_KEY and "call" in line
    ]
    return {IAM_ACTIONS.get(call, call) for call in calls}


def allowed(policies: dict[str, Document]) -> set[str]:
    """Calls that some statement of the policies allows."""
    statements = [one for document in policies.values() for one in document["Statement"]]
    return {action for statement in statements for action in statement["Action"]}
