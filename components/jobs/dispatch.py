"""Sends the jobs of teams to other environments: Kueue's objects for each worker, the role with
which it enters their clusters, and the program that renews its passes.

Workers: `queues.workers` in the stack file. What the objects say: trainyard/objects/programs/dispatch.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_kubernetes as k8s

from components.base.rbac import RBAC
from components.cluster.cluster_access import ClusterAccess
from components.cluster.program import Program
from components.jobs.queues import kueue_object
from trainyard.objects.programs.dispatch import (
    APP,
    CHECK,
    MAY_RENEW,
    DispatchPlan,
    check_spec,
    cluster_spec,
    config_spec,
    program,
    secret_name,
)
from trainyard.objects.queues.queues import NAMESPACE


class Dispatch(pulumi.ComponentResource):
    """The manager's side of several environments."""

    role_arn: pulumi.Output[str]
    """ARN of the role that enters the workers."""
    ready: list[pulumi.Resource]
    """Objects that the queue of a team refers to."""

    def __init__(
        self,
        name: str,
        plan: DispatchPlan,
        *,
        cluster: ClusterAccess,
        workers: Mapping[str, Mapping[str, pulumi.Input[str]]],
        kueue: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`workers`: how their clusters are reached, as their contracts say it. `kueue`: its chart."""
        super().__init__("trainyard:queues:Dispatch", name, None, opts)
        # Kinds, webhook and namespace come with the chart.
        in_kueue = self._in_kueue = pulumi.ResourceOptions(parent=self, depends_on=list(kueue))
        passes = [self._pass(worker, workers[worker]) for worker in plan.workers]
        clusters = [
            kueue_object(
                f"worker-{worker}", "MultiKueueCluster", worker, cluster_spec(worker), in_kueue
            )
            for worker in plan.workers
        ]
        config = kueue_object(name, "MultiKueueConfig", CHECK, config_spec(plan.workers), in_kueue)
        check = kueue_object(f"{name}-check", "AdmissionCheck", CHECK, check_spec(), in_kueue)
        self.ready = [*clusters, config, check]
        enters = self._enters(name, plan, cluster)
        rights = self._may_renew(name, plan)
        Program(
            "trainyard:queues:Passes",
            f"{name}-passes",
            program(plan),
            cluster=cluster,
            needs=[*passes, *enters, *rights],
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.register_outputs({})

    def _pass(self, worker: str, at: Mapping[str, pulumi.Input[str]]) -> pulumi.Resource:
        """The Secret that Kueue reads. The program adds the pass; nothing here is secret."""
        return k8s.core.v1.Secret(
            f"pass-{worker}",
            metadata={"name": secret_name(worker), "namespace": NAMESPACE},
            string_data={
                "cluster": at["name"],
                "server": at["endpoint"],
                "authority": at["certificate_authority"],
            },
            opts=self._in_kueue,
        )

    def _enters(
        self, name: str, plan: DispatchPlan, cluster: ClusterAccess
    ) -> list[pulumi.Resource]:
        """The role of the program's pod. It has no policy: everybody may ask STS who they are, and the
        workers say what it may do."""
        made, ready = cluster.pod_role(
            self,
            name,
            plan.role_name,
            cluster.trust_for(APP, APP),
            namespace=APP,
            service_account=APP,
        )
        self.role_arn = made.arn
        return ready

    def _may_renew(self, name: str, plan: DispatchPlan) -> list[pulumi.Resource]:
        called = k8s.meta.v1.ObjectMetaArgs(name=APP, namespace=NAMESPACE)
        may = k8s.rbac.v1.Role(
            f"{name}-renews",
            metadata=called,
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[""],
                    resources=["secrets"],
                    resource_names=[secret_name(worker) for worker in plan.workers],
                    verbs=list(MAY_RENEW),
                )
            ],
            opts=self._in_kueue,
        )
        bound = k8s.rbac.v1.RoleBinding(
            f"{name}-renews",
            metadata=called,
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=may.metadata.name),
            subjects=[k8s.rbac.v1.SubjectArgs(kind="ServiceAccount", name=APP, namespace=APP)],
            opts=self._in_kueue,
        )
        return [bound]
