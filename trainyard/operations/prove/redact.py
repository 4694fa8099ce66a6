"""Redaction of the file of `trainyard prove`: nothing leaves that names an account, a machine, a person or a
secret.

Every value and every key of the file goes through `redacted`, also a sentence of AWS, which is kept word for
word but for these names.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

ACCOUNT, ADDRESS, ARN, HOST, ID, SECRET, OWN = (
    *("<account>", "<address>", "<arn>", "<host>", "<id>", "<secret>", "<own>"),
)
"""Texts that stand for what was there. OWN: a value that this machine or the stack file names."""
TELLING = re.compile(r"SECRET|TOKEN|PASSW|PASSPHRASE|CREDENTIAL|ACCESS_KEY|API_KEY|PRIVATE")
"""Part of the name of a variable whose value is a secret."""
SHORTEST = 4
"""Characters of a value that is replaced wherever it stands. A shorter one is part of other words."""
ENDINGS = (
    "com|org|net|io|aws|internal|local|localdomain|lan|corp|home|intra|dev|cloud|ai|app|co|edu|gov|mil|info|"
    "biz|tech|xyz|test|example|invalid|uk|de|fr|eu|us|ch|at|nl|se|no|dk|fi|es|it|pt|pl|cn|jp|kr|tw|in|sg|au|"
    "nz|ca|br|mx|ru|il|za|sh"
)
"""Last labels of names of hosts."""
PUBLIC_GROUPS = (
    *("kubernetes.io", "k8s.io", "kubeflow.org", "nvidia.com", "karpenter.sh", "karpenter.k8s.aws"),
    *("trainyard.io", "csi.aws.com", "eks.amazonaws.com", "cni.aws"),
)
"""Endings of names of Kubernetes that are in every cluster. They name no host."""
PUBLIC_NAMES = (
    *(
        "vpc.amazonaws.com",
        "docs.aws.amazon.com",
        "aws.amazon.com",
        "checkip.amazonaws.com",
        "public.ecr.aws",
    ),
    *(
        "nodes.eks.amazonaws.com",
        "registry.k8s.io",
        "github.com",
        "ghcr.io",
        "quay.io",
        "docker.io",
    ),
    *("eks.amazonaws.com", "ec2.amazonaws.com", "fsx.amazonaws.com", "pods.eks.amazonaws.com"),
)
"""Whole names that are the same for everybody."""
_HOST = re.compile(rf"(?<![\w@.-])(?:[\w-]+\.)+(?:{ENDINGS})(?![\w-]|\.\w)(?::\d+)?", re.IGNORECASE)
_LONG = re.compile(r"[A-Za-z0-9+/=_-]{32,}")
_HEX = r"[0-9a-fA-F]{1,4}"
_IN_ORDER: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"-----BEGIN [A-Z ]+-----.*?(?:-----END [A-Z ]+-----|\Z)", re.DOTALL), SECRET),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w.-]+"), SECRET),
    (re.compile(r"\bk8s-aws-v1\.[\w-]+"), SECRET),
    (re.compile(r"\b(?:AKIA|ASIA|AROA|AIDA|ANPA|AGPA)[A-Z0-9]{12,}(?::[\w.@=,+-]+)?"), SECRET),
    (re.compile(r"\b(?:gh[pousr]|github_pat|glpat|hf|pul|sk|xox[abprs])[-_][\w-]{12,}"), SECRET),
    (
        re.compile(
            r"(?i)\b([\w-]*(?:passw(?:or)?d|passphrase|secret|token|api[_-]?key|authorization|credential)"
            r"[\w-]*[\"']?\s*[=:]\s*)(?:(?:bearer|basic)\s+)?[^\s,;}\]]+"
        ),
        rf"\1{SECRET}",
    ),
    (re.compile(r"(?i)\bbearer\s+[\w.~+/=-]+"), SECRET),
    (re.compile(r"(?<=://)[^\s/@]+:[^\s/@]+@"), f"{SECRET}@"),
    (re.compile(r"\barn:[\w-]+:[\w-]*:[^\s,;\"'`)\]}]*"), ARN),
    (re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), ADDRESS),
    (re.compile(r"\bip-\d+-\d+-\d+-\d+(?:\.[\w.-]+)?"), HOST),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]|\.\d)(?:/\d+)?(?::\d+)?"), ADDRESS),
    (re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?=\.(?!\d))"), ADDRESS),
    (re.compile(rf"(?<![\w:])(?:{_HEX}:){{7}}{_HEX}(?![\w:])(?:/\d+)?"), ADDRESS),
    (
        re.compile(rf"(?<![\w:])(?:{_HEX}:)+(?::{_HEX})*:?(?:{_HEX})?(?![\w:])(?<=::)(?:/\d+)?"),
        ADDRESS,
    ),
    (
        re.compile(rf"(?<![\w:])(?:{_HEX}(?::{_HEX})*)?::{_HEX}(?::{_HEX})*(?![\w:])(?:/\d+)?"),
        ADDRESS,
    ),
    (re.compile(r"(?i)(?<![\w:])[0-9a-f]{2}(?::[0-9a-f]{2}){5}(?![\w:])"), ADDRESS),
    (
        re.compile(
            r"(?<![\w-])(?:[a-z]{1,12}-){1,2}(?=[0-9a-f]*\d)(?:[0-9a-f]{8}|[0-9a-f]{17})(?![\w])"
        ),
        ID,
    ),
    (re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), ID),
    (re.compile(r"(?<!\d)\d{4}[- ]?\d{4}[- ]?\d{4}(?!\d)"), ACCOUNT),
)
"""Pattern → what stands in its place, one after the other."""


def redacted(value: Any, own: Collection[str] = ()) -> Any:
    """The value without accounts, ARNs, addresses, names of hosts, ids and secrets, at every depth and in
    keys. `own`: texts that are replaced wherever they stand."""
    if isinstance(value, Mapping):
        return {str(redacted(str(key), own)): redacted(one, own) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(one, own) for one in value]
    if isinstance(value, str):
        return _text(value, own)
    if isinstance(value, int) and not isinstance(value, bool) and len(str(abs(value))) == 12:
        return ACCOUNT
    return value


def _text(text: str, own: Iterable[str]) -> str:
    for each in sorted({each for each in own if len(each) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(each, OWN)
    for pattern, instead in _IN_ORDER:
        text = pattern.sub(instead, text)
    return _LONG.sub(_long, _HOST.sub(_host, text))


def _host(found: re.Match[str]) -> str:
    """A name that everybody has, as it is; else the text for a host."""
    name = found[0].partition(":")[0].lower()
    group = any(name == each or name.endswith(f".{each}") for each in PUBLIC_GROUPS)
    of_a_cluster = name.count(".") > 3  # such as the endpoint of a cluster of EKS
    return found[0] if name in PUBLIC_NAMES or (group and not of_a_cluster) else HOST


def _long(found: re.Match[str]) -> str:
    """Random text, which has a digit and a letter; a path and a name made of words stay."""
    text = found[0]
    words = re.split(r"[/_=+-]", text)
    if text == text.lower() and all(len(word) < (20 if word.isalpha() else 12) for word in words):
        return text
    return SECRET if re.search(r"\d", text) and re.search(r"[A-Za-z]", text) else text


def own_values(environment: Mapping[str, str], settings: Mapping[str, Any]) -> set[str]:
    """Texts that name this machine and its user, its secrets, and what the stack file says of the account.
    `environment`: variables. `settings`: `config` of the stack file."""
    secret = {value for name, value in environment.items() if TELLING.search(name.upper())}
    user = {environment.get(name, "") for name in ("USER", "LOGNAME", "AWS_PROFILE")}
    here = {str(Path.home()), str(Path.cwd()), platform.node(), environment.get("HOME", "")}
    said = {str(settings.get("aws:profile") or "")}
    accounts = settings.get("aws:allowedAccountIds")
    said |= {str(each) for each in accounts} if isinstance(accounts, list) else set()
    own = (secret | here | said | user) - COMMON
    return {each for each in own if len(each) >= SHORTEST}


COMMON = {
    *("root", "user", "admin", "ubuntu", "ec2-user", "default", "developer", "localhost"),
    *("true", "false", "none", "null"),
}
"""Values that tell nothing of a person or a machine."""
