"""What a stack file may say, and the only place that reads it.

Add a setting here; what follows from it belongs in plan.py. The JSON schema for editors is made from these types
(`make schema`).
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, get_args, get_type_hints

import pydantic
import yaml

from stacks.faults import Fault

Name = Annotated[str, pydantic.Field(pattern=r"^[a-z]([-a-z0-9]{0,30}[a-z0-9])?$")]
"""Lower-case letters, digits and dashes, at most 32: it becomes part of Kubernetes and AWS names."""
Positive = Annotated[int, pydantic.Field(ge=1, strict=True)]
"""Strict, here and below: `true` is not one node."""


@dataclass(frozen=True, kw_only=True)
class NetworkConfig:
    """The VPC of the environment."""

    cidr: str = "10.0.0.0/16"
    """/16 to /20 inside RFC 1918; private subnets take an eighth of it each."""


@dataclass(frozen=True, kw_only=True)
class AdminConfig:
    """A role that may do everything in the cluster. The principal that runs `pulumi up` is one already."""

    role_arn: Annotated[str, pydantic.Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:role/.+$")]


@dataclass(frozen=True, kw_only=True)
class ClusterConfig:
    """The EKS control plane."""

    version: str
    """Kubernetes minor version, quoted: "1.34"."""
    endpoint: Literal["public-and-private", "private"] = "private"
    """Private is the safe choice; whoever runs Pulumi must then sit inside the VPC."""
    public_access_cidrs: tuple[str, ...] = ()
    """Who may reach the public endpoint; needed with public-and-private."""
    admins: dict[Name, AdminConfig] = field(default_factory=dict)
    deployer_role_arn: str | None = None
    """Role the kubeconfig assumes; none means the caller's own credentials."""


@dataclass(frozen=True, kw_only=True)
class SystemNodesConfig:
    """The managed node group that controllers run on."""

    instance_type: str = "m7i.xlarge"
    """4 vCPU and 16 GiB: two hold Karpenter (1 CPU each), Trainer, JobSet and CoreDNS with room to spare."""
    nodes: Annotated[int, pydantic.Field(ge=2, le=10, strict=True)] = 2
    """At least two: Karpenter's two replicas refuse to share a node (karpenter-provider-aws#2707)."""


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """GPU nodes of one type, launched by Karpenter when a job needs them; an idle pool costs nothing."""

    instance_types: tuple[str, ...]
    max_nodes: Positive
    """What the pool may grow to; the largest gang must fit."""
    capacity: str = "on_demand"
    root_volume_gib: Annotated[int, pydantic.Field(ge=100, le=16384, strict=True)] = 200
    """Root EBS volume: the accelerated AMI alone takes most of 50 GiB; containers live on the NVMe RAID0."""


@dataclass(frozen=True, kw_only=True)
class LustreConfig:
    """FSx for Lustre, in the environment's zone."""

    capacity_gib: Positive
    deployment: Literal["SCRATCH_2", "PERSISTENT_2"] = "PERSISTENT_2"
    """PERSISTENT_2 replicates within the zone; SCRATCH_2 loses data with a server."""
    throughput_mbps_per_tib: Positive | None = None
    """MB/s per TiB of PERSISTENT_2: 125, 250, 500 or 1000. Write speed decides what a checkpoint costs."""


@dataclass(frozen=True, kw_only=True)
class EfsConfig:
    """EFS, elastic throughput: code, data sets and home directories, not checkpoints of large models."""


@dataclass(frozen=True, kw_only=True)
class StoreConfig:
    """A shared file system, mounted by name from jobs: exactly one of `lustre` and `efs`."""

    lustre: LustreConfig | None = None
    efs: EfsConfig | None = None
    data: Literal["keep", "delete"] = "keep"
    """keep: protected, `pulumi destroy` leaves it and names it. delete: goes with the stack."""


@dataclass(frozen=True, kw_only=True)
class OwnRuntimeConfig:
    """A ClusterTrainingRuntime of ours: torch, gang restart on any failure."""

    image: str
    max_restarts: Annotated[int, pydantic.Field(ge=0, le=100, strict=True)] = 5
    """How often JobSet recreates the whole gang before the job fails."""


