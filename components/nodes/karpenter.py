"""Karpenter: its permissions, the queue that tells it of interruptions, its CRDs and its
controller.

Version: trainyard/catalog/versions.py. Permissions: trainyard/objects/iam/policies.py.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from components.base.chart import release
from components.cluster.cluster_access import ClusterAccess
from trainyard.catalog.limits import RELEASE_BEFORE_NODES_MINUTES
from trainyard.objects.iam import policies
from trainyard.objects.iam.encryption import node_volumes
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.controllers import KARPENTER_VCPUS, KarpenterPlan

NAMESPACE, SERVICE_ACCOUNT = "kube-system", "karpenter"

INTERRUPTIONS: dict[str, tuple[str, str]] = {
    "health": ("aws.health", "AWS Health Event"),
    "spot": ("aws.ec2", "EC2 Spot Instance Interruption Warning"),
    "rebalance": ("aws.ec2", "EC2 Instance Rebalance Recommendation"),
    "state": ("aws.ec2", "EC2 Instance State-change Notification"),
    "reservation": ("aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning"),
}
"""Events that EventBridge forwards: exactly the five that Karpenter 1.14 and 1.15 act on."""


class Karpenter(pulumi.ComponentResource):
    """The controller that launches GPU nodes for pending pods, and drains them."""

    ready: list[pulumi.Resource]
    """The controller, and the nodes that it runs on: what it has to end at destroy needs both."""

    def __init__(
        self,
        name: str,
        plan: KarpenterPlan,
        *,
        cluster: ClusterAccess,
        node_role_arn: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:nodes:Karpenter", name, None, opts)
        self._plan, self._cluster = plan, cluster
        queue, interruptions = self._interruption_queue(name)
        identity = self._identity(name, node_role_arn, queue)
        crds = release(self, f"{name}-crd", plan.crds, namespace=NAMESPACE)
        controller = self._controller(name, queue, [*identity, *interruptions, crds])
        self.ready = [controller, *cluster.nodes]
        self.register_outputs({})

    def _interruption_queue(self, name: str) -> tuple[aws.sqs.Queue, list[pulumi.Resource]]:
        key = self._plan.identity.kms_key_arn
        queue = aws.sqs.Queue(
            name,
            name=self._plan.queue_name,
            message_retention_seconds=300,
            # SQS encrypts with one of both keys (SQS API, SetQueueAttributes).
            sqs_managed_sse_enabled=None if key else True,
            kms_master_key_id=key,
            tags=self._plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        made: list[pulumi.Resource] = []
        rule_arns: list[pulumi.Output[str]] = []
        for event, (source, detail) in INTERRUPTIONS.items():
            rule = aws.cloudwatch.EventRule(
                f"{name}-{event}",
                name=self._plan.identity.name(f"{name}-{event}"),
                event_pattern=json.dumps(
                    {"source": [source], "detail-type": [detail]}, sort_keys=True
                ),
                tags=self._plan.identity.tags(f"{name}-{event}"),
                opts=pulumi.ResourceOptions(parent=self),
            )
            rule_arns.append(rule.arn)
            made.append(
                aws.cloudwatch.EventTarget(
                    f"{name}-{event}",
                    rule=rule.name,
                    target_id="karpenter",
                    arn=queue.arn,
                    opts=pulumi.ResourceOptions(parent=self),
                )
            )
        policy = pulumi.Output.all(queue.arn, *rule_arns).apply(
            lambda arns: json.dumps(policies.interruption_queue(arns[0], arns[1:]), sort_keys=True)
        )
        made.append(
            aws.sqs.QueuePolicy(
                name, queue_url=queue.url, policy=policy, opts=pulumi.ResourceOptions(parent=self)
            )
        )
        return queue, made

    def _identity(
        self, name: str, node_role_arn: pulumi.Input[str], queue: aws.sqs.Queue
    ) -> list[pulumi.Resource]:
        region, key = self._plan.identity.region, self._plan.identity.kms_key_arn
        cluster = self._cluster
        reads = pulumi.Output.all(
            node_role_arn=node_role_arn, cluster_arn=cluster.coordinates.arn, queue_arn=queue.arn
        ).apply(lambda arns: json.dumps(policies.karpenter_identity(**arns), sort_keys=True))
        _, ready = cluster.pod_role(
            self,
            name,
            self._plan.role_name,
            cluster.trusts,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            inline={
                "nodes": json.dumps(
                    policies.karpenter_nodes(region=region, cluster=self._plan.cluster_name),
                    sort_keys=True,
                ),
                "identity": reads,
                "discovery": json.dumps(
                    policies.karpenter_discovery(region=region), sort_keys=True
                ),
                **({"volumes": json.dumps(node_volumes(key), sort_keys=True)} if key else {}),
            },
        )
        return ready

    def _controller(
        self, name: str, queue: aws.sqs.Queue, needs: list[pulumi.Resource]
    ) -> k8s.helm.v3.Release:
        return release(
            self,
            name,
            self._plan.controller,
            namespace=NAMESPACE,
            skip_crds=True,
            values={
                "settings": {
                    "clusterName": self._cluster.name,
                    "clusterEndpoint": self._cluster.coordinates.endpoint,
                    "interruptionQueue": queue.name,
                    "eksControlPlane": True,
                    **(
                        {"featureGates": {"staticCapacity": True}}
                        if self._plan.static_capacity
                        else {}
                    ),
                    **({} if self._plan.dry_run else {"disableDryRun": True}),
                    **({"isolatedVPC": True} if self._plan.isolated else {}),
                },
                "serviceAccount": {"name": SERVICE_ACCOUNT},
                # The resolver of the VPC. Karpenter calls AWS and the API server only, and need not
                # wait for coredns (karpenter-provider-aws#2186).
                "dnsPolicy": "Default",
                # Beside the chart's own, kubernetes.io/os.
                "nodeSelector": {NODES_FOR: "system"},
                "controller": {
                    # Otherwise Karpenter asks the instance metadata service, which no pod reaches.
                    "env": [{"name": "AWS_REGION", "value": self._plan.identity.region}],
                    "resources": {
                        "requests": {"cpu": str(KARPENTER_VCPUS), "memory": "1Gi"},
                        "limits": {"cpu": str(KARPENTER_VCPUS), "memory": "1Gi"},
                    },
                },
            },
            # Pods get an identity only if its association exists before them; without permissions
            # and queue rules the controller starts blind, and at destroy could not end the
            # instances it has launched. Nodes are no need: the pods wait for them, and the release
            # for the pods.
            needs=needs,
            minutes=RELEASE_BEFORE_NODES_MINUTES,
        )
