"""Rules for pods of a team: ValidatingAdmissionPolicies for namespaces that have the label of a
team.

The same rules judge pods, and earlier the jobs and runtimes that pods are made from: a person then
reads the refusal at once, and not in the events of a Job. Pod Security refuses privileges and host
access in pods besides. Each rule is tried at an API server:
tests/controllers/test_team_attacks.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.objects.iam.secrets import DRIVER
from trainyard.objects.jobs.pod_template import NO_DEVICES, TOLERATIONS, VISIBLE
from trainyard.objects.jobs.schedule import AMOUNTS
from trainyard.objects.queues.queues import CONTROLLER, NAMESPACE
from trainyard.objects.teams.team_identity import SERVICE_ACCOUNT
from trainyard.objects.teams.teams import IMAGE_PREFIXES, PRIORITIES, SCHEDULES, STARTER
from trainyard.plans.jobs import TEAM, Spec

VOLUMES = ("configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret")
"""Kinds of volumes of a team's pods. Every other kind mounts a folder of the node, or a file system
past the team's claims."""
_BY_THE_CLUSTER = ("node.kubernetes.io/memory-pressure",)
"""Taints that the API server lets pods tolerate by itself."""
LONGEST_GRACE_SECONDS = 600
"""Longest time that a team's pod may take to end. Kueue gives its quota to another team when it stops the job, and
the GPUs are free when the pod has ended."""
BY_KUEUE = f"request.userInfo.username == 'system:serviceaccount:{NAMESPACE}:{CONTROLLER}'"
"""CEL expression that is true of a request of Kueue."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One thing that pods of a team cannot have."""

    expression: str
    """True of a sound pod. `variables.pods` is a list of PodSpecs."""
    message: str

    def validation(self) -> Spec:
        """The rule in a policy."""
        return {"expression": self.expression, "message": self.message, "reason": "Forbidden"}


def _listed(*values: str) -> str:
    return "[" + ", ".join(f"'{value}'" for value in values) + "]"


def annotated(key: str) -> str:
    """The list in an annotation of the namespace; [''] where there is none."""
    return f"namespaceObject.metadata.?annotations[?'{key}'].orValue('').split(',')"


def _of_pods(condition: str) -> str:
    return f"variables.pods.all(s, {condition})"


def _of_containers(condition: str) -> str:
    containers = "(s.?containers.orValue([]) + s.?initContainers.orValue([]))"
    return _of_pods(f"{containers}.all(c, {condition})")


_RESOURCES = "[c.?resources.?limits.orValue({}), c.?resources.?requests.orValue({})]"
_TAINTS = _listed(*sorted({each["key"] for each in TOLERATIONS} | {*_BY_THE_CLUSTER}))
_KINDS = " || ".join(f"has(v.{kind})" for kind in VOLUMES)
_DEFAULT_ACCOUNT = (
    f"s.?serviceAccountName.orValue('{SERVICE_ACCOUNT}') in {_listed('', SERVICE_ACCOUNT)}"
)
_TERMS = [
    f"dyn(s.?affinity.?{kind}.?{when}DuringSchedulingIgnoredDuringExecution.orValue([]){inner})"
    for kind in ("podAffinity", "podAntiAffinity")
    for when, inner in (("required", ""), ("preferred", ".map(t, t.podAffinityTerm)"))
]
"""The lists of terms that name other pods."""
RULES: dict[str, Rule] = {
    "volumes": Rule(
        expression=_of_pods(f"s.?volumes.orValue([]).all(v, {_KINDS})"),
        message=f"volumes must be of the kinds {', '.join(VOLUMES)}: no hostPath, nfs or csi",
    ),
    "node": Rule(
        expression=_of_pods("s.?nodeName.orValue('') == ''"),
        message="nodeName must not be set: the scheduler chooses the node",
    ),
    "scheduler": Rule(
        expression=_of_pods("s.?schedulerName.orValue('default-scheduler') == 'default-scheduler'"),
        message="schedulerName must be default-scheduler",
    ),
    "host": Rule(
        expression=_of_pods(
            "!s.?hostNetwork.orValue(false) && !s.?hostPID.orValue(false)"
            " && !s.?hostIPC.orValue(false)"
        ),
        message="hostNetwork, hostPID and hostIPC must not be set",
    ),
    # A device of amount 0 is on every node (Kubernetes 1.34 to 1.36, noderesources/fit.go).
    "tolerations": Rule(
        expression=_of_pods(
            f"s.?tolerations.orValue([]).all(t, t.?key.orValue('') in {_TAINTS}"
            " || s.?containers.orValue([]).exists(c, [c.?resources.?limits.orValue({})].exists(m,"
            " m.exists(k, k == t.?key.orValue('') &&"
            " quantity(string(m[k])).isGreaterThan(quantity('0'))))))"
        ),
        message="tolerations must be of the taints of pools, or of a device that the pod requests",
    ),
    # Anti-affinity counts both ways: with the pods of others, one pod keeps them off its whole pool or zone
    # (kubernetes, interpodaffinity/filtering.go, satisfiesExistingPodsAntiAffinity; KEP-2249).
    "affinity": Rule(
        expression=_of_pods(
            f"[{', '.join(_TERMS)}].all(l, l.all(t, !has(t.namespaceSelector) &&"
            " t.?namespaces.orValue([]).all(n, n == request.namespace)))"
        ),
        message=(
            "podAffinity and podAntiAffinity must be of pods of the team: no namespaceSelector, and no other namespaces"
        ),
    ),
    "grace": Rule(
        expression=_of_pods(
            f"s.?terminationGracePeriodSeconds.orValue(30) <= {LONGEST_GRACE_SECONDS}"
        ),
        message=f"terminationGracePeriodSeconds must be at most {LONGEST_GRACE_SECONDS}",
    ),
    "priority": Rule(
        expression=_of_pods(
            f"s.?priorityClassName.orValue('') == '' || s.priorityClassName in"
            f" {annotated(PRIORITIES)}"
        ),
        message="priorityClassName must be one of the team's allowed_priorities",
    ),
    "service account": Rule(
        expression=_of_pods(_DEFAULT_ACCOUNT),
        message=f"serviceAccountName must be {SERVICE_ACCOUNT}",
    ),
    "images": Rule(
        expression=_of_containers(
            f"{annotated(IMAGE_PREFIXES)}.exists(p, c.?image.orValue('').startsWith(p))"
            " || c.?image.orValue('') == ''"
        ),
        message="images must begin with one of the team's image_prefixes",
    ),
    "quantities": Rule(
        expression=_of_containers(f"{_RESOURCES}.all(m, m.all(k, !string(m[k]).startsWith('-')))"),
        message="resources must not be negative",
    ),
    # The node's NVIDIA runtime gives a container the GPUs that the variable names, whatever the pod requests
    # (nvidia-container-toolkit, accept-nvidia-visible-devices-envvar-when-unprivileged, by default true).
    "devices": Rule(
        expression=_of_containers(
            f"c.?env.orValue([]).all(e, e.name != '{VISIBLE}' ||"
            f" e.?value.orValue('') in {_listed(*NO_DEVICES)})"
        ),
        message=f"{VISIBLE} must not be set, but to {' or '.join(NO_DEVICES)}: a pod has the GPUs that it requests",
    ),
}
"""Subject of a rule → the rule. A template may leave out its image: then another object has it."""

