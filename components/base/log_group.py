"""A log group of CloudWatch Logs, with its retention and its key."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from trainyard.plans.identity import Identity


def log_group(
    parent: pulumi.Resource, name: str, identity: Identity, physical_name: str, days: int
) -> aws.cloudwatch.LogGroup:
    """A group that keeps each line for so many days, and goes with the stack."""
    return aws.cloudwatch.LogGroup(
        name,
        name=physical_name,
        retention_in_days=days,
        kms_key_id=identity.kms_key_arn,
        tags=identity.tags(name),
        opts=pulumi.ResourceOptions(parent=parent),
    )
