"""Objects that the charts of a stack make in a cluster, by Helm release: chart_objects.json.

`python -m development.charts` writes it from the charts that are pinned, of every release of the
Trainer and of Kueue that a stack file can choose. Only kinds of KINDS are in it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

OBJECTS_FILE = Path(__file__).with_name("chart_objects.json")
KINDS: Mapping[str, str] = {
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "MutatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
    ),
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "ValidatingWebhookConfiguration": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
    ),
}
"""Kinds of objects in no namespace → where the API server lists them."""
WORKLOADS: Mapping[str, str] = {"DaemonSet": "daemonsets", "Deployment": "deployments"}
"""Kinds of the group apps → where it lists them, behind their namespace."""


class ObjectName(NamedTuple):
    """Kind, namespace and name of an object in a cluster."""

    kind: str
    name: str
    namespace: str = ""
    """Empty for a kind of KINDS."""

    def __str__(self) -> str:
        place = f" in {self.namespace}" if self.namespace else ""
        return f"{self.kind} {self.name}{place}"


@dataclass(frozen=True, kw_only=True)
class ReleaseObjects:
    """Objects that a Helm release makes."""

    namespace: str
    """Namespace of the release, in which its objects are, unless an object names another one."""
    objects: tuple[ObjectName, ...]


@cache
def chart_objects() -> dict[str, ReleaseObjects]:
    """Helm release → what it makes."""
    return {
        release: ReleaseObjects(
            namespace=row["namespace"], objects=tuple(ObjectName(*one) for one in row["objects"])
        )
        for release, row in json.loads(OBJECTS_FILE.read_text()).items()
    }
