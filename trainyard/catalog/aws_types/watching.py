"""AWS types that people watch an environment with, and parameters that teams read."""

from __future__ import annotations

from trainyard.catalog.aws_types.row import AwsType, Finder

WATCHING: dict[str, AwsType] = {
    "aws:amp/workspace:Workspace": AwsType(
        cloudformation="AWS::APS::Workspace",
        replaces=("kmsKeyArn",),
        # CloudFormation's handlers call for what no workspace of this program has: AWS's Alertmanager, and
        # deliveries of logs, after which Terraform's provider asks all the same.
        calls={
            "create": "aps:CreateWorkspace aps:TagResource",
            "read": (
                "aps:DescribeWorkspace aps:DescribeLoggingConfiguration aps:ListTagsForResource"
                " aps:ListWorkspaces"
            ),
            "update": "aps:UpdateWorkspaceAlias aps:TagResource aps:UntagResource",
            "delete": "aps:DeleteWorkspace",
        },
        finder=Finder(
            "amp",
            "list_workspaces",
            {"alias": "{alias}"},
            pages="nextToken",
            items="workspaces",
            matches={"alias": "{alias}"},
            id="{workspaceId}",
            state="status.statusCode",
        ),
        awaited=True,
        key="kmsKeyArn",
        deletions=("aws amp delete-workspace --workspace-id {id} --region {region}",),
    ),
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration": AwsType(
        cloudformation="AWS::APS::Workspace",
        replaces=("workspaceId",),
        # Its deletion leaves the workspace as it is.
        calls={
            "create": "aps:UpdateWorkspaceConfiguration",
            "read": "aps:DescribeWorkspaceConfiguration",
            "update": "aps:UpdateWorkspaceConfiguration",
        },
    ),
    "aws:cloudwatch/logGroup:LogGroup": AwsType(
        cloudformation="AWS::Logs::LogGroup",
        replaces=("name",),
        # CloudFormation's handlers call for what no group of this program has: policies, transformers,
        # deliveries to S3.
        calls={
            "create": "logs:AssociateKmsKey logs:CreateLogGroup logs:PutRetentionPolicy"
            " logs:TagResource",
            "read": "logs:DescribeLogGroups logs:ListTagsForResource",
            "update": "logs:AssociateKmsKey logs:DisassociateKmsKey logs:PutRetentionPolicy"
            " logs:TagResource logs:UntagResource",
            "delete": "logs:DeleteLogGroup",
        },
        finder=Finder(
            "logs",
            "describe_log_groups",
            {"logGroupNamePrefix": "{name}"},
            pages="nextToken",
            items="logGroups",
            matches={"logGroupName": "{name}"},
            id="{name}",
        ),
        key="kmsKeyId",
    ),
    "aws:budgets/budget:Budget": AwsType(
        cloudformation="AWS::Budgets::Budget",
        replaces=("name",),
        calls={
            "create": "budgets:ModifyBudget budgets:TagResource",
            "read": "budgets:ViewBudget budgets:ListTagsForResource",
            "update": "budgets:ModifyBudget budgets:TagResource budgets:UntagResource",
            "delete": "budgets:ModifyBudget",
        },
        finder=Finder(
            "budgets",
            "describe_budget",
            {"AccountId": "{account}", "BudgetName": "{name}"},
            id="{account}:{name}",
        ),
    ),
    "aws:sns/topic:Topic": AwsType(
        cloudformation="AWS::SNS::Topic",
        replaces=("name",),
        finder=Finder(
            "sns",
            "get_topic_attributes",
            {"TopicArn": "arn:{partition}:sns:{region}:{account}:{name}"},
            id="arn:{partition}:sns:{region}:{account}:{name}",
        ),
        key="kmsMasterKeyId",
    ),
    "aws:sns/topicSubscription:TopicSubscription": AwsType(
        cloudformation="AWS::SNS::Subscription",
        replaces=("endpoint", "protocol", "topic"),
    ),
    "aws:ssm/parameter:Parameter": AwsType(
        cloudformation="AWS::SSM::Parameter",
        replaces=("name",),
        calls_beside={"read": "ssm:DescribeParameters ssm:GetParameter"},
        finder=Finder("ssm", "get_parameter", {"Name": "{name}"}, id="{name}"),
    ),
}
