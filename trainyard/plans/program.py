"""What the component of a program of ours in the cluster is told: one pod that runs Python.

Which programs there are: repair.py, history.py, dispatch.py, gangs.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from trainyard.plans.documents import Document
from trainyard.plans.topic import TopicPlan

PORT = 8080
"""Where each answers kubelet at /healthz, and Prometheus at /metrics."""
TOPIC_ARN = "$TOPIC_ARN"
"""Text for the ARN of a program's topic in its settings and in the policy of its role. The ARN of a topic
that the stack makes is known once there is the topic."""


@dataclass(frozen=True, kw_only=True)
class RolePlan:
    """The IAM role that a program's pod gets through EKS Pod Identity."""

    name: str
    may: str
    """What its policy is called by."""
    policy: Document


@dataclass(frozen=True, kw_only=True)
class ProgramPlan:
    """What one program differs by from another."""

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
    """What the role with these rights is called by."""
    may_remember: Sequence[str] = ()
    """Verbs on ConfigMaps of its namespace."""
    role: RolePlan | None = None
    """None: it asks nothing of AWS."""
    topic: TopicPlan | None = None
    """Topic of SNS that it publishes to."""
