"""Examples of settings, which errors propose. Texts that match the pattern of a type: patterns.py."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

from trainyard.catalog import versions
from trainyard.settings.reading.lookup import keys_at, types_at

ROLE = "arn:aws:iam::123456789012:role/deployer"
POLICY = "arn:aws:iam::123456789012:policy/boundary"
KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0123abcd-01ab-23cd-45ef-0123456789ab"
IN_ARN = ":123456789012:"
"""The account of ARNs that errors propose."""
IN_REGION = "ap-northeast-2"
"""The region of examples."""
MIRROR = "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
_KUBERNETES, _TRAINER = versions.DEFAULT_KUBERNETES, [*versions.TRAINERS][0]
_POOL = {"instance_types": ["g6e.48xlarge"], "max_nodes": 4}


def rows_of_sections(table: Literal["EXAMPLES", "OTHERS"]) -> dict[str, Any]:
    """The rows that the classes of an environment's sections have for a table of examples: a class
    names them in an attribute of the table's name."""
    sections = [
        kind for name in keys_at(["environment"]) for kind in types_at(["environment", name])
    ]
    return {key: row for kind in sections for key, row in getattr(kind, table, {}).items()}


EXAMPLES: dict[str, Any] = {
    **rows_of_sections("EXAMPLES"),
    "emails": ["gpu-budget@example.com"],
    "zone": "ap-northeast-2a",
    "cluster": {"version": _KUBERNETES},
    "cluster.version": _KUBERNETES,
    "cluster.name": "research",
    "cluster.viewers": {"on-call": {"role_arn": ROLE}},
    "existing_add_ons": ["eks-pod-identity-agent"],
    "network": {"cidr": "10.0.0.0/16"},
    "network.zones": ["ap-northeast-2a", "ap-northeast-2c"],
    "vpc_id": "vpc-0123456789abcdef0",
    "private_subnets": {
        "ap-northeast-2a": "subnet-0123456789abcdef0",
        "ap-northeast-2c": "subnet-0123456789abcdef1",
    },
    "private_subnets.*": "subnet-0123456789abcdef0",
    "public_access_cidrs": ["203.0.113.7/32"],
    "role_arn": ROLE,
    "permissions_boundary": POLICY,
    "kms_key_arn": KEY,
    "log_retention_days": 90,
    "flow_logs": {"days": 14},
    "flow_logs.days": 14,
    "roleArn": ROLE,
    "assumeRole": {"roleArn": ROLE},
    "assumeRoles": [{"roleArn": ROLE}],
    "allowedAccountIds": ["123456789012"],
    "forbiddenAccountIds": ["123456789012"],
    "defaultTags": {"tags": {"team": "vision"}},
    "profile": "default",
    "system_nodes": {"nodes": 2},
    "system_nodes.nodes": 2,
    "karpenter": {"dry_run": True},
    "pools": {"g6e": _POOL},
    "pools.*": _POOL,
    "instance_types": ["g6e.48xlarge"],
    "max_nodes": 4,
    "reservation": {"id": "cr-0123456789abcdef0", "instances": 1},
    "reservation.id": "cr-0123456789abcdef0",
    "instances": 1,
    "sweep.over": {"lr": [0.0001, 0.0003]},
    "sweep.metric": {"name": "loss", "goal": "minimize"},
    "metric.name": "loss",
    "fallback_zones": ["ap-northeast-2c"],
    "environment.storage": {"home": {"efs": {}}},
    "storage.*": {"efs": {}},
    "jobs.storage.*": {"path": "/data"},
    "efs": {},
    "lustre": {"capacity_gib": 4800, "throughput_mbps_per_tib": 500},
    "file_system_id": "fs-0123456789abcdef0",
    "restore_from": "backup-0123456789abcdef0",
    "lifecycle": {"infrequent_after_days": 30},
    "delete_after_days": {"checkpoints/": 30},
    "delete_after_days.*": 30,
    "maintenance_window": "sunday 16:30",
    "for_model": {"parameters_billion": 70, "nodes": 16},
    "parameters_billion": 70,
    "interval_minutes": 30,
    "max_restarts": 10,
    "sequence": 1024,
    "goodput_percent": 95,
    "repositories.*": {"s3": "s3://bucket/prefix/", "path": "/data"},
    "repositories.*.s3": "s3://bucket/prefix/",
    "storage.*.s3": {},
    "storage.*.teams": "apart",
    "auto_import": ["NEW", "CHANGED", "DELETED"],
    "auto_export": ["NEW", "CHANGED"],
    "registries.*": {},
    "trainer": {"version": _TRAINER, "runtimes": ["torch-distributed"]},
    "trainer.version": _TRAINER,
    "trainer.runtimes": ["torch-distributed"],
    "own_runtimes.*": {"image": "registry.example.com/train:1"},
    "training_operator": {"version": versions.TRAINING_OPERATORS[-1]},
    "training_operator.version": versions.TRAINING_OPERATORS[-1],
    "artifacts": {"charts": "/mirror/charts", "images": MIRROR},
    "charts": "/mirror/charts",
    "artifacts.images": MIRROR,
    "tags": {"team": "vision"},
    "teams": {"vision": {"deployer": ROLE}},
    "teams.*": {"deployer": ROLE},
    "deployer": ROLE,
    "members": [ROLE],
    "viewers": [ROLE],
    "stores": ["scratch"],
    "allowed_priorities": ["high"],
    "image_prefixes": ["registry.example.com/vision/"],
    "s3_reads": ["s3://data-sets/imagenet/"],
    "s3_writes": ["s3://results/vision/"],
    "kms_key_arns": [KEY],
    "team.name": "vision",
    "priorities": {"high": 1000},
    "priorities.*": 1000,
    "team.environment": "dev",
    "namespace": "team-vision",
    "image": "registry.example.com/train:1",
    "pool": "g6e",
    "nodes": 1,
    "path": "/data",
    "host": "/data",
    "store": "scratch",
    "directory": "checkpoints",
    "from_huggingface": {"repository": "Qwen/Qwen3-8B", "revision": "0" * 40},
    "repository": "Qwen/Qwen3-8B",
    "revision": "0" * 40,
    "from_s3": {"address": "s3://bucket/prefix/"},
    "address": "s3://bucket/prefix/",
    "from_store": {"store": "scratch", "directory": "sets"},
    "script": "train.py",
    "sources": ["train.py"],
    "secret": "hf-token",
    "secrets_manager": "vision/hf-token",
    "jobs.secrets.*": {"secret": "hf-token", "key": "token"},
    "secrets.*.key": "token",
    "secrets.*.kms_key_arn": KEY,
    "teams.*.secrets": ["vision/"],
    "min_nodes": 1,
    "etcd": "etcd:2379",
    "manifest": "job.yaml",
    "env": {"NCCL_DEBUG": "INFO"},
    "cpus_per_node": 32,
    "expected_hours": 24,
    "dollars_a_month": 20_000,
    "dollars_a_day": 1_000,
    "command": ["python", "train.py"],
}
"""Setting, or its last two steps, the last `*` for any name → an example. Those of an optional part
stand in the class of its settings."""
VERSIONS: dict[tuple[str, ...], Sequence[str]] = {
    ("environment", "cluster", "version"): tuple(versions.KUBERNETES),
    ("environment", "trainer", "version"): tuple(versions.TRAINERS),
    ("environment", "training_operator", "version"): versions.TRAINING_OPERATORS,
}
"""Setting → the versions that it takes."""


