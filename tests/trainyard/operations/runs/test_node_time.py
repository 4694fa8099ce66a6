"""What a run took is exact where its pods are there, and said to be a bound where they are not."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

import pytest

from tests.trainyard.operations.finished import at, cluster, node, node_pool, pod, train_job
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.runs.node_time import (
    ABOUT,
    AT_LEAST,
    AT_MOST,
    EXACT,
    Run,
    finished_runs,
    going_runs,
    together,
)


def only(snapshot: Snapshot) -> Run:
    [run] = finished_runs(snapshot)
    return run


def gpu_hours(run: Run) -> Decimal:
    return sum((time.gpu_hours for time in run.times), Decimal())


def test_a_pod_counts_from_its_node_to_the_end_of_its_last_container() -> None:
    run = only(cluster())
    assert [time.hours for time in run.times] == [1, 1] and gpu_hours(run) == 16
    assert (run.known, run.identity) == (EXACT, "t5-1")
    [first, _] = run.times
    assert (first.instance_type, first.service, first.region) == (
        "g6e.48xlarge",
        "ec2",
        "us-east-1",
    )


@pytest.mark.parametrize("beside", ["init container", "sidecar"])
def test_a_pod_of_which_a_container_runs_has_not_ended(beside: str) -> None:
    """A Worker of a PyTorchJob has the init container init-pytorch, which ends in seconds."""
    pods = [pod(0), pod(1)]
    for each in pods:
        over = {"name": "other", "state": {"terminated": {"finishedAt": at(6)}}}
        runs = {"name": "node", "state": {"running": {"startedAt": at(6)}}}
        each["status"] |= {"phase": "Running", "containerStatuses": [runs]}
        if beside == "sidecar":
            each["status"]["containerStatuses"].append(over)
        else:
            each["status"]["initContainerStatuses"] = [over]
    [run] = going_runs(cluster(trainjobs=[train_job(ended=None)], pods=pods))
    assert [time.hours for time in run.times] == [_hours_since(5, run)] * 2


def test_a_pod_whose_container_kubelet_has_lost_ended_when_it_was_ready_no_more() -> None:
    lost = pod(0, ended=65)
    lost["status"]["phase"] = "Failed"
    lost["status"]["conditions"].append(
        {"type": "Ready", "status": "False", "lastTransitionTime": at(35)}
    )
    [status] = lost["status"]["containerStatuses"]
    status["state"]["terminated"] |= {"finishedAt": None, "reason": "ContainerStatusUnknown"}
    assert [time.hours for time in only(cluster(pods=[lost, pod(1)])).times] == [Decimal("0.5"), 1]


def _hours_since(minute: float, run: Run) -> Decimal:
    seconds = (run.ended - datetime.fromisoformat(at(minute))).total_seconds()
    return Decimal(str(seconds)) / 3600


def test_a_job_that_has_not_ended_is_no_finished_run() -> None:
    assert finished_runs(cluster(trainjobs=[train_job(ended=None)])) == []


def test_runs_come_in_the_order_in_which_they_ended() -> None:
    jobs = [train_job("late", ended=90), train_job("early", ended=20)]
    runs = finished_runs(cluster(trainjobs=jobs, pods=[]))
    assert [run.job.name for run in runs] == ["early", "late"]


def test_a_node_that_pods_share_is_divided_by_its_gpus() -> None:
    quarter, whole = (
        only(cluster(pods=[pod(0, gpus=gpus), pod(1, gpus=gpus)])).times[0].node_hours
        for gpus in (2, 8)
    )
    assert (quarter, whole) == (Decimal("0.25"), 1)


def test_a_node_without_gpus_counts_wholly() -> None:
    pods = [pod(0, gpus=0), pod(1, gpus=0)]
    nodes = [node(number, "c7i.48xlarge") for number in range(2)]
    run = only(cluster(pods=pods, nodes=nodes))
    assert [time.node_hours for time in run.times] == [1, 1] and gpu_hours(run) == 0


def test_the_launcher_of_an_mpi_job_takes_no_node_of_a_pool() -> None:
    launcher = pod(2, gpus=0, node="system-1", pool="")
    assert only(cluster(pods=[pod(0), pod(1), launcher])).known == EXACT
    assert len(only(cluster(pods=[pod(0), pod(1), launcher])).times) == 2


def test_pods_that_are_gone_make_it_at_least() -> None:
    assert only(cluster(pods=[pod(0)])).known == AT_LEAST


def test_a_gang_that_started_again_is_at_least() -> None:
    """JobSet has deleted the pods of the first attempt."""
    restarted = {
        "kind": "JobSet",
        "metadata": {"name": "t5", "namespace": "training"},
        "status": {"restarts": 1},
    }
    assert only(cluster(jobsets=[restarted])).known == AT_LEAST


def test_a_pod_that_came_long_after_the_job_replaces_one_that_is_gone() -> None:
    """The training-operator deletes a failed pod and counts it nowhere but in an event of an
    hour."""
    assert only(cluster(pods=[pod(0), pod(1, created=30, scheduled=31)])).known == AT_LEAST


def test_without_any_pod_the_life_of_the_job_is_the_most_that_it_took() -> None:
    """Kubernetes deletes the pods of nodes that are gone; the pool says which nodes they were."""
    run = only(cluster(pods=[], nodes=[]))
    assert run.known == AT_MOST and len(run.times) == 2
    assert gpu_hours(run) == pytest.approx(Decimal(16 * 70) / 60)
    assert {(time.instance_type, time.service, time.region) for time in run.times} == {
        ("g6e.48xlarge", "ec2", "us-east-1")
    }


def test_without_pods_a_pool_of_several_types_does_not_say_which_nodes_they_were() -> None:
    pools = [node_pool(), node_pool("g6e-2", "g6.48xlarge")]
    run = only(cluster(pods=[], nodes=[], nodepools=pools))
    assert {(time.instance_type, time.service) for time in run.times} == {("", "ec2")}


def test_a_pod_whose_node_is_gone_has_what_its_pool_launches() -> None:
    run = only(cluster(nodes=[]))
    assert run.known == EXACT and {time.instance_type for time in run.times} == {"g6e.48xlarge"}


@pytest.mark.parametrize(
    ("labels", "service"),
    [
        ({"karpenter.sh/capacity-type": "spot"}, "ec2-spot"),
        ({"karpenter.sh/capacity-type": "reserved"}, ""),
        (
            {
                "karpenter.sh/capacity-type": "reserved",
                "karpenter.k8s.aws/capacity-reservation-type": "capacity-block",
            },
            "ec2-block",
        ),
        (
            {
                "karpenter.sh/capacity-type": "reserved",
                "karpenter.k8s.aws/capacity-reservation-type": "default",
            },
            "ec2",
        ),
    ],
)
def test_the_kind_of_capacity_decides_whose_price_counts(
    labels: dict[str, str], service: str
) -> None:
    run = only(cluster(nodes=[node(0, **labels), node(1, **labels)]))
    assert {time.service for time in run.times} == {service}


def test_a_pytorch_job_is_a_run_too() -> None:
    container = {"name": "pytorch", "resources": {"limits": {"nvidia.com/gpu": 8}}}
    spec = {"nodeSelector": {"trainyard.io/pool": "g6e"}, "containers": [container]}
    replica = {"replicas": 1, "template": {"spec": spec}}
    job = {
        "kind": "PyTorchJob",
        "metadata": {"name": "old", "namespace": "training", "creationTimestamp": at(0)},
        "spec": {"pytorchReplicaSpecs": {"Master": replica, "Worker": replica}},
        "status": {
            "conditions": [
                {"type": "Succeeded", "status": "True", "lastTransitionTime": at(30)},
            ]
        },
    }
    run = only(cluster(trainjobs=[], pods=[], pytorchjobs=[job]))
    assert (run.known, run.identity, gpu_hours(run)) == (AT_MOST, "", 8)


def test_a_sum_is_known_as_well_as_its_worst_part() -> None:
    assert together([EXACT, EXACT]) == EXACT
    assert together([EXACT, AT_LEAST]) == AT_LEAST
    assert together([AT_MOST, AT_LEAST]) == ABOUT
