"""What the training-operator does with the pods of an elastic PyTorchJob whose nodes leave."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rehearsal.kube import Object
from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.operator_server import Operator, operator_server
from tests.support.patience import until
from tests.support.stackfile import at, environment_plan, without
from trainyard.catalog.job_kinds import JOB_KINDS, outcome

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_server(tmp_path_factory.mktemp("operator")) as made:
        yield made


def started(operator: Operator, name: str, *, restarts: int) -> Object:
    """A job of three nodes whose pods run."""
    plan = environment_plan(
        *pytorch_job(restarts=restarts),
        without(SCRIPT),
        at("pools.g6e.max_nodes", 3),
        at(f"{JOB}.nodes", 3),
        at(f"{JOB}.torchrun", {"script": "/app/train.py"}),
        at(f"{JOB}.elastic", {"min_nodes": 2, "max_nodes": 3}),
    ).jobs["t5-large"]
    job: Object = {
        "apiVersion": JOB_KINDS[plan.kind].api_version,
        "kind": plan.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": plan.spec,
    }
    operator.api.request("POST", operator.api.path(job, collection=True), job)
    assert until(lambda: len(operator.pods(job)) == 3)
    for pod in operator.pods(job):
        operator.say(pod, "Running")
    assert until(lambda: "Running" in conditions(operator, job))
    return job


def conditions(operator: Operator, job: Object) -> list[str]:
    found = (operator.api.get(job) or {}).get("status", {}).get("conditions") or []
    return [each["type"] for each in found if each["status"] == "True"]


def of_rank(operator: Operator, job: Object, index: int) -> Object | None:
    name = f"{job['metadata']['name']}-worker-{index}"
    return next((pod for pod in operator.pods(job) if pod["metadata"]["name"] == name), None)


def test_the_pod_of_a_node_that_is_gone_is_made_again_however_often(operator: Operator) -> None:
    """backoffLimit of one restart is 7: deleted pods do not count."""
    job = started(operator, "gone", restarts=1)
    assert (operator.api.get(job) or {})["spec"]["runPolicy"]["backoffLimit"] == 7
    for _ in range(8):
        was = of_rank(operator, job, 2)
        assert was
        operator.api.request("DELETE", f"{PODS}/gone-worker-2", {"gracePeriodSeconds": 0})
        made = until(
            lambda was=was: (
                (now := of_rank(operator, job, 2))
                and now["metadata"]["uid"] != was["metadata"]["uid"]
                and now
            )
        )
        assert made
        operator.say(made, "Running")
    assert until(lambda: "Running" in conditions(operator, job))
    assert outcome(operator.api.get(job) or {}) is None


@pytest.mark.parametrize("restarts", [0, 1])
def test_a_pod_that_a_drain_has_ended_fails_the_job_only_without_restarts(
    operator: Operator, restarts: int
) -> None:
    """torchrun ends with an error when its pod is asked to stop, and kubelet calls the pod Failed."""
    job = started(operator, f"drained-{restarts}", restarts=restarts)
    was = of_rank(operator, job, 2)
    assert was
    operator.say(was, "Failed")
    if restarts:
        assert until(
            lambda: (
                (now := of_rank(operator, job, 2))
                and now["metadata"]["uid"] != was["metadata"]["uid"]
            )
        )
    else:
        assert until(lambda: "Failed" in conditions(operator, job))
    assert ("Failed" in conditions(operator, job)) == (restarts == 0)


def test_one_worker_that_ends_well_ends_the_whole_job(operator: Operator) -> None:
    """So a script must not end with 0 when it is asked to stop."""
    job = started(operator, "early", restarts=1)
    first = of_rank(operator, job, 2)
    assert first
    operator.say(first, "Succeeded")
    assert until(lambda: "Succeeded" in conditions(operator, job))


def test_a_scaled_job_has_other_pods_and_goes_on(operator: Operator) -> None:
    job = started(operator, "scaled", restarts=1)

    def scale(pods: int) -> None:
        operator.api.request(
            "PATCH",
            f"{operator.api.path(job)}/scale",
            {"spec": {"replicas": pods}},
            content_type="application/merge-patch+json",
        )

    scale(2)
    assert until(lambda: len(operator.pods(job)) == 2)
    stayed = {pod["metadata"]["uid"] for pod in operator.pods(job)}
    scale(3)
    assert until(lambda: len(operator.pods(job)) == 3)
    assert stayed < {pod["metadata"]["uid"] for pod in operator.pods(job)}
    assert outcome(operator.api.get(job) or {}) is None
