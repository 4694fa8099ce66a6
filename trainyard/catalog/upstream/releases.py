"""Newest releases that upstream has published of what this program pins, for `trainyard due`.

Read on SEEN in upstream's release pages, in the Go module proxy and in PyPI. Where an environment has
an older release, `trainyard due` says so, with what a move to the newer one means.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date

SEEN = date(2026, 11, 26)
"""Day on which the releases below were looked up."""


@dataclass(frozen=True, kw_only=True)
class Newest:
    """The newest release of a part, as its chart or package names it."""

    release: str
    moving: str
    """Meaning of a move to it, for a person: a sentence without its full stop."""


NEWEST: dict[str, Newest] = {
    "Karpenter": Newest(
        release="1.15.2",
        moving=(
            "its CRDs change and then its pods, one by one, and no node does; its node repair, its reboot"
            " gate and its terminate-first drift are off in its chart, and stay off; what it asks of IAM"
            " is the same"
        ),
    ),
    "Trainer": Newest(
        release="2.4.0",
        moving=(
            "2.1 moves to 2.3 first, and MPI jobs get variables PRTE_* and another image of their"
            " launcher"
        ),
    ),
    "JobSet": Newest(
        release="0.13.0",
        moving="the Trainer's chart brings its own JobSet, so it moves with the Trainer and never alone",
    ),
    "Kueue": Newest(
        release="0.20.1",
        moving=(
            "it moves with the Trainer against whose API it is built; 0.20 serves v1beta1 no longer"
            " (kueue#14558), as which nothing of this program is stored, but which clients of yours"
            " may use"
        ),
    ),
    "NVIDIA device plugin": Newest(
        release="0.20.0",
        moving="its pods are replaced node by node, and a container keeps the GPUs that it has",
    ),
    "pulumi": Newest(
        release="3.272.0",
        moving=(
            "everybody who runs the stack moves together, because an older engine can refuse a state"
            " that a newer one has written"
        ),
    ),
    "pulumi-aws": Newest(
        release="7.51.1",
        moving="read in a preview that it replaces nothing before you run pulumi up",
    ),
    "pulumi-kubernetes": Newest(
        release="4.34.2",
        moving="read in a preview that it replaces nothing before you run pulumi up",
    ),
}
"""Part → its newest release.

What moving means: Karpenter, charts/karpenter/values.yaml at v1.15.2, keys featureGates and
awsFeatureGates, pkg/aws/sdk.go, which names its calls, and its EC2NodeClass, whose hash version it
raises from v5 to v6 and writes anew on the NodeClaims that there are; Trainer, release notes of
v2.4.0; Kueue, kueue#14558, and its CRDs at v0.16.2 and v0.19.2, which store v1beta2 alone; pulumi, the
names on PyPI, with pkg/resource/stack/deployment.go.
"""
PACKAGES = ("pulumi", "pulumi-aws", "pulumi-kubernetes")
"""Rows of NEWEST that are packages of Python, in the environment in which the program runs."""
