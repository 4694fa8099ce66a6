"""No two runs of one name at a time: the ValidatingAdmissionPolicy that refuses a job while pods of
another one of its name are still there, and the start of a suspended job while its own pods are.

Two gangs on one checkpoint directory spoil it, and Karpenter launches nodes for the second. `up` waits
by itself (components/jobs/run_before.py); the policy is for whoever sends jobs with kubectl or an SDK.
JobSets and gangs that their controllers start again are no new jobs, and pass.

A queue suspends a job that gives its nodes back, and can resume it before its pods have ended. A
PyTorchJob would fail with the first of them, without a restart. Kueue asks again until the policy lets
it (jobframework/reconciler.go, startJob). Both are tried at an API server with both controllers:
tests/controllers/test_one_run.py; with Kueue: tests/worlds/test_late_queue_world.py.
"""

from __future__ import annotations

from typing import Any

from trainyard.catalog.job_kinds import ENTRY_KINDS, JobKind

POLICY = "trainyard-one-run"


def policy() -> Any:
    """The spec of the policy. It judges a job against each pod of its namespace."""
    return {
        # While the API server cannot list pods, jobs must get through: only their overlap is at stake.
        "failurePolicy": "Ignore",
        "paramKind": {"apiVersion": "v1", "kind": "Pod"},
        "matchConstraints": {
            "resourceRules": [
                {
                    "apiGroups": [kind.api_version.partition("/")[0]],
                    "apiVersions": ["*"],
                    "resources": [f"{name.lower()}s"],
                    "operations": ["CREATE", *(["UPDATE"] if kind.suspend else [])],
                }
                for name, kind in ENTRY_KINDS.items()
            ]
        },
        "matchConditions": [
            {"name": "begins", "expression": f"request.operation == 'CREATE' || {_RESUMED}"}
        ],
        "validations": [
            {
                "expression": f"object.kind != '{name}' || {_OF_POD.format(label=kind.pod_label)}"
                " != object.metadata.name",
                "messageExpression": (
                    "'pod ' + params.metadata.name + ' of the ' + object.kind + ' that was called '"
                    f" + object.metadata.name + ' before is still there: {_again(kind)} when its"
                    " pods are gone'"
                ),
                "reason": "Forbidden",
            }
            for name, kind in ENTRY_KINDS.items()
        ],
    }


def _suspended(obj: str, kind: JobKind) -> str:
    """CEL expression that is true where a job is suspended."""
    first, *more = kind.suspend
    return f"{obj}.{first}.{'.'.join(f'?{name}' for name in more)}.orValue(false)"


def _again(kind: JobKind) -> str:
    """Advice about a job that is sent or resumed: what to do later."""
    return "send the job again or resume it" if kind.suspend else "send the job again"


_RESUMED = " || ".join(
    f"object.kind == '{name}' && {_suspended('oldObject', kind)} && !{_suspended('object', kind)}"
    for name, kind in ENTRY_KINDS.items()
    if kind.suspend
)
_OF_POD = "params.metadata.?labels[?'{label}'].orValue('')"
"""The job that a pod belongs to."""


def binding() -> Any:
    """The spec of its binding, for all namespaces."""
    return {
        "policyName": POLICY,
        "validationActions": ["Deny"],
        "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
    }
