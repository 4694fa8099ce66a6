"""Queues, event rules and log groups: SQS, EventBridge, CloudWatch Logs."""

from __future__ import annotations

from typing import Any

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.aws.kind import Kind, Minutes, Pascal, Seen, Tagging, pairs, unpaired
from rehearsal.plugins.base import Refused
from rehearsal.plugins.wire import Properties, words


class Queue(Pascal):
    token = "aws:sqs/queue:Queue"
    service = "sqs"
    tagging = Tagging(target="QueueUrl", tag="tag_queue", untag="untag_queue", paired=False)
    inputs = words(
        "name delaySeconds maxMessageSize messageRetentionSeconds receiveWaitTimeSeconds visibilityTimeoutSeconds "
        "sqsManagedSseEnabled kmsMasterKeyId kmsDataKeyReusePeriodSeconds fifoQueue contentBasedDeduplication policy "
        "redrivePolicy"
    )
    replaces = words("name fifoQueue")
    chosen = words("policy maxMessageSize sqsManagedSseEnabled kmsDataKeyReusePeriodSeconds")
    names = {
        "maxMessageSize": "MaximumMessageSize",
        "messageRetentionSeconds": "MessageRetentionPeriod",
        "receiveWaitTimeSeconds": "ReceiveMessageWaitTimeSeconds",
        "visibilityTimeoutSeconds": "VisibilityTimeout",
    }
    auto_name = "name"
    defaults = {
        "delaySeconds": 0,
        "messageRetentionSeconds": 345600,
        "receiveWaitTimeSeconds": 0,
        "visibilityTimeoutSeconds": 30,
        "fifoQueue": False,
        "contentBasedDeduplication": False,
    }
    minutes = Minutes(create=3, update=3, delete=3)

    def attributes(self, new: Properties, only: frozenset[str]) -> dict[str, str]:
        """SQS's attributes are all texts."""
        values = self.arguments({**self.defaults, **new}, only - {"name"})
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in values.items()}

    def inward(self, value: Any) -> Any:
        if isinstance(value, str) and value.isdigit():
            return int(value)
        return {"true": True, "false": False}.get(value, value)

    def create(self, aws: Account, new: Properties) -> str:
        attributes = self.attributes(new, self.inputs & new.keys())
        given = {"Attributes": attributes or None, "tags": new["tags"] or None}
        return aws.call("sqs", "create_queue", QueueName=new["name"], **given)["QueueUrl"]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("sqs", "get_queue_attributes", QueueUrl=id_, AttributeNames=["All"])
        if not answer:
            return None
        arn = answer["Attributes"]["QueueArn"]
        state = self.known(answer["Attributes"]) | {"arn": arn, "url": id_, "name": arn.split(":")[-1]}
        return Seen(state=state, tags=aws.call("sqs", "list_queue_tags", QueueUrl=id_).get("Tags", {}))

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        aws.call("sqs", "set_queue_attributes", QueueUrl=id_, Attributes=self.attributes(new, changed))

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("sqs", "delete_queue", QueueUrl=id_)


class QueuePolicy(Kind):
    token = "aws:sqs/queuePolicy:QueuePolicy"
    inputs = words("queueUrl policy")
    replaces = words("queueUrl")

    def create(self, aws: Account, new: Properties) -> str:
        self.put(aws, new["queueUrl"], new["policy"])
        return new["queueUrl"]

    def put(self, aws: Account, url: str, policy: str) -> None:
        aws.call("sqs", "set_queue_attributes", QueueUrl=url, Attributes={"Policy": policy})

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        answer = aws.seen("sqs", "get_queue_attributes", QueueUrl=id_, AttributeNames=["Policy"]) or {}
        policy = answer.get("Attributes", {}).get("Policy")
        return Seen(state={"queueUrl": id_, "policy": policy}) if policy else None

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        self.put(aws, id_, new["policy"])

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        self.put(aws, id_, "")