WITH_SECRETS = {
    "volumes": Rule(
        expression=_of_pods(
            f"s.?volumes.orValue([]).all(v, {_KINDS} || (has(v.csi) && v.csi.driver == '{DRIVER}'))"
        ),
        message=(
            f"volumes must be of the kinds {', '.join(VOLUMES)}, or csi of {DRIVER}: no hostPath,"
            " nfs or other csi"
        ),
    ),
}
"""Rules in the place of those of the same name, where a team reads Secrets Manager. The driver looks
for the SecretProviderClass in the namespace of the pod only (pkg/secrets-store/nodeserver.go)."""

_STARTER = (
    f"s.?serviceAccountName.orValue('') == '{STARTER}' && '{STARTER}' in {annotated(SCHEDULES)}"
    " && s.containers.size() == 1 && s.?initContainers.orValue([]).size() == 0"
    f" && s.containers.all(c, {_RESOURCES}.all(m, m.all(k, k in {_listed(*AMOUNTS)}))"
    f" && string(c.?resources.?requests[?'cpu'].orValue('')) == '{AMOUNTS['cpu']}'"
    f" && string(c.?resources.?limits[?'memory'].orValue('')) == '{AMOUNTS['memory']}')"
)
"""True of a pod that is as small as that of a schedule, in a namespace that has them."""
WITH_SCHEDULES = {
    "service account": Rule(
        expression=_of_pods(f"({_DEFAULT_ACCOUNT}) || ({_STARTER})"),
        message=(
            f"serviceAccountName must be {SERVICE_ACCOUNT}; a pod that makes the runs of a schedule, with"
            f" its amounts, has {STARTER}"
        ),
    ),
}
"""Rules in the place of those of the same name, where a team has schedules."""
OF_SCHEDULES: dict[str, Rule] = {
    "service account": Rule(
        expression=_of_pods(_STARTER),
        message=(
            "a CronJob or a Job of a person must be the schedule of a job: one small container with the service"
            f" account {STARTER}, in a team whose entry has schedules: true"
        ),
    ),
    "one pod": Rule(
        expression="variables.job.?parallelism.orValue(1) == 1 && variables.job.?completions.orValue(1) == 1",
        message="a CronJob or a Job of a person must start one pod: no parallelism, no completions",
    ),
}
"""Rules of CronJobs, and of Jobs that people make from one, besides or in the place of those of the same name: no
queue counts what they start, so they start runs and nothing else."""

