"""The command that makes a Secret of Kubernetes: for the warning of a check, and for a pod that waits for it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

CREATION = "kubectl -n {namespace} create secret generic {secret} {literals}"
FIRST_DAY = "where its namespace is not there yet, run `pulumi up` without the job first"
"""Advice about an object that somebody must make in a cluster that no update has made."""
MISSING = r'(?i:secrets?) "(?P<secret>[^"]+)" not found'
"""The kubelet's message about a Secret that is not there (pkg/kubelet, 1.34)."""
NO_KEY = r"couldn't find key (?P<key>\S+) in Secret (?:[^\s/]+/)?(?P<secret>[^\s/]+)"
"""The kubelet's message about a Secret that lacks a key."""


def creation(secret: str, keys: Iterable[str], namespace: str = "<namespace>") -> str:
    """The command with which a person makes a Secret with these keys."""
    return CREATION.format(namespace=namespace, secret=secret, literals=literals(keys))


def pull_creation(secret: str, server: str, namespace: str = "<namespace>") -> str:
    """The command with which a person makes a Secret for a registry."""
    return (
        f"kubectl -n {namespace} create secret docker-registry {secret} --docker-server={server}"
        " --docker-username=… --docker-password=…"
    )


def literals(keys: Iterable[str]) -> str:
    """Its options for the values."""
    return " ".join(f"--from-literal={key}=…" for key in [*keys] or ["<key>"])


def keys_of(pod: Any, message: str) -> list[str]:
    """Keys that a pod reads of the Secret which a message of the kubelet misses."""
    found = re.search(MISSING, message)
    wanted = (*_of_variables(pod["spec"]), *_of_volumes(pod["spec"]))
    return [*dict.fromkeys(key for secret, key in wanted if found and secret == found["secret"])]


def _of_variables(spec: Any) -> Iterator[tuple[str, str]]:
    """Secret and key of each variable."""
    for container in (*spec.get("initContainers", []), *spec.get("containers", [])):
        for variable in container.get("env") or []:
            if at := (variable.get("valueFrom") or {}).get("secretKeyRef"):
                yield at.get("name", ""), at["key"]


def _of_volumes(spec: Any) -> Iterator[tuple[str, str]]:
    """Secret and key of each file that a volume names."""
    for volume in spec.get("volumes") or []:
        secret = volume.get("secret") or {}
        yield from (
            (secret.get("secretName", ""), item["key"]) for item in secret.get("items") or []
        )
