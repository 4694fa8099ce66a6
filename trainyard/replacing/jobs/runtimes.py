"""Runtimes that an update changes while TrainJobs of queues name them.

The Trainer 2.1.0 writes a JobSet again from the runtime of now as soon as the TrainJob or the JobSet is suspended
(pkg/runtime/framework/plugins/jobset/jobset.go, Build). Also of a suspended JobSet JobSet lets a few fields of its pods
change and nothing else (0.10.1 and 0.12.0, pkg/webhooks/jobset_webhook.go, ValidateUpdate). So a TrainJob that waits
is refused for ever. The Trainer 2.3.0 keeps the runtime that a TrainJob came with. Kueue computes the pods of a
TrainJob from the runtime of now with both, and stops one that runs with other containers (0.16.2 and 0.19.2,
pkg/controller/jobs/trainjob and pkg/controller/jobframework/reconciler.go, ensureOneWorkload). Tried in
tests/controllers/test_changed_runtime.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.jobs.runtime_objects import ANCESTOR
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.plan import EnvironmentPlan
from trainyard.plans.controllers import RELEASE
from trainyard.plans.jobs import RuntimePlan
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.changes import differences
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, going
from trainyard.replacing.moving import COMPARED, TRAINER
from trainyard.replacing.replacing import RUNTIME

TYPES = frozenset({RUNTIME, RELEASE})
"""Types of resources that the rule looks at."""
CLUSTER_WIDE = "ClusterTrainingRuntime"
"""Kind of runtime that a TrainJob names where it says none (CRD of TrainJob: default of runtimeRef.kind)."""
_STEP, _NODE = "trainer", "node"
"""Label of the replicated job that trains, and the name of its container."""
_CHANGES = ("nodeSelector", "tolerations", "schedulingGates")
"""Fields of a PodSpec that JobSet lets change while the JobSet is suspended, beside labels and annotations."""
_DEFAULTS: Mapping[str, Any] = {"replicas": 1, "groupName": "default", "protocol": "TCP"}
"""Values that the CRD of runtimes gives to fields that are left out (Trainer 2.1.0 and 2.3.0)."""
_OF_A_JOB = {
    "image": "image",
    "command": "command",
    "args": "args",
    "resources": "resourcesPerNode",
}
"""Field of the container that trains → the field of a TrainJob's trainer that takes its place."""


_ENDING = (
    "let them end; or delete each with kubectl --namespace <its namespace> delete trainjob <its name>, and hand it in"
    " again after the update: trainyard again <job>, then pulumi up of its stack"
)


