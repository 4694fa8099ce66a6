"""What is read from a cluster, and with how many calls."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from trainyard.objects.teams.team_access import IN_QUEUES, ROLES
from trainyard.operations.reach import snapshot

RANKS = 512
LABELS = {
    "TrainJob": "jobset.sigs.k8s.io/jobset-name",
    "PyTorchJob": "training.kubeflow.org/job-name",
}


def _pod(name: str, phase: str = "Running", **labels: str) -> dict[str, Any]:
    return {
        "kind": "Pod",
        "metadata": {"namespace": "t", "name": name, "labels": labels},
        "status": {"phase": phase},
    }


class Kubectl:
    """Two gangs, each of `ranks` pods, and a controller; every line of their logs names its pod."""

    def __init__(self, ranks: int = RANKS, *, queued: bool = False) -> None:
        """`queued`: whoever asks may list what waits in queues."""
        self.calls: list[tuple[str, ...]] = []
        self.queued = queued
        self.gangs = {
            f"{label}={kind.lower()}": [
                _pod(f"{kind.lower()}-{n}", **{label: kind.lower()}) for n in range(ranks)
            ]
            for kind, label in LABELS.items()
        }

    def __call__(self, *words: str) -> str:
        self.calls.append(words)
        if words[0] == "api-resources":
            return "\n".join(snapshot.KINDS)
        if words[:2] == ("auth", "can-i"):
            assert words[2:] == ("list", snapshot.QUEUED, "--namespace=team-a")
            if not self.queued:
                raise RuntimeError("kubectl auth failed")
            return "yes\n"
        pods = [pod for gang in self.gangs.values() for pod in gang]
        if words[0] == "get":
            return json.dumps(
                {
                    "items": [
                        *pods,
                        _pod("karpenter", **{"control-plane": "x"}),
                        _pod("web", app="x"),
                    ]
                }
            )
        if words[1] == "karpenter":
            return "launches"
        [gang] = [
            gang for selector, gang in self.gangs.items() if f"--selector={selector}" in words
        ]
        stamp = "2026-11-21T12:00:0{}Z " if "--timestamps" in words else ""
        lines = [
            f"[pod/{pod['metadata']['name']}/{side}] {stamp.format(n)}{side} of"
            f" {pod['metadata']['name']}\n"
            for pod in gang
            for n, side in enumerate(("node", "sidecar"))
        ]
        return "".join(
            [
                *lines,
                "[pod/trainjob-0/old] unable to retrieve container logs\n",
                "error: has not started\n",
            ]
        )


def _calls(kinds: tuple[str, ...], ranks: int) -> int:
    kubectl = Kubectl(ranks)
    kubectl.gangs = {
        selector: pods
        for selector, pods in kubectl.gangs.items()
        if selector.partition("=")[0] in [LABELS[kind] for kind in kinds]
    }
    taken = snapshot.read(kubectl)
    assert len(taken.logs) == ranks * len(kinds) + 1, "every rank and the controller were read"
    return len(kubectl.calls)


def test_the_number_of_calls_grows_with_the_jobs_and_not_with_their_ranks():
    one, two = ("TrainJob",), ("TrainJob", "PyTorchJob")
    assert _calls(one, ranks=2) == _calls(one, ranks=512) == 2 + 1 + 1, "with one controller"
    assert _calls(two, ranks=2) == _calls(two, ranks=512) == _calls(one, ranks=2) + 1


def test_of_a_team_only_its_namespace_is_read_and_what_it_may_read() -> None:
    kubectl = Kubectl(ranks=2)
    taken = snapshot.read(kubectl, namespace="team-a")
    [get] = [call for call in kubectl.calls if call[0] == "get"]
    assert get[1].split(",") == [*snapshot.OF_TEAM] and get[2] == "--namespace=team-a"
    assert {"nodes", "nodepools", "deployments"} <= taken.unseen
    allowed = {
        resource
        for grant in ROLES["viewer"]
        if "list" in grant.verbs
        for resource in grant.resources
    }
    assert {kind.partition(".")[0] for kind in snapshot.OF_TEAM} <= allowed


def test_a_team_in_a_queue_reads_why_its_jobs_wait() -> None:
    kubectl = Kubectl(ranks=2, queued=True)
    taken = snapshot.read(kubectl, namespace="team-a", logs=False)
    [get] = [call for call in kubectl.calls if call[0] == "get"]
    assert get[1].split(",") == [*snapshot.OF_TEAM, snapshot.QUEUED]
    assert "workloads" not in taken.unseen and "list" in IN_QUEUES.verbs
    assert f"{IN_QUEUES.resources[-1]}.{IN_QUEUES.group}" == snapshot.QUEUED


def test_logs_are_read_for_those_who_want_them_only():
    kubectl = Kubectl(ranks=2)
    taken = snapshot.read(kubectl, logs=False)
    assert len(kubectl.calls) == 2 and taken.logs == {} and len(taken.of("pods")) == 6


def test_every_rank_has_its_own_lines_and_the_time_of_its_last():
    kubectl = Kubectl()
    last = kubectl.gangs[f"{LABELS['PyTorchJob']}=pytorchjob"][-1]
    last["status"]["phase"] = "Succeeded"
    taken = snapshot.read(kubectl)
    assert len(taken.logs) == RANKS * len(LABELS) + 1 and taken.logs["t/karpenter"] == "launches"
    assert taken.logs["t/trainjob-511"] == "node of trainjob-511\nsidecar of trainjob-511"
    assert taken.logs["t/trainjob-0"].endswith("\nunable to retrieve container logs"), "no time"
    assert taken.last_lines_at["t/trainjob-511"] == datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC)
    assert (
        "t/pytorchjob-510" in taken.last_lines_at and "t/pytorchjob-511" not in taken.last_lines_at
    ), "it has ended"
