"""Plan of a program of ours in the cluster: one pod that runs Python.

The programs: repair.py, history.py, dispatch.py, gangs.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.plans.documents import Document
from trainyard.plans.topic import TopicPlan

PORT = 8080
"""Where each answers kubelet at /healthz, and Prometheus at /metrics."""
MILLICPUS = 50
"""CPU that each requests, in thousandths of a vCPU."""
TOPIC_ARN = "$TOPIC_ARN"
"""Text for the ARN of a program's topic in its settings and in the policy of its role. The ARN of a topic
that the stack makes is known once there is the topic."""


@dataclass(frozen=True, kw_only=True)
class RolePlan:
    """The IAM role that a program's pod gets through EKS Pod Identity."""

    name: str
    may: str
    """Logical name of its policy."""
    policy: Document


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """Everything in which one program differs from another."""

    app: str
    """Its name in the cluster, and that of its namespace."""
    name: str
    """Name of its container, of its folder in workloads/, and, with .py, of the file that runs.
    That file is told the path of its settings, and the port."""
    image: str
    files: Mapping[str, str]
    """Name → text."""
    settings: str
    """As JSON."""
    may: Sequence[tuple[str, str, tuple[str, ...]]] = ()
    """API group, resource and verbs that it needs in the whole cluster."""
    may_called: str = "acts"
    """Logical name of the role with these rights."""
    may_remember: Sequence[str] = ()
    """Verbs on ConfigMaps of its namespace."""
    role: RolePlan | None = None
    """None: it asks nothing of AWS."""
    topic: TopicPlan | None = None
    """Topic of SNS that it publishes to."""
