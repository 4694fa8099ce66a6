"""Ways round a queue, and the ValidatingAdmissionPolicies that close them, for clusters with queues.

Kueue's own webhooks let them pass (Kueue 0.16.2; tests/controllers/test_queue_attacks.py). Negative
amounts, which Kueue counts as a credit, and PriorityClasses of pods are refused for teams anyway:
team_admission.py.
"""

from __future__ import annotations

from trainyard.objects.queues.queues import (
    CONTROLLER,
    MANAGERS,
    NAMESPACE,
    QUEUE_LABEL,
    URGENCY_LABEL,
)
from trainyard.objects.teams.team_access import EVERYBODY
from trainyard.objects.teams.team_admission import JOBS, RUNTIMES, Rule, annotated
from trainyard.objects.teams.teams import ALLOWED_URGENCIES
from trainyard.plans.jobs import TEAM, Spec

POLICY, RUNTIME_POLICY = "trainyard-team-queue", "trainyard-team-runtime"
_FOREIGN = [
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/pod-group-name",
    "kueue.x-k8s.io/prebuilt-workload-name",
]
"""Labels that make Kueue take the job for a part of something that it has started already."""

RULES: dict[str, Rule] = {
    "queue": Rule(
        expression=(
            f"variables.labels[?'{QUEUE_LABEL}'].orValue('') =="
            f" namespaceObject.metadata.?labels[?'{TEAM}'].orValue('')"
        ),
        message=f"label {QUEUE_LABEL} must be the team's name",
    ),
    "urgency": Rule(
        expression=(
            f"variables.labels[?'{URGENCY_LABEL}'].orValue('') == '' ||"
            f" variables.labels['{URGENCY_LABEL}'] in {annotated(ALLOWED_URGENCIES)}"
        ),
        message=f"label {URGENCY_LABEL} must be low, normal or high, and at most the team's max_urgency",
    ),
    "owner": Rule(
        expression="object.metadata.?ownerReferences.orValue([]).size() == 0",
        message="ownerReferences must not be set: Kueue does not queue what belongs to another job",
    ),
    "group": Rule(
        expression=f"{_FOREIGN}.all(key, !(key in variables.labels))",
        message="labels must not make the job a part of another one: " + ", ".join(_FOREIGN),
    ),
    "start": Rule(
        expression=(
            "variables.kueue || variables.waits || (oldObject != null && !variables.waited)"
        ),
        message="a job must wait in its queue: only Kueue starts it",
    ),
}
"""Subject of a rule → the rule. A job that runs may stay as it runs."""
_FROM_A_MANAGER = Rule(
    expression=f"'{MANAGERS}' in request.userInfo.groups || {RULES['group'].expression}",
    message=RULES["group"].message,
)
"""The manager makes the Workload first, and then the job that belongs to it."""


WITH_SCHEDULES = {
    "owner": Rule(
        expression=(
            "object.metadata.?ownerReferences.orValue([]).all(o, !o.?controller.orValue(false))"
        ),
        message=(
            "an ownerReference must not be a controller: Kueue does not queue what belongs to another job"
        ),
    ),
}
"""Rules in the place of those of the same name, where a team has schedules: a run has the Job that made it as
an owner, and Kueue asks for controllers."""


IN_USE = "trainer.kubeflow.org/resource-in-use"
"""Finalizer of a runtime that a TrainJob names (Trainer 2.1.0 and 2.3.0, pkg/constants/constants.go)."""
RUNTIME_RULES: dict[str, Rule] = {
    "pods": Rule(
        expression="object.spec == oldObject.spec",
        message=(
            "the spec of a TrainingRuntime must not change, because queues count jobs by it: make a runtime of another"
            " name, and name that in new jobs"
        ),
    ),
    "use": Rule(
        expression=(
            f"!('{EVERYBODY}' in request.userInfo.groups)"
            f" || !('{IN_USE}' in oldObject.metadata.?finalizers.orValue([]))"
            f" || '{IN_USE}' in object.metadata.?finalizers.orValue([])"
        ),
        message=(
            f"finalizer {IN_USE} must stay while a TrainJob names the TrainingRuntime: delete the job, and the Trainer"
            " takes it off"
        ),
    ),
}
"""Subject of a rule → the rule, for updates of a team's own runtimes. Kueue counts each job by the runtime of now
(0.16.2 and 0.19.2, trainjob_controller.go), and its pods are of the runtime of before: a runtime that asked for fewer
GPUs would hide those of a gang that runs. A runtime that is deleted and made again is another way to change it."""


def runtime_policy() -> Spec:
    """The spec of the policy for runtimes of teams. Whoever takes off another finalizer gets through."""
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [{**RUNTIMES, "operations": ["UPDATE"]}]},
        "validations": [rule.validation() for rule in RUNTIME_RULES.values()],
    }


def policy(*, managed: bool, schedules: bool = False) -> Spec:
    """The spec of the policy. `managed`: another environment hands its jobs to this one. `schedules`: teams have
    them."""
    own = {"group": _FROM_A_MANAGER} if managed else {}
    rules = RULES | own | (WITH_SCHEDULES if schedules else {})
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{**each, "operations": ["CREATE", "UPDATE"]} for each in JOBS]
        },
        # Whoever removes a finalizer must get through, whatever the rules are by then.
        "matchConditions": [
            {
                "name": "job-changes",
                "expression": (
                    "request.operation == 'CREATE' || object.spec != oldObject.spec ||"
                    " object.metadata.?labels.orValue({}) !="
                    " oldObject.metadata.?labels.orValue({}) ||"
                    " object.metadata.?ownerReferences.orValue([]) !="
                    " oldObject.metadata.?ownerReferences.orValue([])"
                ),
            }
        ],
        "variables": [
            {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
            {
                "name": "kueue",
                "expression": (
                    f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{CONTROLLER}'"
                ),
            },
            {"name": "waits", "expression": _suspended("object")},
            {"name": "waited", "expression": f"oldObject != null && {_suspended('oldObject')}"},
        ],
        "validations": [rule.validation() for rule in rules.values()],
    }


def _suspended(name: str) -> str:
    """CEL expression that is true where a job waits. The policy sees a new job after Kueue's
    webhook, which suspends it."""
    return (
        f"({name}.kind == 'PyTorchJob' ? {name}.spec.?runPolicy.?suspend.orValue(false)"
        f" : {name}.spec.?suspend.orValue(false))"
    )
