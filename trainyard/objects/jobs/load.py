"""The Job of Kubernetes that loads data or weights into a store.

Fields: batch/v1, Kubernetes 1.34. A pod that ends with REFUSED fails the Job at once; one that loses its node
counts for nothing (KEP-3329, Pod failure policy); every other one is tried again, at intervals of up to 6
minutes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.objects.iam.secrets import SecretFiles
from trainyard.objects.jobs.pod_template import TOLERATIONS, SecretKey, secret_variable
from trainyard.plans.jobs import Spec

CONTAINER = "load"
PROGRAM = "trainyard-loader"
"""ConfigMap with the files of the program."""
AT = "/program"
STORES = "/stores"
"""Folder with the stores, each under its name."""
TOKEN = "HF_TOKEN"
REFUSED = 3
"""Exit code of the program where no further try can help."""
TRIES = 8
"""Failed pods after which the Job fails: 25 minutes of a source that does not answer."""
_AMOUNTS = {"cpu": "2", "memory": "2Gi"}


@dataclass(frozen=True, kw_only=True)
class LoadPod:
    """The pod of a load."""

    image: str
    settings: Mapping[str, Any]
    """Settings of the program."""
    claims: Mapping[str, str]
    """Store → its claim."""
    node_selector: Mapping[str, str]
    token: SecretKey | None = None
    files: SecretFiles | None = None
    """File with a token of Secrets Manager."""


def load_spec(pod: LoadPod) -> Spec:
    """Job.spec."""
    return {
        "backoffLimit": TRIES,
        # One pod at a time in the directory: the next one begins when this one is gone.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [
                {
                    "action": "FailJob",
                    "onExitCodes": {
                        "containerName": CONTAINER,
                        "operator": "In",
                        "values": [REFUSED],
                    },
                },
                {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
            ]
        },
        "template": {
            "metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
            "spec": _pod(pod),
        },
    }


def settings_of(spec: Spec) -> dict[str, Any]:
    """The settings of the program in a Job.spec."""
    [container] = spec["template"]["spec"]["containers"]
    return json.loads(container["command"][-1])


def _pod(pod: LoadPod) -> Spec:
    """Its pod runs as root, to whom the root of a new file system belongs."""
    program = ("python3", "-B", f"{AT}/loader.py", json.dumps(pod.settings, sort_keys=True))
    volumes: list[Spec] = [
        {"name": name, "persistentVolumeClaim": {"claimName": claim}}
        for name, claim in pod.claims.items()
    ]
    mounts: list[Spec] = [{"name": name, "mountPath": f"{STORES}/{name}"} for name in pod.claims]
    mounts.append({"name": PROGRAM, "mountPath": AT, "readOnly": True})
    volumes.append({"name": PROGRAM, "configMap": {"name": PROGRAM}})
    if pod.files:
        volumes.append(pod.files.volume())
        mounts.append(pod.files.mount())
    container: Spec = {
        "name": CONTAINER,
        "image": pod.image,
        "command": [*(pod.files.exporting(program) if pod.files else program)],
        "resources": {"requests": _AMOUNTS, "limits": {"memory": _AMOUNTS["memory"]}},
        "volumeMounts": mounts,
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    if pod.token:
        container["env"] = [secret_variable(TOKEN, pod.token)]
    return {
        "restartPolicy": "Never",
        "nodeSelector": dict(pod.node_selector),
        "tolerations": TOLERATIONS,
        "enableServiceLinks": False,
        "automountServiceAccountToken": False,  # it asks AWS, and no API server
        "containers": [container],
        "volumes": volumes,
    }
