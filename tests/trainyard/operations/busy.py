"""A cluster at work, for `trainyard watch`: two pools, gangs in every state, a queue. The picture in docs
shows it."""

from __future__ import annotations

from datetime import UTC, timedelta
from typing import Any

from tests.trainyard.operations.finished import BEGAN, at, node, node_pool, pod, train_job
from trainyard.operations.reach.snapshot import Snapshot

Object = dict[str, Any]
TAKEN_AT = BEGAN + timedelta(minutes=65)
ALERTS = ("GpuXidHardware: a GPU of ip-10-0-1-7 reports Xid 79",)


def _node(number: int, pool: str, kind: str, *, ready: bool = True, **meta: Any) -> Object:
    labels = {"trainyard.io/nodes": "training", "trainyard.io/pool": pool}
    made = node(number, kind, **labels)
    made["metadata"] |= {"creationTimestamp": at(1), **meta}
    made["status"] = {
        "allocatable": {"nvidia.com/gpu": "8"},
        "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
    }
    return made


def _rank(job: str, number: int, phase: str, at_node: str, state: Object | None = None) -> Object:
    made = pod(number, job, node=at_node, created=5 if state and "running" in state else 60)
    made["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
    made["status"] = {
        "phase": phase,
        "conditions": [],
        "containerStatuses": [{"name": "node", "restartCount": 0, "state": state or {}}],
    }
    if not at_node:
        del made["spec"]["nodeName"]
    return made


def _limited(made: Object, nodes: int) -> Object:
    made["spec"]["limits"] = {"nodes": str(nodes)}
    made["status"] = {"conditions": [{"type": "Ready", "status": "True"}]}
    return made


def _workload(name: str, minutes: float) -> Object:
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"trainjob-{name}",
            "namespace": "team-speech",
            "creationTimestamp": at(minutes),
            "ownerReferences": [{"kind": "TrainJob", "name": name}],
        },
        "spec": {"queueName": "speech"},
        "status": {"conditions": []},
    }


def busy() -> Snapshot:
    """Everything that the view shows, at one moment."""
    running = {"running": {"startedAt": at(6)}}
    t5 = train_job("t5-large", ended=None)
    t5["spec"]["trainer"]["numNodes"] = 3
    vit = train_job("vit", "team-vision", ended=None)
    suspended = {
        "type": "Suspended",
        "status": "True",
        "reason": "Suspended",
        "message": "in its queue",
        "lastTransitionTime": at(50),
    }
    speech = train_job("wav", "team-speech", status={"conditions": [suspended]})
    for job, minutes in ((t5, 0), (vit, 55), (speech, 50)):
        job["metadata"]["creationTimestamp"] = at(minutes)
    vit_pods = [
        _rank("vit", 0, "Pending", "node-4", {"waiting": {"reason": "ContainerCreating"}}),
        _rank("vit", 1, "Pending", ""),
    ]
    for each in vit_pods:
        each["metadata"]["namespace"] = "team-vision"
    return Snapshot(
        objects={
            "trainjobs": [t5, vit, speech, train_job("hello", ended=30)],
            "pods": [
                *(_rank("t5-large", n, "Running", f"node-{n}", running) for n in range(3)),
                *vit_pods,
            ],
            "nodes": [
                *(_node(n, "g6e", "g6e.48xlarge") for n in range(2)),
                _node(2, "g6e", "g6e.48xlarge", annotations={"trainyard.io/repair": "Xid 79"}),
                _node(4, "h100", "p5.48xlarge"),
            ],
            "nodepools": [
                _limited(node_pool("g6e"), 4),
                _limited(node_pool("h100", "p5.48xlarge", "h100"), 2),
            ],
            "nodeclaims": [
                {
                    "kind": "NodeClaim",
                    "metadata": {
                        "name": "h100-x",
                        "creationTimestamp": at(64),
                        "labels": {"trainyard.io/pool": "h100"},
                    },
                    "status": {"conditions": []},
                }
            ],
            "deployments": [
                {
                    "metadata": {"name": name, "namespace": "kube-system"},
                    "status": {"availableReplicas": 1},
                }
                for name in ("karpenter", "jobset-controller", "kubeflow-trainer")
            ],
            "workloads": [_workload("wav", 50)],
        },
        taken_at=TAKEN_AT.replace(tzinfo=UTC),
    )
