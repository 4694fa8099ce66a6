"""Resource types that tell Karpenter of interruptions: SQS's queue and its policy, EventBridge's
rules and their targets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.wire import Properties, words


@dataclass(frozen=True, kw_only=True)
class Queue(Kind):
    """SQS's attributes are all texts, and its answers leave the name to the ARN."""

    def outward(self, value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else str(value)

    def inward(self, path: str, value: Any) -> Any:
        if isinstance(value, str) and value.isdigit():
            return int(value)
        return {"true": True, "false": False}.get(value, value)

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        return {"name": found["QueueArn"].split(":")[-1]}


@dataclass(frozen=True, kw_only=True)
class EventTarget(Kind):
    def update(
        self, aws: Account, operation: str, which: Properties, given: Properties, new: Properties
    ) -> None:
        """EventBridge takes the whole target anew."""
        aws.call(self.service, operation, **self.arguments(new))


@dataclass(frozen=True, kw_only=True)
class QueuePolicy(Kind):
    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("sqs", self.delete, QueueUrl=id_, Attributes={"Policy": ""})


KINDS = (
    Queue(
        token="aws:sqs/queue:Queue",
        service="sqs",
        create="create_queue",
        read="get_queue_attributes",
        delete="delete_queue",
        found="Attributes",
        id="{QueueUrl}",
        import_id="{url}",
        lasting="{url}",
        asks={"QueueUrl": "url"},
        options={"AttributeNames": ["All"]},
        updates=dict.fromkeys(
            ("messageRetentionSeconds", "sqsManagedSseEnabled", "kmsMasterKeyId"),
            "set_queue_attributes",
        ),
        chosen=words("sqsManagedSseEnabled"),
        defaults={"messageRetentionSeconds": 345600},
        names={
            "name": "QueueName",
            "messageRetentionSeconds": "Attributes.MessageRetentionPeriod",
            "sqsManagedSseEnabled": "Attributes.SqsManagedSseEnabled",
            "kmsMasterKeyId": "Attributes.KmsMasterKeyId",
        },
        outputs={
            "arn": "QueueArn",
            "messageRetentionSeconds": "MessageRetentionPeriod",
            "sqsManagedSseEnabled": "SqsManagedSseEnabled",
            "kmsMasterKeyId": "KmsMasterKeyId",
        },
        tagging=Tagging(
            target="QueueUrl",
            by="url",
            tag="tag_queue",
            untag="untag_queue",
            born="tags",
            paired=False,
            listed="list_queue_tags",
        ),
        minutes=3,
    ),
    QueuePolicy(
        token="aws:sqs/queuePolicy:QueuePolicy",
        service="sqs",
        create="set_queue_attributes",
        read="get_queue_attributes",
        delete="set_queue_attributes",
        found="Attributes",
        id="{queueUrl}",
        import_id="{queueUrl}",
        asks={"QueueUrl": "queueUrl"},
        options={"AttributeNames": ["Policy"]},
        updates={"policy": "set_queue_attributes"},
        names={"policy": "Attributes.Policy"},
        outputs={"policy": "Policy"},
    ),
    Kind(
        token="aws:cloudwatch/eventRule:EventRule",
        service="events",
        create="put_rule",
        read="describe_rule",
        delete="delete_rule",
        id="{name}",
        import_id="{name}",
        asks={"Name": "name"},
        updates={"eventPattern": "put_rule"},
        outputs={"arn": "Arn"},
        tagging=Tagging(target="ResourceARN", by="arn", listed="list_tags_for_resource"),
    ),
    EventTarget(
        token="aws:cloudwatch/eventTarget:EventTarget",
        service="events",
        create="put_targets",
        read="list_targets_by_rule",
        delete="remove_targets",
        found="Targets",
        among="targetId",
        id="{rule}-{targetId}",
        import_id="{rule}/{targetId}",
        asks={"Rule": "rule"},
        drops={"Rule": "rule", "Ids": "targetId"},
        updates={"arn": "put_targets"},
        names={"targetId": "Targets.0.Id", "arn": "Targets.0.Arn"},
        outputs={"targetId": "Id", "arn": "Arn"},
    ),
)
