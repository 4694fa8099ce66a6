"""No two runs of one name at a time: the ValidatingAdmissionPolicy that refuses a job while pods of
another one of its name are still there.

Two gangs on one checkpoint directory spoil it, and Karpenter launches nodes for the second. `up` waits
by itself (components/jobs/run_before.py); the policy is for whoever sends jobs with kubectl or an SDK.
JobSets and gangs that their controllers start again are no new jobs, and pass. It is tried at an API
server with both controllers: tests/controllers/test_one_run.py.
"""

from __future__ import annotations

from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS

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
                    "operations": ["CREATE"],
                }
                for name, kind in JOB_KINDS.items()
            ]
        },
        "validations": [
            {
                "expression": f"object.kind != '{name}' || {_OF_POD.format(label=kind.pod_label)}"
                " != object.metadata.name",
                "messageExpression": (
                    "'pod ' + params.metadata.name + ' of the ' + object.kind + ' that was called '"
                    " + object.metadata.name + ' before is still there: send the job again when its"
                    " pods are gone'"
                ),
                "reason": "Forbidden",
            }
            for name, kind in JOB_KINDS.items()
        ],
    }


_OF_POD = "params.metadata.?labels[?'{label}'].orValue('')"
"""The job that a pod belongs to."""


def binding() -> Any:
    """The spec of its binding, for all namespaces."""
    return {
        "policyName": POLICY,
        "validationActions": ["Deny"],
        "paramRef": {"selector": {}, "parameterNotFoundAction": "Allow"},
    }
