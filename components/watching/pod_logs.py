"""The log group that keeps the logs of pods, and the Fluent Bit on the nodes of pools that writes to it.

Settings: `environment.logs` in the stack file. Its configuration: trainyard/objects/programs/pod_logs.py.
"""

from __future__ import annotations

import json

import pulumi
import pulumi_kubernetes as k8s

from components.base.log_group import log_group
from components.base.pool_daemon import on_node, pool_daemon
from components.base.unprivileged import container_security, files_of
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.objects.programs.pod_logs import (
    APP,
    FILE,
    FOLDER,
    MEMORY_MIB,
    NAMESPACE,
    PROGRAM,
    STATE,
    PodLogsPlan,
    fluent_bit_config,
    writing,
)
from trainyard.plans.identity import digest

LOGS = "/var/log"


class PodLogs(pulumi.ComponentResource):
    """Copies each line of the pods of jobs to CloudWatch Logs."""

    group: pulumi.Output[str]
    """Name of the log group."""

    def __init__(
        self,
        name: str,
        plan: PodLogsPlan,
        *,
        cluster: ClusterAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:logs:PodLogs", name, None, opts)
        self._child = pulumi.ResourceOptions(parent=self)
        self._plan, self._cluster = plan, cluster
        group = log_group(self, name, cluster.identity, plan.group_name, plan.days)
        self.group = group.name
        meta = k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=NAMESPACE)
        account = k8s.core.v1.ServiceAccount(f"{name}-account", metadata=meta, opts=self._child)
        config = fluent_bit_config(plan)
        file = k8s.core.v1.ConfigMap(
            f"{name}-file", metadata=meta, data={FILE: config}, opts=self._child
        )
        association = self._may_write(name, group.arn, account.metadata.name)
        pool_daemon(
            APP,
            _container(plan),
            namespace=NAMESPACE,
            on={NODES_FOR: "training"},
            account=account.metadata.name,
            # It reads its file once: another file is another pod.
            annotations={"trainyard/file": digest([config])},
            volumes=[
                files_of("file", file.metadata.name),
                on_node("logs", LOGS),
                on_node("state", STATE, made=True),
            ],
            # An edge that no input shows: pods that start before the association have no identity.
            opts=pulumi.ResourceOptions(parent=self, depends_on=association),
        )
        self.register_outputs({})

    def _may_write(
        self, name: str, group_arn: pulumi.Output[str], account: pulumi.Output[str]
    ) -> list[pulumi.Resource]:
        """Give its pods the right to write to the group."""
        _, ready = self._cluster.pod_role(
            self,
            name,
            self._plan.role_name,
            self._cluster.trust_for(NAMESPACE, APP),
            namespace=NAMESPACE,
            service_account=account,
            inline={"write": group_arn.apply(lambda arn: json.dumps(writing(arn), sort_keys=True))},
        )
        return ready


def _container(plan: PodLogsPlan) -> k8s.core.v1.ContainerArgs:
    """Root, because containerd lets nobody else read the logs of containers; without capabilities."""
    return k8s.core.v1.ContainerArgs(
        name="fluent-bit",
        image=plan.image,
        command=[PROGRAM, "-c", f"{FOLDER}/{FILE}"],
        resources=k8s.core.v1.ResourceRequirementsArgs(
            requests={"cpu": "20m", "memory": "64Mi"}, limits={"memory": f"{MEMORY_MIB}Mi"}
        ),
        security_context=container_security(user=0),
        volume_mounts=[
            k8s.core.v1.VolumeMountArgs(name="file", mount_path=FOLDER, read_only=True),
            k8s.core.v1.VolumeMountArgs(name="logs", mount_path=LOGS, read_only=True),
            k8s.core.v1.VolumeMountArgs(name="state", mount_path=STATE),
        ],
    )
