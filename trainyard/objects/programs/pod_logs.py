"""Logs of pods that outlive their pods: Fluent Bit on the nodes of pools, which writes to one log
group of CloudWatch Logs.

Options: Fluent Bit's manual, inputs tail and outputs cloudwatch_logs. Why so: docs/decisions/0021.
"""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.objects.iam.encryption import POD_LOGS
from trainyard.objects.iam.policies import Document, document
from trainyard.plans.identity import Identity

APP, NAMESPACE = "trainyard-logs", "kube-system"
"""Name of its DaemonSet, its service account and the label of its pods; where they are: other namespaces
admit no pod that reads its node."""
PROGRAM = "/fluent-bit/bin/fluent-bit"
"""In the image: aws-for-fluent-bit, entrypoint.sh."""
FOLDER, FILE = "/etc/trainyard-logs", "fluent-bit.conf"
STATE = "/var/lib/trainyard-logs"
"""On the node: how far each log was read, and what CloudWatch has not taken yet."""
PREFIX = "pod."
"""Prefix of each stream. Fluent Bit appends <namespace>.<pod>.<container>."""
NOT_OF_RUNS = (NAMESPACE, "trainyard-*", "amazon-*")
"""Namespaces whose pods are on the nodes of pools, too, and have logs of their own."""
MEMORY_MIB = 256
"""Limit of its memory. Beyond it the kernel ends Fluent Bit, which then reads again what it had not sent."""
CHUNK_MIB = 2
"""Size of a chunk of log lines (Fluent Bit's manual, buffering and storage)."""
MOST_CHUNKS = 48
"""Chunks in memory at most; more of them stay on disk. Fluent Bit by itself keeps 128, which is all of its
memory as soon as CloudWatch takes no lines."""
BACKLOG_MIB = 16
"""Memory for chunks of a process before this one, which are read from disk at its start."""
_FILE_NAME = (
    r"(?<pod_name>[a-z0-9](?:[-a-z0-9.]*[a-z0-9])?)_(?<namespace_name>[^_]+)"
    r"_(?<container_name>.+)-(?<docker_id>[a-z0-9]{64})\.log$"
)
"""In /var/log/containers: kubelet's, as Fluent Bit's manual has it."""


@dataclass(frozen=True, kw_only=True)
class PodLogsPlan:
    """Fluent Bit and its log group."""

    image: str
    role_name: str
    group_name: str
    region: str
    days: int
    """For which CloudWatch Logs keeps a line."""


def group_name(me: Identity) -> str:
    """Name of an environment's log group."""
    return f"{POD_LOGS}{me.name('pod-logs')}"


def stream(namespace: str, pod: str) -> str:
    """Beginning of the names of streams of all pods whose names begin with `pod`."""
    return f"{PREFIX}{namespace}.{pod}"


def fluent_bit_config(plan: PodLogsPlan) -> str:
    """fluent-bit.conf. Without CloudWatch it fills at most 512 MB of the node's disk, and tries again
    for hours. Nothing of it asks the API server: the name of a file says whose log it is."""
    excluded = ",".join(f"/var/log/containers/*_{each}_*.log" for each in NOT_OF_RUNS)
    sections: dict[str, dict[str, object]] = {
        "SERVICE": {
            "flush": 5,
            "grace": 20,
            "log_level": "warn",
            "storage.path": f"{STATE}/waiting",
            "storage.max_chunks_up": MOST_CHUNKS,
            "storage.backlog.mem_limit": f"{BACKLOG_MIB}M",
        },
        "INPUT": {
            "name": "tail",
            "path": "/var/log/containers/*.log",
            "exclude_path": excluded,
            "tag": "<namespace_name>.<pod_name>.<container_name>",
            "tag_regex": _FILE_NAME,
            "multiline.parser": "cri",
            "db": f"{STATE}/read.db",
            "refresh_interval": 5,
            "rotate_wait": 30,
            "read_from_head": "on",
            "skip_long_lines": "on",
            "storage.type": "filesystem",
        },
        "OUTPUT": {
            "name": "cloudwatch_logs",
            "match": "*",
            "region": plan.region,
            "log_group_name": plan.group_name,
            "log_stream_prefix": PREFIX,
            "log_key": "log",
            "auto_create_group": "off",
            "retry_limit": 100,
            "storage.total_limit_size": "512M",
        },
    }
    return "\n".join(
        "\n".join([f"[{name}]", *(f"    {key} {value}" for key, value in entries.items()), ""])
        for name, entries in sections.items()
    )


def writing(group_arn: str) -> Document:
    """The policy of its role: write to the one group, and read nothing."""
    return document(
        {
            "Sid": "WriteLogs",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": [group_arn, f"{group_arn}:*"],
        }
    )
