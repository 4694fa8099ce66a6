"""A topic of SNS that a component publishes to."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from trainyard.plans.identity import Identity
from trainyard.plans.topic import TopicPlan

ENCRYPTED = "alias/aws/sns"
"""AWS's own key for SNS: whoever may publish to a topic of the account may use it."""


def topic(
    parent: pulumi.Resource, name: str, plan: TopicPlan, identity: Identity
) -> pulumi.Output[str]:
    """The ARN of an existing topic, or of a new one with the addresses as subscribers."""
    if plan.arn:
        return pulumi.Output.from_input(plan.arn)
    child = pulumi.ResourceOptions(parent=parent)
    made = aws.sns.Topic(
        f"{name}-topic",
        name=plan.name,
        kms_master_key_id=identity.kms_key_arn or ENCRYPTED,
        tags=identity.tags(f"{name}-topic"),
        opts=child,
    )
    for address in plan.emails:
        aws.sns.TopicSubscription(
            f"{name}-{address}",
            topic=made.arn,
            protocol="email",
            endpoint=address,
            opts=child,
        )
    return made.arn
