"""Errors about an object of a YAML file, for one release of the Trainer: what only a TrainJob, a
runtime, a PyTorchJob or a ConfigMap can get wrong. What no training job can be: rules/jobs.py.

Sources: Kubeflow Trainer at v2.1.0, v2.2.0 and v2.3.0 (trainjob_controller.go, the plugins torch, mpi
and jobset, and their webhooks), JobSet v0.10.1, training-operator v1.8.1. Examples of each rule:
tests/trainyard/manifests/test_rules.py. What Kubernetes, the operators or an image default, and labels
of others, are no mistakes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainyard.catalog.job_kinds import MORE_KINDS
from trainyard.derive.job_files import CONFIG_MAP_BYTES
from trainyard.manifests import on_stores, over_runtime, webhook_rules
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import POD, STEP, TRAINER, Path, items, look, mapping
from trainyard.manifests.field_rules import ELASTIC_FIX, field_errors
from trainyard.manifests.gang_waits import short_policy
from trainyard.manifests.owned_fields import owned_fields
from trainyard.manifests.pod_rules import pod_problems
from trainyard.manifests.pod_shape import SERVED, V1_SERVED
from trainyard.objects.jobs.pod_template import GPU, LABEL_CHARACTERS
from trainyard.objects.jobs.runtime_objects import ANCESTOR
from trainyard.objects.jobs.trainer import pod_name_end
from trainyard.problems import InputError, InputWarning
from trainyard.rules.jobs import job_problems

Problems = Iterator[InputError | InputWarning]
Rule = Callable[[ManifestContext], Problems]
JOBS = "spec template spec replicatedJobs"


def manifest_problems(contexts: Sequence[ManifestContext]) -> list[InputError | InputWarning]:
    """Every error and warning of objects that belong together."""
    return [
        *(problem for context in contexts for problem in _object_problems(context)),
        *(problem for context in contexts for problem in job_problems(context.view)),
    ]


def _object_problems(context: ManifestContext) -> Problems:
    yield from field_errors(context)
    yield from owned_fields(context)
    yield from webhook_rules.labels(context)
    for rule in RULES.get(context.workload.kind, ()):
        yield from rule(context)
    yield from pod_problems(context)


def _values(context: ManifestContext, pattern: str) -> Iterator[tuple[Path, Any]]:
    """(path, value) of everything at a pattern, in which * is any step."""
    for path in context.workload.find(pattern):
        yield path, context.get(*path)


def _names(containers: Any) -> list[Any]:
    return [container.get("name") for container in items(containers)]


# Any job.


def _name(context: ManifestContext, longest_end: str) -> Problems:
    """A label of DNS, also with the longest end that the name of a pod has."""
    most = LABEL_CHARACTERS - len(longest_end)
    for path, name in _values(context, "metadata name"):
        if not (len(str(name)) <= most and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", str(name))):
            must = (
                f"be at most {most} of a-z0-9-, with a letter first, which leaves room for the names"
                " of pods"
            )
            label = re.sub("[^a-z0-9]+", "-", str(name).lower()).lstrip("-0123456789")
            yield context.error(path, must, name, f"write {label[:most].rstrip('-') or 'train'}")


def _job_set_name(context: ManifestContext) -> Problems:
    """JobSet's webhook counts the job, its number, the pod's number and five letters."""
    roles = [pod.role for pod in context.runtime_pods] or ["node"]
    yield from _name(context, pod_name_end(roles, context.nodes))


def _replica_name(context: ManifestContext) -> Problems:
    """The training-operator makes a pod and a Service of each replica."""
    ends = [
        f"-{pod.role.lower()}-{max(int(pod.nodes or 1) - 1, 0)}"
        for pod in context.workload.pods
        if isinstance(pod.nodes, int)
    ]
    yield from _name(context, max(ends, key=len, default=""))


def _object_name(context: ManifestContext) -> Problems:
    """A name that the API server takes for a runtime or a ConfigMap: a subdomain of DNS."""
    for path, name in _values(context, "metadata name"):
        part = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
        if len(str(name)) > 253 or not re.fullmatch(rf"{part}(\.{part})*", str(name)):
            must = "be at most 253 of a-z0-9-., as the API server takes names"
            fix = re.sub("[^a-z0-9]+", "-", str(name).lower())[:253].strip("-") or "train"
            yield context.error(path, must, name, f"write {fix}")


def _api_version(served: str) -> Rule:
    def rule(context: ManifestContext) -> Problems:
        for path, version in _values(context, "apiVersion"):
            if version != served:
                yield context.error(path, "be a version that is served", version, f"write {served}")

    return rule


# TrainJob.


def _trainer(context: ManifestContext) -> Problems:
    """With one pod that starts its own ranks, nothing is lost."""
    ranks = re.search(r"torchrun|torch\.distributed|PET_", str(context.runtime))
    for path, spec in _values(context, "spec"):
        lost = context.policy("torch") is not None and (context.nodes > 1 or ranks)
        if look(spec, "trainer") is None and lost:
            must = "have a trainer: without one nobody injects PET_*, and each pod trains alone"
            yield context.error(path, must, spec, "add trainer: {numNodes: 1}")


def _trainer_reaches_pods(context: ManifestContext) -> Problems:
    jobs = items(look(context.runtime, *JOBS.split()))
    if not jobs or "kind" not in mapping(context.runtime) or any(look(job, *STEP) for job in jobs):
        return
    for path, trainer in _values(context, "spec trainer"):
        if trainer:
            must = (
                f"be unset: no replicated job of its runtime has the label {ANCESTOR}: trainer, so"
                " these values reach no pod"
            )
            fix = f"add the label {ANCESTOR}: trainer to the runtime's job {_names(jobs)[0]}"
            yield context.error(path, must, ", ".join(mapping(trainer)), fix)


def _managed_by(context: ManifestContext) -> Problems:
    for path, manager in _values(context, "spec managedBy"):
        if context.trainer_minor < (2, 3) and "multi" in str(manager):
            must = "not be set before Trainer 2.3"
            yield context.error(path, must, manager, "delete it")


def _queue_name(context: ManifestContext) -> Problems:
    for path, queue in _values(context, "spec labels kueue.x-k8s.io/queue-name"):
        if queue:
            must = "be a label of the metadata: Kueue reads no other"
            yield context.error(path, must, queue, "move it to metadata.labels")


def _mpi_launcher(context: ManifestContext) -> Problems:
    """One node with a launcher that is a node too."""
    for path, nodes in _values(context, "spec trainer numNodes"):
        if nodes == 1 and context.gpus and context.policy("mpi", "runLauncherAsNode"):
            must = "be more than 1 with MPI: the launcher gets a second pod with GPUs"
            yield context.error(path, must, nodes, "write 2, or use a torch runtime")


def _resources_per_node(context: ManifestContext) -> Problems:
    for path, resources in _values(context, "spec trainer resourcesPerNode"):
        if context.policy("mpi") and not context.policy("mpi", "runLauncherAsNode"):
            must = "not be set with MPI: it reaches the launcher only"
            yield context.error(
                path, must, resources, "set the resources in the runtime's job node"
            )
        automatic = context.get(*TRAINER, "numProcPerNode") in (None, "auto")
        if automatic and re.search(r"/mig-", str(resources)):
            must = "list whole GPUs where numProcPerNode is auto: with MIG slices auto counts CPUs"
            yield context.error(path, must, resources, "write a number into numProcPerNode")


def _ranks_by_cpus(context: ManifestContext) -> Problems:
    """Processes by vCPUs: read in the Trainer's torch plugin, v2.1.0."""
    for pattern in ("spec trainer numProcPerNode", "spec mlPolicy torch numProcPerNode"):
        for path, value in _values(context, pattern):
            if value == "cpu" and not context.cpus:
                text = "cpu starts one process: it counts vCPUs, and the pods request none"
                yield context.warning(path, f"{text}; write a number")
            elif value == "cpu" and context.gpus:
                text = f"cpu starts {context.cpus} processes on {context.gpus} GPUs"
                yield context.warning(path, f"{text}: it counts vCPUs; write auto, or a number")


