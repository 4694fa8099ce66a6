"""The schema of the package, from which Pulumi makes SDKs: made from the types in trainyard/settings/, as
the schema of stack files is."""

from __future__ import annotations

from typing import Any

from trainyard.catalog.versions import TRAINYARD
from trainyard.reports.reference import sentence
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.reading.reader import json_schema

Schema = dict[str, Any]
NAME = "trainyard"
NAMESPACE = "pulumi"
"""First word of the names of SDKs, such as pulumi_trainyard. Without one, Pulumi takes the first folder of the git
address (setSpecNamespace): each mirror would have another name, and a folder with a dot or a _ is refused."""
ENVIRONMENT, TEAM, TRAINING_JOB = (
    f"{NAME}:index:{kind}" for kind in ("Environment", "Team", "TrainingJob")
)
"""Types of the components."""
TEXT: Schema = {"type": "string"}
ANY: Schema = {"$ref": "pulumi.json#/Any"}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
ANYTHING: Schema = {"type": "object", "additionalProperties": ANY}
SECRETS = ("kubeconfig",)
"""Outputs that the engine keeps as secrets."""
OUTPUTS: dict[str, tuple[Schema, str]] = {
    "cluster_name": (TEXT, "Name of the EKS cluster."),
    "cluster_arn": (TEXT, "ARN of the EKS cluster."),
    "endpoint": (TEXT, "Address of the cluster's API server."),
    "certificate_authority": (TEXT, "Certificate authority of the API server: PEM, in base64."),
    "vpc_id": (TEXT, "ID of the VPC."),
    "private_subnet_ids": (
        {"type": "array", "items": TEXT},
        "IDs of the private subnets, in which nodes run.",
    ),
    "training_subnet_id": (TEXT, "ID of the private subnet of GPU nodes and file systems."),
    "cluster_security_group_id": (
        TEXT,
        "ID of the security group by which control plane and nodes reach each other.",
    ),
    "node_security_group_id": (
        TEXT,
        "ID of the security group of GPU nodes. File systems admit it.",
    ),
    "claims": (
        TEXTS,
        "Name of each store → name of its PersistentVolumeClaim in `job_namespace`.",
    ),
    "job_namespace": (TEXT, "Kubernetes namespace of the environment's own jobs."),
    "team_namespaces": (
        TEXTS,
        "Name of each team → its Kubernetes namespace.",
    ),
    "queues": (
        TEXTS,
        "Name of each team → its LocalQueue, in the namespace of the team. Empty without `queues`.",
    ),
    "contract": (
        ANYTHING,
        "What the environment promises every team that it does not list: the argument `contract` of Team.",
    ),
    "team_contracts": (
        ANYTHING,
        "Name of each team → what the environment promises it: the argument `contract` of Team.",
    ),
    "access": (
        ANYTHING,
        "How a team reaches cluster and file systems: the argument `access` of Team. A program that exports"
        " `contract` with it, as one map, publishes what the stack of a team reads.",
    ),
    "registries": (
        TEXTS,
        "Name of each registry → URL of its ECR repository.",
    ),
    "more": (
        ANYTHING,
        "The other outputs of a stack file's stack, by their names in docs/outputs.md.",
    ),
}
"""Output of an environment → its type, and its sentence."""
OF_ALL: dict[str, tuple[Schema, str]] = {
    "kubeconfig": (TEXT, "A kubeconfig of the cluster, which holds no token. Kept as a secret."),
    "jobs": (
        {"type": "object", "additionalProperties": TEXTS},
        "Name of each job → its kind, namespace and name, and commands to follow, end and repeat it.",
    ),
    "plan": (
        ANYTHING,
        "Summary of the plan: dollars, minutes to the first step, vCPUs by quota, goodput.",
    ),
}
"""Output of every component, as OUTPUTS."""


OF_TEAMS: dict[str, tuple[Schema, str]] = {
    "namespace": (TEXT, "Kubernetes namespace of the team."),
}
"""Output of a team and of a job → as OUTPUTS."""


