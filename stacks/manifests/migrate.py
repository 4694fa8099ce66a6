"""`python -m stacks.manifests.migrate FILE…`: the stack-file entry for a PyTorchJob, or for a TrainJob of any
release; and, as comments, what is another and why, what has no counterpart, and what is wrong with
the original."""

from __future__ import annotations

import math
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

import command_line
from catalog.quantities import amount
from plans.pod_template import GPU
from stacks.derive.scripts import launches
from stacks.manifests.context import Case, cases_of
from stacks.manifests.document import Container, Pod, Workload, items, look, mapping, read_manifest
from stacks.manifests.rules import SAVES, findings
from stacks.rules.pods import RESERVED_ENV, TOKEN
from stacks.settings.job import TO_S3

CHANGED = {
    "nodeSelector": "the pool decides where pods run",
    "affinity": "the pool decides where pods run",
    "podAntiAffinity": (
        "pods ask for whole nodes, so each has its own; with gpus_per_node they may share one"
    ),
    "topologySpreadConstraints": "one zone; pods ask for whole nodes, so each has its own",
    "tolerations": "pods tolerate what nodes of pools are tainted with",
    "resources": (
        "GPUs, EFA, CPU and memory follow from the pool's instance type; requests equal limits"
    ),
    "restartPolicy": "a failed rank restarts all ranks, where the runtime has max_restarts",
    "namespace": "the environment's, or the team's",
}
"""Field → what stands in its place."""
WITHOUT = {
    "schedulingPolicy": "all pods fit the pool, which is checked",
    "initContainers": "do it in the script or the image",
    "securityContext": "the image's user; EFA needs no privileges",
    "serviceAccountName": "the namespace's default",
    "priorityClassName": (
        "priority of an own runtime, or of a pytorch_job; see environment.priorities"
    ),
    "envFrom": "name each variable in env or secrets",
    "workingDir": "cd in the script",
    "initializer": "fetch data in the script, or into a store",
    "suspend": "leave the entry out until it shall run",
}
"""Field without a counterpart → what to do."""
INJECTED = (
    f"It injects {', '.join(RESERVED_ENV)}, and nothing else.",
    (
        "What reads RANK, WORLD_SIZE or MASTER_ADDR is started by torchrun, or exports them from"
        " PET_*."
    ),
    (
        "Scripts run with set -euo pipefail: a command that fails, and a variable that is not set,"
        " end them."
    ),
)
EXPORTS = {
    "MASTER_ADDR": "${PET_MASTER_ADDR}",
    "MASTER_PORT": "${PET_MASTER_PORT}",
    "RANK": "${PET_NODE_RANK}",
}
"""What training-operator v1 gave a script, from what Trainer v2 injects."""
COORDINATED = {"Master": False, "Worker": True}
"""Which replicas have GPUs where the master only coordinates."""
RENDEZVOUS = {"rdzv_backend": "c10d", "rdzv_endpoint": "${PET_MASTER_ADDR}:${PET_MASTER_PORT}"}


@dataclass(kw_only=True)
class Migration:
    """An entry of `jobs:` (fields of JobConfig), and what became of the rest."""

    name: str
    entry: dict[str, Any] = field(default_factory=dict)
    changed: list[str] = field(default_factory=list)
    without: list[str] = field(default_factory=list)
    v1: dict[str, Any] = field(default_factory=dict)
    """What takes the place of `runtime` where it is to stay a PyTorchJob."""


