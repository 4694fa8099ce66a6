"""What `trainyard status` says of a broken node."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from trainyard.objects.programs.repair import NOTE
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.status.sick_nodes import leaving, sick, unready, warned


def _node(note: str = "", reason: str = "", nodes: str = "training") -> dict[str, Any]:
    condition = {"type": "AcceleratedHardwareReady", "status": "False" if reason else "True"}
    return {
        "metadata": {
            "name": "n0",
            "labels": {"trainyard.io/nodes": nodes},
            "annotations": {NOTE: note} if note else {},
        },
        "status": {"conditions": [condition | {"reason": reason, "message": "it broke"}]},
    }


def _said(node: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in sick(Snapshot(objects={"nodes": [node]}))]


def _unready(
    minute: int, status: str = "False", nodes: str = "system", said: str = "no disk"
) -> list[str]:
    """What is said at this minute of a node that has been so since minute 0."""
    since = datetime(2026, 11, 28, 12, tzinfo=UTC)
    node = _node(nodes=nodes)
    ready = {
        "type": "Ready",
        "status": status,
        "lastTransitionTime": since.isoformat(),
        "message": said,
    }
    node["status"]["conditions"].append(ready)
    snapshot = Snapshot(objects={"nodes": [node]}, taken_at=since + timedelta(minutes=minute))
    return [str(finding) for finding in unready(snapshot)]


def test_a_system_node_that_is_not_ready_for_a_while_is_named_with_its_reason() -> None:
    assert _unready(minute=5) == [
        "node n0 is not Ready, and DNS and the controllers need such nodes\n    no disk\n"
        "    → kubectl describe node n0"
    ]
    [said] = _unready(minute=5, said="network not ready: cni plugin not initialized")
    assert "the VPC CNI does not run on the node" in said and "daemonset/aws-node" in said
    assert _unready(minute=0) == _unready(minute=5, status="True") == []
    assert _unready(minute=5, nodes="training") == []


def test_a_node_that_is_replaced_is_named_with_its_cause_and_what_happens_next() -> None:
    assert _said(_node(note="NvidiaXID79Error: it broke; replaced")) == [
        "node n0 is sick\n    NvidiaXID79Error: it broke; replaced\n    → wait: Karpenter replaces the"
        " node, and its gangs start anew from their checkpoints"
    ]


def test_a_node_that_is_held_is_named_with_the_command_that_replaces_it() -> None:
    [said] = _said(_node(note="DCGMError: not replaced, because 1 node of pool h100 was"))
    assert "kubectl delete nodeclaim" in said


def test_a_silent_node_that_is_waited_for_is_named_and_not_called_sick() -> None:
    [said] = _said(_node(note="KubeletSilent: nothing said; waited for, because EC2 says it runs"))
    assert said.startswith("node n0 is silent\n")
    assert "wait: its runs go on" in said and "kubectl delete nodeclaim" in said


def test_without_repair_the_words_of_the_monitoring_agent_are_told() -> None:
    [said] = _said(_node(reason="NvidiaXID79Error"))
    assert "NvidiaXID79Error: it broke" in said and "environment.repair" in said


@pytest.mark.parametrize("node", [_node(), _node(reason="DCGMError", nodes="system")])
def test_healthy_nodes_and_nodes_of_no_pool_are_not_told(node: dict[str, Any]) -> None:
    assert _said(node) == []


def _leaving(phase: str = "Running", note: str = "", **event: Any) -> list[str]:
    pod = {
        "metadata": {
            "name": "run-0",
            "namespace": "t",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "run"},
        },
        "spec": {"nodeName": "n0"},
        "status": {"phase": phase},
    }
    node = _node(note=note)
    node["metadata"]["deletionTimestamp"] = "2026-11-23T09:00:00Z"
    job = {"kind": "TrainJob", "metadata": {"name": "run", "namespace": "t"}, "spec": {}}
    events = [event | {"involvedObject": {"kind": "Node", "name": "n0"}}]
    objects = {"nodes": [node], "trainjobs": [job], "pods": [pod], "events": events}
    return [str(finding) for finding in leaving(Snapshot(objects=objects))]


def test_a_node_that_leaves_and_whose_run_goes_on_is_named_with_what_aws_announced() -> None:
    [said] = _leaving(reason="InstanceUnhealthy")
    assert said.startswith(
        "node n0 leaves when its pods have ended, and takes no new ones\n    AWS re"
    )
    assert said.endswith(": kubectl -n t delete pod run-0")
    assert "somebody has deleted its NodeClaim" in _leaving(reason="Other")[0]


def test_a_node_that_leaves_is_not_named_without_pods_of_a_run_or_where_repair_replaces_it() -> (
    None
):
    assert _leaving(phase="Succeeded") == []
    assert _leaving(note="NvidiaXID79Error: it broke; replaced") == []


EFA = "EFAErrorMetric: unresponsive_remote_events increased from 0 to 4096"


def _warned(message: str, restarts: int) -> list[str]:
    pod = {
        "metadata": {
            "name": "run-0",
            "namespace": "t",
            "labels": {"jobset.sigs.k8s.io/jobset-name": "run"},
        },
        "spec": {"nodeName": "n0"},
        "status": {"containerStatuses": [{"restartCount": restarts, "state": {}}]},
    }
    job = {"kind": "TrainJob", "metadata": {"name": "run", "namespace": "t"}, "spec": {}}
    event = {
        "type": "Warning",
        "reason": "NetworkingReady",
        "message": message,
        "involvedObject": {"kind": "Node", "name": "n0"},
    }
    claim = {"metadata": {"name": "h100-x"}, "status": {"nodeName": "n0"}}
    objects = {
        "trainjobs": [job],
        "pods": [pod],
        "events": [event, event],
        "nodeclaims": [{"metadata": {"name": "h100-y"}}, claim],
    }
    return [str(finding) for finding in warned(Snapshot(objects=objects))]


def test_a_node_that_nothing_replaces_is_named_where_a_job_on_it_started_anew() -> None:
    [said] = _warned(EFA, restarts=1)
    assert said.startswith(
        "node n0 has warned, and a job on it has started anew\n    EFAErrorMetric"
    )
    assert said.endswith(
        ": kubectl cordon n0; kubectl delete nodeclaim h100-x --wait=false; kubectl -n t delete pod run-0"
    ), "Karpenter would wait for a container that keeps crashing"
    words = ("cordon", "delete nodeclaim", "delete pod")
    assert [*words] == sorted(words, key=said.index), (
        "training-operator makes a pod anew within a second, before Karpenter has tainted the node"
    )


def test_warnings_about_nodes_whose_jobs_go_on_or_that_are_replaced_are_not_told() -> None:
    assert _warned(EFA, restarts=0) == []
    assert _warned("BlockDeviceIOError: I/O error", restarts=1) == []
