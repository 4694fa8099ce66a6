"""A workspace of Amazon Managed Service for Prometheus, and the AWS identity of the Prometheus that
writes to it.

Settings: `metrics.managed_prometheus` in the stack file. What it writes:
trainyard/objects/metrics/managed_prometheus.py.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws

from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.metrics.managed_prometheus import (
    SERVICE_ACCOUNT,
    ManagedPrometheusPlan,
    writing,
)
from trainyard.plans.push_gateway import NAMESPACE
from trainyard.plans.stores import KEPT


class ManagedPrometheus(pulumi.ComponentResource):
    """Workspace in which AWS keeps the samples of an environment."""

    endpoint: pulumi.Output[str]
    """Address of the workspace, with a slash at its end."""
    writer: pulumi.Output[str]
    """ARN of the role that may write to it."""
    ready: list[pulumi.Resource]
    """Resources that a pod needs before it starts, or it has no identity."""

    def __init__(
        self,
        name: str,
        plan: ManagedPrometheusPlan,
        *,
        cluster: ClusterAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:metrics:ManagedPrometheus", name, None, opts)
        workspace = aws.amp.Workspace(
            name,
            alias=plan.alias,
            kms_key_arn=cluster.identity.kms_key_arn,
            tags=cluster.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, protect=plan.keep),
        )
        aws.amp.WorkspaceConfiguration(
            name,
            workspace_id=workspace.id,
            retention_period_in_days=plan.retention_days,
            opts=pulumi.ResourceOptions(parent=self),
        )
        pods, self.ready = cluster.pod_role(
            self,
            name,
            plan.role_name,
            cluster.trust_for(NAMESPACE, SERVICE_ACCOUNT),
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            inline={"write": workspace.arn.apply(lambda arn: json.dumps(writing(arn)))},
        )
        self.endpoint, self.writer = workspace.prometheus_endpoint, pods.arn
        self.register_outputs({KEPT: plan.keep})
