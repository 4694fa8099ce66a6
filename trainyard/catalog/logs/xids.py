"""Xids, error numbers of NVIDIA's driver, with their meaning for a job and its node.

Source: the buckets of NVIDIA's Xid catalogue (docs.nvidia.com/deploy/xid-errors), the fatal ones of the
EKS node monitoring agent 1.7.0 (dcgm_policies.go), and awsome-distributed-ai's health check (2026-07).
63 (a row is replaced at the next reset), 43, 92, 121, 154 and 162 to 164 ask for nothing at once.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class XidClass:
    """Xids with the same consequence."""

    name: str
    xids: tuple[int, ...]
    means: str
    """Event of the GPU, as the end of a sentence."""
    do: str
    severity: str
    """critical: the node is of no more use. warning: the job alone is."""


REPLACE = "delete the NodeClaim of the node: Karpenter launches another one"
"""Remedy for a node whose GPU cannot be used any more."""
XID_CLASSES: tuple[XidClass, ...] = (
    XidClass(
        name="Application",
        xids=(8, 13, 31, 94, 126),
        means="has stopped a program, which is mostly the program's own error",
        do="read the log of the rank; after the same rank fails on the same GPU twice, replace the node",
        severity="warning",
    ),
    XidClass(
        name="Reset",
        xids=(46, 48, 62, 64, 95, 109, 110, 119, 120, 136, 140, 143, 155, 156, 158),
        means="computes no more until it is reset, which a node of Karpenter does not do",
        do=REPLACE,
        severity="critical",
    ),
    XidClass(
        name="NVLink",
        xids=(74, *range(144, 151)),
        means="has lost its link to other GPUs",
        do=REPLACE,
        severity="critical",
    ),
    XidClass(
        name="Lost",
        xids=(79, 151, 168),
        means="has left the bus of its node",
        do="delete the NodeClaim of the node; a reboot rarely brings the GPU back",
        severity="critical",
    ),
    XidClass(
        name="Support",
        xids=(54, 142, 165),
        means="has a fault of its hardware",
        do="delete the NodeClaim of the node, and open a case with AWS that names the instance",
        severity="critical",
    ),
)