@dataclass(frozen=True, kw_only=True)
class TrainerConfig:
    """Kubeflow Trainer v2 and the runtimes that jobs refer to."""

    version: str
    runtimes: tuple[str, ...]
    """Of the upstream ones: torch-distributed, deepspeed-distributed, mlx-distributed, torchtune-…"""
    own_runtimes: dict[Name, OwnRuntimeConfig] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class MountConfig:
    """Where a job sees a store."""

    path: Annotated[str, pydantic.Field(pattern=r"^/[^:]+$")]
    """Absolute path in the container."""


@dataclass(frozen=True, kw_only=True)
class CheckpointConfig:
    """Where a job keeps what a restart resumes from, found by CHECKPOINT_DIR: /checkpoints, or below the path where the
    job mounts the whole store anyway."""

    store: Name
    directory: Annotated[str, pydantic.Field(pattern=r"^[^/].*[^/]$|^[^/]$")]
    """Relative to the store's root; made where it is missing, but by the job itself below a mount of its own."""


@dataclass(frozen=True, kw_only=True)
class JobConfig:
    """One training run."""

    runtime: str
    nodes: Positive
    pool: Name
    image: str
    script: str | None = None
    """Bash text, run with `set -euo pipefail`; either this or `command`."""
    command: tuple[str, ...] = ()
    gpus_per_node: Positive | None = None
    """All of the type's when left out: a pod a node is what NVLink and EFA are made for."""
    processes_per_node: Positive | Literal["auto"] = "auto"
    """torchrun's nproc_per_node; auto is one a GPU."""
    storage: dict[Name, MountConfig] = field(default_factory=dict)
    """store → mount path."""
    checkpoints: CheckpointConfig | None = None
    allow_no_checkpoint: bool = False
    """Accept that a restart of the gang begins at step 0."""
    shared_memory_gib: Positive = 64
    """/dev/shm; the 64 MiB default of a container is a bus error in the first DataLoader."""
    env: dict[str, str] = field(default_factory=dict)
    run: Positive = 1
    """Count it up to run the same job again."""


@dataclass(frozen=True, kw_only=True)
class ArtifactsConfig:
    """Where charts come from when the public registries cannot be reached, as in an isolated VPC."""

    charts: str
    """A folder with one unpacked chart a name, or an oci:// prefix."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig:
    """Everything a training environment is made of."""

    zone: str
    """The one zone of GPU nodes, file systems and jobs: EFA does not cross zones."""
    zone_id: str | None = None
    """The zone's id (apne2-az1), which is the same for every account; enables the check of what is sold there."""
    network: NetworkConfig = field(default_factory=NetworkConfig)
    cluster: ClusterConfig
    system_nodes: SystemNodesConfig = field(default_factory=SystemNodesConfig)
    pools: dict[Name, PoolConfig]
    storage: dict[Name, StoreConfig] = field(default_factory=dict)
    trainer: TrainerConfig
    namespace: Name = "training"
    """Where the environment's own jobs run; teams bring their own."""
    jobs: dict[Name, JobConfig] = field(default_factory=dict)
    artifacts: ArtifactsConfig | None = None
    tags: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class TeamConfig:
    """What one team runs on an environment that exists."""

    environment: Name
    """The environment's stack name; its stack file in this checkout is what the plan is made from."""
    namespace: Name
    max_gpus: Positive | None = None
    """ResourceQuota on requests.nvidia.com/gpu."""
    jobs: dict[Name, JobConfig] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class StackConfig:
    """A stack file: an environment or a team."""

    __pydantic_config__: ClassVar = pydantic.ConfigDict(extra="forbid")  # at every depth below

    stack: Name
    """It begins the name of every resource in AWS."""
    project: str
    region: str
    environment: EnvironmentConfig | None = None
    team: TeamConfig | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """A stack file as far as it could be read."""

    config: StackConfig | None
    """None where so much is wrong that nothing can be planned."""
    faults: tuple[Fault, ...]
    set_aside: frozenset[str] = frozenset()
    """Names of pools, stores and jobs that were left out because their own settings are wrong."""


