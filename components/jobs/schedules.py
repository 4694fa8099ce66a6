"""The schedule of a job: a CronJob, and what its pod is and may do.

Times and policies: `schedule` of the job. What the objects say: trainyard/objects/jobs/schedule.py.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.base.rbac import RBAC
from trainyard.objects.jobs.schedule import SETTINGS, cron_job_spec, name_of, rules, settings
from trainyard.plans.jobs import SCHEDULE, JobPlan, SchedulePlan


class Schedule(pulumi.ComponentResource):
    """Starts a run of one job at each of its times."""

    def __init__(
        self,
        name: str,
        plan: JobPlan,
        schedule: SchedulePlan,
        *,
        namespace: pulumi.Input[str],
        needs: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`needs`: what a run needs as long as there are times."""
        super().__init__("trainyard:jobs:Schedule", name, None, opts)
        child = pulumi.ResourceOptions(parent=self)
        called = k8s.meta.v1.ObjectMetaArgs(name=name_of(plan), namespace=namespace)
        rights = [] if schedule.account else self._rights(name, plan, called, child)
        files = k8s.core.v1.ConfigMap(
            f"{name}-program",
            metadata=called,
            data={**schedule.files, SETTINGS: json.dumps(settings(plan, schedule), indent=1)},
            opts=child,
        )
        spec: Any = cron_job_spec(plan, schedule)
        k8s.batch.v1.CronJob(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(
                name=plan.name,
                namespace=namespace,
                labels={SCHEDULE: plan.name},
                # In the foreground the Trainer would make the JobSet of a run again that is being deleted.
                annotations={"pulumi.com/deletionPropagationPolicy": "background"},
            ),
            spec=spec,
            # Account and files are named in the spec, and not referred to. Without a right its pod fails.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*rights, files, *needs], delete_before_replace=True
            ),
        )
        self.register_outputs({})

    def _rights(
        self,
        name: str,
        plan: JobPlan,
        called: k8s.meta.v1.ObjectMetaArgs,
        child: pulumi.ResourceOptions,
    ) -> list[pulumi.Resource]:
        """The account of the pod, and what binds its rights to it."""
        account = k8s.core.v1.ServiceAccount(f"{name}-account", metadata=called, opts=child)
        may: Any = rules(plan)
        role = k8s.rbac.v1.Role(f"{name}-starts", metadata=called, rules=may, opts=child)
        bound = k8s.rbac.v1.RoleBinding(
            f"{name}-starts",
            metadata=called,
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="Role", name=role.metadata.name),
            subjects=[
                k8s.rbac.v1.SubjectArgs(
                    kind="ServiceAccount",
                    name=account.metadata.name,
                    namespace=account.metadata.namespace,
                )
            ],
            opts=child,
        )
        return [account, bound]
