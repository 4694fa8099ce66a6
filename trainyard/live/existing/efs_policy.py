"""The policy of an existing EFS file system, as `trainyard check --live` judges it: pods mount such a file system
without an IAM role, and a policy can let only roles in.

Source: EFS user guide, iam-access-control-nfs-efs: without a policy every client of a mount target has full access, and
DescribeFileSystemPolicy answers PolicyNotFound; ClientMount is read-only access, ClientWrite adds writing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from trainyard.plans.stores import ExistingEfsPlan
from trainyard.problems import At, InputWarning

MOUNT, WRITE = "elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"


def policy_warnings(store: ExistingEfsPlan, policy: str) -> Iterator[InputWarning]:
    """A policy that lets nobody mount the file system, or write to it, who has no role. Conditions and denials are
    not judged. `policy`: as JSON; empty where there is none."""
    if not policy:
        return
    statements = json.loads(policy)["Statement"]
    open_to_all = [
        each
        for each in ([statements] if isinstance(statements, dict) else statements)
        if each["Effect"] == "Allow" and _is_everybody(each.get("Principal"))
    ]
    lacking = [action for action in (MOUNT, WRITE) if not _allowed(action, open_to_all)]
    if lacking:
        cannot = "mount it: such a pod never starts" if MOUNT in lacking else "write to it"
        yield At(store.path).warning(
            f"the policy of {store.file_system_id} does not let everybody {' and '.join(lacking)}. Pods mount it"
            f' without an IAM role, so jobs cannot {cannot}. Have its owner allow both to Principal "*";'
            f" aws efs describe-file-system-policy --file-system-id {store.file_system_id} prints the policy"
        )


def _is_everybody(principal: Any) -> bool:
    if isinstance(principal, Mapping):
        principal = principal.get("AWS")
    return "*" in _listed(principal)


def _allowed(action: str, statements: Sequence[Mapping[str, Any]]) -> bool:
    """True where a statement allows it, or names what it does not allow."""
    return any(
        "NotAction" in each
        or any(fnmatchcase(action.lower(), one.lower()) for one in _listed(each.get("Action")))
        for each in statements
    )


def _listed(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value or ())
