"""Alertmanager, the SNS topic that it publishes to, and its AWS identity.

Settings: `metrics.alerts` in the stack file. Its configuration: trainyard/objects/metrics/alertmanager.py.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as k8s

from components.base.one_pod import one_pod
from components.base.topic import topic
from components.base.unprivileged import files_of, scratch, server, system_pod
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.iam.topics import publishing
from trainyard.objects.metrics.alertmanager import (
    APP,
    FILE,
    FOLDER,
    MILLICPUS,
    PORT,
    AlertmanagerPlan,
    alertmanager_config,
)
from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.plans.identity import digest

LABELS = {LABEL: APP}
DATA = "/alertmanager"
SIZE = {"cpu": f"{MILLICPUS}m", "memory": "128Mi"}


class Alertmanager(pulumi.ComponentResource):
    """The program that groups alerts and sends them."""

    topic_arn: pulumi.Output[str]

    def __init__(
        self,
        name: str,
        plan: AlertmanagerPlan,
        *,
        cluster: ClusterAccess,
        namespace: pulumi.Output[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:metrics:Alertmanager", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        self._plan, self._cluster, self._namespace = plan, cluster, namespace
        self.topic_arn = topic(self, name, plan.topic, cluster.identity)
        account = k8s.core.v1.ServiceAccount(
            f"{name}-account", metadata=self._called(), opts=self._child
        )
        association = self._may_publish(name, account.metadata.name)
        config = self.topic_arn.apply(lambda arn: alertmanager_config(plan, arn))
        file = k8s.core.v1.ConfigMap(
            f"{name}-file", metadata=self._called(), data={FILE: config}, opts=self._child
        )
        one_pod(
            name,
            self._called(),
            LABELS,
            _pod(plan, account.metadata.name, file.metadata.name),
            parent=self,
            needs=[*association, *cluster.nodes],
            # It reads its file once: another file is another pod.
            annotations={"trainyard/file": config.apply(lambda text: digest([text]))},
        )
        self.register_outputs({})

    def _called(self) -> k8s.meta.v1.ObjectMetaArgs:
        return k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=self._namespace)

    def _may_publish(self, name: str, account: pulumi.Output[str]) -> list[pulumi.Resource]:
        """Give its pods the right to publish to the topic."""
        cluster = self._cluster
        key = cluster.identity.kms_key_arn if self._plan.topic.own else None
        statement = self.topic_arn.apply(
            lambda arn: json.dumps(publishing(arn, key), sort_keys=True)
        )
        _, ready = cluster.pod_role(
            self,
            name,
            self._plan.role_name,
            cluster.trust_for(self._namespace, APP),
            namespace=self._namespace,
            service_account=account,
            inline={"topic": statement},
        )
        return ready


def _pod(
    plan: AlertmanagerPlan, account: pulumi.Output[str], file: pulumi.Output[str]
) -> k8s.core.v1.PodSpecArgs:
    container = server(
        APP,
        plan.image,
        port=PORT,
        size=SIZE,
        healthy="/-/healthy",
        ready="/-/ready",
        # One replica needs no cluster of Alertmanagers.
        args=[
            f"--config.file={FOLDER}/{FILE}",
            f"--storage.path={DATA}",
            "--cluster.listen-address=",
        ],
        mounts=[
            k8s.core.v1.VolumeMountArgs(name="file", mount_path=FOLDER),
            k8s.core.v1.VolumeMountArgs(name="data", mount_path=DATA),
        ],
    )
    volumes = [files_of("file", file), scratch("data", "1Gi")]
    return system_pod(container, volumes=volumes, account=account)
