"""Three teams with twelve jobs of one to four nodes on one pool of four nodes, with Kueue as the pod of
its chart: never more nodes than the pool has, no job on a part of its nodes, and all Complete. Half a
gang of a PyTorchJob gives its node back."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from components.cluster.program import SETTINGS
from rehearsal import processes
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing_teams, with_l4
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.jobs.pod_template import GPU, POOL, TOLERATIONS
from trainyard.objects.jobs.trainer import changed_pods
from trainyard.objects.programs.gangs import AGAIN, TRIES
from trainyard.objects.programs.gangs import APP as GANGS
from trainyard.objects.queues.queues import job_labels
from trainyard.operations.reach.snapshot import condition_of

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

ROLE = "arn:aws:iam::123456789012:role"
NODES, GPUS = 4, 4
TEAMS = {"vision": 2, "nlp": 1, "audio": 0}
"""Team → guaranteed nodes."""
JOBS = [
    ("audio", 4, "normal"),
    ("nlp", 3, "low"),
    ("vision", 2, "normal"),
    ("audio", 1, "high"),
    ("nlp", 1, "high"),
    ("vision", 4, "low"),
    ("audio", 2, "low"),
    ("nlp", 2, "normal"),
    ("vision", 1, "high"),
    ("audio", 3, "normal"),
    ("nlp", 4, "low"),
    ("vision", 3, "normal"),
]
"""(team, nodes, urgency), in the order in which they come."""


STACK = with_l4(
    max_nodes=NODES,
    queues={},
    training_operator={"version": "1.8.1"},
    teams={
        team: {
            "deployer": f"{ROLE}/{team}",
            **({"guaranteed_nodes": {"l4": nodes}} if nodes else {}),
        }
        for team, nodes in TEAMS.items()
    },
)


def job(release: str, number: int, team: str, nodes: int, urgency: Any) -> Object:
    """`release`: of the Trainer."""
    gpus = {GPU: str(GPUS)}
    field = TRAINER_RELEASES[release].pod_changes
    pod = {"nodeSelector": {POOL: "l4"}, "tolerations": TOLERATIONS}
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {
            "name": f"job-{number}",
            "namespace": f"team-{team}",
            "labels": job_labels(team, urgency),
        },
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "image": "trainer:1",
                "command": ["/bin/bash", "-c", "sleep 2"],
                "numNodes": nodes,
                "resourcesPerNode": {"limits": gpus, "requests": gpus},
            },
            field: changed_pods(field, {"node": pod}),
        },
    }


@pytest.fixture(scope="module", params=TRAINER_RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    """Of the Trainer, and with it of Kueue."""
    return request.param


@pytest.fixture(scope="module")
def stack(release: str) -> Object:
    trainer = {"version": release, "runtimes": ["torch-distributed"]}
    environment = STACK["trainyard:environment"] | {"trainer": trainer}
    return STACK | {"trainyard:environment": environment}


@pytest.fixture(scope="module")
def harness(stack: Object) -> Iterator[Harness]:
    with rehearsing_teams("queues", stack, later=("queues", "teams")) as made:
        yield made


def holding(workloads: list[Object]) -> int:
    """Nodes of the jobs that have been started and have not ended."""
    return sum(
        each["count"]
        for workload in workloads
        if _is(workload, "QuotaReserved") and not _is(workload, "Finished")
        for each in workload["status"]["admission"]["podSetAssignments"]
    )


def _is(workload: Object, name: str) -> bool:
    return condition_of(workload, name).get("status") == "True"


def parts(workloads: list[Object]) -> list[str]:
    """Jobs that have been started with fewer nodes than they asked for."""
    return [
        workload["metadata"]["name"]
        for workload in workloads
        if (given := workload.get("status", {}).get("admission"))
        and sum(each["count"] for each in given["podSetAssignments"])
        != sum(each["count"] for each in workload["spec"]["podSets"])
    ]


def test_twelve_jobs_share_four_nodes_and_all_end(harness: Harness, release: str) -> None:
    for number, (team, nodes, urgency) in enumerate(JOBS):
        harness.apply(job(release, number, team, nodes, urgency))
    most: list[int] = []

    def all_ended() -> bool:
        workloads = harness.get("workloads --all-namespaces")["items"]
        assert parts(workloads) == []
        most.append(holding(workloads))
        claims = harness.get("nodeclaims")["items"]
        assert max(most) <= NODES and len(claims) <= NODES
        return len(workloads) == len(JOBS) and all(_is(each, "Finished") for each in workloads)

    assert processes.wait(all_ended, 1200, 1), harness.log.read_text()
    assert max(most) == NODES
    ended = harness.get("trainjobs --all-namespaces")["items"]
    # A job that was stopped in the moment of its end stays Suspended, too.
    assert [each["metadata"]["name"] for each in ended if not _is(each, "Complete")] == []


def test_an_up_after_all_that_changes_nothing(harness: Harness) -> None:
    """Kueue has written to quotas and jobs."""
    harness.shell("pulumi up --stack queues --refresh --yes --skip-preview --expect-no-changes")


def half_a_gang() -> Object:
    """A Master, and a Worker that fits no node."""
    gpus = {GPU: str(GPUS)}
    container = {
        "name": "pytorch",
        "image": "trainer:1",
        "command": ["/bin/bash", "-c", "sleep 3600"],
        "resources": {"limits": gpus, "requests": gpus},
    }
    pod = {"nodeSelector": {POOL: "l4"}, "tolerations": TOLERATIONS, "containers": [container]}
    nowhere = pod | {"nodeSelector": {POOL: "l4", "kubernetes.io/os": "plan9"}}
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": {
            "name": "half",
            "namespace": "team-vision",
            "labels": job_labels("vision", "normal"),
        },
        "spec": {
            "runPolicy": {"cleanPodPolicy": "Running"},
            "pytorchReplicaSpecs": {
                role: {"replicas": 1, "restartPolicy": "Never", "template": {"spec": spec}}
                for role, spec in (("Master", pod), ("Worker", nowhere))
            },
        },
    }


def test_half_a_pytorchjob_gives_its_node_back_and_is_tried_again(harness: Harness) -> None:
    """With seconds in the place of the program's minutes."""
    files = harness.get(f"configmap {GANGS} --namespace {GANGS}")
    quick = {"look_seconds": 2, "ready_seconds": 10, "backoff_seconds": 10}
    files["data"][SETTINGS] = json.dumps(json.loads(files["data"][SETTINGS]) | quick)
    harness.shell(f"kubectl replace --filename - <<'EOF'\n{json.dumps(files)}\nEOF")
    harness.shell(f"kubectl --namespace {GANGS} delete pod --all")
    harness.apply(half_a_gang())

    def workload() -> Object:
        found = harness.get("workloads --namespace team-vision")["items"]
        return next(each for each in found if "pytorchjob-half" in each["metadata"]["name"])

    def pods() -> list[str]:
        selector = f"{JOB_KINDS['PyTorchJob'].pod_label}=half"
        found = harness.get(f"pods --namespace team-vision --selector {selector}")["items"]
        return sorted(each["status"]["phase"] for each in found)

    def log() -> str:
        return harness.shell(f"kubectl --namespace {GANGS} logs deployment/{GANGS}", check=False)

    assert processes.wait(lambda: pods() == ["Pending", "Running"], 180, 1), log()
    assert processes.wait(lambda: not workload()["spec"]["active"], 60, 1), log()
    assert processes.wait(lambda: pods() == [] and not _is(workload(), "QuotaReserved"), 60, 1)
    assert processes.wait(lambda: pods() == ["Pending", "Running"], 180, 1), log()
    notes = workload()["metadata"]["annotations"]
    assert TRIES in notes and AGAIN not in notes
    harness.shell("kubectl --namespace team-vision delete pytorchjob half")


def test_a_team_goes_with_its_queue_and_down_leaves_nothing(
    harness: Harness, stack: Object
) -> None:
    less = copy.deepcopy(stack)
    del less["trainyard:environment"]["teams"]["audio"]
    (harness.checkout / "Pulumi.queues.yaml").write_text(yaml.safe_dump({"config": less}))
    assert harness.do("up", "--stack", "queues") == 0, harness.log.read_text()
    queues = harness.get("clusterqueues")["items"]
    assert sorted(each["metadata"]["name"] for each in queues) == ["nlp", "vision"]
    for team in TEAMS:  # their roles are no part of the stack
        harness.shell(f"aws iam delete-role --role-name {team}")
    assert harness.do("down") == 0, harness.log.read_text()
