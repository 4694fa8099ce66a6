"""Flow logs of the VPC of a stack, in CloudWatch Logs.

Whether there are any, and for how many days: `network.flow_logs` in the stack file.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from components.base.log_group import log_group
from components.base.role import role
from trainyard.objects.iam.policies import flow_logs, flow_logs_trust
from trainyard.plans.identity import Identity
from trainyard.plans.networks import FlowLogsPlan


def record(
    parent: pulumi.Resource,
    name: str,
    identity: Identity,
    plan: FlowLogsPlan,
    vpc_id: pulumi.Input[str],
    account_id: pulumi.Output[str],
) -> None:
    """Record all traffic of the VPC. `name`: of the resources."""
    group = log_group(parent, name, identity, plan.group_name, plan.days)
    writer, attached = role(
        parent,
        name,
        identity,
        plan.role_name,
        account_id.apply(lambda account: flow_logs_trust(account=account, region=identity.region)),
        inline={"write": group.arn.apply(lambda arn: json.dumps(flow_logs(arn), sort_keys=True))},
    )
    aws.ec2.FlowLog(
        name,
        vpc_id=vpc_id,
        traffic_type="ALL",
        log_destination_type="cloud-watch-logs",
        log_destination=group.arn,
        iam_role_arn=writer.arn,
        tags=identity.tags(name),
        # Without its policy the role writes nothing, and nobody is told.
        opts=pulumi.ResourceOptions(parent=parent, depends_on=attached),
    )
