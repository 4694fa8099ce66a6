"""CloudWatch's log groups, and the flow logs that a VPC writes to one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.providers.aws.network import ec2_resource
from rehearsal.providers.aws.resource_type import Kind, Tagging
from rehearsal.providers.wire import Properties, words


@dataclass(frozen=True, kw_only=True)
class LogGroup(Kind):
    """Its ARN ends with :* in most of CloudWatch's answers, and without it in the provider's state.
    CloudWatch lists groups by a prefix of the name."""

    def name(self, key: str) -> str:
        return {"name": "logGroupName"}.get(key, key)

    def outward(self, value: Any) -> Any:
        return value

    def inward(self, path: str, value: Any) -> Any:
        return value.removesuffix(":*") if path == "arn" and value else value


@dataclass(frozen=True, kw_only=True)
class FlowLog(Kind):
    """Its VPC stands in a list, and is the resource that its answers name."""

    def arguments(self, new: Properties, only: Any = None) -> dict[str, Any]:
        given = super().arguments(new, only)
        return given | ({"ResourceType": "VPC"} if only is None else {})


KINDS = (
    LogGroup(
        token="aws:cloudwatch/logGroup:LogGroup",
        service="logs",
        create="create_log_group",
        read="describe_log_groups",
        delete="delete_log_group",
        found="logGroups",
        among="name",
        id="{name}",
        import_id="{name}",
        asks={"logGroupNamePrefix": "name"},
        drops={"logGroupName": "name"},
        updates={"retentionInDays": "put_retention_policy", "kmsKeyId": "associate_kms_key"},
        later=words("retentionInDays"),
        outputs={"arn": "arn", "name": "logGroupName"},
        tagging=Tagging(
            target="resourceArn",
            by="arn",
            tags="tags",
            keys="tagKeys",
            born="tags",
            paired=False,
            listed="list_tags_for_resource",
        ),
        minutes=2,
    ),
    FlowLog(
        **ec2_resource(
            "FlowLog",
            "vpc-flow-log",
            create="create_flow_logs",
            delete="delete_flow_logs",
            made="",
            found="FlowLogs.0",
            id="{FlowLogIds[0]}",
            asks={"FlowLogIds": "id"},
            drops={"FlowLogIds": "id"},
            status="FlowLogStatus",
            names={"vpcId": "ResourceIds.0", "iamRoleArn": "DeliverLogsPermissionArn"},
            outputs={"vpcId": "ResourceId"},
            minutes=2,
        )
    ),
)