def schema() -> Schema:
    """The schema of the package, as plain data."""
    whole = json_schema()
    package = _Package(whole)
    environment, team = package.inputs(EnvironmentConfig), package.inputs(TeamConfig)
    _with_contract(team["properties"])
    return {
        "name": NAME,
        "namespace": NAMESPACE,
        "version": TRAINYARD,
        "displayName": "Trainyard",
        "description": "From an AWS account to a running distributed training job.",
        "resources": {
            ENVIRONMENT: _component(environment, OUTPUTS | OF_ALL),
            TEAM: _component(team, OF_TEAMS | OF_ALL),
            TRAINING_JOB: _component(_of_one_job(team), OF_TEAMS | OF_ALL),
        },
        "types": package.types,
        "language": {
            language: {"respectSchemaVersion": True}
            for language in ("nodejs", "python", "csharp", "java", "go")
        },
    }


def _with_contract(team: dict[str, Schema]) -> None:
    """Let the contract of a team be a map, too: a program has it from the component of its environment."""
    map_or_file = {"oneOf": [TEXT, ANYTHING]}
    words = (
        "Output `contract` of the environment, or `team_contracts[name]` for a team that the environment"
        " lists; or the name of a file, as `trainyard contract` writes it. By default the stack file of the"
        " environment must be in the folder of the program."
    )
    team["contract"] = {**map_or_file, "description": words}
    team["access"] = {
        **ANYTHING,
        "description": "Output `access` of the environment. Required with a contract that is no file.",
    }


def _of_one_job(team: Schema) -> Schema:
    """The arguments of a team that has one job, which is called like the component."""
    properties = dict(team["properties"])
    job = properties.pop("jobs")["additionalProperties"]
    return {
        "description": "One training job of a team. It is called like the component.",
        "properties": {
            **properties,
            "job": {**job, "description": "The job, as in `jobs` of Team."},
        },
        "required": sorted([*team["required"], "job"]),
    }


def _component(inputs: Schema, outputs: dict[str, tuple[Schema, str]]) -> Schema:
    return {
        "isComponent": True,
        "description": inputs["description"],
        "inputProperties": inputs["properties"],
        "requiredInputs": inputs["required"],
        "properties": {
            name: {**kind, "description": words, **({"secret": True} if name in SECRETS else {})}
            for name, (kind, words) in outputs.items()
        },
        "required": sorted(outputs),
    }


class _Package:
    """The types of the schema, as they are met from the arguments on."""

    def __init__(self, whole: Schema) -> None:
        self.types: dict[str, Schema] = {}
        self._whole, self._definitions = whole, whole["$defs"]

    def inputs(self, settings: type) -> Schema:
        """A type of settings, as an object of the schema."""
        return self._object(settings.__name__)

    def _object(self, name: str) -> Schema:
        found = self._definitions[name]
        required = found.get("required", [])
        return {
            "type": "object",
            "description": found["description"],
            "properties": {
                key: {
                    **self._kind(value, f"{name.removesuffix('Config')}{_camel(key)}"),
                    "description": sentence(key, value, required, self._whole),
                }
                for key, value in found.get("properties", {}).items()
            },
            "required": sorted(required),
        }

    def _kind(self, value: Schema, name: str) -> Schema:
        """A type. `name`: what it is called if it needs a name of its own."""
        parts = value.get("anyOf") or value.get("oneOf") or [value]
        parts = [part for part in parts if part.get("type") != "null"]
        if len(parts) > 1:
            return {"oneOf": [self._kind(part, name) for part in parts]}
        [part] = parts
        if "$ref" in part:
            return self._named(part["$ref"].rpartition("/")[2])
        if part.get("type") == "array":
            return {"type": "array", "items": self._kind(part["items"], name)}
        if part.get("type") == "object":
            held = [*part.get("patternProperties", {}).values(), part.get("additionalProperties")]
            return {"type": "object", "additionalProperties": self._kind(held[0], name)}
        if part["type"] == "string" and "enum" in part:
            return self._choice(part, name)
        return {"type": part["type"]}

    def _named(self, name: str) -> Schema:
        called = f"{NAME}:index:{name.removesuffix('Config')}"
        if called not in self.types:
            self.types[called] = {}  # a type that refers to itself
            self.types[called] = self._object(name)
        return {"$ref": f"#/types/{called}"}

    def _choice(self, part: Schema, name: str) -> Schema:
        called = f"{NAME}:index:{name}"
        values = [{"value": each} for each in part["enum"]]
        self.types[called] = {"type": "string", "enum": values}
        return {"$ref": f"#/types/{called}"}


def _camel(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("_"))