class EventRule(Pascal):
    token = "aws:cloudwatch/eventRule:EventRule"
    service = "events"
    tagging = Tagging(target="ResourceARN", by="arn")
    inputs = words("name eventBusName eventPattern scheduleExpression description roleArn state")
    replaces = words("name eventBusName")
    auto_name = "name"
    defaults = {"eventBusName": "default", "state": "ENABLED"}

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("events", "put_rule", **self.arguments(new), Tags=pairs(new["tags"]) or None)
        bus = new.get("eventBusName", "default")
        return new["name"] if bus == "default" else f"{bus}/{new['name']}"

    def which(self, id_: str) -> dict[str, str]:
        bus, _, name = id_.rpartition("/")
        return {"Name": name, "EventBusName": bus or "default"}

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        found = aws.seen("events", "describe_rule", **self.which(id_))
        if not found:
            return None
        tags = aws.call("events", "list_tags_for_resource", ResourceARN=found["Arn"]).get("Tags")
        bus = {"eventBusName": found.get("EventBusName", "default")}
        return Seen(state=self.known(found) | {"arn": found["Arn"]} | bus, tags=unpaired(tags))

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        aws.call("events", "put_rule", **self.arguments({**self.defaults, **new}))

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("events", "delete_rule", **self.which(id_))


class EventTarget(Pascal):
    token = "aws:cloudwatch/eventTarget:EventTarget"
    replaces = words("rule eventBusName targetId")
    inputs = replaces | words("arn roleArn input inputPath")
    names = {"targetId": "Id"}
    auto_name = "targetId"
    defaults = {"eventBusName": "default"}

    def create(self, aws: Account, new: Properties) -> str:
        self.change(aws, "", self.inputs, new, {})
        bus = new.get("eventBusName", "default")
        return "-".join([*([] if bus == "default" else [bus]), new["rule"], new["targetId"]])

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        target = self.arguments(new, self.inputs - {"rule", "eventBusName"})
        rule, bus = new["rule"], new.get("eventBusName")
        answer = aws.call("events", "put_targets", Rule=rule, EventBusName=bus, Targets=[target])
        for failure in answer.get("FailedEntries", []):
            raise Refused(f"events:put_targets: {failure.get('ErrorCode')}: {failure.get('ErrorMessage')}")

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """By what the state says, or by the import id [BUS/]RULE/TARGET: the id itself has no clear seam."""
        told = (hint.get("eventBusName", "default"), hint["rule"], hint["targetId"]) if hint else id_.split("/")
        *bus, rule, target = told
        where = {"Rule": rule, "EventBusName": bus[0] if bus else "default"}
        answer = aws.seen("events", "list_targets_by_rule", **where) or {}
        for found in answer.get("Targets", []):
            if found["Id"] == target:
                state = self.known(found) | {"rule": rule, "eventBusName": where["EventBusName"]}
                return Seen(state=state, id="-".join([*(b for b in bus if b != "default"), rule, target]))
        return None

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        bus, ids = state.get("eventBusName"), [state["targetId"]]
        aws.call("events", "remove_targets", Rule=state["rule"], EventBusName=bus, Ids=ids)


class LogGroup(Kind):
    token = "aws:cloudwatch/logGroup:LogGroup"
    service = "logs"
    tagging = Tagging(target="resourceArn", by="arn", tags="tags", keys="tagKeys", paired=False)
    inputs = words("name retentionInDays kmsKeyId logGroupClass skipDestroy")
    later = words("retentionInDays")
    local = words("skipDestroy")
    replaces = words("name logGroupClass")
    names = {"name": "logGroupName"}
    auto_name = "name"
    defaults = {"retentionInDays": 0, "logGroupClass": "STANDARD"}

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("logs", "create_log_group", **self.arguments(new), tags=new["tags"] or None)
        return new["name"]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        groups = aws.call("logs", "describe_log_groups", logGroupNamePrefix=id_)["logGroups"]
        found = next((group for group in groups if group["logGroupName"] == id_), None)
        if not found:
            return None
        arn = found["arn"].removesuffix(":*")
        tags = aws.call("logs", "list_tags_for_resource", resourceArn=arn).get("tags", {})
        return Seen(state={"retentionInDays": 0, **self.known(found), "arn": arn}, tags=tags)

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        if "retentionInDays" in changed:
            days = new.get("retentionInDays") or None
            operation = "put_retention_policy" if days else "delete_retention_policy"
            aws.call("logs", operation, logGroupName=id_, retentionInDays=days)
        if "kmsKeyId" in changed:
            key = new.get("kmsKeyId")
            operation = "associate_kms_key" if key else "disassociate_kms_key"
            aws.call("logs", operation, logGroupName=id_, kmsKeyId=key)

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        if not state.get("skipDestroy"):
            aws.call("logs", "delete_log_group", logGroupName=id_)


KINDS = (Queue, QueuePolicy, EventRule, EventTarget, LogGroup)