class _Loader(yaml.CSafeLoader):
    """Refuses a key that is given twice, as the engine does; PyYAML would silently take the second."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        for key, _ in node.value:
            if keys.count(key.value) > 1:
                raise yaml.MarkedYAMLError(problem=f"{key.value} is given twice", problem_mark=key.start_mark)
        return super().construct_mapping(node, deep)


def read_file(stack: str, folder: Path = Path(".")) -> Reading:
    """Read Pulumi.<stack>.yaml without the engine. Raises FileNotFoundError for a stack without a file."""
    project = yaml.load((folder / "Pulumi.yaml").read_text(), yaml.CSafeLoader)["name"]
    text = (folder / f"Pulumi.{stack}.yaml").read_text()
    try:
        document = yaml.load(text, _Loader) or {}
    except yaml.YAMLError as error:
        return Reading(config=None, faults=(Fault(path=f"Pulumi.{stack}.yaml", rule="must be YAML",
                                                  value=" ".join(str(error).split()), way_out="mend that line"),))
    values = (document.get("config") or {}) if isinstance(document, dict) else document
    if not isinstance(values, dict):
        return Reading(config=None, faults=(Fault(path=f"Pulumi.{stack}.yaml", rule="holds settings under `config:`",
                                                  value=_shown(values), way_out="copy Pulumi.dev.yaml"),))
    return read(values, stack=stack, project=project)


def read_engine() -> Reading:
    """Read the configuration the engine hands to this program."""
    import pulumi  # only here: `make check` needs no SDK

    values = {key: _decoded(text) for key, text in pulumi.runtime.config.CONFIG.get().items()}
    return read(values, stack=pulumi.get_stack(), project=pulumi.get_project())


def read(values: Mapping[str, Any], *, stack: str, project: str) -> Reading:
    """Turn configuration keys into types; every fault is reported, and what is sound is kept."""
    own = {str(key).partition(":")[2]: value for key, value in values.items() if str(key).startswith(f"{project}:")}
    raw = copy.deepcopy({"stack": stack, "project": project, "region": values.get("aws:region"), **own})
    faults: list[Fault] = []
    if raw["region"] is None:
        faults.append(Fault(path="aws:region", rule="must be set", value="nothing",
                            way_out="pulumi config set aws:region <region>"))
        raw["region"] = "unknown"
    given = [kind for kind in ("environment", "team") if own.get(kind) is not None]
    if len(given) != 1:
        faults.append(Fault(path=project, rule="holds exactly one of environment and team",
                            value=" and ".join(given) or "neither", way_out=f"{project}:environment: {{zone: …}}"))
    return _salvaged(raw, faults)


def json_schema() -> dict[str, Any]:
    """JSON schema of a stack file, for editors. Settings of other projects and of the engine stay free."""
    kinds = {kind: {"$ref": f"#/$defs/{made.__name__}"} for kind, made in
             (("trainyard:environment", EnvironmentConfig), ("trainyard:team", TeamConfig))}
    config = {
        "type": "object",
        "required": ["aws:region"],
        "properties": {"aws:region": {"type": "string"}, **kinds},
        "patternProperties": {"^trainyard:(?!environment$|team$)": False},
        "oneOf": [{"required": [kind]} for kind in kinds],
    }
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "A stack file of Trainyard",
            "type": "object", "required": ["config"], "properties": {"config": config},
            "$defs": _ADAPTER.json_schema()["$defs"]}


_ADAPTER = pydantic.TypeAdapter(StackConfig)
_NAMED = ("pools", "storage", "jobs", "own_runtimes", "admins")


def _salvaged(raw: dict[str, Any], faults: list[Fault]) -> Reading:
    """Validate; set what is wrong aside and validate the rest, so that its plan can be checked too."""
    set_aside: set[str] = set()
    for _ in range(20):
        try:
            config = _ADAPTER.validate_python(raw)
            return Reading(config=config, faults=tuple(faults), set_aside=frozenset(set_aside))
        except pydantic.ValidationError as error:
            found = error.errors(include_url=False)
        faults += [fault for fault in _merged(map(_explained, found)) if fault not in faults]
        spared = [_removed(raw, problem, set_aside) for problem in found]
        if not all(spared):
            break
    return Reading(config=None, faults=tuple(faults))


def _merged(faults: Iterable[Fault]) -> Iterable[Fault]:
    """One fault a path: a value that fits no branch of a union is refused by each of them."""
    found: dict[str, Fault] = {}
    for fault in faults:
        first = found.get(fault.path)
        found[fault.path] = replace(first, rule=f"{first.rule} or {fault.rule}") if first else fault
    return found.values()


def _removed(raw: dict[str, Any], problem: Any, set_aside: set[str]) -> bool:
    """Take the smallest part that holds the problem out of `raw`; False where it cannot be spared."""
    path = [p for p in problem["loc"] if p != "[key]"]
    if problem["type"] in ("extra_forbidden", "unexpected_keyword_argument"):
        return _without(raw, path)
    for depth in range(len(path) - 1, 0, -1):
        if path[depth - 1] in _NAMED:
            set_aside.add(str(path[depth]))
            return _without(raw, path[: depth + 1])
    return False


def _without(raw: dict[str, Any], path: list[Any]) -> bool:
    holder: Any = raw
    for step in path[:-1]:
        holder = holder.get(step) if isinstance(holder, dict) else None
    if isinstance(holder, dict):
        holder.pop(path[-1], None)
    return isinstance(holder, dict)


def _explained(problem: Any) -> Fault:
    """A pydantic error in our words: path, rule, value, way out."""
    steps = [str(p) for p in problem["loc"] if not re.match(r"\[key\]$|constrained-int$|literal\[", str(p))]
    path, kind, value = ".".join(steps), problem["type"], problem.get("input")
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys_at(steps[:-1]) if steps[:-1] else ["environment", "team"]
        near = difflib.get_close_matches(steps[-1], known, n=1)
        return Fault(path=path, rule="is not a setting", value=_shown(value),
                     way_out=f"did you mean {near[0]}?" if near else f"settings here: {', '.join(known)}")
    if kind in ("missing", "missing_keyword_only_argument"):
        return Fault(path=path, rule="must be set", value="nothing", way_out=f"add {steps[-1]}")
    if kind == "string_type" and isinstance(value, int | float):
        return Fault(path=path, rule="must be text", value=_shown(value), way_out=f'quote it: "{_shown(value)}"')
    if kind == "int_type" and isinstance(value, str) and value.isdecimal():
        return Fault(path=path, rule="must be a number", value=_shown(value), way_out=f"without quotes: {value}")
    if kind == "string_pattern_mismatch" and problem["ctx"]["pattern"] == get_args(Name)[1].metadata[0].pattern:
        return Fault(path=path, rule="is a name", value=_shown(value),
                     way_out="lower-case letters, digits and dashes, starting with a letter, at most 32")
    return Fault(path=path, rule=problem["msg"][0].lower() + problem["msg"][1:], value=_shown(value),
                 way_out="see the sentence beside it in stacks/config.py")


def _keys_at(steps: list[str]) -> list[str]:
    """The settings of the dataclass that a path leads to."""
    here: Any = StackConfig
    for step in steps:
        here = _dataclass_in(here)
        here = get_type_hints(here).get(step) if is_dataclass(here) else (get_args(here) or (None, None))[1]
    here = _dataclass_in(here)
    return [f.name for f in fields(here)] if is_dataclass(here) else []


def _dataclass_in(kind: Any) -> Any:
    """X of `X | None`; anything else as it is."""
    return next((a for a in get_args(kind) if is_dataclass(a)), kind) if type(None) in get_args(kind) else kind


def _shown(value: Any) -> str:
    return json.dumps(value, default=str)[:80]


def _decoded(text: str) -> Any:
    """The engine sends objects as JSON text and everything else as it is."""
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except ValueError:
        return text
