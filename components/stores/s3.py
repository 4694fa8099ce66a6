"""A data set in S3: a bucket that the stack creates, or an existing one.

Which of the two, and what jobs may do with it: `storage.<name>.s3` in the stack file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pulumi
import pulumi_aws as aws

from components.jobs.namespace import Volume
from components.network.file_servers import refuse
from components.network.network import StorePlace
from components.stores.store import Roots
from trainyard.existing.bucket_faults import (
    BucketFound,
    BucketUse,
    bucket_faults,
    bucket_remarks,
    found_by_status,
)
from trainyard.objects.iam.s3 import S3Plan, mount_statements, tls_only
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.stores import KEPT


class S3(pulumi.ComponentResource):
    """A bucket that pods mount with Mountpoint for Amazon S3."""

    volume: Volume

    def __init__(
        self,
        name: str,
        plan: S3Plan,
        *,
        place: StorePlace,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:storage:S3", name, None, opts)
        bucket, safe = pulumi.Output.from_input(plan.existing or ""), []
        if plan.existing:
            self._judge(name, plan, plan.existing)
        else:
            made = self._bucket(name, plan, place)
            bucket, safe = made.bucket, self._safeguards(name, plan, made)
        self.volume = Volume(
            handle=bucket,
            attributes={"bucketName": bucket},
            needs=tuple(safe),
            statements=bucket.apply(lambda made: mount_statements(plan, made)),
        )
        self._plan = plan
        self.register_outputs({"bucket": bucket, KEPT: plan.keep and not plan.existing})

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        """The team's prefix, which its mount options name. Pods mount it with their own AWS identity,
        which may do nothing elsewhere in the bucket; the driver's may."""
        whole, store, prefix = self.volume, self._plan, f"{plan.path}/"
        return Volume(
            # A Kubernetes node mounts one volume of a handle (docs/CONFIGURATION.md of the driver).
            handle=whole.handle.apply(lambda bucket: f"{bucket}-{plan.team}"),
            attributes={
                **whole.attributes,
                "authenticationSource": pulumi.Output.from_input("pod"),
            },
            needs=whole.needs,
            statements=whole.handle.apply(lambda bucket: mount_statements(store, bucket, prefix)),
        )

    def _judge(self, name: str, plan: S3Plan, bucket: str) -> None:
        """End the program where there is no such bucket, and warn of one that pods may not reach."""
        use = BucketUse(bucket=bucket, path=plan.path, region=plan.identity.region)
        try:
            region = aws.s3.get_bucket(bucket, opts=pulumi.InvokeOptions(parent=self)).bucket_region
            found = BucketFound(region=region)
        except Exception as error:  # the SDK has no type for what a provider answers
            found = found_by_status(str(error))
        refuse(name, bucket_faults(use, found))
        for remark in bucket_remarks(use, found) if found else ():
            pulumi.warn(f"{plan.path}: {remark}", self)

    def _bucket(self, name: str, plan: S3Plan, place: StorePlace) -> aws.s3.Bucket:
        return aws.s3.Bucket(
            name,
            bucket=pulumi.Output.format("{0}-{1}", plan.name, place.account_id),
            # S3 deletes an empty bucket only, and `data: delete` means the objects, too.
            force_destroy=not plan.keep,
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )

    def _safeguards(self, name: str, plan: S3Plan, bucket: aws.s3.Bucket) -> list[pulumi.Resource]:
        """Keep the bucket private, encrypted and without remains, also where a destroy keeps the bucket. The next `up`
        puts each of them again (terraform-provider-aws, internal/service/s3: creation is a Put)."""
        parent = pulumi.ResourceOptions(parent=self, retain_on_delete=plan.keep)
        private = aws.s3.BucketPublicAccessBlock(
            name,
            bucket=bucket.bucket,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=parent,
        )
        policy = aws.s3.BucketPolicy(
            name,
            bucket=bucket.bucket,
            policy=bucket.bucket.apply(lambda made: json.dumps(tls_only(made), sort_keys=True)),
            # S3 refuses two changes of a bucket's access at once (OperationAborted).
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[private], retain_on_delete=plan.keep
            ),
        )
        encryption = aws.s3.BucketServerSideEncryptionConfiguration(
            name, bucket=bucket.bucket, rules=[_encryption(plan)], opts=parent
        )
        lifecycle = aws.s3.BucketLifecycleConfiguration(
            name,
            bucket=bucket.bucket,
            rules=[*_lifecycle(plan)],
            opts=parent,
        )
        return [private, policy, encryption, lifecycle, *self._versioning(name, plan, bucket)]

    def _versioning(
        self, name: str, plan: S3Plan, bucket: aws.s3.Bucket
    ) -> list[aws.s3.BucketVersioning]:
        """Versioning of the bucket. It is not retained: whoever takes it out of the stack file means to suspend it. A
        destroy suspends it, too; S3 keeps the versions that there are."""
        if not plan.versioning:
            return []
        return [
            aws.s3.BucketVersioning(
                name,
                bucket=bucket.bucket,
                versioning_configuration={"status": "Enabled"},
                opts=pulumi.ResourceOptions(parent=self),
            )
        ]


def _lifecycle(plan: S3Plan) -> Iterator[aws.s3.BucketLifecycleConfigurationRuleArgs]:
    """Rules by which S3 deletes objects by itself. An old version is deleted with the marker that
    nothing is behind, also without versioning: where a stack file no longer asks for it, the provider suspends it and
    S3 keeps the versions (terraform-provider-aws, internal/service/s3/bucket_versioning.go, Delete). The rule does
    nothing in a bucket that never had any."""
    yield _rule(
        "abort-uploads",
        abort_incomplete_multipart_upload={"days_after_initiation": plan.abort_uploads_days},
    )
    for prefix, days in plan.delete_after_days:
        yield _rule(f"delete {prefix}", prefix, expiration={"days": days})
    yield _rule(
        "old-versions",
        expiration={"expired_object_delete_marker": True},
        noncurrent_version_expiration={"noncurrent_days": plan.old_versions_days},
    )


def _rule(
    name: str, prefix: str = "", **action: Any
) -> aws.s3.BucketLifecycleConfigurationRuleArgs:
    return aws.s3.BucketLifecycleConfigurationRuleArgs(
        id=name,
        status="Enabled",
        filter=aws.s3.BucketLifecycleConfigurationRuleFilterArgs(prefix=prefix),
        **action,
    )


def _encryption(plan: S3Plan) -> aws.s3.BucketServerSideEncryptionConfigurationRuleArgs:
    default = (
        aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
            sse_algorithm="aws:kms" if plan.kms_key_arn else "AES256",
            kms_master_key_id=plan.kms_key_arn,
        )
    )
    return aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
        apply_server_side_encryption_by_default=default,
        # One request to KMS for many objects, instead of one each.
        bucket_key_enabled=bool(plan.kms_key_arn),
    )