def _override_env(context: ManifestContext) -> Problems:
    for path, env in _values(context, "spec podTemplateOverrides * spec containers * env"):
        if env:
            must = "not be set in an override: the webhook refuses it"
            yield context.error(path, must, env, "move it to spec.trainer.env")


def _override_targets(context: ManifestContext) -> Problems:
    jobs = [pod.role for pod in context.runtime_pods]
    trains = "node" if "node" in jobs else "".join(jobs[:1])
    patched = f"spec runtimePatches * trainingRuntimeSpec {JOBS.removeprefix('spec ')} * name"
    targets = [
        *_values(context, "spec podTemplateOverrides * targetJobs *"),
        *_values(context, patched),
    ]
    for path, target in targets:
        if jobs and (look(target, "name") or target) not in jobs:
            place = (*path, "name") if look(target, "name") else path
            must = "be a job of its runtime"
            yield context.error(place, must, context.get(*place), f"write {trains}")


def _running(context: ManifestContext) -> Problems:
    for path, status in _values(context, "status jobsStatus *"):
        if context.trainer_minor == (2, 1) and look(status, "active"):
            must = "not be changed while the job runs: a new image or command has no effect"
            fix = "delete the status; take another name, or delete the job first"
            yield context.error(path, must, status, fix)


def _half_of_mpi(context: ManifestContext) -> Problems:
    """Volumes and tolerations that some of the pods that train lack."""
    if not context.policy("mpi"):
        return
    train = {"node", "launcher"} if context.policy("mpi", "runLauncherAsNode") else {"node"}
    for field in ("volumes", "tolerations"):
        given = [pod for pod in context.workload.pods if pod.spec.get(field)]
        by_runtime = [pod.role for pod in context.runtime_pods if pod.spec.get(field)]
        lacking = train.difference(*(pod.jobs for pod in given), by_runtime)
        if given and lacking:
            yield context.error(
                (*given[0].path, field),
                "reach every pod that trains",
                ", ".join(given[0].jobs),
                f"give it to {', '.join(sorted(lacking))} too",
            )


