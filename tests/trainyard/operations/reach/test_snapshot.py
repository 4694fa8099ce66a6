"""What is read from a cluster, and with how many calls."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.support.recording import CHECKOUT
from trainyard.catalog.job_kinds import resource_of
from trainyard.catalog.workloads import WORKLOADS
from trainyard.objects.teams.team_access import IN_QUEUES, ROLES
from trainyard.operations.reach import snapshot, target
from trainyard.operations.reach.pods import gangs
from trainyard.operations.reach.snapshot import Snapshot

RANKS = 512
LABELS = {
    "TrainJob": "jobset.sigs.k8s.io/jobset-name",
    "PyTorchJob": "training.kubeflow.org/job-name",
}
LONG_AGO = "2026-11-21T12:00:00Z"
Object = dict[str, Any]


def _pod(name: str, **labels: str) -> Object:
    state = {"running": {"startedAt": LONG_AGO}}
    return {
        "metadata": {"namespace": "t", "name": name, "labels": labels},
        "status": {
            "phase": "Running",
            "containerStatuses": [
                {"name": name, "state": state, "restartCount": 0} for name in ("node", "sidecar")
            ],
        },
    }


class Cluster:
    """Two gangs, each of `ranks` pods, and a controller. Each line of a log names its pod, and is
    `old`."""

    def __init__(self, ranks: int = RANKS, *, old: timedelta = timedelta(0)) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.may_list_queues = False
        self.old = old
        self.unserved: set[str] = set()
        """Groups, and plurals of kinds."""
        self.operator: tuple[str, ...] = ("pytorchjobs",)
        """Kinds of the training-operator, as plurals."""
        self.gangs = {
            kind: [
                _pod(f"{kind.lower()}-{n}", **{label: kind.lower(), _rank(kind): str(n)})
                for n in range(ranks)
            ]
            for kind, label in LABELS.items()
        }

    def __call__(self, *words: str) -> str:
        self.calls.append(words)
        if words[:2] == ("auth", "can-i"):
            assert words[2:] == ("list", WORKLOADS, "--namespace=team-a")
            if not self.may_list_queues:
                raise RuntimeError("kubectl auth failed")
            return "yes\n"
        assert words[:2] == ("get", "--raw"), words
        at = urlsplit(words[2])
        if at.path == "/apis":
            return json.dumps({"groups": self._groups()})
        if at.path == "/apis/kubeflow.org/v1":
            return json.dumps({"resources": [{"name": name} for name in self.operator]})
        query = {key: value for key, [value] in parse_qs(at.query).items()}
        return self._log(at.path, query) if at.path.endswith("/log") else self._page(at.path, query)

    def _groups(self) -> list[Object]:
        names = {kind.partition(".")[2] for kind in snapshot.KINDS} - {"", *self.unserved}
        return [
            {"name": name, "preferredVersion": {"groupVersion": f"{name}/v7"}} for name in names
        ]

    def _page(self, path: str, query: Object) -> str:
        plural = path.rpartition("/")[2]
        if plural in self.unserved:
            raise RuntimeError(
                "Error from server (NotFound): the server could not find the requested resource"
            )
        assert path.startswith("/apis/") == any(
            kind.startswith(f"{plural}.") for kind in (*snapshot.KINDS, resource_of("MPIJob"))
        )
        pods = [pod for gang in self.gangs.values() for pod in gang]
        others = [_pod("karpenter", **{"control-plane": "x"}), _pod("web", app="x")]
        items = [*pods, *others] if plural == "pods" else []
        first = int(query.get("continue", "0"))
        last = first + int(query["limit"])
        return json.dumps(
            {
                "kind": "PodList" if plural == "pods" else "ThingList",
                "apiVersion": "v1",
                "metadata": {"continue": str(last)} if last < len(items) else {},
                "items": items[first:last],
            }
        )

    def _log(self, path: str, query: Object) -> str:
        pod = path.split("/")[-2]
        at = (datetime.now(UTC) - self.old).isoformat().replace("+00:00", "Z")
        return f"{at} {query['container']} of {pod}\n"

    def asked(self) -> list[str]:
        """Pods whose logs were asked for."""
        logs = [words[2] for words in self.calls if "/log?" in words[-1]]
        return sorted({path.split("/")[-2] for path in (urlsplit(each).path for each in logs)})


def _rank(kind: str) -> str:
    return {
        "TrainJob": "batch.kubernetes.io/job-completion-index",
        "PyTorchJob": "training.kubeflow.org/replica-index",
    }[kind]


HOUR = timedelta(hours=1)


def test_of_gangs_that_do_well_the_first_rank_is_asked_however_many_ranks_there_are() -> None:
    few, many = Cluster(ranks=2), Cluster(ranks=400)
    for cluster in (few, many):
        snapshot.read(cluster)
        assert cluster.asked() == ["karpenter", "pytorchjob-0", "trainjob-0"]
    assert len(many.calls) == len(few.calls) + 1, "one page more of pods"


@pytest.mark.parametrize(
    "trouble",
    [
        {"phase": "Failed"},
        {"phase": "Pending", "containerStatuses": []},
        {"containerStatuses": [{"name": "node", "state": {"waiting": {}}, "restartCount": 0}]},
        {"containerStatuses": [{"restartCount": 1}]},
        {"containerStatuses": [{"state": {"running": {"startedAt": "now"}}}]},
    ],
)
def test_all_ranks_of_a_gang_are_asked_where_one_has_not_run_alone_and_for_long(
    trouble: Object,
) -> None:
    cluster = Cluster(ranks=3)
    status = cluster.gangs["TrainJob"][2]["status"]
    [usual, *_] = status["containerStatuses"]
    for each in trouble.get("containerStatuses", []):
        if each.get("state", {}).get("running"):
            each["state"]["running"]["startedAt"] = datetime.now(UTC).isoformat()
    changed = [usual | each for each in trouble.get("containerStatuses", [])]
    status.update(trouble | ({"containerStatuses": changed} if changed else {}))
    snapshot.read(cluster)
    started = ["trainjob-0", "trainjob-1"]
    can_have_a_log = changed and "waiting" not in changed[0]["state"]
    can_have_a_log = can_have_a_log or trouble == {"phase": "Failed"}
    expected = [*started, "trainjob-2"] if can_have_a_log else started
    assert cluster.asked() == ["karpenter", "pytorchjob-0", *expected]


def test_all_ranks_of_a_gang_are_asked_whose_first_rank_says_nothing() -> None:
    cluster = Cluster(ranks=3, old=HOUR)
    snapshot.read(cluster)
    assert len(cluster.asked()) == 1 + 2 * 3
    cluster = Cluster(ranks=3, old=timedelta(seconds=30))
    snapshot.read(cluster, recent=timedelta(seconds=10))
    assert len(cluster.asked()) == 1 + 2 * 3, "whoever asks for shorter silences gets them"


def test_of_a_team_only_its_namespace_is_read_and_what_it_may_read() -> None:
    cluster = Cluster(ranks=2)
    taken = snapshot.read(cluster, namespace="team-a")
    lists = [urlsplit(call[2]).path for call in cluster.calls if "limit=" in call[2]]
    assert {path.rpartition("/")[2] for path in lists} == {
        kind.partition(".")[0] for kind in snapshot.OF_TEAM
    }
    assert all("/namespaces/team-a/" in path for path in lists)
    assert {"nodes", "nodepools", "deployments"} <= taken.unseen
    allowed = {
        resource
        for grant in ROLES["viewer"]
        if "list" in grant.verbs
        for resource in grant.resources
    }
    assert {kind.partition(".")[0] for kind in snapshot.OF_TEAM} <= allowed


def test_a_team_in_a_queue_reads_why_its_jobs_wait() -> None:
    cluster = Cluster(ranks=2)
    cluster.may_list_queues = True
    taken = snapshot.read(cluster, namespace="team-a", logs=False)
    assert any("/namespaces/team-a/workloads?" in call[-1] for call in cluster.calls)
    assert "workloads" not in taken.unseen and "list" in IN_QUEUES.verbs
    assert f"{IN_QUEUES.resources[-1]}.{IN_QUEUES.group}" == WORKLOADS


def test_logs_are_read_for_those_who_want_them_only() -> None:
    cluster = Cluster(ranks=2)
    taken = snapshot.read(cluster, logs=False)
    assert cluster.asked() == [] and taken.logs == {} and len(taken.of("pods")) == 6
    assert len(cluster.calls) == 2 + len(snapshot.KINDS)


def test_jobs_of_the_other_kinds_of_the_operator_are_read_where_it_runs_them() -> None:
    cluster = Cluster(ranks=1)
    cluster.operator = ("pytorchjobs", "mpijobs")
    taken = snapshot.read(cluster, logs=False)
    asked = [words[2].partition("?")[0] for words in cluster.calls if "jobs?" in words[-1]]
    assert {each.rpartition("/")[2] for each in asked} == {"trainjobs", "pytorchjobs", "mpijobs"}
    assert "mpijobs" in taken.objects and "tfjobs" not in taken.objects


def test_pods_are_those_of_the_job_that_owns_them() -> None:
    pod = _pod("rings-worker-1", **{"training.kubeflow.org/job-name": "rings"})
    pod["metadata"]["ownerReferences"] = [{"kind": "MPIJob", "name": "rings"}]
    assert [*gangs([pod])] == [("MPIJob", "t", "rings")]


def test_objects_are_read_page_by_page_and_are_what_kubectl_shows() -> None:
    cluster = Cluster(ranks=600)
    cluster.gangs["TrainJob"][0]["metadata"]["managedFields"] = ["much"]
    taken = snapshot.read(cluster, logs=False)
    assert len(taken.of("pods")) == 1202
    first = taken.of("pods")[0]
    assert (first["kind"], first["apiVersion"]) == ("Pod", "v1")
    assert "managedFields" not in first["metadata"]


def test_kinds_whose_charts_are_not_installed_are_unserved() -> None:
    cluster = Cluster(ranks=1)
    cluster.unserved = {"karpenter.sh", "pytorchjobs"}
    taken = snapshot.read(cluster, logs=False)
    assert taken.unserved == {"nodepools", "nodeclaims", "pytorchjobs"}


def test_a_refusal_is_told_with_the_words_of_the_api_server() -> None:
    cluster = Cluster(ranks=1)

    def refusing(*words: str) -> str:
        if "/nodes?" in words[-1]:
            raise RuntimeError("Error from server (Forbidden): nodes is forbidden: User")
        return cluster(*words)

    with pytest.raises(RuntimeError, match="nodes is forbidden"):
        snapshot.read(refusing)


def test_every_rank_has_its_own_lines_and_the_time_of_its_last() -> None:
    cluster = Cluster(ranks=5, old=HOUR)
    last = cluster.gangs["PyTorchJob"][-1]
    last["status"]["phase"] = "Succeeded"
    taken = snapshot.read(cluster)
    assert len(taken.logs) == 5 * len(LABELS) + 1
    assert taken.logs["t/karpenter"] == "node of karpenter\nsidecar of karpenter"
    assert taken.logs["t/trainjob-4"] == "node of trainjob-4\nsidecar of trainjob-4"
    age = datetime.now(UTC) - taken.last_lines_at["t/trainjob-4"]
    assert HOUR <= age < HOUR + timedelta(minutes=5)
    assert "t/pytorchjob-3" in taken.last_lines_at
    assert "t/pytorchjob-4" not in taken.last_lines_at, "it has ended"
    assert "t/karpenter" not in taken.last_lines_at, "it is no rank"


def test_a_rank_whose_kubelet_does_not_answer_is_told_from_one_without_a_line() -> None:
    cluster = Cluster(ranks=2, old=HOUR)

    def lost(*words: str) -> str:
        if "/pods/trainjob-0/log" in words[-1]:
            raise RuntimeError(
                'Get "https://10.0.1.2:10250/containerLogs": dial tcp: no route to host'
            )
        if "/pods/trainjob-1/log" in words[-1]:
            raise RuntimeError("Error from server (NotFound): pods not found")
        return cluster(*words)

    assert snapshot.read(lost).unread == {"t/trainjob-0"}


def test_a_team_that_sees_its_namespace_only_is_read_there(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []
    taken = Snapshot(objects={})

    def read(kubectl: Any, *, namespace: str | None = None, **_: object) -> Snapshot:
        asked.append(namespace)
        if namespace is None:
            raise RuntimeError("pods is forbidden")
        return taken

    monkeypatch.setattr(snapshot, "read", read)
    monkeypatch.setattr(target, "outputs", lambda stack: {"namespace": "team-vision"})
    assert snapshot.snapshot_of("team-vision", str) is taken
    assert asked == [None, "team-vision"]
    monkeypatch.setattr(target, "outputs", lambda stack: {})
    with pytest.raises(RuntimeError, match="forbidden"):
        snapshot.snapshot_of("dev", str)


def test_a_team_whose_first_update_was_killed_is_read_where_its_file_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was told that the cluster does not answer."""
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setattr(target, "outputs", lambda stack: {})
    assert target.namespace_of("team-vision") == "team-vision"
    assert target.namespace_of("dev") is None
    assert target.namespace_of("of-another-checkout") is None


def test_a_job_has_the_restarts_of_its_own_events_and_not_those_of_another_team() -> None:
    jobs = [
        {
            "kind": "PyTorchJob",
            "metadata": {"namespace": team, "name": "train", "uid": f"of-{team}"},
            "spec": {"pytorchReplicaSpecs": {}},
        }
        for team in ("team-a", "team-b")
    ]
    event = {
        "reason": "PyTorchJobRestarting",
        "count": 5,
        "metadata": {"namespace": "team-a"},
        "involvedObject": {"kind": "PyTorchJob", "namespace": "team-a", "name": "train"},
    }
    earlier = {**event, "involvedObject": {**event["involvedObject"], "uid": "of-an-earlier-one"}}
    found = Snapshot(objects={"pytorchjobs": jobs, "events": [event, earlier]}).jobs()
    assert [(job.namespace, job.restarts) for job in found] == [("team-a", 5), ("team-b", 0)]
