"""Resource types by which alerts are published: SNS's topic and its subscriptions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.wire import Properties


@dataclass(frozen=True, kw_only=True)
class Topic(Kind):
    """SNS's answers leave the name to the ARN, and an attribute is set by its name."""

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        return {"name": found["TopicArn"].rpartition(":")[2]}

    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        for name, value in given["Attributes"].items():
            aws.call("sns", operation, **which, AttributeName=name, AttributeValue=value)


KINDS = (
    Topic(
        token="aws:sns/topic:Topic",
        service="sns",
        create="create_topic",
        read="get_topic_attributes",
        delete="delete_topic",
        found="Attributes",
        id="{TopicArn}",
        asks={"TopicArn": "id"},
        updates={"kmsMasterKeyId": "set_topic_attributes"},
        names={"kmsMasterKeyId": "Attributes.KmsMasterKeyId"},
        outputs={"arn": "TopicArn", "kmsMasterKeyId": "KmsMasterKeyId"},
        tagging=Tagging(target="ResourceArn", listed="list_tags_for_resource"),
    ),
    Kind(
        token="aws:sns/topicSubscription:TopicSubscription",
        service="sns",
        create="subscribe",
        read="get_subscription_attributes",
        delete="unsubscribe",
        found="Attributes",
        id="{SubscriptionArn}",
        asks={"SubscriptionArn": "id"},
        names={"topic": "TopicArn"},
        outputs={"arn": "SubscriptionArn", "topic": "TopicArn"},
    ),
)