def runtime_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Runtimes whose change TrainJobs do not outlive that have not ended. `show`: what is in the cluster."""
    if _kept(plan, deployed):
        return
    for runtime, was, jobs in _named(plan, deployed, show):
        names = [_name(job) for job in jobs if is_lost(job, was, runtime.spec)]
        if names:
            change = differences(_jobs(was), _jobs(runtime.spec)) or "fewer fields"
            yield _error(plan, runtime.name, change, sorted(names))


def runtime_warnings(
    plan: EnvironmentPlan, deployed: Deployed, show: Show
) -> Iterator[InputWarning]:
    """Gangs that Kueue stops because their runtime has other containers, where the Trainer starts them again."""
    if not _kept(plan, deployed):
        return
    for runtime, was, jobs in _named(plan, deployed, show):
        names = [_name(job) for job in jobs if is_stopped(job, was, runtime.spec)]
        if names:
            yield At(_path(plan, runtime.name)).warning(
                f"the update changes the containers of runtime {runtime.name}, so Kueue stops"
                f" {few(sorted(names), SHOWN)} and starts it again, with the runtime of before. A runtime of another"
                " name stops nothing"
            )


def is_lost(job: Object, was: Object, wanted: Object) -> bool:
    """True for a TrainJob that waits or that a queue can stop, where JobSet would refuse what a changed runtime makes
    of it. A TrainJob without a queue that runs is not written again."""
    trainer = job["spec"].get("trainer") or {}
    waits = QUEUE_LABEL in (job["metadata"].get("labels") or {}) or job["spec"].get("suspend")
    return bool(waits) and _jobs(was, trainer) != _jobs(wanted, trainer)


def is_stopped(job: Object, was: Object, wanted: Object) -> bool:
    """True for a TrainJob of a queue that runs, where Kueue sees other containers of it after the change."""
    trainer = job["spec"].get("trainer") or {}
    queued = QUEUE_LABEL in (job["metadata"].get("labels") or {})
    runs = queued and not job["spec"].get("suspend")
    return runs and _pods(was, trainer) != _pods(wanted, trainer)


def _kept(plan: EnvironmentPlan, deployed: Deployed) -> bool:
    """True where each TrainJob keeps the runtime that it came with: before the update, and after it."""
    releases = (deployed.output(RELEASE, TRAINER, "version"), plan.trainer.version)
    return all(
        each in TRAINER_RELEASES and TRAINER_RELEASES[each].keeps_runtimes for each in releases
    )


def _named(
    plan: EnvironmentPlan, deployed: Deployed, show: Show
) -> Iterator[tuple[RuntimePlan, Object, list[Object]]]:
    """Each runtime that the update changes, its spec of before, and the TrainJobs that name it and have not ended,
    without those of the stack file itself, which no queue stops."""
    known = ((each, deployed.output(RUNTIME, each.name, "spec")) for each in plan.runtimes)
    changed = [(each, was) for each, was in known if was and _jobs(was) != _jobs(each.spec)]
    kubeconfig = deployed.kubeconfig
    if kubeconfig is None or not changed:
        return
    own = {(job.namespace, job.name) for job in plan.jobs.values()}
    jobs = [
        job
        for kind, job in going(show, kubeconfig, None)
        if JOB_KINDS[kind].has_runtime and _place(job) not in own
    ]
    for runtime, was in changed:
        yield runtime, was, [job for job in jobs if _runtime(job) == (CLUSTER_WIDE, runtime.name)]


def _runtime(job: Object) -> tuple[str, str]:
    """Kind and name of the runtime that a TrainJob names."""
    ref = job["spec"]["runtimeRef"]
    return ref.get("kind") or CLUSTER_WIDE, ref["name"]


def runtime_of(job: Object) -> str:
    """The runtime of the environment that a job names; empty where it names none."""
    if "runtimeRef" not in job["spec"]:
        return ""
    kind, name = _runtime(job)
    return name if kind == CLUSTER_WIDE else ""


def _path(plan: EnvironmentPlan, runtime: str) -> str:
    own = runtime not in upstream_runtimes(plan.trainer.version)
    return f"environment.trainer.{f'own_runtimes.{runtime}' if own else 'version'}"


def _error(plan: EnvironmentPlan, runtime: str, change: str, names: list[str]) -> InputError:
    path = _path(plan, runtime)
    return At(path).must(
        f"keep the pods of runtime {runtime} as they are until these TrainJobs have ended or are deleted: JobSet takes"
        " no such change of a job that it has, so one that waits never starts, and one that its queue stops never"
        " starts again",
        got=f"{change} beside {few(names, SHOWN)}",
        fix=(
            f"write it as it was, and add a runtime of another name beside it; or {_ENDING}"
            if path.endswith(runtime)
            else _ENDING
        ),
    )


def _jobs(runtime: Object, trainer: Object | None = None) -> Any:
    """The part of a runtime's JobSet that must stay, without what the `trainer` of a TrainJob says itself."""
    jobs = runtime["template"]["spec"].get("replicatedJobs") or ()
    return [_sound(_job(job, trainer or {})) for job in jobs]


def _job(job: Object, trainer: Object) -> Object:
    """A replicated job without what may change in it (Trainer 2.1.0 and 2.3.0, builder.go, Trainer)."""
    trains = ((job["template"].get("metadata") or {}).get("labels") or {}).get(ANCESTOR) == _STEP
    given = {ours for ours, theirs in _OF_A_JOB.items() if trainer.get(theirs)} if trains else set()
    template = job["template"]["spec"]["template"]
    pod = {key: value for key, value in template["spec"].items() if key not in _CHANGES}
    pod["containers"] = [
        _container(each, given, trainer) if trains and each["name"] == _NODE else each
        for each in pod["containers"]
    ]
    spec = {**job["template"]["spec"], "template": {"spec": pod}}
    return {**job, "template": {**job["template"], "spec": spec}}


def _container(container: Object, given: Collection[str], trainer: Object) -> Object:
    """The container that trains, without the fields `given` and with the variables of a TrainJob: each replaces one of
    the same name, or comes last (pkg/apply/apply.go, UpsertEnvVars)."""
    variables = {each["name"]: each for of in (container, trainer) for each in of.get("env") or ()}
    kept = {key: value for key, value in container.items() if key not in given}
    return {**kept, "env": [*variables.values()]}


def _sound(value: Any) -> Any:
    """A value without defaults of the API server, and without what is empty."""
    if isinstance(value, Mapping):
        kept = {key: _sound(each) for key, each in value.items()}
        return {
            key: each
            for key, each in kept.items()
            if each not in (None, "", [], {}) and each != _DEFAULTS.get(key)
        }
    return [_sound(each) for each in value] if isinstance(value, list | tuple) else value


def _pods(runtime: Object, trainer: Object) -> Any:
    """The part of a runtime's pods that Kueue compares with what it admitted."""
    return [
        (job.get("replicas"), *(pod.get(part) for part in COMPARED))
        for job in _jobs(runtime, trainer)
        if (pod := job["template"]["spec"]["template"]["spec"])
    ]


def _place(job: Object) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _name(job: Object) -> str:
    return "/".join(_place(job))