# Runtimes.


def _mpi_nodes(context: ManifestContext) -> Problems:
    for path, nodes in _values(context, "spec mlPolicy numNodes"):
        if nodes != 1 and context.policy("mpi"):
            must = "be 1 in a runtime with 1 launcher"
            yield context.error(path, must, nodes, "delete it")


def _elastic_policy(context: ManifestContext) -> Problems:
    for path, policy in _values(context, "spec mlPolicy torch elasticPolicy"):
        if context.trainer_minor == (2, 1):
            must = "not be set: Trainer 2.1 does not implement it"
            yield context.error(path, must, policy, ELASTIC_FIX)


def _do_not_disrupt(context: ManifestContext) -> Problems:
    pattern = "spec template metadata annotations karpenter.sh/do-not-disrupt"
    for path, value in _values(context, pattern):
        if value:
            must = "be an annotation of the pods: they do not get this one"
            fix = "move it to replicatedJobs[].template.spec.template.metadata"
            yield context.error(path, must, value, fix)


def _time_to_live(context: ManifestContext) -> Problems:
    for path, seconds in _values(context, "spec template spec ttlSecondsAfterFinished"):
        must = "not be set: the Trainer makes the deleted JobSet again, and training runs again"
        yield context.error(path, must, seconds, "delete it")
    if len(context.runtime_pods) < 2:
        return
    for path, seconds in _values(context, f"{JOBS} * template spec ttlSecondsAfterFinished"):
        must = "not be set beside other jobs: the first to end is made again while others run"
        yield context.error(path, must, seconds, "delete it")


def _trainer_step(context: ManifestContext) -> Problems:
    """The job that numNodes, image, command and env of a TrainJob reach."""
    whole = "kind" in context.workload.body  # a fragment of a runtime has other jobs elsewhere
    for path, jobs in _values(context, JOBS):
        if whole and not any(look(job, *STEP) for job in items(jobs)):
            text = (
                f"no job of it has the label {ANCESTOR}: trainer, so numNodes, image, command and"
                " env of a TrainJob reach none of its pods"
            )
            yield context.warning(path, text)
    for path, job in _values(context, f"{JOBS} *"):
        if look(job, *STEP) != "trainer":
            continue
        if context.policy("torch") and job.get("name") != "node":
            must = "have the name node: PET_MASTER_ADDR is made of it"
            yield context.error(path, must, job.get("name"), "write name: node")
        if whole and "node" not in (names := _names(look(job, *POD, "containers"))):
            must = "have a container with the name node: the webhook refuses others"
            yield context.error(path, must, names, "write name: node")


