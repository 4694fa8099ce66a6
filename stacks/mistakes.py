"""What is wrong with a training job that somebody wrote by hand, for one release of the Trainer: tables and rules.

Sources: shared facts trainer.md (§1, the silent failures T1 to T19, §7 for PyTorchJob v1), traps 2a to 2c of
by-hand-and-traps.md. What Kubernetes, the operators or an image default, and labels of others, are no mistakes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from catalog import fabric, versions
from catalog.instances import InstanceType
from catalog.zones import ZONE_LETTERS, zone_names
from components.trainer_objects import ANCESTOR, resilient_torch, upstream_runtimes
from components.training import EFA, GPU
from stacks.capacity import TYPES
from stacks.faults import Fault, Notice
from stacks.manifest import JOBS, POD, Container, Path, Workload, items, look, mapping, words
from stacks.pod_rules import RESERVED_ENV, TOKEN
from stacks.settings import EnvironmentConfig

Finding = Fault | Notice
SHIPPED = {name: spec for release in reversed(versions.TRAINERS)
           for name, (_, spec) in upstream_runtimes(release).items()}

FIELDS = """
TrainJob: apiVersion kind metadata status spec=TrainJobSpec
TrainJobSpec: runtimeRef=Ref initializer suspend managedBy$ trainer=Trainer labels{}$-2.1 annotations{}$-2.1
TrainJobSpec: podTemplateOverrides[]=Override-2.1 runtimePatches[]+2.2 activeDeadlineSeconds#+2.2
Ref: apiGroup$ kind$ name$
Trainer: args[]$ command[]$ env[]=Env image$ numNodes# numProcPerNode-2.1 numProcPerNode#+2.2 resourcesPerNode=Resources
Override: targetJobs[]=Ref metadata spec=PodPatch
PodPatch: affinity containers[]=Patched imagePullSecrets initContainers[]=Patched nodeSelector{}$ schedulingGates
PodPatch: serviceAccountName tolerations[] volumes[] securityContext+2.2 terminationGracePeriodSeconds#+2.3
Patched: env[]=Env name$ volumeMounts[]=Mount securityContext+2.2
TrainingRuntime: apiVersion kind metadata spec=RuntimeSpec
RuntimeSpec: mlPolicy=Policy podGroupPolicy template=JobSetTemplate
Policy: numNodes# torch=Torch mpi jax+2.2 xgboost+2.2 flux+2.2
Torch: numProcPerNode-2.1 elasticPolicy-2.1 envInjection+2.3
JobSetTemplate: metadata spec=JobSet
JobSet: * failurePolicy replicatedJobs[]=Replicated startupPolicy successPolicy ttlSecondsAfterFinished#
Replicated: dependsOn groupName$ name$ replicas# template=JobTemplate
JobTemplate: metadata spec=Job
Job: * activeDeadlineSeconds# backoffLimit# completions# parallelism# template=PodTemplate ttlSecondsAfterFinished#
PyTorchJob: apiVersion kind metadata status spec=PyTorchJobSpec
PyTorchJobSpec: elasticPolicy nprocPerNode$ pytorchReplicaSpecs{}=Replica runPolicy=RunPolicy
Replica: replicas# restartPolicy$ template=PodTemplate
RunPolicy: activeDeadlineSeconds# backoffLimit# cleanPodPolicy$ schedulingPolicy suspend ttlSecondsAfterFinished#
PodTemplate: metadata spec=Pod
Pod: * affinity containers[]=Container initContainers[]=Container nodeSelector{}$ priorityClassName$ restartPolicy$
Pod: schedulerName$ serviceAccount serviceAccountName terminationGracePeriodSeconds# tolerations[] volumes[]
Container: * args[]$ command[]$ env[]=Env envFrom[] image$ imagePullPolicy$ name$ ports[] resources=Resources
Container: restartPolicy restartPolicyRules volumeMounts[]=Mount workingDir$
Env: name$ value$ valueFrom
Resources: limits{}~ requests{}~ claims
Mount: mountPath$ mountPropagation name$ readOnly recursiveReadOnly subPath$ subPathExpr$
"""
"""Type: its fields, [] a list, {} a map; of text ($), whole numbers (#), either (~) or a type (=); to (-) or from (+)
a minor release of the Trainer; *: and others, of which only what is spelt nearly as these is refused.
CRDs of 2.1.0 (a test compares), trainer.md §1 for 2.2 and 2.3, §7 for v1."""

WAYS = {
    "TrainJobSpec.backoffLimit": "a TrainJob has none: set spec.template.spec.failurePolicy.maxRestarts in its runtime",
    "TrainJobSpec.restartPolicy": "a TrainJob has none: failurePolicy.maxRestarts in its runtime restarts all ranks",
    "TrainJobSpec.schedulingPolicy": "podGroupPolicy of the runtime, or a queue: label kueue.x-k8s.io/queue-name",
    "TrainJobSpec.podTemplateOverrides": "runtimePatches: [{manager: example.io/me, trainingRuntimeSpec: …}]",
    "TrainJobSpec.runtimePatches": "podTemplateOverrides: [{targetJobs: [{name: node}], spec: …}]",
    "Torch.elasticPolicy": "drop it and fix mlPolicy.numNodes: JobSet cannot resize",
    "Torch.numProcPerNode": "numProcPerNode of the TrainJob's trainer",
    "command": '[/bin/bash, -c, "…"], or one word an entry', "targetJobs": "a list of names: - name: node",
}
"""Type and field, or field → what to write instead."""

LABELS = (
    (r"((?:node|beta)\.)?kubernetes\.io/(zone|region)", r"topology.kubernetes.io/\2"),
    (r"(?:topology\.)?kubernetes\.io/instance-type", "node.kubernetes.io/instance-type"),
    (r"nvidia\.com/gpu\..*", "node.kubernetes.io/instance-type: p5.48xlarge, that Karpenter knows before a node runs"),
)
"""Label that nodes do not have → what to select by."""

SCRIPTS = (
    (r"\A[^\n]*\s#[^\n]*(?:\s--\w|\.py\b)[^\n]*\n?\Z", "goes on after #: folded (>) it is one line, cut there",
     "`|` in the place of `>`, or delete the comment"),
    (r"\\[ \t]+(?:#|\n)|\\\n[ \t]*#", "ends continued lines with the backslash", "delete what follows, comments too"),
    (r"<(?:your-[\w-]+|[A-Z][A-Z_]+)>", "is filled in", "write what belongs there"),
    (r"git clone (?:[^\s&;|]+ )*github\.com\S+", "clones from a URL", "https://github.com/…"),
)
"""What a script must not match, the rule, the way out."""
WATCHED = re.compile(r"((NODE_|LOCAL_)?RANK|WORLD_SIZE|MASTER_(ADDR|PORT)|NNODES|NPROC_PER_NODE)$|PET_(?!RDZV_)")
"""Variables that only an operator or a launcher knows; others may come from the image."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """A workload, and what it is judged against."""

    job: Workload
    line: int
    """Place of the release's minor in TRAINER_LINES: 0 is 2.1, 2 is 2.3."""
    who: str
    environment: EnvironmentConfig | None
    runtime: Mapping[str, Any] | None
    """The body of the runtime that a TrainJob refers to, or of the workload itself. None: not known."""

    @property
    def nodes(self) -> int | None:
        """How many pods train; None where it is not known."""
        counts = [pod.nodes for pod in self.job.pods if isinstance(pod.nodes, int)] or [self.policy("numNodes")]
        return sum(counts) if isinstance(counts[0], int) else None

    @property
    def gpus(self) -> int:
        """GPUs of a pod: the job's, or else its runtime's."""
        return int(next(iter(re.findall(rf"'{GPU}': '?(\d+)", f"{self.job.body}{self.runtime}")), 0))

    def policy(self, *path: str) -> Any:
        return look(self.runtime, "spec", "mlPolicy", *path)

    def containers(self) -> Iterator[tuple[Container, Path]]:
        """Each, and the path of what it runs."""
        for each in (container for pod in self.job.pods for container in pod.containers):
            yield each, (*each.path, "args" if each.body.get("args") else "command")

    def fault(self, path: Path, rule: str, value: Any, way_out: str) -> Fault:
        return Fault(path=self.job.at(*path), rule=rule, value=" ".join(str(value).split())[:60], way_out=way_out)

    def notice(self, path: Path, text: str) -> Notice:
        return Notice(path=self.job.at(*path), text=text)


def findings(workloads: Sequence[Workload], *, release: str = next(iter(versions.TRAINERS)),
             environment: EnvironmentConfig | None = None) -> list[Finding]:
    """Every fault of workloads that belong together; and notices, of what works and does not belong in production."""
    line = list(versions.TRAINER_LINES).index(release.rpartition(".")[0])
    cases = [Case(job=job, line=line, environment=environment, runtime=runtime_of(job, workloads, environment),
                  who="training-operator v1.8.1" if job.kind == "PyTorchJob" else f"Trainer {release}")
             for job in workloads]
    return [found for case in cases for rule in RULES for found in rule(case)]


def runtime_of(job: Workload, beside: Sequence[Workload], environment: EnvironmentConfig | None) -> Any:
    """The body of a TrainJob's runtime: in the files, of the environment, of upstream; a fragment counts as any."""
    if job.kind != "TrainJob":
        return job.body
    name = str(job.get("spec", "runtimeRef", "name"))
    found = [w.body for w in beside if w.kind == "TrainingRuntime" and ("kind" not in w.body or w.name == name)]
    own = environment.trainer.own_runtimes.get(name) if environment else None
    release = environment.trainer.version if environment else ""
    spec = resilient_torch(release, own.image, own.max_restarts) if own else SHIPPED.get(name)
    return next(iter(sorted(found, key=lambda body: "kind" not in body)), {"spec": spec} if spec else None)


@cache
def _fields(form: str, line: int) -> dict[str, str]:
    """Fields of a type in a minor release → their types."""
    lines = list(versions.TRAINER_LINES)
    rows = [row.partition(": ")[2] for row in FIELDS.splitlines() if row.startswith(f"{form}:")]
    found = re.findall(r"([\w*]+)([][{}$#~]*)=?(\w*)([-+]?)([\d.]*)(?: |$)", " ".join(rows))
    return {name: of + kind for name, of, kind, sign, limit in found
            if not sign or (line <= lines.index(limit) if sign == "-" else line >= lines.index(limit))}


def _shaped(case: Case, form: str, value: Any, path: Path = ()) -> Iterator[Finding]:
    """What is of another type, and what the API server of the release would drop without a word."""
    kind, called = {"[]": (list, "a list"), "$": (str, "text"), "#": (int, "a whole number"), "~": (
        (int, str), "a whole number or text")}.get(form[:2], (Mapping, "a map"))
    fields = _fields(form, case.line)
    if value is None or not form:
        return
    if not isinstance(value, kind) or isinstance(value, bool):
        quoted = f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
        way_out = {"$": quoted, "~": quoted, "#": f"without quotes: {value}"}.get(form, "indent it so")
        yield case.fault(path, f"is {called}", value, WAYS.get(str(path[-1]), way_out))
    elif form[:2] in ("[]", "{}"):
        for key, each in enumerate(value) if form[0] == "[" else value.items():
            yield from _shaped(case, form[2:], each, (*path, key))
    for key, each in value.items() if isinstance(value, Mapping) and f"\n{form}: " in FIELDS else ():
        yield from _shaped(case, fields.get(key, ""), each, (*path, key))
        near = difflib.get_close_matches(key, fields, n=1, cutoff=0.85 if "*" in fields else 0.6)
        if key not in fields and (near or "*" not in fields):
            way_out = f"did you mean {near[0]}?" if near else f"fields here: {', '.join(fields)}"
            yield case.fault((*path, key), f"is a field of {case.who}, whose API server drops others silently", each,
                             WAYS.get(f"{form}.{key}", way_out))


def _placement(case: Case) -> Iterator[Finding]:
    for path, key, values in _selectors(case):
        for right in (re.sub(wrong, right, key) for wrong, right in LABELS if re.fullmatch(wrong, key)):
            yield case.fault(path, "is a label that nodes have", key, right)
        for value in values if key == "topology.kubernetes.io/zone" else ():
            if value in ZONE_LETTERS:
                yield case.fault(path, "is a zone, not a region", value, f"one of {', '.join(zone_names(value))}")
            elif case.environment and value != case.environment.zone:
                yield case.fault(path, "is the environment's zone", value, case.environment.zone)


def _selectors(case: Case) -> Iterator[tuple[Path, str, Sequence[Any]]]:
    """How nodes of the pods must be labelled: path, label, values."""
    for path in case.job.lines:
        if path[-2:-1] == ("nodeSelector",):
            yield path, str(path[-1]), [case.job.get(*path)]
        elif path[-1:] == ("topologyKey",):
            yield path, str(case.job.get(*path)), []
        elif path[-1:] == ("key",) and "nodeSelectorTerms" in path:
            term = mapping(case.job.get(*path[:-1]))
            yield path, str(term["key"]) if term.get("operator") in ("In", "Exists") else "", words(term.get("values"))


def _kind(case: Case, gpus: int) -> InstanceType | None:
    """The instance type that the pods select, by its name or its GPU."""
    chosen = [(key, str(value).lower()) for _, key, values in _selectors(case) for value in values]
    return next((kind for key, value in chosen for kind in TYPES.values() if value == kind.name or "gpu" in key
                 and kind.gpus == gpus > 0 and re.search(rf"\b{kind.gpu}\b", value)), None)


def _container(case: Case) -> Iterator[Finding]:
    for each, _ in case.containers():
        path = (*each.path, "resourcesPerNode" if each.path == _TRAINER else "resources")
        requests, limits = (mapping(look(each.body, "resources", name)) for name in ("requests", "limits"))
        gpus, kind, image = each.amount(GPU), _kind(case, each.amount(GPU)), str(each.body.get("image") or "none:1")
        alike = {key for key in requests if "/" in key or gpus and key in {"cpu", "memory"} & {*limits}}
        for key, most in {**requests, **limits}.items():
            at = (*path, "limits" if key in limits else "requests", key)
            if key in ("nvidia.com", "vpc.amazonaws.com", "gpu", "nvidia.com/gpus", "efa"):
                yield case.fault(at, "is a resource of nodes", key, f"did you mean {GPU if 'aws' not in key else EFA}?")
            elif key in alike and str(requests[key]) != str(limits.get(key)):
                why = "as extended resources must" if "/" in key else "or its pod is killed first, and ends the run"
                yield case.fault((*path, "requests", key), f"equals its limit ({limits.get(key)}), {why}",
                                 requests[key], f"{key}: {most} in both")
        if kind and kind.gpudirect and gpus == kind.gpus and (case.nodes or 1) > 1 and not each.amount(EFA):
            yield case.fault(path, f"asks for EFA on {kind.name}: TCP carries {fabric.tcp_bound(kind):g} GB/s at most",
                             f"no {EFA}", f"{EFA}: {kind.efa} in requests and limits")
        if re.search(r"[<>$ ]", image):
            yield case.fault((*each.path, "image"), "is filled in", image, "registry/name:tag, or name@sha256:…")
        elif not re.search(r"[:@][^/]+$", image):
            yield case.fault((*each.path, "image"), "has a tag, or it is what is newest", image, f"{image}:<version>")
        if image.endswith(":latest"):
            yield case.notice((*each.path, "image"), "latest is another image tomorrow: take a version or a digest")


def _script(case: Case) -> Iterator[Finding]:
    for each, path in case.containers():
        text = each.script
        if text.strip() and not re.sub(r"(?m)^\s*#.*", "", text).strip():
            yield case.fault(path, "does something: folded (>) it is one comment, and succeeds at once", text,
                             "`|` in the place of `>`, or delete the comment")
        for pattern, rule, way_out in SCRIPTS:
            yield from (case.fault(path, rule, found[0], way_out) for found in re.finditer(pattern, text))
        if "git clone" in text and not re.search(r"--branch|\s-b\s|git (-C \S+ )?(checkout|reset)", text):
            yield case.notice(path, "clones whatever is newest: git checkout a commit, or bake it into the image")
        if re.search(r"\b(pip3?|conda) install(?!.*--no-index)", text):
            yield case.notice(path, "installs packages at every start of every pod: bake them into the image")
        yield from _provided(case, each, path)
        yield from _torchrun(case, each, path)


def _provided(case: Case, each: Container, path: Path) -> Iterator[Finding]:
    """Variables that nobody provides."""
    v1, text = case.job.kind == "PyTorchJob", each.script
    own = ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK") if case.job.get(*_REPLICA[:2], "Master") else ()
    named = set(re.findall(r"(?<!\$)\$\(([A-Z][A-Z0-9_]*)\)", text))
    named |= {name for name in re.findall(r"\$\{?([A-Z][A-Z0-9_]*)\b(?!:?[-=+?])", text) if WATCHED.match(name)}
    for name in sorted(named - {*RESERVED_ENV, *own, *each.env}):
        set_here = re.search(rf"\b{name}=|\b(?:read|for) {name}\b", text) or f"'{name}'" in str(case.runtime)
        if not set_here and not each.body.get("envFrom") and not case.policy("mpi"):
            way_out = "$(MASTER_ADDR), $(MASTER_PORT)" if v1 else "PET_MASTER_ADDR, PET_NODE_RANK, PET_NNODES"
            yield case.fault(path, f"is a variable that {case.who} provides", name, way_out)


def _torchrun(case: Case, each: Container, path: Path) -> Iterator[Finding]:
    text = each.script.replace("\\\n", " ")
    for line in re.findall(r"^(?![ \t]*#).*?\b(?:torchrun|distributed\.(?:run|launch))\s(.*)", text, re.M):
        said = dict(re.findall(r"--([\w-]+)[= ]+([^\s-]\S*)", line.replace("_", "-")))
        meets = said.get("rdzv-endpoint") or said.get("master-addr") or ""
        nodes, ranks = said.get("nnodes", ""), said.get("nproc-per-node", "")
        if (case.nodes or 1) > 1 and ("--standalone" in line or re.match(r"localhost|127\.", meets)
                                      or not meets and said.get("rdzv-backend", "static") != "static"):
            yield case.fault(path, "gives torchrun a rendezvous endpoint that all nodes reach: else each waits at its"
                             " own localhost", line, "--rdzv_endpoint=$(PET_MASTER_ADDR):$(PET_MASTER_PORT)")
        if case.nodes and nodes.isdecimal() and int(nodes) != case.nodes:
            yield case.fault(path, f"starts the job's {case.nodes} nodes", f"--nnodes={nodes}", "$(PET_NNODES)")
        if case.gpus and ranks.isdecimal() and int(ranks) > case.gpus:
            yield case.fault(path, f"starts at most a process for each of the {case.gpus} GPUs",
                             f"--nproc_per_node={ranks}", f"--nproc_per_node={case.gpus}")


def _checkpoints(case: Case) -> Iterator[Finding]:
    """Checkpoints that end with their pod."""
    pods = [*(pod.spec for pod in case.job.pods), *(look(each, *POD) for each in items(look(case.runtime, *JOBS)))]
    kinds = {str(each.get("name")): {*each} - {"name"} for pod in pods for each in items(look(pod, "volumes"))}
    mounts = {f"{each.get('mountPath')}/".replace("//", "/"): kinds.get(str(each.get("name")), set()) for pod in pods
              for container in items(look(pod, "containers")) for each in items(container.get("volumeMounts"))}
    restarts = look(case.runtime, "spec", "template", "spec", "failurePolicy", "maxRestarts")
    for each, path in case.containers() if case.runtime and ((case.nodes or 1) > 1 or restarts) else ():
        for directory in re.findall(r"--(?:output|checkpoint|ckpt|save)[-_](?:dir|path)[= ](/[^\s$]+)", each.script):
            at = max((at for at in mounts if f"{directory}/".startswith(at)), key=len, default="")
            if not at or "emptyDir" in mounts[at]:
                yield case.fault(path, "saves on shared storage: this directory ends with its pod, and no other node"
                                 " sees it", directory, "a directory of a mounted persistentVolumeClaim")
    if restarts and case.job.kind == "TrainJob" and all(kind <= {"emptyDir", "configMap"} for kind in mounts.values()):
        yield case.notice(("spec",), f"{restarts} restarts begin at step 0: no claim is mounted to resume from")


def _tokens(case: Case) -> Iterator[Finding]:
    for path, value in ((path, case.job.get(*path)) for path in case.job.lines):
        if isinstance(value, str) and (found := TOKEN.search(value)):
            yield case.fault(path, "holds no token in clear", f"{found[0][:4]}…", "a Secret, by secretKeyRef in env")


def _too_many(value: Any, case: Case) -> bool:
    return str(value).isdecimal() and 0 < case.gpus < int(value) and not case.policy("mpi")


_STEP, _TRAINER = ("template", "metadata", "labels", ANCESTOR), ("spec", "trainer")
_REPLICA, SERVED = ("spec", "pytorchReplicaSpecs", "*"), "trainer.kubeflow.org/v1alpha1"
ROWS: tuple[tuple[str, Path, Callable[[Any, Case], Any], str, str], ...] = (
    ("P", ("apiVersion",), lambda v, c: v != "kubeflow.org/v1", "is served", "kubeflow.org/v1"),
    ("TR", ("apiVersion",), lambda v, c: v != SERVED, "is served", SERVED),
    ("TP", ("metadata", "name"), lambda v, c: not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", str(v)) or len(
        f"{v}-node-0-{c.nodes}-abcde") > 63, "is a DNS label, and leaves pods room (T18)", "at most 46 of a-z0-9-"),
    ("T", ("spec",), lambda v, c: look(v, "trainer") is None,
     "has a trainer: without it nobody injects PET_*, and each pod trains alone (T2)", "trainer: {numNodes: 1}"),
    ("T", ("spec", "managedBy"), lambda v, c: "multikueue" in str(v) and c.line < 2,
     "is left out before Trainer 2.3, which would run the job here as well (T16)", "drop it"),
    ("T", ("spec", "labels", "kueue.x-k8s.io/queue-name"), lambda v, c: v, "is of metadata (T14)", "metadata.labels"),
    ("T", (*_TRAINER, "numProcPerNode"), _too_many, "is at most the GPUs of a pod", "as many as it has, or auto"),
    ("R", ("spec", "mlPolicy", "torch", "numProcPerNode"), _too_many, "is at most the GPUs of a pod", "auto"),
    ("P", ("spec", "nprocPerNode"), _too_many, "is at most the GPUs of a pod", "auto"),
    ("T", (*_TRAINER, "resourcesPerNode"), lambda v, c: c.policy("mpi") and not c.policy(
        "mpi", "runLauncherAsNode"), "reaches the launcher only (T7)", "resources in the runtime's job node"),
    ("T", (*_TRAINER, "numNodes"), lambda v, c: v == 1 and c.policy("mpi", "runLauncherAsNode") and c.gpus,
     "is more than 1 with MPI, or the launcher gets a second pod with GPUs (T6)", "2, or a torch runtime"),
    ("T", (*_TRAINER, "resourcesPerNode"), lambda v, c: re.search(r"/(mig-|neuron)", str(v)) and str(c.job.get(
        *_TRAINER, "numProcPerNode")) in "None auto", "is no GPU: auto counts CPUs (T10)", "numProcPerNode: a number"),
    ("T", (*_TRAINER, "env", "*", "name"), lambda v, c: v in RESERVED_ENV, "is set by the Trainer (T4)", "drop it"),
    ("T", ("spec", "podTemplateOverrides", "*", "spec", "containers", "*", "env"), lambda v, c: True,
     "is refused in overrides by the Trainer's webhook", "spec.trainer.env"),
    ("T", ("spec", "podTemplateOverrides", "*", "targetJobs", "*"), lambda v, c: c.runtime and (look(v, "name") or v)
     not in [job.get("name") for job in items(look(c.runtime, *JOBS))], "is a job of its runtime", "name: node"),
    ("R", ("spec", "template", "spec", "ttlSecondsAfterFinished"), lambda v, c: True,
     "is left out: the Trainer makes the deleted JobSet again, and training runs again (T1)", "drop it"),
    ("R", (*JOBS, "*", "template", "spec", "ttlSecondsAfterFinished"), lambda v, c: len(c.job.get(*JOBS)) > 1,
     "is left out where there are several jobs: the first is made again while others run (T1b)", "drop it"),
    ("R", JOBS, lambda v, c: "kind" in c.job.body and not any(look(job, *_STEP) for job in items(v)),
     "has a job labelled as the trainer, or numNodes, image, command, env are ignored (T3)", f"{ANCESTOR}: trainer"),
    ("R", (*JOBS, "*"), lambda v, c: look(v, *_STEP) == "trainer" and c.policy("torch") and v.get("name") != "node",
     "is called node: PET_MASTER_ADDR is made of it", "name: node"),
    ("R", ("spec", "template", "metadata", "annotations", "karpenter.sh/do-not-disrupt"), lambda v, c: v,
     "stands where pods get it (T13)", "replicatedJobs[].template.spec.template.metadata"),
    ("R", ("spec", "mlPolicy", "numNodes"), lambda v, c: v != 1 and c.policy("mpi"), "is 1 launcher (T5)", "drop it"),
    ("R", ("spec", "mlPolicy", "torch", "elasticPolicy"), lambda v, c: c.line == 0,
     "is left out: Trainer 2.1 does not implement it", WAYS["Torch.elasticPolicy"]),
    ("R", (*JOBS, "*", *POD, "restartPolicy"), lambda v, c: v == "OnFailure" and look(
        c.runtime, *JOBS[:-1], "failurePolicy"), "is Never, or a rank restarts alone, others wait (T11)", "Never"),
    ("P", (*_REPLICA, "template", "spec", "containers"), lambda v, c: not any(
        look(each, "name") == "pytorch" for each in items(v)), "has a container named pytorch", "name: pytorch"),
    ("P", _REPLICA, lambda v, c: c.gpus and f"'{GPU}':" not in str(v) and "gloo" not in str(v),
     "has GPUs as the other replicas: each is a rank of NCCL", f"{GPU} in its limits"),
    ("P", ("spec", "pytorchReplicaSpecs"), lambda v, c: "Master" not in mapping(v) and (c.nodes or 1) > 1 and
     not re.search("rdzv|elastic", str(c.job.body)), "has a Master: else nobody sets MASTER_ADDR", "a Master, or rdzv"),
    ("C", ("data",), lambda v, c: sum(len(str(text).encode()) for text in mapping(v).values()) > 2**20,
     "is at most 1 MiB, as etcd takes it", "bake it into an image, or put it into a store"),
)
"""Kinds (TrainJob, PyTorchJob, Runtime, ConfigMap), path (* is each), when it is wrong, the rule, the way out."""


def _rows(case: Case) -> Iterator[Finding]:
    letter = {"TrainJob": "T", "PyTorchJob": "P", "TrainingRuntime": "R", "ConfigMap": "C"}.get(case.job.kind, "-")
    for kinds, path, wrong, rule, way_out in ROWS:
        for at in case.job.lines if letter in kinds else ():
            fits = len(at) == len(path) and all(step in ("*", here) for step, here in zip(path, at, strict=True))
            if fits and wrong(case.job.get(*at), case):
                yield case.fault(at, rule, case.job.get(*at), way_out)


RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    lambda case: _shaped(case, case.job.kind, case.job.body), _rows, _placement, _container, _script, _checkpoints,
    _tokens)
