"""A workspace of Amazon Managed Service for Prometheus, and the AWS identity of the Prometheus that
writes to it.

Settings: `metrics.managed_prometheus` in the stack file. What it writes:
trainyard/objects/metrics/managed_prometheus.py.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from components.base.role import pod_role
from trainyard.objects.iam.policies import Document
from trainyard.objects.metrics.managed_prometheus import (
    SERVICE_ACCOUNT,
    ManagedPrometheusPlan,
    writing,
)
from trainyard.objects.teams.team_identity import pod_trust
from trainyard.plans.parts import Identity
from trainyard.plans.push_gateway import NAMESPACE


class ManagedPrometheus(pulumi.ComponentResource):
    """Where AWS keeps the samples of an environment."""

    endpoint: pulumi.Output[str]
    """Address of the workspace, with a slash at its end."""
    writer: pulumi.Output[str]
    """ARN of the role that may write to it."""
    ready: list[pulumi.Resource]
    """What a pod needs before it starts, or it has no identity."""

    def __init__(
        self,
        name: str,
        plan: ManagedPrometheusPlan,
        *,
        identity: Identity,
        cluster_name: pulumi.Input[str],
        trusts: pulumi.Output[Document],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`trusts`: trust policy for roles that pods of this cluster get through EKS Pod Identity."""
        super().__init__("trainyard:metrics:ManagedPrometheus", name, None, opts)
        workspace = aws.amp.Workspace(
            name,
            alias=plan.alias,
            kms_key_arn=identity.kms_key_arn,
            tags=identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        aws.amp.WorkspaceConfiguration(
            name,
            workspace_id=workspace.id,
            retention_period_in_days=plan.retention_days,
            opts=pulumi.ResourceOptions(parent=self),
        )
        pods, self.ready = pod_role(
            self,
            name,
            identity,
            plan.role_name,
            trusts.apply(lambda trust: pod_trust(trust, NAMESPACE, SERVICE_ACCOUNT)),
            cluster_name=cluster_name,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            inline={"write": workspace.arn.apply(lambda arn: json.dumps(writing(arn)))},
        )
        self.endpoint, self.writer = workspace.prometheus_endpoint, pods.arn
        self.register_outputs({})
