"""Objects of a schedule: the CronJob, the rights of its pod, and what the pod makes a run from.

Fields: batch/v1, Kubernetes 1.34. The pod makes the run and ends as the run ends, so the Job of the pod goes on as
long as the run: concurrencyPolicy and the history limits of the CronJob then hold for runs. Why: decision 0036.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.catalog.job_kinds import ENTRY_KINDS, JOB_KINDS, resource_of
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.jobs import RUN, SCHEDULE, JobPlan, SchedulePlan, Spec

CONTAINER = "start"
AT = "/program"
SETTINGS = "settings.json"
RUN_NAME = "{scheduled_run}"
"""Text in an object that stands for the name of the run."""
REFUSED = 3
"""Exit code of the program where no further try can help, or where the run has failed."""
TRIES = 100
"""Pods after which the Job gives up; one that loses its node counts for nothing. The run itself goes on."""
AMOUNTS = {"cpu": "10m", "memory": "64Mi"}
"""Requests of the container, and its limit of memory."""
NOBODY = 65534


def name_of(plan: JobPlan) -> str:
    """Name of the ConfigMap of a schedule, and of its own service account and role."""
    return f"{plan.name}-schedule"


def starts_now(kubectl: str, name: str) -> str:
    """The command that starts a run of a schedule now. It has a time as the others have: `{scheduled_time}` stands for
    it, and a run of the same one would go on from a finished checkpoint. `kubectl`: with its namespace."""
    return f"{kubectl} create job --from=cronjob/{name} {name}-$(date -u +%Y%m%d-%H%M)"


def rules(plan: JobPlan) -> list[dict[str, Any]]:
    """Rules of the pod's Role: it makes runs, and sees whether earlier ones are gone. Of both kinds: the pod of a run
    that goes on while its entry changes its kind has the description from before."""
    kinds = [resource_of(kind).partition(".") for kind in ENTRY_KINDS]
    return [
        *(_rule(group, resource, "create", "get", "list") for resource, _, group in kinds),
        _rule("", "pods", "list"),
        *([_rule("", "configmaps", "create")] if plan.files else []),
    ]


def _rule(group: str, resource: str, *verbs: str) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": [*verbs]}


def settings(plan: JobPlan, schedule: SchedulePlan) -> dict[str, Any]:
    """Settings of the program: which objects a run is, the job last."""
    place = f"namespaces/{plan.namespace}"
    jobs = _jobs(plan.kind, place)
    return {
        "schedule": plan.name,
        "label": SCHEDULE,
        "pods": f"/api/v1/{place}/pods",
        "jobs": jobs,
        "other_jobs": [_jobs(kind, place) for kind in ENTRY_KINDS if kind != plan.kind],
        "objects": [*_files(plan, place), {"path": jobs, "object": _job(plan)}],
        "deadline_minutes": schedule.deadline_minutes,
    }


def _jobs(kind: str, place: str) -> str:
    """Path of the jobs of a kind."""
    return f"/apis/{JOB_KINDS[kind].api_version}/{place}/{resource_of(kind).partition('.')[0]}"


def _files(plan: JobPlan, place: str) -> list[Spec]:
    """The files of a run, which stay as they are while the stack file's change."""
    if plan.files is None:
        return []
    made = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{RUN_NAME}-files", "namespace": plan.namespace},
        "immutable": True,
        "data": dict(plan.files.data),
    }
    return [{"path": f"/api/v1/{place}/configmaps", "object": made}]


def _job(plan: JobPlan) -> Spec:
    """The object of a run, with the same labels and annotations as that of a job without a schedule."""
    return {
        "apiVersion": JOB_KINDS[plan.kind].api_version,
        "kind": plan.kind,
        "metadata": {
            "name": RUN_NAME,
            "namespace": plan.namespace,
            "labels": {**plan.labels, SCHEDULE: plan.name},
            "annotations": {RUN: plan.run, **plan.annotations},
        },
        "spec": _with_files(plan.spec, plan.files.name if plan.files else None),
    }


def _with_files(value: Any, name: str | None) -> Any:
    """A spec that mounts the files of its run."""
    if isinstance(value, Mapping):
        return {key: _with_files(each, name) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_with_files(each, name) for each in value]
    return f"{RUN_NAME}-files" if name and value == name else value


def cron_job_spec(plan: JobPlan, schedule: SchedulePlan) -> Spec:
    """CronJob.spec."""
    return {
        "schedule": schedule.cron,
        "timeZone": schedule.time_zone,
        "concurrencyPolicy": "Replace" if schedule.replaces else "Forbid",
        "startingDeadlineSeconds": schedule.deadline_minutes * 60,
        "successfulJobsHistoryLimit": schedule.keep_runs,
        "failedJobsHistoryLimit": schedule.keep_runs,
        "suspend": schedule.suspended,
        "jobTemplate": {
            "metadata": {"labels": {SCHEDULE: plan.name}},
            "spec": {
                "backoffLimit": TRIES,
                "podReplacementPolicy": "Failed",
                "podFailurePolicy": {
                    "rules": [
                        {
                            "action": "FailJob",
                            "onExitCodes": {
                                "containerName": CONTAINER,
                                "operator": "In",
                                "values": [REFUSED],
                            },
                        },
                        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
                    ]
                },
                "template": {"spec": _pod(plan, schedule)},
            },
        },
    }


def _pod(plan: JobPlan, schedule: SchedulePlan) -> Spec:
    """A pod on a system node, which may ask the API server."""
    return {
        "restartPolicy": "Never",
        "serviceAccountName": schedule.account or name_of(plan),
        "nodeSelector": {NODES_FOR: "system"},
        "enableServiceLinks": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": NOBODY,
            "runAsGroup": NOBODY,
            "fsGroup": NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [
            {
                "name": CONTAINER,
                "image": schedule.image,
                "command": ["python3", "-B", f"{AT}/scheduled.py", f"{AT}/{SETTINGS}"],
                "env": [
                    _of_label("JOB_NAME", "batch.kubernetes.io/job-name"),
                    _of_label("JOB_UID", "batch.kubernetes.io/controller-uid"),
                ],
                "resources": {"requests": AMOUNTS, "limits": {"memory": AMOUNTS["memory"]}},
                "securityContext": {
                    "allowPrivilegeEscalation": False,
                    "readOnlyRootFilesystem": True,
                    "capabilities": {"drop": ["ALL"]},
                },
                "terminationMessagePolicy": "FallbackToLogsOnError",
                "volumeMounts": [{"name": "program", "mountPath": AT, "readOnly": True}],
            }
        ],
        "volumes": [{"name": "program", "configMap": {"name": name_of(plan)}}],
    }


def _of_label(variable: str, label: str) -> Spec:
    """A variable with a label of the pod."""
    field = {"fieldPath": f"metadata.labels['{label}']"}
    return {"name": variable, "valueFrom": {"fieldRef": field}}
