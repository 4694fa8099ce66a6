"""A pool keeps what jobs that go on ask for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan, without
from trainyard.objects.jobs.pod_template import POOL
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.immutable import NODE_POOL
from trainyard.replacing.jobs.pinned import (
    LOOKED,
    NODE_CLAIMS,
    NODE_CLASSES,
    OF_NODE_POOL,
    TYPE,
    ZONE,
    fewer_warnings,
    over_warnings,
    pin_errors,
)
from trainyard.replacing.replacing import RUNTIME

SMALLER = at("pools.g6e.instance_types", ["g6.48xlarge"])
ALONE = at("jobs", {})


def _made(*edits: Edit) -> Deployed:
    made: dict[Any, Any] = {
        (node.kind, node.name): node.inputs
        for node in environment(ALONE, *edits).nodes.values()
        if node.kind in (NODE_POOL, RUNTIME)
    }
    made[PROVIDER, "cluster"] = {"kubeconfig": "ours", "clusterIdentifier": "arn"}
    return Deployed(resources=made)


@pytest.fixture(scope="module")
def before() -> Deployed:
    """What the program made of dev, whose pool g6e has g6e.48xlarge."""
    return _made()


def _job(name: str, pool: str = "g6e", kind: str = "g6e.48xlarge", *conditions: str) -> Any:
    selector = {"nodeSelector": {POOL: pool, TYPE: kind}}
    shown = [{"type": each, "status": "True"} for each in conditions]
    return {
        "metadata": {"name": name, "namespace": "team-vision"},
        "spec": {"podTemplateOverrides": [{"spec": selector}]},
        "status": {"conditions": shown},
    }


def _said(
    before: Deployed, *edits: Edit, jobs: list[Any], nodes: tuple[str, ...] = ()
) -> list[str]:
    """`nodes`: the NodePool of each node."""
    claims = [{"metadata": {"labels": {OF_NODE_POOL: each}}} for each in nodes]

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("ours", None)
        return claims if kind == NODE_CLAIMS else jobs if kind.startswith("trainjobs") else []

    plan = environment_plan(ALONE, *edits)
    return [str(each) for each in pin_errors(plan, before, show)]


def test_a_type_that_jobs_ask_for_stays_until_they_have_ended(before: Deployed) -> None:
    [error] = _said(
        before, SMALLER, jobs=[_job("eval"), _job("done", "g6e", "g6e.48xlarge", "Complete")]
    )
    assert error == (
        "environment.pools.g6e.instance_types: must keep the type that jobs ask for which have not ended: a pod of"
        " theirs that has no node, or loses it, never gets another one; got g6.48xlarge beside TrainJob"
        " team-vision/eval. Fix: let them end before; or give the new type a pool of its own, and delete this one"
        " when they have ended; kubectl --namespace <its namespace> delete <kind> <name> ends one"
    )
    both = at("pools.g6e.instance_types", ["g6.48xlarge", "g6e.48xlarge"])
    assert _said(before, both, jobs=[_job("eval")]) == []
    assert _said(before, SMALLER, jobs=[_job("eval", "h100", "p5.48xlarge")]) == []


TYPES = "pools.g6e.instance_types"
SECOND = at(TYPES, ["g6.48xlarge", "g6e.48xlarge"])
ONE = at(TYPES, ["g6e.48xlarge"])


def test_a_pool_of_several_types_keeps_a_node_pool_whose_nodes_a_job_can_be_on() -> None:
    """The NodePool of the second type goes, although the type stays."""
    before = _made(SECOND)
    [error] = _said(before, ONE, jobs=[_job("eval")], nodes=("g6e", "g6e-2"))
    assert error == (
        "environment.pools.g6e.instance_types: must keep as many types while jobs that have not ended can be on nodes"
        " of g6e.48xlarge: each type has a NodePool, numbered by its place, and this update deletes g6e-2 with its"
        " nodes; got g6e.48xlarge beside TrainJob team-vision/eval. Fix: let them end before; or give the new types a"
        " pool of their own, and delete this one when they have ended; kubectl --namespace <its namespace> delete"
        " <kind> <name> ends one"
    )
    assert _said(before, ONE, jobs=[_job("eval")], nodes=("g6e",)) == []
    assert _said(before, ONE, jobs=[_job("eval", "h100")], nodes=("g6e-2",)) == []
    other_order = at(TYPES, ["g6e.48xlarge", "g6.48xlarge"])
    assert _said(before, other_order, jobs=[_job("eval")], nodes=("g6e", "g6e-2")) == []


def test_a_job_that_names_no_type_can_be_on_a_node_of_each() -> None:
    """So it is with each job of an entry in a pool of several types."""
    before, job = _made(at(TYPES, ["g6e.48xlarge", "g6.48xlarge"])), _job("eval")
    del job["spec"]["podTemplateOverrides"][0]["spec"]["nodeSelector"][TYPE]
    [error] = _said(before, ONE, jobs=[job], nodes=("g6e-2",))
    assert "can be on nodes of g6.48xlarge" in error and "deletes g6e-2 with" in error
    assert _said(before, ONE, jobs=[job]) == []
    jobs = [_job("named", kind="g6.48xlarge"), job]
    [first, second] = _said(before, ONE, jobs=jobs, nodes=("g6e-2",))
    assert (
        "must keep the type that jobs" in first and "beside TrainJob team-vision/named. " in first
    )
    assert "beside TrainJob team-vision/eval. Fix" in second


NEARBY = "ap-northeast-2b"
MOVED = at("zone", NEARBY)


def _in_zone(name: str, zone: str = "ap-northeast-2a", pool: str = "g6e") -> Any:
    job = _job(name, pool)
    selector = job["spec"]["podTemplateOverrides"][0]["spec"]["nodeSelector"]
    selector[ZONE] = zone
    return job


def test_the_zone_that_jobs_select_stays_until_they_have_ended(before: Deployed) -> None:
    """A change that all pools have is said once."""
    jobs = [_in_zone("eval"), _in_zone("long", pool="h100"), _job("any")]
    assert _said(before, MOVED, jobs=jobs) == [
        "environment.zone: must keep ap-northeast-2a while jobs that have not ended select this zone: a pod of theirs"
        " that has no node, or loses it, never gets another one; got no nodes there beside TrainJob team-vision/eval,"
        " TrainJob team-vision/long. Fix: write ap-northeast-2a again, and change it when they have ended; kubectl"
        " --namespace <its namespace> delete <kind> <name> ends one"
    ]
    assert _said(before, MOVED, jobs=[_job("any")]) == []
    also = (at("jobs", {}), at("pools.g6e.fallback_zones", ["ap-northeast-2a"]))
    assert _said(before, MOVED, *also, jobs=[_in_zone("eval")]) == []


def test_a_zone_beside_it_that_jobs_select_stays_until_they_have_ended() -> None:
    before = _made(at("pools.g6e.fallback_zones", [NEARBY]))
    [error] = _said(before, jobs=[_in_zone("eval", NEARBY), _in_zone("long")])
    assert error.startswith(
        "environment.pools.g6e.fallback_zones: must keep ap-northeast-2b while jobs that have not ended select"
    )
    assert "got no nodes there beside TrainJob team-vision/eval. Fix" in error


def test_a_pool_stays_until_the_jobs_on_it_have_ended(before: Deployed) -> None:
    gone = without("pools.h100")
    [error] = _said(before, gone, jobs=[_job("long", "h100", ""), _job("eval")])
    assert error.startswith("environment.pools.h100: must stay while jobs that have not ended ask")
    assert "got no entry beside TrainJob team-vision/long. Fix: write the entry again" in error
    assert error.endswith("; kubectl --namespace <its namespace> delete <kind> <name> ends one")
    assert _said(before, gone, jobs=[_job("eval")]) == []


def test_a_job_that_takes_its_pool_from_its_runtime_keeps_it_too() -> None:
    """Somebody who sends a TrainJob writes the runtime, the image and the number of nodes."""
    runtime = {"image": "tuned:1", "pool": "h100"}
    before = _made(at("trainer.own_runtimes.tuned", runtime))
    job, elsewhere = _job("long"), _job("eval")
    del job["spec"]["podTemplateOverrides"]
    job["spec"]["runtimeRef"] = elsewhere["spec"]["runtimeRef"] = {"name": "tuned"}
    [error] = _said(before, without("pools.h100"), jobs=[job, elsewhere])
    assert error.startswith("environment.pools.h100: must stay while jobs that have not ended ask")
    assert "beside TrainJob team-vision/long. Fix" in error


RESERVED = {"id": "cr-0123456789abcdef0", "instances": 1}
BLOCK = {
    "instance_types": ["p5.48xlarge"],
    "max_nodes": 1,
    "capacity": "block",
    "reservation": {**RESERVED, "starts": "2099-12-01T11:30:00Z", "ends": "2099-12-03T11:30:00Z"},
}


@pytest.fixture(scope="module")
def with_block() -> Deployed:
    return _made(at("pools.block", BLOCK))


def _node_class(*reservations: str, looked: str = "True") -> Any:
    return {
        "metadata": {"name": "block"},
        "spec": {"capacityReservationSelectorTerms": [{"id": RESERVED["id"]}]},
        "status": {
            "capacityReservations": [{"id": each} for each in reservations],
            "conditions": [{"type": LOOKED, "status": looked}],
        },
    }


def _of_block(before: Deployed, *classes: Any, nodes: tuple[str, ...] = ()) -> list[str]:
    """Errors and warnings about an update without the block, for which a job waits."""
    claims = [{"metadata": {"labels": {OF_NODE_POOL: each}}} for each in nodes]
    found = {
        "trainjobs": [_job("waits", "block", "p5.48xlarge")],
        NODE_CLASSES.partition(".")[0]: [*classes],
        NODE_CLAIMS.partition(".")[0]: claims,
    }

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        return found.get(kind.partition(".")[0], [])

    plan = environment_plan(ALONE)
    said = *pin_errors(plan, before, show), *over_warnings(plan, before, show)
    return [str(each) for each in said]


def test_a_block_that_is_over_leaves_although_a_job_waits_for_it(with_block: Deployed) -> None:
    """The stack file is refused with it, and the job does not end by itself."""
    assert _of_block(with_block, _node_class()) == [
        "environment.pools.block: this update deletes the pool, which has no node, as its reservation is not active."
        " TrainJob team-vision/waits never starts without it: end each job that waits for it, and hand it in again for"
        " another pool; kubectl --namespace <its namespace> delete <kind> <name> ends one"
    ]


def test_a_block_that_can_have_nodes_stays_while_jobs_ask_for_it(with_block: Deployed) -> None:
    for classes, nodes in (
        ([_node_class(RESERVED["id"])], ()),
        ([_node_class(looked="Unknown")], ()),
        ([_node_class()], ("block",)),
        ([], ()),
    ):
        [error] = _of_block(with_block, *classes, nodes=nodes)
        assert error.startswith("environment.pools.block: must stay while jobs that have not ended")


def _gang(name: str, nodes: int, gpus: int = 8) -> Any:
    job = _job(name)
    asks = {"limits": {"nvidia.com/gpu": gpus}}
    return {
        **job,
        "spec": {**job["spec"], "trainer": {"numNodes": nodes, "resourcesPerNode": asks}},
    }


@pytest.mark.parametrize(
    ("job", "is_named"),
    [
        (_gang("long", 4), True),
        (_gang("short", 3), False),
        (_gang("shared", 4, gpus=4), False),
        (_job("done", "g6e", "g6e.48xlarge", "Failed"), False),
        (_job("elsewhere", "h100", "p5.48xlarge"), False),
    ],
)
def test_a_pool_that_becomes_smaller_than_a_gang_that_goes_on_is_said(
    before: Deployed, job: Any, is_named: bool
) -> None:
    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        return [job] if kind.startswith("trainjobs") else []

    plan = environment_plan(ALONE, at("pools.g6e.max_nodes", 3))
    said = [str(each) for each in fewer_warnings(plan, before, show)]
    assert bool(said) is is_named
    if is_named:
        assert said[0].startswith(
            "environment.pools.g6e.max_nodes: with 3 nodes the pool is too small for TrainJob team-vision/long,"
        )


def test_the_nodes_of_a_pytorchjob_are_those_of_all_its_roles(before: Deployed) -> None:
    """Without a number of GPUs a pod has a node of its own."""
    roles = {role: {"replicas": many} for role, many in (("Master", 1), ("Worker", 3))}
    pods = {"template": {"spec": {"nodeSelector": {POOL: "g6e"}}}}
    job = _job("v1") | {"spec": {"pytorchReplicaSpecs": {k: v | pods for k, v in roles.items()}}}
    plan = environment_plan(ALONE, at("pools.g6e.max_nodes", 3))

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        return [job] if kind.startswith("pytorchjobs") else []

    assert len([*fewer_warnings(plan, before, show)]) == 1


def test_nobody_is_asked_where_pools_stay_or_are_new(before: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*fewer_warnings(environment_plan(ALONE), before, show)]
    assert not [*pin_errors(environment_plan(ALONE), before, show)]
    assert not [*pin_errors(environment_plan(ALONE, SMALLER), Deployed(), show)]


def test_a_job_of_the_stack_file_gets_another_run_and_holds_nothing(before: Deployed) -> None:
    job = _job("t5-large")
    job["metadata"]["namespace"] = "training"

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        return [job] if kind.startswith("trainjobs") else []

    assert not [*pin_errors(environment_plan(SMALLER), before, show)]
    assert len([*pin_errors(environment_plan(ALONE, SMALLER), before, show)]) == 1
