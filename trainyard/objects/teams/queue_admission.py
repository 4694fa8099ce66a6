"""Ways round a queue, and the ValidatingAdmissionPolicies that close them, for clusters with queues.

Kueue's own webhooks let them pass (Kueue 0.16.2; tests/controllers/test_queue_attacks.py). Negative
amounts, which Kueue counts as a credit, and PriorityClasses of pods are refused for teams anyway:
team_admission.py.
"""

from __future__ import annotations

from trainyard.objects.queues.queues import MANAGERS, QUEUE_LABEL, URGENCY_LABEL
from trainyard.objects.teams.team_access import EVERYBODY
from trainyard.objects.teams.team_admission import (
    BY_KUEUE,
    JOBS,
    NO_STOP,
    RUNTIMES,
    Rule,
    annotated,
    suspended,
)
from trainyard.objects.teams.teams import ALLOWED_URGENCIES
from trainyard.plans.jobs import TEAM, Spec

POLICY, RUNTIME_POLICY = "trainyard-team-queue", "trainyard-team-runtime"
DELETION_POLICY = "trainyard-team-deletion"
BY_THE_TEAM = f"request.userInfo.groups.exists(g, g in ['{EVERYBODY}', 'system:serviceaccounts:' + request.namespace])"
"""CEL expression that is true of a request of somebody of the team, or of a pod of theirs."""
_ADDS_FINALIZERS = (
    f"{BY_THE_TEAM} && object.metadata.?finalizers.orValue([]).exists(f, oldObject == null ||"
    " !(f in oldObject.metadata.?finalizers.orValue([])))"
)
_FOREIGN = [
    "kueue.x-k8s.io/managed",
    "kueue.x-k8s.io/pod-group-name",
    "kueue.x-k8s.io/prebuilt-workload-name",
]
"""Labels that make Kueue take the job for a part of something that it has started already."""

CLEANED = ("Running", "All")
"""Values of cleanPodPolicy with which no pod goes on when a PyTorchJob has ended."""


def _leaves_pods(name: str) -> str:
    return (
        f"({name}.kind == 'PyTorchJob' &&"
        f" !({name}.spec.?runPolicy.?cleanPodPolicy.orValue('') in {[*CLEANED]}))"
    )


def _class_for_kueue(name: str) -> str:
    """PriorityClass that Kueue reads of a job; '' for none."""
    return (
        f"({name}.kind != 'PyTorchJob' || {name}.metadata.?labels[?'{URGENCY_LABEL}'].orValue('') != '' ? ''"
        f" : {name}.spec.?runPolicy.?schedulingPolicy.?priorityClass.orValue(''))"
    )


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
    # Any class of the cluster would do: system-node-critical is 2,000,001,000 (Kueue 0.16.2 and 0.19.2,
    # kubeflowjob_controller.go: PriorityClass; jobframework/reconciler.go: ExtractPriority reads the label first).
    "scheduling policy": Rule(
        expression=(
            f"{_class_for_kueue('object')} == '' ||"
            f" (oldObject != null && {_class_for_kueue('oldObject')} == {_class_for_kueue('object')})"
        ),
        message=(
            f"a job without label {URGENCY_LABEL} must not have spec.runPolicy.schedulingPolicy.priorityClass, which"
            " Kueue takes for its urgency"
        ),
    ),
    "owner": Rule(
        expression="object.metadata.?ownerReferences.orValue([]).size() == 0",
        message="ownerReferences must not be set: Kueue does not queue what belongs to another job",
    ),
    # A job that is being deleted is stopped by nobody (Kueue 0.16.2 and 0.19.2, jobframework/reconciler.go:
    # ReconcileGenericJob returns before any stop; training-operator 1.8.1, pytorchjob_controller.go: Reconcile).
    "finalizers": Rule(
        expression=f"!({_ADDS_FINALIZERS})",
        message=(
            "finalizers must not be added: no queue can take GPUs back from a job that is deleted and stays"
        ),
    ),
    "group": Rule(
        expression=f"{_FOREIGN}.all(key, !(key in variables.labels))",
        message="labels must not make the job a part of another one: " + ", ".join(_FOREIGN),
    ),
    # Kueue gives back the quota of a job that has ended, and None is the operator's default (Kueue 0.16.2 and 0.19.2,
    # kubeflowjob_controller.go: Finished; training-operator 1.8.1, pytorch_defaults.go and common/job.go).
    "end": Rule(
        expression=(
            f"!{_leaves_pods('object')} || (oldObject != null && {_leaves_pods('oldObject')})"
        ),
        message=(
            "a PyTorchJob must have spec.runPolicy.cleanPodPolicy: Running, or All: without it pods go on when the job"
            " has ended, and keep GPUs that its queue gives to others"
        ),
    ),
    "start": Rule(
        expression=(
            "variables.kueue || variables.waits || (oldObject != null && !variables.waited)"
        ),
        message="a job must wait in its queue: only Kueue starts it",
    ),
}
"""Subject of a rule → the rule. A job that runs may stay as it runs."""
_FROM_A_MANAGER = {
    name: Rule(
        expression=f"'{MANAGERS}' in request.userInfo.groups || {RULES[name].expression}",
        message=RULES[name].message,
    )
    for name in ("group", "end", "scheduling policy")
}
"""Rules in the place of those of the same name, where a manager hands jobs over. It makes the Workload first, and then
the job that belongs to it. Its own cluster has judged the job otherwise, or the job is older than the rule."""


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


WHOLE = Rule(
    expression=(
        f"!({BY_THE_TEAM}) || !(request.?options.?propagationPolicy.orValue('') == 'Orphan' ||"
        " request.?options.?orphanDependents.orValue(false))"
    ),
    message="a job must be deleted with its pods, not with Orphan: no queue can take GPUs back from pods without a job",
)
"""Rule for deletions. The garbage collector would take the job out of the owners of its pods or its JobSet, and Kueue
knows neither (Kubernetes 1.35, garbagecollector.go: orphanDependents)."""


def deletion_policy() -> Spec:
    """The spec of the policy for jobs that somebody of a team deletes."""
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{**each, "operations": ["DELETE"]} for each in JOBS]
        },
        "validations": [WHOLE.validation()],
    }


def policy(*, managed: bool, schedules: bool = False) -> Spec:
    """The spec of the policy. `managed`: another environment hands its jobs to this one. `schedules`: teams have
    them."""
    own = _FROM_A_MANAGER if managed else {}
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
                    f" || ({_ADDS_FINALIZERS})"
                ),
            },
            NO_STOP,
        ],
        "variables": [
            {"name": "labels", "expression": "object.metadata.?labels.orValue({})"},
            {
                "name": "kueue",
                "expression": BY_KUEUE,
            },
            {"name": "waits", "expression": suspended("object")},
            {"name": "waited", "expression": f"oldObject != null && {suspended('oldObject')}"},
        ],
        "validations": [rule.validation() for rule in rules.values()],
    }
