"""Resource types of metrics: a workspace of managed Prometheus, and how long it keeps samples."""

from __future__ import annotations

from rehearsal.providers.aws.resource_type import Kind, Tagging

KINDS = (
    Kind(
        token="aws:amp/workspace:Workspace",
        service="amp",
        create="create_workspace",
        read="describe_workspace",
        delete="delete_workspace",
        found="workspace",
        id="{workspaceId}",
        asks={"workspaceId": "id"},
        updates={"alias": "update_workspace_alias"},
        outputs={"arn": "arn", "prometheusEndpoint": "prometheusEndpoint"},
        status="status.statusCode",
        tagging=Tagging(
            target="resourceArn", by="arn", tags="tags", keys="tagKeys", born="tags", paired=False
        ),
        minutes=5,
    ),
    Kind(
        token="aws:amp/workspaceConfiguration:WorkspaceConfiguration",
        service="amp",
        create="update_workspace_configuration",
        read="describe_workspace_configuration",
        delete="",
        found="workspaceConfiguration",
        id="{workspaceId}",
        import_id="{workspaceId}",
        asks={"workspaceId": "workspaceId"},
        updates={"retentionPeriodInDays": "update_workspace_configuration"},
        status="status.statusCode",
        minutes=5,
    ),
)
