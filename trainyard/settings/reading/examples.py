"""Examples of settings, which errors propose, and the patterns of their types in words."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from trainyard.catalog import versions
from trainyard.objects.iam.secrets import KeyArn, SecretName, SecretPrefix
from trainyard.settings.aws import AccountId, PolicyArn, RoleArn, arn_of, key_of_alias
from trainyard.settings.cluster import ClusterName
from trainyard.settings.environment import CHARTS, MIRROR, Replaceable
from trainyard.settings.job import Name
from trainyard.settings.network import SubnetId, VpcId
from trainyard.settings.reading.lookup import keys_at, types_at
from trainyard.settings.stores import BackupId, FileSystemId, MaintenanceWindow, nearest_window
from trainyard.settings.team_entry import ImagePrefix, S3Prefix

_ROLE = "arn:aws:iam::123456789012:role/deployer"
_POLICY = "arn:aws:iam::123456789012:policy/boundary"
_KEY = "arn:aws:kms:ap-northeast-2:123456789012:key/0123abcd-01ab-23cd-45ef-0123456789ab"
IN_ARN = ":123456789012:"
"""The account of ARNs that errors propose."""
IN_REGION = "ap-northeast-2"
"""The region of examples."""
_MIRROR = "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"
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
    "cluster.viewers": {"on-call": {"role_arn": _ROLE}},
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
    "role_arn": _ROLE,
    "permissions_boundary": _POLICY,
    "kms_key_arn": _KEY,
    "log_retention_days": 90,
    "flow_logs": {"days": 14},
    "flow_logs.days": 14,
    "roleArn": _ROLE,
    "assumeRole": {"roleArn": _ROLE},
    "assumeRoles": [{"roleArn": _ROLE}],
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
    "jobs.*.run": 2,
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
    "artifacts": {"charts": "/mirror/charts", "images": _MIRROR},
    "charts": "/mirror/charts",
    "artifacts.images": _MIRROR,
    "tags": {"team": "vision"},
    "teams": {"vision": {"deployer": _ROLE}},
    "teams.*": {"deployer": _ROLE},
    "deployer": _ROLE,
    "members": [_ROLE],
    "viewers": [_ROLE],
    "stores": ["scratch"],
    "allowed_priorities": ["high"],
    "image_prefixes": ["registry.example.com/vision/"],
    "s3_reads": ["s3://data-sets/imagenet/"],
    "s3_writes": ["s3://results/vision/"],
    "kms_key_arns": [_KEY],
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
    "secrets.*.kms_key_arn": _KEY,
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
SINGULAR = {
    "pools": "pool",
    "storage": "store",
    "jobs": "job",
    "own_runtimes": "runtime",
    "admins": "admin",
    "viewers": "viewer",
    "registries": "registry",
    "priorities": "priority",
    "teams": "team",
    "repositories": "repository",
    "host_paths": "folder",
}
"""Map of named things → what one of them is."""
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
        return f"{_ROLE.removesuffix('deployer')}{steps[-2]}-deployer"
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


def as_name(text: str, holder: str = "") -> str:
    """The name that is nearest to a text. `holder`: the map it stands in, as pools."""
    plain = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    one = SINGULAR.get(holder, "name")
    named = plain if plain[:1].isalpha() else f"{one}-{plain or 1}"
    return named[:32].strip("-")


@dataclass(frozen=True)
class Pattern:
    """A pattern in words."""

    is_: str
    """Words for a text that matches: "a name of …"."""
    meant: Callable[[str], str]
    """The text that is nearest to one that does not match; empty where none is."""
    example: str = ""
    """A text that matches, where none is near."""
    way: Callable[[str], str] = lambda text: ""
    """A fix for a text of which only the account knows what is meant; empty for others."""


def _absolute(text: str) -> str:
    return "/" + (text.strip().lstrip("/").replace(":", "-") or "data")


def _relative(text: str) -> str:
    return text.strip().strip("/") or "checkpoints"


def _role(text: str) -> str:
    """The role of a session."""
    session = re.fullmatch(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*", text)
    return f"arn:{session[1]}:iam::{session[2]}:role/{session[3]}" if session else ""


def _role_with_path(text: str) -> str:
    """The ARN of a role of IAM Identity Center has a path, which its session does not show."""
    name = re.search(r":assumed-role/(AWSReservedSSO_[^/]+)", text)
    return f"write the ARN that `{arn_of(name[1])}` prints" if name else ""


def _duration(text: str) -> str:
    seconds = re.fullmatch(r"(\d+)", text.strip())
    return f"{seconds[1]}s" if seconds else "1h30m"


def _managed(text: str) -> str:
    """A name without other characters; empty for an ARN, and for the beginning of a name."""
    plain = re.sub("[^-/_+=.@A-Za-z0-9]+", "-", text).strip("-/")
    return "" if text.startswith("arn:") or text.endswith("/") else plain


def _secret(text: str) -> str:
    return re.sub("[^a-z0-9.-]+", "-", text.lower()).strip(".-") or "hf-token"


def _replaceable(text: str) -> str:
    """The entry that a path of the stack file means."""
    plain = text.removeprefix("environment.").replace("trainer.own_runtimes.", "runtimes.")
    return plain if re.match(_pattern(Replaceable), plain) else ""


def _mirror(text: str) -> str:
    """A mirror without scheme, blanks and the slash at its end; with a repository's beginning."""
    bare = re.sub(r"^\w+://", "", text.strip().lower()).rstrip("/")
    return next((each for each in (bare, f"{bare}/mirror") if re.match(MIRROR, each)), "")


