"""The policy of an existing EFS file system, as `trainyard check --live` judges it: pods mount such a file system
without an IAM role, and a policy can let only roles in.

Source: EFS user guide, iam-access-control-nfs-efs: without a policy every client of a mount target has full access, and
DescribeFileSystemPolicy answers PolicyNotFound; ClientMount is read-only access, ClientWrite adds writing, and
without ClientRootAccess root becomes 65534. An access point that names a user has no root.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.objects.iam.read_policies import is_everybody, matches, statements_of
from trainyard.plans.documents import Document
from trainyard.plans.stores import ExistingEfsPlan
from trainyard.problems import At, InputWarning

MOUNT, WRITE = "elasticfilesystem:ClientMount", "elasticfilesystem:ClientWrite"
ROOT = "elasticfilesystem:ClientRootAccess"
CANNOT = {
    MOUNT: "mount it: such a pod never starts",
    WRITE: "write to it",
    ROOT: "write to it as root, which becomes user 65534, where a directory is not open to everybody",
}
"""Action → what jobs cannot do without it, the worst first."""


def policy_warnings(store: ExistingEfsPlan, policy: str) -> Iterator[InputWarning]:
    """A policy that lets nobody mount the file system, or write to it, who has no role. Conditions and denials are
    not judged. `policy`: as JSON; empty where there is none."""
    if not policy:
        return
    open_to_all = [
        each
        for each in statements_of(policy)
        if each["Effect"] == "Allow" and is_everybody(each.get("Principal"))
    ]
    needed = [action for action in CANNOT if not (store.apart and action == ROOT)]
    lacking = [action for action in needed if not _allowed(action, open_to_all)]
    if lacking:
        yield At(store.path).warning(
            f"the policy of {store.file_system_id} does not let everybody {' or '.join(lacking)}. Pods mount it"
            f' without an IAM role, so jobs cannot {CANNOT[lacking[0]]}. Have its owner allow this to Principal "*";'
            f" aws efs describe-file-system-policy --file-system-id {store.file_system_id} prints the policy"
        )


def _allowed(action: str, statements: Sequence[Document]) -> bool:
    """True where a statement allows it, or names what it does not allow."""
    return any("NotAction" in each or matches(action, each.get("Action")) for each in statements)
