"""Objects of the add-on with the Secrets Store CSI driver and AWS's provider in a cluster: beside
its two DaemonSets the driver's registration, its rights and the CRD of what it reads.

Names, fields and the CRD: charts of kubernetes-sigs/secrets-store-csi-driver@0aad886 (1.6.0) and of
aws/secrets-store-csi-driver-provider-aws@a74182c (3.1.1). That EKS puts them into a namespace of their
own: terraform of public users, read 2026-11-23.
"""

from __future__ import annotations

import json
from typing import Any

Fields = dict[str, Any]
ADD_ON = "aws-secrets-store-csi-driver-provider"
NAMESPACE = "aws-secrets-manager"
DRIVER, PROVIDER = "secrets-store-csi-driver", "secrets-store-csi-driver-provider-aws"
"""DaemonSets, their service accounts and the last words of their images."""
CSI = "secrets-store.csi.k8s.io"
GROUP = "secrets-store.csi.x-k8s.io"
AUDIENCES = ("sts.amazonaws.com", "pods.eks.amazonaws.com")
_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_OBJECT = {
    "type": "object",
    "properties": {
        "secretName": {"type": "string"},
        "type": {"type": "string"},
        "labels": _TEXTS,
        "annotations": _TEXTS,
        "data": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"key": {"type": "string"}, "objectName": {"type": "string"}},
            },
        },
    },
}
CRD: Fields = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"secretproviderclasses.{GROUP}"},
    "spec": {
        "group": GROUP,
        "names": {
            "kind": "SecretProviderClass",
            "listKind": "SecretProviderClassList",
            "plural": "secretproviderclasses",
            "singular": "secretproviderclass",
        },
        "scope": "Namespaced",
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {
                                    "provider": {"type": "string"},
                                    "parameters": _TEXTS,
                                    "secretObjects": {"type": "array", "items": _OBJECT},
                                },
                            },
                            "status": {"type": "object"},
                        },
                    }
                },
            }
        ],
    },
}


def values(configuration: str | None) -> dict[str, Any]:
    """Values from configurationValues, with the chart's defaults."""
    said = json.loads(configuration or "{}")
    driver = said.get("secrets-store-csi-driver", {})
    return {
        "rotates": driver.get("enableSecretRotation", False),
        "interval": driver.get("rotationPollInterval") or "2m",
        "tolerations": said.get("tolerations", []),
    }


def before(configuration: str | None) -> list[Fields]:
    """Objects that must be there before the DaemonSets."""
    role = "secretproviderclasses-role"
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        CRD,
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": CSI},
            "spec": {
                "attachRequired": False,
                "podInfoOnMount": True,
                "volumeLifecycleModes": ["Ephemeral"],
                "requiresRepublish": values(configuration)["rotates"],
                "tokenRequests": [{"audience": audience} for audience in AUDIENCES],
            },
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRole",
            "metadata": {"name": role},
            "rules": [
                {
                    "apiGroups": [GROUP],
                    "resources": ["secretproviderclasses"],
                    "verbs": ["get", "list", "watch"],
                }
            ],
        },
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": role},
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io",
                "kind": "ClusterRole",
                "name": role,
            },
            "subjects": [{"kind": "ServiceAccount", "name": DRIVER, "namespace": NAMESPACE}],
        },
    ]


def pod_of(workload: str, configuration: str | None) -> Fields:
    """Fields of a workload's pods beside its image. The driver tolerates everything by default, the
    provider nothing."""
    said = values(configuration)
    if workload == PROVIDER:
        return {"tolerations": said["tolerations"], "args": []}
    rotation = [f"--rotation-poll-interval={said['interval']}"] if said["rotates"] else []
    return {"tolerations": [{"operator": "Exists"}], "args": rotation}