def known_version(steps: Sequence[str], text: str) -> str | None:
    """The version that somebody means who writes 2.1 or 1.3; None where there is none or the setting
    is no version."""
    choices = VERSIONS.get(tuple(steps), ())
    alike = [choice for choice in choices if choice == text or choice.startswith(f"{text}.")]
    alike += [choice for choice in choices if re.fullmatch(re.escape(text) + "0+", choice)]
    return alike[0] if alike else None


def example(steps: Sequence[str]) -> Any | None:
    """A value that a setting takes; None where none is known. Each job has a directory of its own, and each team a
    deployer: EKS has one access entry for a role."""
    if len(steps) > 2 and (steps[-3], steps[-1]) == ("teams", "deployer"):
        return f"{ROLE.removesuffix('deployer')}{steps[-2]}-deployer"
    if len(steps) > 2 and tuple(steps[-2:]) == ("checkpoints", "directory"):
        return steps[-3]
    return next((EXAMPLES[key] for key in keys_of(steps) if key in EXAMPLES), None)


def keys_of(steps: Sequence[str]) -> list[str]:
    """The keys under which EXAMPLES may have a setting, the closest first."""
    *above, last = steps
    holder = above[-1] if above else ""
    if holder in ("storage", "secrets") and "jobs" in above:
        return [f"jobs.{holder}.*"]
    in_entry = [f"{above[-2]}.*.{last}"] if len(above) > 1 else []
    return [f"{holder}.{last}", *in_entry, f"{holder}.*", last]
