"""What is wrong with a training job that somebody wrote by hand, for one release of the Trainer.

Sources: shared facts trainer.md (§1, the silent failures T1 to T19, §7 for PyTorchJob v1), traps 2a
to 2c of by-hand-and-traps.md. What Kubernetes, the operators or an image default, and labels of
others, are no mistakes.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from catalog import fabric, versions
from catalog.fields import FIELDS, amount, fields
from catalog.instances import GPU_TYPES
from catalog.zones import ZONE_LETTERS, zone_names
from plans.pod_template import EFA, GPU
from plans.runtime_objects import ANCESTOR
from stacks.derive.scripts import launches
from stacks.manifests.context import Case
from stacks.manifests.document import (
    POD,
    TRAINER,
    Container,
    Path,
    Requirement,
    items,
    look,
    mapping,
)
from stacks.rules.pinning import unpinned
from stacks.rules.pods import RESERVED_ENV, TOKEN
from stacks.settings.problems import InputError, InputWarning

Finding = InputError | InputWarning


def findings(cases: Sequence[Case]) -> list[Finding]:
    """Every error; and warnings, of what works and should be known."""
    return [
        *(found for case in cases for rule in RULES for found in rule(case)),
        *(
            found
            for case in cases
            for each in case.job.containers
            for rule in OF_CONTAINERS
            for found in rule(case, each)
        ),
    ]


HOLDS = {
    "text": (str, "text"),
    "number": (int, "a whole number"),
    "amount": ((int, str), "a whole number or text"),
}
WAYS = {
    "TrainJobSpec.backoffLimit": (
        "a TrainJob has none: set spec.template.spec.failurePolicy.maxRestarts in its runtime"
    ),
    "TrainJobSpec.restartPolicy": (
        "a TrainJob has none: failurePolicy.maxRestarts in its runtime restarts all ranks"
    ),
    "TrainJobSpec.schedulingPolicy": (
        "podGroupPolicy of the runtime, or a queue: label kueue.x-k8s.io/queue-name"
    ),
    "TrainJobSpec.podTemplateOverrides": (
        "runtimePatches: [{manager: example.io/me, trainingRuntimeSpec: …}]"
    ),
    "TrainJobSpec.runtimePatches": "podTemplateOverrides: [{targetJobs: [{name: node}], spec: …}]",
    "Torch.elasticPolicy": "drop it and fix mlPolicy.numNodes: JobSet cannot resize",
    "Torch.numProcPerNode": "numProcPerNode of the TrainJob's trainer",
    "command": '[/bin/bash, -c, "…"], or one word an entry',
    "targetJobs": "a list of names: - name: node",
}
"""Type and field, or field → what to write instead."""


def _holds(case: Case, form: str, value: Any, path: Path = ()) -> Iterator[Finding]:
    """What is of another type than `form`, and what the API server of the release would drop
    without a word."""
    kind, called = (list, "a list") if form.startswith("[") else HOLDS.get(form, (Mapping, "a map"))
    if value is None or not form:
        return
    if not isinstance(value, kind) or isinstance(value, bool):
        quoted = f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
        way_out = {"text": quoted, "amount": quoted, "number": f"without quotes: {value}"}.get(
            form, "indent it so"
        )
        yield case.error(path, f"be {called}", value, WAYS.get(str(path[-1]), way_out))
    elif form == "amount" and amount(value) is None:
        yield case.error(
            path, "be an amount", value, "a number, and m, k, M, G, Ki, Mi or Gi behind it: 64Gi"
        )
    elif form[0] in "[{":
        for key, each in enumerate(value) if form[0] == "[" else value.items():
            yield from _holds(case, form[1:-1], each, (*path, key))
    elif form in FIELDS:
        yield from _members(case, form, value, path)


def _members(case: Case, form: str, value: Mapping[str, Any], path: Path) -> Iterator[Finding]:
    known = fields(form, list(versions.TRAINER_LINES)[case.line])
    for key, each in value.items():
        yield from _holds(case, known.get(key, ""), each, (*path, key))
        near = (
            []
            if key in known
            else difflib.get_close_matches(key, known, 1, 0.85 if "*" in known else 0.6)
        )
        if near or not {key, "*"} & {*known}:
            way_out = f"did you mean {near[0]}?" if near else f"fields here: {', '.join(known)}"
            yield case.error(
                (*path, key),
                f"be a field of {case.who}, whose API server drops others silently",
                each,
                WAYS.get(f"{form}.{key}", way_out),
            )


def _too_many(value: Any, case: Case) -> bool:
    return str(value).isdecimal() and 0 < case.gpus < int(value) and not case.policy("mpi")


def _no_name(value: Any, case: Case) -> bool:
    fits = len(f"{value}-node-0-{case.nodes}-abcde") <= 63
    return not (fits and re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", str(value)))


def _names(containers: Any) -> list[Any]:
    return [each.get("name") for each in items(containers)]


SERVED, STEP = "trainer.kubeflow.org/v1alpha1", ("template", "metadata", "labels", ANCESTOR)
_JOB, _REPLICA, _OVERRIDE = (
    "spec template spec replicatedJobs",
    "spec pytorchReplicaSpecs",
    "spec podTemplateOverrides",
)
ROWS: dict[str, tuple[tuple[str, Callable[[Any, Case], Any], str, str], ...]] = {
    "TrainJob": (
        ("apiVersion", lambda v, c: v != SERVED, "is served", SERVED),
        (
            "metadata name",
            _no_name,
            "is a DNS label, and leaves pods room (T18)",
            "at most 46 of a-z0-9-",
        ),
        (
            "spec",
            lambda v, c: look(v, "trainer") is None,
            "has a trainer: else nobody injects PET_*, and each pod trains alone (T2)",
            "trainer: {numNodes: 1}",
        ),
        (
            "spec managedBy",
            lambda v, c: c.line < 2 and "multi" in str(v),
            "is left out before 2.3 (T16)",
            "drop",
        ),
        (
            "spec labels kueue.x-k8s.io/queue-name",
            lambda v, c: v,
            "is of metadata (T14)",
            "metadata.labels",
        ),
        (
            "spec trainer numProcPerNode",
            _too_many,
            "is at most the GPUs of a pod",
            "as many as it has, or auto",
        ),
        (
            "spec trainer numNodes",
            lambda v, c: v == 1 and c.policy("mpi", "runLauncherAsNode") and c.gpus,
            "is more than 1 with MPI, or the launcher gets a second pod with GPUs (T6)",
            "2, or a torch runtime",
        ),
        (
            "spec trainer resourcesPerNode",
            lambda v, c: c.policy("mpi") and not c.policy("mpi", "runLauncherAsNode"),
            "reaches the launcher only (T7)",
            "resources in the runtime's job node",
        ),
        (
            "spec trainer resourcesPerNode",
            lambda v, c: (
                re.search(r"/(mig-|neuron)", str(v))
                and c.job.get(*TRAINER, "numProcPerNode") in (None, "auto")
            ),
            "is no GPU: auto counts CPUs (T10)",
            "numProcPerNode: a number",
        ),
        (
            "spec trainer env * name",
            lambda v, c: v in RESERVED_ENV,
            "is set by the Trainer (T4)",
            "drop it",
        ),
        (
            f"{_OVERRIDE} * spec containers * env",
            lambda v, c: v,
            "is refused by the webhook",
            "spec.trainer.env",
        ),
        (
            f"{_OVERRIDE} * targetJobs *",
            lambda v, c: c.base and (look(v, "name") or v) not in [p.role for p in c.base],
            "is a job of its runtime",
            "name: node",
        ),
        (
            f"spec runtimePatches * trainingRuntimeSpec {_JOB.removeprefix('spec ')} * name",
            lambda v, c: c.base and v not in [p.role for p in c.base],
            "is a job of its runtime",
            "name: node",
        ),
        (
            "status jobsStatus *",
            lambda v, c: c.line == 0 and look(v, "active"),
            "is of a job that runs: another image or command changes nothing (T15)",
            "drop the status; another name, or delete the job first",
        ),
    ),
    "TrainingRuntime": (
        ("apiVersion", lambda v, c: v != SERVED, "is served", SERVED),
        ("spec mlPolicy torch numProcPerNode", _too_many, "is at most the GPUs of a pod", "auto"),
        (
            "spec mlPolicy numNodes",
            lambda v, c: v != 1 and c.policy("mpi"),
            "is 1 launcher (T5)",
            "drop it",
        ),
        (
            "spec mlPolicy torch elasticPolicy",
            lambda v, c: c.line == 0,
            "is left out: Trainer 2.1 does not implement it",
            WAYS["Torch.elasticPolicy"],
        ),
        (
            "spec template metadata annotations karpenter.sh/do-not-disrupt",
            lambda v, c: v,
            "stands where pods get it (T13)",
            "replicatedJobs[].template.spec.template.metadata",
        ),
        (
            "spec template spec ttlSecondsAfterFinished",
            lambda v, c: True,
            "is left out: the Trainer makes the deleted JobSet again, and training runs again (T1)",
            "drop it",
        ),
        (
            f"{_JOB} * template spec ttlSecondsAfterFinished",
            lambda v, c: len(c.base) > 1,
            (
                "is left out where there are several jobs: the first is made again while others run"
                " (T1b)"
            ),
            "drop it",
        ),
        (
            _JOB,
            lambda v, c: "kind" in c.job.body and not any(look(job, *STEP) for job in items(v)),
            "has a job labelled as the trainer, or numNodes, image, command, env do nothing (T3)",
            f"{ANCESTOR}: trainer",
        ),
        (
            f"{_JOB} *",
            lambda v, c: (
                look(v, *STEP) == "trainer" and c.policy("torch") and v.get("name") != "node"
            ),
            "is called node: PET_MASTER_ADDR is made of it",
            "name: node",
        ),
        (
            f"{_JOB} *",
            lambda v, c: (
                look(v, *STEP) == "trainer"
                and "kind" in c.job.body
                and "node" not in _names(look(v, *POD, "containers"))
            ),
            "has a container named node: the webhook refuses others",
            "name: node",
        ),
        (
            f"{_JOB} *",
            lambda v, c: (
                look(v, "name") == "launcher"
                and c.policy("mpi")
                and not look(v, "dependsOn")
                and look(v, "template", "spec", "backoffLimit") == 0
            ),
            "waits for the nodes' sshd, or is tried again (T9)",
            "dependsOn: [{name: node, status: Ready}], and behind the job node; or backoffLimit: 6",
        ),
        (
            f"{_JOB} * template spec template spec restartPolicy",
            lambda v, c: v == "OnFailure" and c.job.find("spec template spec failurePolicy"),
            "is Never, or a rank restarts alone, others wait (T11)",
            "Never",
        ),
    ),
    "PyTorchJob": (
        ("apiVersion", lambda v, c: v != "kubeflow.org/v1", "is served", "kubeflow.org/v1"),
        (
            "metadata name",
            _no_name,
            "is a DNS label, and leaves pods room (T18)",
            "at most 46 of a-z0-9-",
        ),
        ("spec nprocPerNode", _too_many, "is at most the GPUs of a pod", "auto"),
        (
            f"{_REPLICA} * template spec containers",
            lambda v, c: "pytorch" not in _names(v),
            "has a container named pytorch",
            "name: pytorch",
        ),
        (
            f"{_REPLICA} *",
            lambda v, c: c.gpus and f"'{GPU}':" not in str(v) and "gloo" not in str(v),
            "has GPUs as the other replicas: each is a rank of NCCL",
            f"{GPU} in its limits",
        ),
        (
            _REPLICA,
            lambda v, c: (
                "Master" not in mapping(v)
                and c.nodes > 1
                and not re.search("rdzv|elastic", str(c.job.body))
            ),
            "has a Master: else nobody sets MASTER_ADDR",
            "a Master, or rdzv",
        ),
    ),
    "ConfigMap": (
        (
            "data",
            lambda v, c: sum(len(str(text).encode()) for text in mapping(v).values()) > 2**20,
            "is at most 1 MiB, as etcd takes it",
            "bake it into an image, or put it into a store",
        ),
    ),
}
"""Kind → where a value stands (* is each), when it is wrong, the rule, the way out."""


def _rows(case: Case) -> Iterator[Finding]:
    for pattern, wrong, rule, way_out in ROWS.get(case.job.kind, ()):
        for path in case.job.find(pattern):
            if wrong(case.job.get(*path), case):
                yield case.error(path, rule, case.job.get(*path), way_out)


def _half_of_mpi(case: Case) -> Iterator[Finding]:
    """Volumes and tolerations that some of the pods that train lack (T8)."""
    train = {"node", "launcher"} if case.policy("mpi", "runLauncherAsNode") else {"node"}
    for key in (
        ("volumes", "tolerations") if case.job.kind == "TrainJob" and case.policy("mpi") else ()
    ):
        given = [pod for pod in case.job.pods if pod.spec.get(key)]
        lacking = train.difference(
            *(pod.jobs for pod in given), [pod.role for pod in case.base if pod.spec.get(key)]
        )
        if given and lacking:
            yield case.error(
                (*given[0].path, key),
                "reach every pod that trains (T8)",
                ", ".join(given[0].jobs),
                f"give it to {', '.join(sorted(lacking))} too",
            )


LABELS = (
    (r"((?:node|beta)\.)?kubernetes\.io/(zone|region)", r"topology.kubernetes.io/\2"),
    (r"(?:topology\.)?kubernetes\.io/instance-type", "node.kubernetes.io/instance-type"),
    (
        r"nvidia\.com/gpu\..*",
        "node.kubernetes.io/instance-type: p5.48xlarge, that Karpenter knows before a node runs",
    ),
)
"""Label that nodes do not have → what to select by."""
NO_RESOURCES = {
    "nvidia.com": GPU,
    "nvidia.com/gpus": GPU,
    "gpu": GPU,
    "vpc.amazonaws.com": EFA,
    "efa": EFA,
}


def _placement(case: Case) -> Iterator[Finding]:
    for path in case.job.find("** topologyKey"):
        if not _preferred(case, path) and (right := _right_label(str(case.job.get(*path)))):
            yield case.error(path, "be a label that nodes have", case.job.get(*path), right)
    for terms in case.job.selectors:
        wrong = [list(_never(case, term)) for term in terms]
        yield from [each for of_term in wrong for each in of_term] if all(wrong) else ()


def _preferred(case: Case, path: Path) -> bool:
    return (
        any(str(step).startswith("preferred") for step in path)
        or case.job.get(*path[:-1], "whenUnsatisfiable") == "ScheduleAnyway"
    )


def _right_label(key: str) -> str | None:
    return next(
        (re.sub(wrong, right, key) for wrong, right in LABELS if re.fullmatch(wrong, key)), None
    )


def _never(case: Case, term: Sequence[Requirement]) -> Iterator[Finding]:
    """Why no node anywhere fits the term; what asks for a label to be another, or to be missing,
    holds."""
    for each in (each for each in term if each.operator in ("In", "Exists")):
        if right := _right_label(each.label):
            yield case.error(each.path, "be a label that nodes have", each.label, right)
        regions = (
            {*each.values} & {*ZONE_LETTERS} if each.label == "topology.kubernetes.io/zone" else ()
        )
        for region in regions if {*each.values} == regions else ():
            yield case.error(
                each.path,
                "be a zone, not a region",
                region,
                f"one of {', '.join(zone_names(region))}",
            )


def _bound_or_split_nodes(case: Case) -> Iterator[Finding]:
    room = case.type.gpus if case.type else 1
    for path in case.job.find(
        "** podAffinity requiredDuringSchedulingIgnoredDuringExecution * topologyKey"
    ):
        if case.job.get(*path) == "kubernetes.io/hostname" and case.nodes * case.gpus > room:
            yield case.error(
                path,
                f"keep pods on one node, which is sure of {room} GPUs only",
                f"{case.nodes} with {case.gpus}",
                "one pod with all, on a given node.kubernetes.io/instance-type",
            )
    if 0 < case.gpus < room and case.nodes > 1:
        yield case.warning(
            ("spec",),
            f"sends over the network what NVLink could carry: {case.nodes} pods have"
            f" {case.gpus} of a node's {room} GPUs each; take fewer, with all",
        )


def _shared_memory(case: Case) -> Iterator[Finding]:
    limits = [
        amount(look(each.body, "resources", "limits", "memory")) or 0
        for each in case.job.containers
    ]
    for pod in case.job.pods:
        for number, volume in enumerate(items(pod.spec.get("volumes"))):
            size = look(volume, "emptyDir", "sizeLimit")
            if look(volume, "emptyDir", "medium") == "Memory" and 0 < max(limits, default=0) <= (
                amount(size) or 0
            ):
                yield case.error(
                    (*pod.path, "volumes", number, "emptyDir", "sizeLimit"),
                    "be a part of the container's memory limit",
                    size,
                    "half of the limit",
                )


def _checkpoints(case: Case) -> Iterator[Finding]:
    specs = [pod.spec for pod in (*case.job.pods, *case.base)]
    kinds = {
        str(each.get("name")): {*each} - {"name"}
        for spec in specs
        for each in items(spec.get("volumes"))
    }
    mounts = {
        f"{each.get('mountPath')}/".replace("//", "/"): kinds.get(str(each.get("name")), set())
        for spec in specs
        for container in items(spec.get("containers"))
        for each in items(container.get("volumeMounts"))
    }
    restarts = look(case.runtime, "spec", "template", "spec", "failurePolicy", "maxRestarts")
    for each in case.job.containers if case.runtime and (case.nodes > 1 or restarts) else ():
        for directory in SAVES.findall(each.script):
            at = max((at for at in mounts if f"{directory}/".startswith(at)), key=len, default="")
            if not at or "emptyDir" in mounts[at]:
                yield case.error(
                    each.runs,
                    "save on shared storage: this ends with its pod, no other node sees it",
                    directory,
                    "a directory of a mounted persistentVolumeClaim",
                )
    if (
        restarts
        and case.job.kind == "TrainJob"
        and all(kind <= {"emptyDir", "configMap"} for kind in mounts.values())
    ):
        yield case.warning(
            ("spec",), f"{restarts} restarts begin at step 0: no claim is mounted to resume from"
        )


def _tokens(case: Case) -> Iterator[Finding]:
    for path, value in ((path, case.job.get(*path)) for path in case.job.lines):
        if isinstance(value, str) and (found := TOKEN.search(value)):
            yield case.error(
                path,
                "contain no token in clear",
                f"{found[0][:4]}…",
                "a Secret, by secretKeyRef in env",
            )


def _resources(case: Case, each: Container) -> Iterator[Finding]:
    requests, limits = (
        mapping(look(each.body, "resources", name)) for name in ("requests", "limits")
    )
    for key in sorted({**requests, **limits}.keys() & NO_RESOURCES):
        yield case.error(
            each.at("resources", "limits" if key in limits else "requests", key),
            "be a resource of nodes",
            key,
            f"did you mean {NO_RESOURCES[key]}?",
        )
    whole = limits.keys() & {"cpu", "memory"} if each.amount(GPU) else set()
    compared = whole | {key for key in requests if "/" in key}
    for key in sorted(requests.keys() & compared - NO_RESOURCES.keys()):
        if amount(requests[key]) != amount(limits.get(key)):
            why = (
                "as extended resources must"
                if "/" in key
                else "or its pod is killed first, and ends the run"
            )
            yield case.error(
                each.at("resources", "requests", key),
                f"equal its limit ({limits.get(key)}), {why}",
                requests[key],
                f"{key}: {limits.get(key, requests[key])} in both",
            )


def _devices(case: Case, each: Container) -> Iterator[Finding]:
    kind = case.type
    if (
        kind
        and kind.gpudirect
        and case.nodes > 1
        and each.amount(GPU) == kind.gpus
        and not each.amount(EFA)
    ):
        yield case.error(
            each.at("resources"),
            f"ask for EFA on {kind.name}: TCP carries at most {fabric.tcp_bound(kind):g} GB/s",
            f"no {EFA}",
            f"{EFA}: {kind.efa} in requests and limits",
        )
    if (
        kind
        and 0 < case.gpus < kind.gpus
        and look(each.body, "securityContext", "privileged") is True
    ):
        yield case.error(
            each.at("securityContext", "privileged"),
            f"be left out with {case.gpus} of {kind.gpus} GPUs:"
            " pods see all, and take the same ones",
            True,
            "capabilities: {add: [IPC_LOCK]}, for EFA",
        )


def _harmful_variables(case: Case, each: Container) -> Iterator[Finding]:
    kinds = [case.type] if case.type else list(GPU_TYPES.values())
    for name, value in [
        *each.env.items(),
        *re.findall(r"\b((?:NCCL|FI|RDMAV)_\w+)=(\S*)", each.script),
    ]:
        harms = [fabric.harm(name, value or "", kind) for kind in kinds]
        if (harm := harms[0]) and all(harms):
            yield (
                case.warning(each.runs, f"{name} {harm.reason}")
                if harm.idle
                else case.error(each.runs, harm.reason, f"{name}={value}", "drop it")
            )


TEXTS = (
    ("image", r"\A.*[<>$ ].*\Z", "is filled in", "registry/name:tag, or name@sha256:…"),
    (
        "script",
        r"\A\s*(?:#[^\n]*(?:\n\s*|\Z))+\Z",
        "does something: folded (>) it is one comment, and succeeds at once",
        "`|` in the place of `>`, or delete the comment",
    ),
    (
        "script",
        r"\A[^\n]*\s#[^\n]*(?:\s--\w|\.py\b)[^\n]*\n?\Z",
        "goes on after #: folded (>) is one line, cut there",
        "`|` in the place of `>`, or delete the comment",
    ),
    (
        "script",
        r"\\[ \t]+(?:#|\n)|\\\n[ \t]*#",
        "ends continued lines with the backslash",
        "delete what follows it",
    ),
    ("script", r"<(?:your-[\w-]+|[A-Z][A-Z_]+)>", "is filled in", "write what belongs there"),
    (
        "script",
        r"git clone (?:[^\s&;|]+ )*github\.com\S+",
        "clones from a URL",
        "https://github.com/…",
    ),
)
"""What an image or a script must not match, the rule, the way out."""
SAVES = re.compile(r"--(?:output|checkpoint|ckpt|save)[-_](?:dir|path)[= ](/[^\s$]+)")
"""Options that say where a script saves."""
WATCHED = re.compile(
    r"((NODE_|LOCAL_)?RANK|WORLD_SIZE|MASTER_(ADDR|PORT)|NNODES|NPROC_PER_NODE)$|PET_(?!RDZV_)"
)
"""Variables that only an operator or a launcher knows; others may come from the image."""


def _texts(case: Case, each: Container) -> Iterator[Finding]:
    image, paths = (
        str(each.body.get("image") or ""),
        {"image": each.at("image"), "script": each.runs},
    )
    for of, pattern, rule, way_out in TEXTS:
        for found in dict.fromkeys(
            match[0] for match in re.finditer(pattern, image if of == "image" else each.script)
        ):
            yield case.error(paths[of], rule, found, way_out)
    meant = image if not image or re.search(r"[:@][^/]+$", image) else f"{image}:latest"
    for of, what, way_out in unpinned(meant, each.script):
        yield (
            case.error(paths[of], "stay the same in production", what, way_out)
            if case.production
            else case.warning(paths[of], f"{what}: {way_out}")
        )


def _provided(case: Case, each: Container) -> Iterator[Finding]:
    v1, text = case.job.kind == "PyTorchJob", each.script
    own = (
        ("MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "RANK")
        if v1 and case.job.find(f"{_REPLICA} Master")
        else ()
    )
    by_kubelet = (
        set(re.findall(r"(?<!\$)\$\((?!JAX_|DMLC_)([A-Z][A-Z0-9_]*)\)", text))
        if case.runtime
        else set()
    )
    by_shell = {
        name
        for name in re.findall(r"\$[{(]?([A-Z][A-Z0-9_]*)\b(?!:?[-=+?])", text)
        if WATCHED.match(name)
    }
    elsewhere = each.body.get("envFrom") or case.policy("mpi")
    for name in (
        sorted((by_kubelet | by_shell) - {*RESERVED_ENV, *own, *each.env}) if not elsewhere else ()
    ):
        if not re.search(rf"\b{name}=|\b(?:read|for) {name}\b", text) and f"'{name}'" not in str(
            case.runtime
        ):
            way_out = (
                "$(MASTER_ADDR), $(MASTER_PORT)"
                if v1
                else "PET_MASTER_ADDR, PET_NODE_RANK, PET_NNODES"
            )
            yield case.error(each.runs, f"be a variable that {case.who} provides", name, way_out)


def _torchrun(case: Case, each: Container) -> Iterator[Finding]:
    for launch in launches(each.script):
        if (
            case.nodes > 1
            and launch.alone
            and (launch.endpoint or not case.job.get("spec", "elasticPolicy"))
        ):
            yield case.error(
                each.runs,
                "give torchrun a rendezvous endpoint that all nodes reach: else each waits at"
                " its own localhost",
                launch.text,
                "--rdzv_endpoint=$(PET_MASTER_ADDR):$(PET_MASTER_PORT)",
            )
        if case.nodes and launch.nodes.isdecimal() and int(launch.nodes) != case.nodes:
            yield case.error(
                each.runs,
                f"start the job's {case.nodes} nodes",
                launch.nodes,
                "--nnodes=$(PET_NNODES)",
            )
        its_own = (
            "Master" in each.path
            and launch.rank == "0"
            or "Worker" in each.path
            and case.nodes == 2
        )
        if case.nodes > 1 and launch.rank.isdecimal() and not its_own:
            yield case.error(
                each.runs,
                "give every node its own rank",
                launch.rank,
                "--node_rank=$(PET_NODE_RANK)",
            )
        if case.gpus and launch.ranks.isdecimal() and int(launch.ranks) > case.gpus:
            yield case.error(
                each.runs,
                f"start at most a process for each of the {case.gpus} GPUs",
                launch.ranks,
                f"--nproc_per_node={case.gpus}",
            )


RULES: tuple[Callable[[Case], Iterator[Finding]], ...] = (
    lambda case: _holds(case, case.job.kind if case.job.kind in ROWS else "", case.job.body),
    _rows,
    _half_of_mpi,
    _placement,
    _bound_or_split_nodes,
    _shared_memory,
    _checkpoints,
    _tokens,
)
OF_CONTAINERS = (_resources, _devices, _harmful_variables, _texts, _provided, _torchrun)
