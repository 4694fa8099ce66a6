"""Access to an EFS file system: refusals of its policy, rights of the CSI driver's role, and rights of AWS
Backup.

A file system without a policy lets in whoever reaches a mount target. One with any policy lets in whom
the policy or a policy of their own role allows, and nobody without a role (EFS user guide,
iam-access-control-nfs-efs).
"""

from __future__ import annotations

from trainyard.catalog.aws.service_roles import ServiceRole
from trainyard.objects.iam.policies import Document, OptionalService, document

BACKUP_SERVICE = "backup.amazonaws.com"
"""Assumes the role of `backup_document`."""
BACKUP_ROLE = ServiceRole(
    name="AWSServiceRoleForBackup", service=BACKUP_SERVICE, maker="AWS Backup"
)
"""Whoever selects what is backed up makes it. A caller who may not make it deletes no backup (AWS Backup
developer guide, using-service-linked-roles; API, DeleteRecoveryPoint)."""
BACKUP = OptionalService(
    name="backup",
    policy="storage",
    deletes=(
        "backup:DeleteBackupPlan",
        "backup:DeleteBackupSelection",
        "backup:DeleteBackupVault",
    ),
    deletes_any=("backup:DeleteRecoveryPoint",),
    keys=("RetireGrant",),
    passed_to=BACKUP_SERVICE,
    role=BACKUP_ROLE,
    called={
        "backup:*": "AWS Backup writes backups of EFS into their vault",
        "tag:GetResources": "AWS Backup reads the tags of what it backs up",
    },
)
"""Its calls of KMS: AWS Backup developer guide, access-control, CreateBackupVault."""
BACKUP_STORAGE = OptionalService(name="backup-storage", policy="storage")
"""Service in which AWS Backup stores the backups of a vault."""


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


def backup_document(file_system_arn: str, vault_arn: str, key_arn: str | None) -> Document:
    """Permissions of the role with which AWS Backup copies the file system into the vault: the
    statements about EFS, vaults and keys of AWS's own AWSBackupServiceRolePolicyForBackup, for these
    objects alone."""
    of_key = [
        {"Action": "kms:DescribeKey", "Resource": key_arn},
        {
            "Action": "kms:CreateGrant",
            "Resource": key_arn,
            "Condition": {"Bool": {"kms:GrantIsForAWSResource": "true"}},
        },
    ]
    return document(
        {
            "Action": ["elasticfilesystem:Backup", "elasticfilesystem:DescribeTags"],
            "Resource": file_system_arn,
        },
        {
            "Action": ["backup:CopyIntoBackupVault", "backup:DescribeBackupVault"],
            "Resource": vault_arn,
        },
        {"Action": "tag:GetResources", "Resource": "*"},
        {
            "Action": "backup:TagResource",
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:PrincipalAccount": "${aws:ResourceAccount}"}},
        },
        *(of_key if key_arn else ()),
    )