def _none(_: str) -> str:
    return ""


def _id_of(what: str, prefix: str) -> Pattern:
    """The id that AWS gives to something."""
    form = f"the id of {what}: {prefix}- and 8 to 17 hexadecimal digits"
    return Pattern(form, _none, f"{prefix}-0123456789abcdef0")


def _pattern(annotated: Any) -> str:
    return get_args(annotated)[1].metadata[0].pattern


_PATH = Pattern("an absolute path, below / and without a colon", _absolute)
_DIRECTORY = Pattern("a directory, without / before or behind it", _relative)


def _image_prefix(text: str) -> str:
    bare = re.sub(r"[^a-z0-9._:/-]+", "-", text.strip().lower()).strip("-._:/")
    return f"{bare}/" if bare else ""


def _s3_prefix(text: str) -> str:
    """With the slash, where that is all it lacks."""
    whole = f"{text.strip().rstrip('/')}/"
    return whole if re.match(_pattern(S3Prefix), whole) else ""


PATTERNS: dict[str, Pattern] = {
    _pattern(Name): Pattern(
        "a name of lower-case letters, digits and dashes, which begins with a letter and has at most"
        " 32 characters",
        as_name,
    ),
    _pattern(RoleArn): Pattern(
        "the ARN of one IAM role, of no session and without *", _role, _ROLE, _role_with_path
    ),
    _pattern(PolicyArn): Pattern("the ARN of an IAM policy", _none, _POLICY),
    _pattern(ImagePrefix): Pattern(
        "the beginning of image names, up to a slash",
        _image_prefix,
        "registry.example.com/vision/",
    ),
    _pattern(S3Prefix): Pattern(
        "a bucket or a part of it, up to a slash: s3://bucket/part/",
        _s3_prefix,
        "s3://bucket/part/",
    ),
    _pattern(KeyArn): Pattern("the ARN of a KMS key", _none, _KEY, key_of_alias),
    _pattern(AccountId): Pattern("an account ID of twelve digits", _none, "123456789012"),
    r"^\d+[hms](\d+[ms])?(\d+s)?$": Pattern("a duration in h, m and s", _duration),
    r"^1\.\d\d\.\d+-20\d{6}$": Pattern(
        "a release of the EKS AMI: a Kubernetes patch version, a dash and a day",
        _none,
        versions.KUBERNETES[_KUBERNETES].system_nodes,
    ),
    _pattern(Replaceable): Pattern(
        "a section, a dot and a name: storage.scratch, pools.h100, runtimes.torch-distributed",
        _replaceable,
        "storage.scratch",
    ),
    CHARTS: Pattern(
        "a folder, or oci:// and the beginning of charts in a registry", _none, "/mirror/charts"
    ),
    MIRROR: Pattern(
        "a registry of ECR, a slash and the first part of its repositories' names, without https://",
        _mirror,
        _MIRROR,
    ),
    r"^cr-[0-9a-f]{8,17}$": _id_of("a reservation", "cr"),
    _pattern(ClusterName): Pattern(
        "the name of an EKS cluster: letters, digits, dashes and underscores",
        lambda text: re.sub("[^-_0-9A-Za-z]+", "-", text).strip("-_")[:100],
        "research",
    ),
    _pattern(VpcId): _id_of("a VPC", "vpc"),
    _pattern(SubnetId): _id_of("a subnet", "subnet"),
    _pattern(FileSystemId): _id_of("a file system", "fs"),
    _pattern(BackupId): _id_of("a backup", "backup"),
    _pattern(MaintenanceWindow): Pattern(
        "a day of the week and a time in UTC, from 00:00 to 23:59", nearest_window, "sunday 16:30"
    ),
    r"^/[^:]+$": _PATH,
    r"^[^/].*[^/]$|^[^/]$": _DIRECTORY,
    r"^[^:/\s]+:\d+$": Pattern("host:port of an etcd", _none, "etcd:2379"),
    r"^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$": Pattern(
        "the name of a Secret: lower-case letters, digits, dashes and dots", _secret
    ),
    _pattern(SecretName): Pattern(
        "the whole name of a secret of Secrets Manager, letters, digits and /_+=.@-, no / at its end; or its ARN",
        _managed,
        "vision/hf-token",
    ),
    _pattern(SecretPrefix): Pattern(
        "names, beginnings of names with a slash at their end, or whole ARNs of secrets: letters,"
        " digits and /_+=.@-",
        _managed,
        "vision/",
    ),
    r"^[-._a-zA-Z0-9]+$": Pattern(
        "the name of a key, as a Secret of Kubernetes takes it: letters, digits, dashes, dots and underscores",
        _none,
        "token",
        lambda text: (
            f"rename the key in the secret to {plain}, and write {plain}"
            if (plain := re.sub("[^-._a-zA-Z0-9]+", "_", text))
            else ""
        ),
    ),
}
"""Pattern of a setting's type → the same in words. A pattern without a row has no fix."""
