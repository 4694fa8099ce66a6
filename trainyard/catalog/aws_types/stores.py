"""AWS types that data lies in: FSx for Lustre, EFS, S3, and images in ECR."""

from __future__ import annotations

from trainyard.catalog.aws_types.row import AwsType, Finder, each_of, written

ALL_VERSIONS = "{Objects: [Versions, DeleteMarkers][].{Key: Key, VersionId: VersionId}}"
"""Query for what `delete-objects` takes, of an answer of `list-object-versions`."""

STORES: dict[str, AwsType] = {
    "aws:fsx/lustreFileSystem:LustreFileSystem": AwsType(
        cloudformation="AWS::FSx::FileSystem",
        replaces=(
            "backupId",
            "deploymentType",
            "efaEnabled",
            "fileSystemTypeVersion",
            "kmsKeyId",
            "metadataConfiguration",
            "securityGroupIds",
            "subnetIds",
        ),
        # CloudFormation's schema of the file system names no calls (FSx user guide,
        # using-service-linked-roles and setting-up-for-FSx-Lustre).
        calls_beside={
            "create": "fsx:CreateFileSystem fsx:CreateFileSystemFromBackup fsx:TagResource"
            " iam:CreateServiceLinkedRole ec2:DescribeSubnets ec2:DescribeVpcs"
            " ec2:DescribeSecurityGroups ec2:DescribeRouteTables ec2:DescribeNetworkInterfaces",
            "read": "fsx:DescribeFileSystems fsx:ListTagsForResource",
            "update": "fsx:UpdateFileSystem fsx:TagResource fsx:UntagResource"
            " fsx:DescribeFileSystems fsx:ListTagsForResource",
            "delete": "fsx:DeleteFileSystem fsx:DescribeFileSystems fsx:ListTagsForResource",
        },
        finder=Finder(
            "fsx",
            "describe_file_systems",
            tagged=True,
            pages="NextToken",
            items="FileSystems",
            id="{FileSystemId}",
            state="Lifecycle",
        ),
        awaited=True,
        untold="backupId",
        key="kmsKeyId",
        holds_data=True,
        deletions=("aws fsx delete-file-system --file-system-id {id} --region {region}",),
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": AwsType(
        cloudformation="AWS::FSx::DataRepositoryAssociation",
        replaces=("dataRepositoryPath", "fileSystemId", "fileSystemPath"),
        calls_beside={"read": "fsx:ListTagsForResource"},
        finder=Finder(
            "fsx",
            "describe_data_repository_associations",
            tagged=True,
            pages="NextToken",
            items="Associations",
            id="{AssociationId}",
            state="Lifecycle",
        ),
        awaited=True,
        # A stack protects the link that takes the data of its file system with it.
        deletions=(
            "aws fsx delete-data-repository-association --association-id {id} --region {region}"
            " --no-delete-data-in-file-system",
        ),
    ),
    "aws:efs/fileSystem:FileSystem": AwsType(
        cloudformation="AWS::EFS::FileSystem",
        replaces=("creationToken", "encrypted", "kmsKeyId"),
        calls_beside={"read": "elasticfilesystem:ListTagsForResource"},
        finder=Finder(
            "efs",
            "describe_file_systems",
            {"CreationToken": "{creationToken}"},
            items="FileSystems",
            id="{FileSystemId}",
            state="LifeCycleState",
        ),
        awaited=True,
        key="kmsKeyId",
        holds_data=True,
        # EFS deletes none that has mount targets (EFS API, DeleteFileSystem).
        deletions=(
            each_of(
                "efs describe-access-points --file-system-id {id}",
                "AccessPoints[].AccessPointId",
                "efs delete-access-point --region {region} --access-point-id",
            ),
            each_of(
                "efs describe-mount-targets --file-system-id {id}",
                "MountTargets[].MountTargetId",
                "efs delete-mount-target --region {region} --mount-target-id",
            ),
            "aws efs delete-file-system --file-system-id {id} --region {region}",
        ),
    ),
    "aws:efs/fileSystemPolicy:FileSystemPolicy": AwsType(
        cloudformation="AWS::EFS::FileSystem",
        replaces=("fileSystemId",),
        calls=written(
            "elasticfilesystem:PutFileSystemPolicy",
            "elasticfilesystem:DescribeFileSystemPolicy",
            "elasticfilesystem:DeleteFileSystemPolicy",
        ),
    ),
    "aws:efs/mountTarget:MountTarget": AwsType(
        cloudformation="AWS::EFS::MountTarget",
        replaces=("fileSystemId", "subnetId"),
        # EFS makes the interface as the caller (EFS API, CreateMountTarget, DeleteMountTarget).
        calls_beside={
            "create": "ec2:DescribeSubnets ec2:DescribeNetworkInterfaces"
            " ec2:CreateNetworkInterface",
            "update": "ec2:ModifyNetworkInterfaceAttribute",
            "delete": "ec2:DeleteNetworkInterface",
        },
        finder=Finder(
            "efs",
            "describe_mount_targets",
            {"FileSystemId": "{fileSystemId}"},
            items="MountTargets",
            matches={"SubnetId": "{subnetId}"},
            id="{MountTargetId}",
            state="LifeCycleState",
        ),
        awaited=True,
    ),
    "aws:efs/accessPoint:AccessPoint": AwsType(
        cloudformation="AWS::EFS::AccessPoint",
        replaces=("fileSystemId", "posixUser", "rootDirectory"),
        finder=Finder(
            "efs",
            "describe_access_points",
            {"FileSystemId": "{fileSystemId}"},
            pages="NextToken",
            items="AccessPoints",
            matches={"RootDirectory.Path": "{rootDirectory[path]}"},
            id="{AccessPointId}",
            state="LifeCycleState",
        ),
        awaited=True,
    ),
    "aws:backup/vault:Vault": AwsType(
        cloudformation="AWS::Backup::BackupVault",
        replaces=("kmsKeyArn", "name"),
        # CloudFormation's handlers call for what no vault of this program has: policies, locks and
        # messages. With force_destroy the provider lists and deletes the backups, and only a caller with
        # iam:CreateServiceLinkedRole deletes one (AWS Backup API, DeleteRecoveryPoint).
        calls={
            "create": "backup:CreateBackupVault backup:TagResource backup-storage:MountCapsule"
            " kms:CreateGrant kms:Decrypt kms:DescribeKey kms:GenerateDataKey kms:RetireGrant",
            "read": "backup:DescribeBackupVault backup:ListBackupVaults backup:ListTags",
            "update": "backup:TagResource backup:UntagResource",
            "delete": "backup:DeleteBackupVault backup:DeleteRecoveryPoint"
            " backup:DescribeRecoveryPoint backup:ListRecoveryPointsByBackupVault"
            " iam:CreateServiceLinkedRole",
        },
        # Who describes a vault that does not exist is refused access (aws/aws-sdk-js#2625).
        finder=Finder(
            "backup",
            "list_backup_vaults",
            pages="NextToken",
            items="BackupVaultList",
            matches={"BackupVaultName": "{name}"},
            id="{name}",
        ),
        key="kmsKeyArn",
        # "A vault can be deleted only if it is empty" (AWS Backup API, DeleteBackupVault).
        deletions=(
            each_of(
                "backup list-recovery-points-by-backup-vault --backup-vault-name {id}",
                "RecoveryPoints[].RecoveryPointArn",
                "backup delete-recovery-point --backup-vault-name {id} --region {region} --recovery-point-arn",
            ),
            "aws backup delete-backup-vault --backup-vault-name {id} --region {region}",
        ),
    ),
    "aws:backup/plan:Plan": AwsType(
        cloudformation="AWS::Backup::BackupPlan",
        replaces=("name",),
        # CloudFormation's handlers pass a role, which a plan has not.
        calls={
            "create": "backup:CreateBackupPlan backup:TagResource",
            "read": "backup:GetBackupPlan backup:ListTags backup:ListBackupPlans",
            "update": "backup:UpdateBackupPlan backup:TagResource backup:UntagResource",
            "delete": "backup:DeleteBackupPlan",
        },
        finder=Finder(
            "backup",
            "list_backup_plans",
            pages="NextToken",
            items="BackupPlansList",
            matches={"BackupPlanName": "{name}"},
            id="{BackupPlanId}",
        ),
    ),
    "aws:backup/selection:Selection": AwsType(
        cloudformation="AWS::Backup::BackupSelection",
        replaces=("iamRoleArn", "name", "planId", "resources"),
        # CloudFormation's handlers look for the service-linked role, which AWS Backup does itself.
        calls={
            "create": "backup:CreateBackupSelection iam:CreateServiceLinkedRole iam:PassRole",
            "read": "backup:GetBackupSelection backup:ListBackupSelections",
            "delete": "backup:DeleteBackupSelection",
        },
        finder=Finder(
            "backup",
            "list_backup_selections",
            {"BackupPlanId": "{planId}"},
            pages="NextToken",
            items="BackupSelectionsList",
            matches={"SelectionName": "{name}"},
            id="{planId}|{SelectionId}",
        ),
    ),
    "aws:s3/bucket:Bucket": AwsType(
        cloudformation="AWS::S3::Bucket",
        replaces=("bucket",),
        # What Terraform's provider reads of every bucket (internal/service/s3/bucket.go); with
        # force_destroy it lists and deletes the objects. From 6.23 on it reads and writes tags by S3
        # Control, and by the older calls where that is refused, which an account with ABAC does not take.
        calls={
            "create": "s3:CreateBucket s3:PutBucketTagging s3:TagResource",
            "read": "s3:GetAccelerateConfiguration s3:GetBucketAcl s3:GetBucketCORS"
            " s3:GetBucketLocation s3:GetBucketLogging s3:GetBucketObjectLockConfiguration"
            " s3:GetBucketRequestPayment s3:GetBucketTagging s3:GetBucketVersioning"
            " s3:GetBucketWebsite s3:GetReplicationConfiguration s3:ListBucket"
            " s3:ListTagsForResource",
            "update": "s3:PutBucketTagging s3:TagResource s3:UntagResource",
            "delete": "s3:DeleteBucket s3:DeleteObject s3:DeleteObjectVersion"
            " s3:ListBucketVersions",
        },
        finder=Finder("s3", "get_bucket_location", {"Bucket": "{bucket}"}, id="{bucket}"),
        holds_data=True,
        # `rb --force` leaves old versions and delete markers, and S3 deletes no bucket that has some (AWS CLI,
        # s3 rb). A call deletes 1,000 at most (S3 API, DeleteObjects).
        deletions=(
            "while aws s3api list-object-versions --bucket {id} --region {region} --max-items 1000"
            f" --output json --query '{ALL_VERSIONS}' > versions.json && grep -q VersionId versions.json; do"
            " aws s3api delete-objects --bucket {id} --region {region} --delete file://versions.json || break; done",
            "aws s3 rb s3://{id} --force --region {region}",
        ),
    ),
    "aws:s3/bucketPolicy:BucketPolicy": AwsType(
        cloudformation="AWS::S3::BucketPolicy",
        replaces=("bucket",),
        calls=written("s3:PutBucketPolicy", "s3:GetBucketPolicy", "s3:DeleteBucketPolicy"),
    ),
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": AwsType(
        cloudformation="AWS::S3::Bucket",
        replaces=("bucket",),
        calls=written("s3:PutBucketPublicAccessBlock", "s3:GetBucketPublicAccessBlock"),
    ),
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": AwsType(
        cloudformation="AWS::S3::Bucket",
        replaces=("bucket",),
        calls=written("s3:PutEncryptionConfiguration", "s3:GetEncryptionConfiguration"),
    ),
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": AwsType(
        cloudformation="AWS::S3::Bucket",
        replaces=("bucket",),
        calls=written("s3:PutLifecycleConfiguration", "s3:GetLifecycleConfiguration"),
    ),
    "aws:s3/bucketVersioning:BucketVersioning": AwsType(
        cloudformation="AWS::S3::Bucket",
        replaces=("bucket",),
        calls=written("s3:PutBucketVersioning", "s3:GetBucketVersioning"),
    ),
    "aws:ecr/repository:Repository": AwsType(
        cloudformation="AWS::ECR::Repository",
        replaces=("name",),
        finder=Finder("ecr", "describe_repositories", {"repositoryNames": ["{name}"]}, id="{name}"),
        deletions=("aws ecr delete-repository --repository-name {id} --force --region {region}",),
    ),
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": AwsType(
        cloudformation="AWS::ECR::Repository",
        replaces=("repository",),
        calls=written(
            "ecr:PutLifecyclePolicy", "ecr:GetLifecyclePolicy", "ecr:DeleteLifecyclePolicy"
        ),
    ),
}