def migrate(job: Workload, beside: Sequence[Workload] = ()) -> Migration:
    """The entry for a job; `beside` may hold its runtime. Raises ValueError with what is
    missing."""
    case = cases_of([job, *beside])[0]
    nodes, gpus, (pod, container) = case.nodes or 1, case.gpus, _trains(case)
    if not container.body.get("image") or not container.script.strip():
        raise ValueError("no image or no command: give the file of its runtime too, or write them")
    pool, whole = "gpu" if gpus else "cpu", case.type.gpus if case.type else 0
    if case.type:
        pool = case.type.family if case.type.name in str(job.body) else case.type.gpu
    made = Migration(
        name=_name(job.name),
        changed=[f"pool: {pool} is a guess: take a pool of your stack"],
        entry={
            "runtime": str(job.get("spec", "runtimeRef", "name") or "torch-distributed"),
            "nodes": nodes,
            "pool": pool,
            "image": container.body["image"],
        },
    )
    asked = [
        job.get("spec", "trainer", "numProcPerNode"),
        job.get("spec", "nprocPerNode"),
        *(launch.ranks for launch in launches(container.script)),
    ]
    ranks = next((int(each) for each in asked if str(each).isdecimal()), gpus or 1)
    made.entry |= {"gpus_per_node": gpus} if gpus not in (0, whole) else {}
    made.entry |= {"processes_per_node": ranks} if ranks != gpus else {}
    made.v1 = _v1(job) if job.kind == "PyTorchJob" else {}
    _mounts(made, pod, container, {each.name: each for each in beside if each.kind == "ConfigMap"})
    _variables(
        made,
        [
            each
            for pod in job.pods
            for container in pod.containers[:1]
            for each in items(container.body.get("env"))
        ],
    )
    if secrets := {str(job.get(*path)): None for path in job.find("** imagePullSecrets * name")}:
        made.entry["pull_secrets"] = [*secrets]
    made.entry["script"] = _script(made, job, container, nodes)
    if re.search(r"\bs3://", container.script):
        made.without.append(
            f"{job.where(*container.runs)}: s3://…: {TO_S3}; or AWS_ACCESS_KEY_ID and its key in"
            " secrets"
        )
    first = {path[-1]: path for path in reversed([*job.lines]) if path}
    for said, table in ((made.changed, CHANGED), (made.without, WITHOUT)):
        said += [
            f"{job.where(*first[name])}: {text}" for name, text in table.items() if name in first
        ]
    return made


def _variables(made: Migration, env: Sequence[Mapping[str, Any]]) -> None:
    for each in env:
        name, secret = str(each.get("name")), look(each, "valueFrom", "secretKeyRef")
        if name in (*RESERVED_ENV, *EXPORTS, "WORLD_SIZE"):
            made.changed.append(f"env.{name}: dropped, the Trainer or the script sets it")
        elif secret:
            made.entry.setdefault("secrets", {})[name] = {
                "secret": secret.get("name"),
                "key": secret.get("key"),
            }
        elif "value" not in each or TOKEN.search(str(each["value"])):
            made.without.append(
                f"env.{name}: keep it in a Secret: secrets: {{{name}: {{secret: …, key: …}}}}"
            )
        else:
            made.entry.setdefault("env", {})[name] = str(each["value"])


def _v1(job: Workload) -> dict[str, Any]:
    """Settings with which it stays the PyTorchJob that it is."""
    policy, elastic = (
        mapping(job.get("spec", "runPolicy")),
        mapping(job.get("spec", "elasticPolicy")),
    )
    minutes = {
        name: math.ceil(int(policy[name]) / 60)
        for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds")
        if policy.get(name)
    }
    own = {
        "clean_pods": str(policy.get("cleanPodPolicy") or "none").lower(),
        "restarts": policy.get("backoffLimit"),
        "keep_finished_minutes": minutes.get("ttlSecondsAfterFinished"),
    }
    made: dict[str, Any] = {
        "pytorch_job": {name: value for name, value in own.items() if value is not None}
    }
    if "activeDeadlineSeconds" in minutes:
        made["time_limit_minutes"] = minutes["activeDeadlineSeconds"]
    if elastic.get("minReplicas") and elastic.get("maxReplicas"):
        made["elastic"] = {"min_nodes": elastic["minReplicas"], "max_nodes": elastic["maxReplicas"]}
    if {
        pod.role: any(each.amount(GPU) for each in pod.containers) for pod in job.pods
    } == COORDINATED:
        made["pytorch_job"]["coordinator"] = True
        made["nodes"] = job.get("spec", "pytorchReplicaSpecs", "Worker", "replicas") or 1
    return made


