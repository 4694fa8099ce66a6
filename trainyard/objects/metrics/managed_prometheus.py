"""A workspace of Amazon Managed Service for Prometheus: its plan, who writes to it, and how Prometheus
finds it."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.objects.iam.policies import Document, document
from trainyard.plans.jobs import Spec

SERVICE_ACCOUNT = "prometheus"
"""ServiceAccount of the pods that write."""
QUEUE: Spec = {"max_samples_per_send": 1000, "max_shards": 200, "capacity": 2500}
"""As AWS wants it (AMP user guide, AMP-onboard-ingest-metrics-existing-Prometheus)."""


@dataclass(frozen=True, kw_only=True)
class ManagedPrometheusPlan:
    """The workspace, and the role that writes to it."""

    role_name: str
    alias: str
    """Name of the workspace: AWS gives it an id, and the name need not be unique."""
    region: str
    retention_days: int
    keep: bool
    """The workspace outlives the stack."""


def remote_write(endpoint: str, region: str) -> Spec:
    """Configuration by which Prometheus writes to the workspace. `endpoint`: with a slash at its
    end, as AWS gives it."""
    url = f"{endpoint}api/v1/remote_write"
    return {"url": url, "sigv4": {"region": region}, "queue_config": QUEUE}


def writing(workspace_arn: str) -> Document:
    """The policy of the role: send samples to the one workspace, and read none."""
    return document({"Sid": "WriteSamples", "Action": "aps:RemoteWrite", "Resource": workspace_arn})
