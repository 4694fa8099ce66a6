"""One job of each kind that the training-operator runs beside PyTorchJob, to its end: the files of
tests/workloads/v1 as a stack would send them, the chart of the checkout with its rights, and the
operator itself at a real API server. The test stands in for kubelet: it says that containers run
and end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from rehearsal.kube import ApiError, Object
from tests.support.operator_server import Operator, operator_server
from tests.support.patience import until
from tests.support.recording import WORKLOADS
from tests.support.stackfile import at, reading
from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS, outcome
from trainyard.catalog.logs.first_end import ranks
from trainyard.manifests.admission import Manifest, judged
from trainyard.operations.reach.snapshot import Job, Snapshot
from trainyard.settings.job import ManifestConfig

PODS = {"MPIJob": 3, "MXJob": 4, "PaddleJob": 2, "TFJob": 2, "XGBoostJob": 2}
AS_IT_IS = ("", "")
FLAWS: dict[str, tuple[str, str] | None] = {
    "MXJob": None,
    "PaddleJob": ("name: paddle\n", "name: main\n"),
    "TFJob": ("name: tensorflow\n", "name: main\n"),
    "XGBoostJob": ("Master:", "Chief:"),
}
"""Kind with a webhook → a change of its file that the webhook refuses."""


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_server(tmp_path_factory.mktemp("operator")) as made:
        yield made


def read(kind: str, change: tuple[str, str] = AS_IT_IS) -> Manifest:
    """The file of a kind as a stack judges it."""
    text = (WORKLOADS / f"v1/{kind.removesuffix('Job').lower()}.yaml").read_text()
    assert change[0] in text
    operator = {"version": "1.8.1", "more_kinds": [*MORE_KINDS]}
    config = reading(at("training_operator", operator), at("namespace", "default")).config
    assert config and config.environment
    return judged(
        text.replace(*change),
        f"{kind.lower()}.yaml",
        trainer="2.1.0",
        operator="1.8.1",
        environment=config.environment,
        pool="g6e",
        claims={},
        namespace="default",
        production=False,
        privileged_pods=False,
    )


def _sent(kind: str, change: tuple[str, str] = AS_IT_IS) -> Object:
    """The object that a stack sends."""
    entry = ManifestConfig(manifest=f"{kind.lower()}.yaml", pool="g6e")
    plan = read(kind, change).plan(entry, "default", {})
    return {
        "apiVersion": JOB_KINDS[kind].api_version,
        "kind": kind,
        "metadata": {"name": plan.name, "namespace": "default"},
        "spec": plan.spec,
    }


@pytest.mark.parametrize("kind", MORE_KINDS)
def test_a_job_of_each_kind_goes_to_its_end(kind: str, operator: Operator) -> None:
    assert read(kind).errors == ()
    job = _sent(kind)
    operator.api.request("POST", operator.api.path(job, collection=True), job)
    assert until(lambda: len(operator.pods(job)) == PODS[kind])
    pods = operator.pods(job)
    for pod in pods:
        operator.say(pod, "Running")
    assert sorted(number for _, number in ranks(pods)) == [*range(PODS[kind])], "as in logs --rank"

    def state() -> list[Any]:
        conditions = (operator.api.get(job) or {}).get("status", {}).get("conditions") or []
        return [each["type"] for each in conditions if each["status"] == "True"]

    assert until(lambda: "Running" in state())
    [seen] = _seen(operator, job)
    assert (seen.kind, seen.state, seen.nodes, len(seen.pods)) == (
        kind,
        "Running",
        *2 * [PODS[kind]],
    )
    for pod in pods:
        waits = (
            kind == "MPIJob" and "worker" in pod["metadata"]["name"]
        )  # for ranks of the launcher
        if not waits:
            with suppress(ApiError):  # the operator may delete it once another one has succeeded
                operator.say(pod, "Succeeded")
    assert until(lambda: outcome(operator.api.get(job) or {}) == JOB_KINDS[kind].succeeded)
    [seen] = _seen(operator, job)
    assert seen.complete


def _seen(operator: Operator, job: Object) -> list[Job]:
    """Jobs as `trainyard status` sees them."""
    there = {f"{job['kind'].lower()}s": [operator.api.get(job)], "pods": operator.pods(job)}
    return Snapshot(objects=there).jobs()


@pytest.mark.parametrize("kind", FLAWS)
def test_a_flaw_that_the_webhook_refuses_is_refused_at_preview(
    kind: str, operator: Operator
) -> None:
    assert operator.denied(_sent(kind)) == ""
    if change := FLAWS[kind]:
        assert operator.denied(_sent(kind, change))
        assert read(kind, change).errors