def _trains(case: Case) -> tuple[Pod, Container]:
    """The pod that trains, and the container in it whose script does something; a TrainJob's with
    its runtime's."""
    found = [(pod, each) for pod in case.job.pods for each in pod.containers]
    if not found:
        raise ValueError("no container")
    if case.job.kind == "PyTorchJob":
        return next(
            (pair for pair in found if re.sub(r"(?m)^\s*#.*", "", pair[1].script).strip()), found[0]
        )
    own, pods = found[0][1], [*(pod for pod in case.base if pod.role == "node"), *case.job.pods]
    base = next(
        (
            each
            for pod in case.base
            if pod.role == "node"
            for each in pod.containers
            if each.body.get("name") == "node"
        ),
        own,
    )
    mounts = [
        mount
        for pod in pods
        for each in items(pod.spec.get("containers"))
        for mount in items(each.get("volumeMounts"))
    ]
    body = {
        **base.body,
        **{key: value for key, value in own.body.items() if value is not None},
        "volumeMounts": mounts,
    }
    volumes = [volume for pod in pods for volume in items(pod.spec.get("volumes"))]
    return replace(found[0][0], spec={"volumes": volumes}), replace(
        own, body=body, command=own.command or base.command
    )


def _name(text: str) -> str:
    return (
        re.sub(r"^[^a-z]+|[^a-z0-9]+$", "", re.sub(r"[^a-z0-9]+", "-", text.lower())[:32]) or "job"
    )


def _mounts(
    made: Migration, pod: Pod, container: Container, beside: Mapping[str, Workload]
) -> None:
    """Claims become stores, ConfigMaps files, folders of the node host_paths; a directory for
    checkpoints on a claim becomes `checkpoints`."""
    volumes = {each.get("name"): each for each in items(pod.spec.get("volumes"))}
    stores: dict[str, str] = {}
    for mount in items(container.body.get("volumeMounts")):
        path, volume = str(mount.get("mountPath")).rstrip("/"), volumes.get(mount.get("name"), {})
        claim, local = look(volume, "persistentVolumeClaim", "claimName"), look(volume, "emptyDir")
        if claim:
            store = _name(re.sub(r"-(pvc|claim)$", "", str(claim)))
            stores.setdefault(store, path)
            made.changed.append(
                f"storage: claim {claim} is store {store}: take one of your stack and copy the data"
            )
        elif path == "/dev/shm" or look(local, "medium") == "Memory":
            made.entry["shared_memory_gib"] = math.ceil(
                (amount(look(local, "sizeLimit")) or 2**36) / 2**30
            )
        elif local is not None and "local_scratch" not in made.entry:
            made.entry["local_scratch"] = path
        elif host := look(volume, "hostPath", "path"):
            made.entry.setdefault("host_paths", {})[_name(str(volume["name"]))] = {
                "host": host,
                "path": path,
            }
        elif "files" not in made.entry and (name := look(volume, "configMap", "name")):
            folder = path.rpartition("/")[0] if mount.get("subPath") else path
            sources = _sources(made, str(name), volume, beside, container.script)
            made.entry["files"] = {"sources": sources, "path": folder}
        else:
            made.without.append(
                f"{path}: {', '.join({*volume} - {'name'})}: put its files into the image or a"
                " store"
            )
    found = SAVES.search(container.script)
    store = next(
        (s for s, path in stores.items() if found and f"{found[1]}/".startswith(f"{path}/")), None
    )
    if store and found:
        directory = found[1][len(stores[store]) :].strip("/") or made.name
        made.entry["checkpoints"] = {"store": store, "directory": directory}
        made.changed.append(
            f"checkpoints: {directory} of {store}; the script finds it in CHECKPOINT_DIR too"
        )
        if made.entry["runtime"] == "torch-distributed":
            made.entry["runtime"] = "torch-distributed-resilient"
            made.changed.append(
                "runtime: one of yours (own_runtimes) that restarts all ranks, from the checkpoint"
            )
    if kept := {name: {"path": path} for name, path in stores.items() if path != "/checkpoints"}:
        made.entry["storage"] = kept


def _sources(
    made: Migration,
    name: str,
    volume: Mapping[str, Any],
    beside: Mapping[str, Workload],
    script: str,
) -> list[str]:
    """The files of a ConfigMap, and where each is to be written from."""
    keys = [str(each.get("key")) for each in items(look(volume, "configMap", "items"))]
    keys = keys or [*mapping(beside[name].get("data") if name in beside else None)]
    keys = keys or re.findall(r"/([\w.-]+\.py)", script) or [f"{name}.py"]
    made.changed += [
        f"files: write {key} from "
        + (
            beside[name].where("data", key)
            if name in beside
            else f"kubectl get configmap {name} -o yaml"
        )
        for key in keys
    ]
    return keys


