"""Who mounts an EFS file system: what its policy refuses, and what the role of the CSI driver may do.

A file system without a policy lets in whoever reaches a mount target. One with any policy lets in whom
the policy or a policy of their own role allows, and nobody without a role (EFS user guide,
iam-access-control-nfs-efs).
"""

from __future__ import annotations

from trainyard.objects.iam.policies import Document


def plain_text_statement(file_system_arn: str) -> Document:
    """Nobody mounts without TLS."""
    return {
        "Effect": "Deny",
        "Principal": {"AWS": "*"},
        "Action": "elasticfilesystem:Client*",
        "Resource": file_system_arn,
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }


def mount_statement(file_system_arn: str) -> Document:
    """Permission of the driver, which mounts for all pods of its node. It mounts the root of the
    file system too, as root, because the environment's own jobs see all of it."""
    return {
        "Action": [
            "elasticfilesystem:ClientMount",
            "elasticfilesystem:ClientRootAccess",
            "elasticfilesystem:ClientWrite",
        ],
        "Resource": file_system_arn,
        "Condition": {"Bool": {"elasticfilesystem:AccessedViaMountTarget": "true"}},
    }
