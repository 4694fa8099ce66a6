"""Objects of a cluster on which runs have finished, as Kubernetes 1.35 and Trainer 2.1 write them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard.operations.reach.snapshot import Snapshot
from trainyard.plans.jobs import EXPECTED, Expected

Object = dict[str, Any]
BEGAN = datetime(2026, 11, 21, 12, tzinfo=UTC)


def at(minutes: float) -> str:
    """A time, in minutes after the job was created."""
    return (BEGAN + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def train_job(
    name: str = "t5", namespace: str = "training", ended: float | None = 70, **more: Any
) -> Object:
    done = {"type": "Complete", "status": "True", "reason": "JobsCompleted", "message": "done"}
    conditions = [] if ended is None else [done | {"lastTransitionTime": at(ended)}]
    selector = {"nodeSelector": {"trainyard.io/pool": "g6e"}}
    return {
        "kind": "TrainJob",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "uid": f"uid-of-{namespace}-{name}",
            "creationTimestamp": at(0),
            "annotations": {"trainyard.io/run": f"{name}-1"},
        },
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "numNodes": 2,
                "image": "ghcr.io/team/train:1",
                "command": ["torchrun", "train.py"],
                "resourcesPerNode": {"limits": {"nvidia.com/gpu": "8"}},
            },
            "podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": selector}],
        },
        "status": {"conditions": conditions},
        **more,
    }


def expecting(job: Object, hours: float, nodes: int = 2, capacity: str = "on_demand") -> Object:
    """The job, with what the plan counts for its run."""
    expected = Expected(hours=hours, nodes=nodes, instance_type="g6e.48xlarge", capacity=capacity)
    job["metadata"]["annotations"][EXPECTED] = expected.note()
    return job


def pod(
    number: int,
    job: str = "t5",
    *,
    namespace: str = "training",
    gpus: int = 8,
    created: float = 0,
    scheduled: float = 5,
    ended: float = 65,
    node: str = "",
    pool: str = "g6e",
) -> Object:
    """A pod of a TrainJob that has ended, on node-<number>."""
    terminated = {"exitCode": 0, "startedAt": at(scheduled + 1), "finishedAt": at(ended)}
    limits = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "kind": "Pod",
        "metadata": {
            "name": f"{job}-node-0-{number}-x7k2p",
            "namespace": namespace,
            "uid": f"uid-of-{namespace}-{job}-{number}-{created:g}",
            "creationTimestamp": at(created),
            "labels": {"jobset.sigs.k8s.io/jobset-name": job},
        },
        "spec": {
            "nodeName": node or f"node-{number}",
            "nodeSelector": {"trainyard.io/pool": pool} if pool else {},
            "containers": [{"name": "node", "resources": limits}],
        },
        "status": {
            "phase": "Succeeded",
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "True",
                    "lastTransitionTime": at(scheduled),
                }
            ],
            "containerStatuses": [
                {"name": "node", "restartCount": 0, "state": {"terminated": terminated}}
            ],
        },
    }


def node(number: int, kind: str = "g6e.48xlarge", **labels: str) -> Object:
    return {
        "kind": "Node",
        "metadata": {
            "name": f"node-{number}",
            "labels": {
                "node.kubernetes.io/instance-type": kind,
                "topology.kubernetes.io/region": "us-east-1",
                "topology.kubernetes.io/zone": "us-east-1a",
                "karpenter.sh/capacity-type": "on-demand",
                **labels,
            },
        },
        "status": {"capacity": {"nvidia.com/gpu": "8"}},
    }


def node_pool(name: str = "g6e", kind: str = "g6e.48xlarge", pool: str = "g6e") -> Object:
    wanted = {
        "node.kubernetes.io/instance-type": [kind],
        "topology.kubernetes.io/zone": ["us-east-1a", "us-east-1b"],
        "karpenter.sh/capacity-type": ["on-demand"],
    }
    requirements = [
        {"key": key, "operator": "In", "values": values} for key, values in wanted.items()
    ]
    labels = {"trainyard.io/nodes": "training", "trainyard.io/pool": pool}
    template = {"metadata": {"labels": labels}, "spec": {"requirements": requirements}}
    return {"kind": "NodePool", "metadata": {"name": name}, "spec": {"template": template}}


def cluster(**objects: list[Object]) -> Snapshot:
    """One run of two nodes, whose pods and nodes are still there, unless told otherwise."""
    usual = {
        "trainjobs": [train_job()],
        "pods": [pod(0), pod(1)],
        "nodes": [node(0), node(1)],
        "nodepools": [node_pool()],
    }
    return Snapshot(objects=usual | objects)
