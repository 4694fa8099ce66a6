"""The patterns of the types of settings in words, and the text that somebody means who writes another one."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, get_args

from trainyard.catalog import versions
from trainyard.objects.iam.secrets import KeyArn, SecretName, SecretPrefix
from trainyard.settings.aws import AccountId, PolicyArn, RoleArn, arn_of, key_of_alias
from trainyard.settings.cluster import ClusterName
from trainyard.settings.environment import CHARTS, MIRROR, Replaceable
from trainyard.settings.job import Name
from trainyard.settings.network import SubnetId, VpcId
from trainyard.settings.reading import examples
from trainyard.settings.reading.examples import KEY, POLICY, ROLE
from trainyard.settings.section import LONGEST_NAME
from trainyard.settings.stores import BackupId, FileSystemId, MaintenanceWindow, nearest_window
from trainyard.settings.team_entry import ImagePrefix, S3Prefix

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


def as_name(text: str, holder: str = "") -> str:
    """The name that is nearest to a text. `holder`: the map it stands in, as pools."""
    plain = re.sub("[^a-z0-9]+", "-", text.lower()).strip("-")
    one = SINGULAR.get(holder, "name")
    named = plain if plain[:1].isalpha() else f"{one}-{plain or 1}"
    return named[:LONGEST_NAME].strip("-")


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


def _as_listed(text: str) -> str:
    """Secrets Manager has the secret under a name that only the account knows."""
    meant = _managed(text)
    near = f", perhaps {meant}" if meant else ""
    asked = "aws secretsmanager list-secrets --query 'SecretList[].Name'"
    return f"write the name that the account has in aws:region{near}: {asked}"


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
        "the ARN of one IAM role, of no session and without *", _role, ROLE, _role_with_path
    ),
    _pattern(PolicyArn): Pattern("the ARN of an IAM policy", _none, POLICY),
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
    _pattern(KeyArn): Pattern("the ARN of a KMS key", _none, KEY, key_of_alias),
    _pattern(AccountId): Pattern("an account ID of twelve digits", _none, "123456789012"),
    r"^\d+[hms](\d+[ms])?(\d+s)?$": Pattern("a duration in h, m and s", _duration),
    r"^1\.\d\d\.\d+-20\d{6}$": Pattern(
        "a release of the EKS AMI: a Kubernetes patch version, a dash and a day",
        _none,
        versions.KUBERNETES[versions.DEFAULT_KUBERNETES].system_nodes,
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
        examples.MIRROR,
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
        _none,
        "vision/hf-token",
        _as_listed,
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
