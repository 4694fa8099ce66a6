"""Tolerations of controllers' pods, which leave a system node that died after seconds. The default of
Kubernetes is 300 s, and the webhooks of a controller refuse every new job until its pod runs again."""

from __future__ import annotations

from trainyard.plans.jobs import Spec

AWAY_SECONDS = 30
"""Seconds after Kubernetes calls the node unreachable or not ready."""
AWAY = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
"""Keys of the taints that such a node gets."""


def leaves_lost_nodes() -> list[Spec]:
    """Tolerations in the words of a chart's values."""
    return [
        {
            "key": key,
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": AWAY_SECONDS,
        }
        for key in AWAY
    ]