def _script(made: Migration, job: Workload, container: Container, nodes: int) -> str:
    """The script as Trainer v2 must have it."""
    text = container.script
    if len(container.command) > 1 and text == " ".join(
        container.command
    ):  # one word is text, as people mean it
        text = " ".join(
            each if re.fullmatch(r"[\w@%+=:,./$(){}-]+", each) else shlex.quote(each)
            for each in container.command
        )
    text = text.replace("$(PYTORCH_JOB_MASTER_SERVICE_HOST)", "$(MASTER_ADDR)").strip() + "\n"
    text = re.sub(r"(?<!\$)\$\(([A-Z][A-Z0-9_]*)\)", r"${\1}", text)
    for launch in reversed(launches(text)) if nodes > 1 else ():
        missing = [
            f"--{name}={value}"
            for name, value in RENDEZVOUS.items()
            if not {name.replace("_", "-"), "master-addr"} & launch.options
        ]
        if missing and not launch.opaque:
            text = f"{text[: launch.at]} {' '.join(missing)}{text[launch.at :]}"
            made.changed.append(
                f"script: torchrun has {' '.join(missing)}: else nodes wait at their own localhost"
            )
    ranks = str(job.get("spec", "nprocPerNode"))
    given = {**EXPORTS, "WORLD_SIZE": f"$((PET_NNODES * {ranks if ranks.isdecimal() else 1}))"}
    used = [
        name
        for name in given
        if job.kind == "PyTorchJob"
        and not re.search(rf"\b{name}=", text)
        and ("torchrun" not in text or re.search(rf"\$\{{?{name}\b", text))
    ]
    made.changed += [
        f"script: {name} comes from PET_*, as Trainer v2 does not inject it" for name in used
    ]
    return "".join(f"export {name}={given[name]}\n" for name in used) + text


def main(arguments: list[str]) -> int:
    """Print the entries of all jobs in the files; 1 where one cannot be expressed, 2 where a file
    cannot be read."""
    parser = command_line.parser(
        "stacks.manifests.migrate",
        "Print the stack-file entry for each PyTorchJob and TrainJob in YAML files.",
    )
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="read this YAML file, with all objects in it"
    )
    files = parser.parse_args(arguments).files
    try:
        read = [read_manifest(Path(file).read_text(), Path(file).name) for file in files]
    except OSError as error:
        print(f"{error.filename}: {error.strerror}; make migrate FILE=job.yaml")
        return 2
    workloads = [workload for found, _ in read for workload in found]
    jobs = [workload for workload in workloads if workload.kind in ("TrainJob", "PyTorchJob")]
    made, impossible = [], [] if jobs else ["no PyTorchJob and no TrainJob in the files"]
    for job in jobs:
        try:
            made.append(migrate(job, workloads))
        except ValueError as error:
            impossible.append(f"{job.where('spec')}: {error}")
    print("jobs:" if made else "")
    for each in made:
        settings = {key: value for key, value in each.entry.items() if key != "script"}
        print(
            textwrap.indent(yaml.safe_dump({each.name: settings}, sort_keys=False), "  "),
            end="    script: |\n",
        )
        print(textwrap.indent(each.entry["script"], "      "))
    twins = [
        f"{each.name}:"
        f" {yaml.safe_dump(each.v1, default_flow_style=True, sort_keys=False, width=999).strip()}"
        for each in made
        if each.v1
    ]
    told = {
        "another, and why": [text for each in made for text in each.changed],
        "without a counterpart": [text for each in made for text in each.without],
        "a PyTorchJob still, with this in the place of runtime": twins,
        "not done by Trainer v2": INJECTED if made else (),
        "wrong with the original": [
            *(error for _, errors in read for error in errors),
            *findings(cases_of(workloads)),
        ],
        "cannot be migrated": impossible,
    }
    for heading, lines in told.items():
        print(
            "\n".join([f"# {heading}:", *(f"#   {line}" for line in lines)])
            if lines
            else f"# {heading}: nothing"
        )
    return 1 if impossible else 0


if __name__ == "__main__":
    command_line.run(main)