def _mpi_start(context: ManifestContext) -> Problems:
    for path, job in _values(context, f"{JOBS} *"):
        launcher = context.policy("mpi") and look(job, "name") == "launcher"
        once = look(job, "template", "spec", "backoffLimit") == 0
        if launcher and once and not look(job, "dependsOn"):
            must = "wait until the nodes' sshd runs, or allow retries"
            fix = "write dependsOn: [{name: node, status: Ready}], behind the job node; or backoffLimit: 6"
            yield context.error(path, must, "backoffLimit: 0", fix)


def _restart_policy(context: ManifestContext) -> Problems:
    for path, policy in _values(context, f"{JOBS} * template spec template spec restartPolicy"):
        if policy == "OnFailure" and context.workload.find("spec template spec failurePolicy"):
            must = "be Never: otherwise a rank restarts alone, and the others wait"
            yield context.error(path, must, policy, "write Never")


REPLICAS = "spec pytorchReplicaSpecs"


def _replica_without_gpus(context: ManifestContext) -> Problems:
    for path, replica in _values(context, f"{REPLICAS} *"):
        text = str(replica) if look(replica, "template", "spec", "containers") else "gloo"
        if context.gpus and f"'{GPU}':" not in text and "gloo" not in text:
            must = "have GPUs as the other replicas have: its pods are ranks of NCCL"
            yield context.error(path, must, "none", f"add {GPU} to its limits")


def _master(context: ManifestContext) -> Problems:
    for path, replicas in _values(context, REPLICAS):
        meets = re.search("rdzv|elastic", str(context.workload.body))
        if [*mapping(replicas)] == ["Worker"] and context.nodes > 1 and not meets:
            must = "have a Master: without one nobody sets MASTER_ADDR"
            yield context.error(path, must, ", ".join(mapping(replicas)), "add a Master, or rdzv")


def _config_map_size(context: ManifestContext) -> Problems:
    for path, data in _values(context, "data"):
        size = sum(len(str(text).encode()) for text in mapping(data).values())
        if size > CONFIG_MAP_BYTES:
            must = "be at most 1 MiB, as etcd takes it"
            fix = "bake it into an image, or put it into a store"
            yield context.error(path, must, f"{size / CONFIG_MAP_BYTES:.1f} MiB", fix)


RULES: dict[str, tuple[Rule, ...]] = {
    "TrainJob": (
        _api_version(SERVED),
        _job_set_name,
        _trainer,
        _trainer_reaches_pods,
        _managed_by,
        _queue_name,
        _mpi_launcher,
        _resources_per_node,
        _override_env,
        _override_targets,
        _running,
        _half_of_mpi,
        on_stores.restarts_from_nothing,
        webhook_rules.initializer,
        webhook_rules.storage_uri,
        webhook_rules.patch_manager,
        webhook_rules.override_containers,
        _ranks_by_cpus,
        over_runtime.lost_resources,
        over_runtime.request_over_limit,
        over_runtime.arguments_stay,
        over_runtime.replaced_arguments,
        over_runtime.lost_lists,
        over_runtime.clashing_volumes,
    ),
    "TrainingRuntime": (
        _api_version(SERVED),
        _object_name,
        _mpi_nodes,
        _elastic_policy,
        _do_not_disrupt,
        _time_to_live,
        _trainer_step,
        _mpi_start,
        _restart_policy,
        _ranks_by_cpus,
    ),
    "PyTorchJob": (
        _api_version(V1_SERVED),
        _replica_name,
        webhook_rules.replicas,
        _replica_without_gpus,
        _master,
        short_policy,
        on_stores.restarts_from_nothing,
    ),
    **dict.fromkeys(
        MORE_KINDS,
        (
            _api_version(V1_SERVED),
            _replica_name,
            webhook_rules.replicas,
            on_stores.restarts_from_nothing,
        ),
    ),
    "ConfigMap": (_object_name, _config_map_size),
}
"""Kind of object → its rules."""