_TRAINER = (
    "[{'containers': dyn([{'image': dyn(object.spec.?trainer.?image.orValue('')),"
    " 'resources': dyn(object.spec.?trainer.?resourcesPerNode.orValue({})),"
    " 'env': dyn(object.spec.?trainer.?env.orValue([]))}])}]"
)
"""Trainer of a TrainJob, as a list of one PodSpec."""
_OVERRIDES = (
    "object.spec.?podTemplateOverrides.orValue([]).filter(o, has(o.spec)).map(o, dyn(o.spec))"
)
"""The PodSpecs that a TrainJob of Trainer 2.1 has. Later releases have runtimePatches instead, which
are judged in the pods that come of them."""
_BY_KIND = (
    "object.kind == 'PyTorchJob' ? object.spec.pytorchReplicaSpecs.map(r,"
    " dyn(object.spec.pytorchReplicaSpecs[r].template.spec))"
    " : object.kind == 'TrainingRuntime' ? object.spec.template.spec.?replicatedJobs.orValue([])"
    f".map(j, dyn(j.template.spec.template.spec)) : dyn({_TRAINER}) + {_OVERRIDES}"
)


def policies(
    *, queues: bool = False, secrets: bool = False, schedules: bool = False
) -> dict[str, Any]:
    """Name → spec of each ValidatingAdmissionPolicy. `queues`: Kueue stops jobs. `secrets`: pods mount those of
    Secrets Manager. `schedules`: teams have them."""
    rules = RULES | (WITH_SECRETS if secrets else {}) | (WITH_SCHEDULES if schedules else {})
    runtimes = _resource("trainer.kubeflow.org", "trainjobs", "trainingruntimes")
    jobs = [runtimes, *JOBS[1:]]
    return {
        "trainyard-team-pods": _policy(
            rules, "[dyn(object.spec)]", [_resource("", "pods")], ["CREATE"]
        ),
        "trainyard-team-jobs": _policy(
            rules, _BY_KIND, jobs, ["CREATE", "UPDATE"], [NO_STOP] if queues else []
        ),
        **({"trainyard-team-schedules": _of_schedules(rules)} if schedules else {}),
    }


def _of_schedules(rules: Mapping[str, Rule]) -> Spec:
    kinds = [_resource("batch", "cronjobs", "jobs")]
    found = _policy(
        {**rules, **OF_SCHEDULES}, "[dyn(variables.job.template.spec)]", kinds, ["CREATE", "UPDATE"]
    )
    # Controllers make the Jobs of runs, and of schedules.
    people = {"name": "people", "expression": "!request.userInfo.username.startsWith('system:')"}
    job = "object.kind == 'CronJob' ? dyn(object.spec.jobTemplate.spec) : dyn(object.spec)"
    return found | {
        "matchConditions": [*found["matchConditions"], people],
        "variables": [{"name": "job", "expression": job}, *found["variables"]],
    }


def binding(policy: str) -> Any:
    """The spec of the binding that enforces a policy in the namespaces of teams."""
    return {
        "policyName": policy,
        "validationActions": ["Deny"],
        "matchResources": {
            "namespaceSelector": {"matchExpressions": [{"key": TEAM, "operator": "Exists"}]}
        },
    }


def _resource(group: str, *names: str) -> Spec:
    return {"apiGroups": [group], "apiVersions": ["*"], "resources": [*names]}


JOBS = (
    _resource("trainer.kubeflow.org", "trainjobs"),
    _resource("kubeflow.org", "pytorchjobs"),
)
"""The kinds of jobs, as resource rules of a policy."""
RUNTIMES = _resource("trainer.kubeflow.org", "trainingruntimes")
"""A team's own runtimes, as a resource rule."""


def suspended(name: str) -> str:
    """CEL expression that is true where a job waits. The policy sees a new job after Kueue's
    webhook, which suspends it."""
    return (
        f"({name}.kind == 'PyTorchJob' ? {name}.spec.?runPolicy.?suspend.orValue(false)"
        f" : {name}.spec.?suspend.orValue(false))"
    )


NO_STOP: Spec = {
    "name": "no-stop-by-kueue",
    "expression": f"!({BY_KUEUE} && request.operation == 'UPDATE' && {suspended('object')})",
}
"""Match condition that lets Kueue stop any job. A rule may be younger than the job; a stop that it refused would leave
the job's quota reserved, and with that the team that is guaranteed it waiting (Kueue 0.16.2 and 0.19.2, jobframework/
reconciler.go: stopJob stands before UnsetQuotaReservation). A TrainJob that is older than the queues was not stopped:
Kueue suspended its JobSet instead, and the Trainer started that again, many times a second
(tests/controllers/test_late_kueue.py)."""


def _policy(
    rules: Mapping[str, Rule],
    pods: str,
    resources: list[Spec],
    operations: list[str],
    conditions: Sequence[Spec] = (),
) -> Spec:
    """A policy that applies every rule to PodSpecs. `pods`: the expression that lists them. `conditions`: on which a
    request is judged at all."""
    return {
        "failurePolicy": "Fail",
        "matchConstraints": {
            "resourceRules": [{**each, "operations": operations} for each in resources]
        },
        # A controller that removes a finalizer must get through, whatever the rules are by then.
        "matchConditions": [
            {
                "name": "spec-changes",
                "expression": "request.operation == 'CREATE' || object.spec != oldObject.spec",
            },
            *conditions,
        ],
        "variables": [{"name": "pods", "expression": pods}],
        "validations": [rule.validation() for rule in rules.values()],
    }
