"""Rights of a team's pods in AWS: the role that EKS Pod Identity gives to the service account of
their namespace.

Source of the session tags: EKS user guide, pod-id-role and pod-id-abac. EKS puts them on the session
itself, so no pod can choose them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainyard.objects.iam.policies import Document
from trainyard.objects.iam.s3 import key_statement

SERVICE_ACCOUNT = "default"
"""ServiceAccount of all pods of a team."""


@dataclass(frozen=True, kw_only=True)
class TeamIdentityPlan:
    """The role of one team's pods, or of those of the environment's own jobs."""

    role_name: str
    namespace: str
    statements: tuple[Document, ...]
    """Statements of its policy."""
    secrets: tuple[str, ...] = ()
    """Names, prefixes and ARNs of the secrets of Secrets Manager that they read."""
    secret_keys: tuple[str, ...] = ()
    """ARNs of the KMS keys of those secrets."""


def pod_trust(cluster: Document, namespace: str, account: str = SERVICE_ACCOUNT) -> Document:
    """The trust policy of a role that pods of one service account get. `cluster`: that of a role for
    any pod of the cluster. Without the tags, whoever can make associations could give the role to
    another namespace."""
    [statement] = cluster["Statement"]
    condition: Mapping[str, Mapping[str, str]] = statement["Condition"]
    tags = {
        "aws:RequestTag/kubernetes-namespace": namespace,
        "aws:RequestTag/kubernetes-service-account": account,
    }
    narrowed = {**condition, "StringEquals": {**condition["StringEquals"], **tags}}
    return {**cluster, "Statement": [{**statement, "Condition": narrowed}]}


def s3_statements(
    *, reads: Iterable[str], writes: Iterable[str], keys: Iterable[str]
) -> tuple[Document, ...]:
    """List and read the objects under all prefixes, create and delete those under `writes`. A prefix
    is s3://bucket/ or s3://bucket/part/: what follows its slash is the team's. `keys`: ARNs of KMS
    keys."""
    written, every = sorted({*writes}), sorted({*reads, *writes})
    if not every:
        return ()
    found: list[Document] = [*_lists(every), _objects("Read", every, "s3:GetObject")]
    if written:
        actions = ("PutObject", "DeleteObject", "AbortMultipartUpload", "ListMultipartUploadParts")
        found.append(_objects("Write", written, *(f"s3:{action}" for action in actions)))
    found += [
        {**key_statement(key, writable=bool(written)), "Sid": f"Key{number}"}
        for number, key in enumerate(keys)
    ]
    return tuple(found)


def _lists(prefixes: Iterable[str]) -> Iterable[Document]:
    """A statement for each bucket: S3 asks for ListBucket on the bucket, and says the prefix."""
    inside: dict[str, list[str]] = {}
    for each in prefixes:
        bucket, _, prefix = each.removeprefix("s3://").partition("/")
        inside.setdefault(bucket, []).append(prefix)
    for number, (bucket, parts) in enumerate(inside.items()):
        whole = "" in parts
        limit = {} if whole else {"Condition": {"StringLike": {"s3:prefix": _under(parts)}}}
        yield {
            "Sid": f"List{number}",
            "Action": "s3:ListBucket",
            "Resource": f"arn:aws:s3:::{bucket}",
            **limit,
        }


def _under(prefixes: Iterable[str]) -> list[str]:
    return [pattern for prefix in prefixes for pattern in (prefix, f"{prefix}*")]


def _objects(sid: str, prefixes: Iterable[str], *actions: str) -> Document:
    arns = [f"arn:aws:s3:::{each.removeprefix('s3://')}*" for each in prefixes]
    return {"Sid": sid, "Action": [*actions], "Resource": arns}
