"""Every kind of capacity against the real Karpenter: the node that appears is the one the plan
promised."""

from __future__ import annotations

import base64
import copy
import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.settings.reading.reader import read

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]

JOB = {
    "runtime": "torch-distributed",
    "nodes": 1,
    "command": ["sleep", "3"],
    "shared_memory_gib": 8,
    "image": ("public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"),
}
POOLS: dict[str, dict[str, Any]] = {
    "p5": {"instance_types": ["p5.48xlarge"], "max_nodes": 2},
    "p5en": {"instance_types": ["p5en.48xlarge"], "max_nodes": 1},
    "p4d": {"instance_types": ["p4d.24xlarge"], "max_nodes": 1, "placement": "cluster"},
    "g6": {"instance_types": ["g6.48xlarge"], "max_nodes": 1},
    "g6e": {"instance_types": ["g6e.48xlarge"], "max_nodes": 2, "replicas": 1, "warm_spares": 1},
}
STORAGE = {
    "scratch": {
        "data": "delete",
        "lustre": {
            "capacity_gib": 9600,
            "throughput_mbps_per_tib": 500,
            "efa": True,
            "repositories": {"images": {"s3": "s3://sets/images/", "path": "/images"}},
        },
    }
}
ZONE = "us-east-2a"
RESERVE = (
    "fault",
    "reserve",
    "--instance-type",
    "p5.48xlarge",
    "--zone",
    ZONE,
    "--instances",
    "1",
    "--id",
)


def _stack(pools: dict[str, Any], jobs: list[str]) -> dict[str, Any]:
    return {
        "aws:region": "us-east-2",
        "trainyard:environment": {
            "zone": ZONE,
            "pools": pools,
            "storage": STORAGE,
            "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
            "cluster": {
                "version": "1.35",
                "endpoint": "public-and-private",
                "public_access_cidrs": ["203.0.113.7/32"],
            },
            "jobs": {name: {**JOB, "pool": name} for name in jobs},
        },
    }


def _plan(pools: dict[str, Any], jobs: list[str]) -> EnvironmentPlan:
    plan = plan_stack(read(_stack(pools, jobs), stack="capacity", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    """A copy of the checkout with a stack file of its own, up with five kinds of nodes."""
    with rehearsing("capacity") as made:
        _up(made, POOLS, ["p5", "p5en", "p4d", "g6"])
        yield made


def _write(harness: Harness, pools: dict[str, Any], jobs: list[str]) -> None:
    (harness.checkout / "Pulumi.capacity.yaml").write_text(
        yaml.safe_dump({"config": _stack(pools, jobs)})
    )


def _up(harness: Harness, pools: dict[str, Any], jobs: list[str]) -> None:
    _write(harness, pools, jobs)
    assert harness.do("up", "--stack", "capacity") == 0, harness.log.read_text()


def _nodes(harness: Harness, pool: str) -> list[Object]:
    return harness.get(f"nodes -l trainyard.io/pool={pool}")["items"]


def _instance(harness: Harness, node: Object) -> Object:
    name = node["spec"]["providerID"].rpartition("/")[2]
    said = harness.shell(f"aws ec2 describe-instances --instance-ids {name} --output json")
    return json.loads(said)["Reservations"][0]["Instances"][0]


@pytest.mark.parametrize("pool", POOLS)
def test_the_node_that_appears_has_exactly_the_devices_the_plan_promised(
    harness: Harness, pool: str
):
    [kind] = _plan(POOLS, []).pools[pool].types
    nodes = _nodes(harness, pool)
    assert len(nodes) == (POOLS[pool].get("replicas", 1) + POOLS[pool].get("warm_spares", 0))
    for node in nodes:
        has, labels = node["status"]["allocatable"], node["metadata"]["labels"]
        assert (int(has["nvidia.com/gpu"]), int(has.get("vpc.amazonaws.com/efa", 0))) == (
            kind.gpus,
            kind.efa,
        )
        assert labels["node.kubernetes.io/instance-type"] == kind.instance_type
        assert labels["topology.kubernetes.io/zone"] == ZONE and has["pods"] == str(kind.max_pods)
        interfaces = _instance(harness, node)["NetworkInterfaces"]
        assert sorted(i.get("InterfaceType", "interface") for i in interfaces) == sorted(
            i.kind for i in kind.interfaces
        )


def test_lustre_over_efa_is_for_nodes_that_can_and_its_bucket_is_linked(harness: Harness):
    """The nodes are Ready, or no job would have brought them up: a script beside the NodeConfig
    hinders nobody."""
    for pool, over_efa in (("p5", True), ("p5en", True), ("g6", False)):
        name = _nodes(harness, pool)[0]["spec"]["providerID"].rpartition("/")[2]
        data = harness.shell(
            f"aws ec2 describe-instance-attribute --instance-id {name} --attribute userData"
            " --query UserData.Value --output text"
        )
        assert (b"lnetctl net add --net efa" in base64.b64decode(data)) is over_efa
    said = harness.shell("aws fsx describe-data-repository-associations --output json")
    [link] = json.loads(said)["Associations"]
    assert (link["Lifecycle"], link["FileSystemPath"]) == ("AVAILABLE", "/images")


def test_nodes_of_a_placement_group_are_in_it(harness: Harness):
    [node] = _nodes(harness, "p4d")
    assert (
        _instance(harness, node)["Placement"]["GroupName"]
        == _plan(POOLS, []).pools["p4d"].placement_group
    )


@pytest.fixture(scope="module")
def before(harness: Harness) -> set[str]:
    """The instances of the static pool; one of them has just died. Karpenter looks for such every
    two minutes."""
    instances = {node["spec"]["providerID"] for node in _nodes(harness, "g6e")}
    assert harness.do("fault", "vanish", "--instance", min(instances).rpartition("/")[2]) == 0
    return instances


@pytest.mark.usefixtures("before")
def test_a_gang_of_two_where_one_is_to_be_had_says_what_is_missing(harness: Harness):
    one_stands = ("--zone", ZONE, "--instance-type", "p5.48xlarge", "--available", "0")
    assert harness.do("fault", "no-capacity", *one_stands) == 0
    harness.apply(_gang(harness, "half", 2))
    said = until(lambda: _status(harness, "TrainJob half has waited for 1 of 2 nodes"), every=3)
    assert "it has 1 idle" in said and "an hour" in said
    harness.shell("kubectl -n training delete trainjob half --wait")  # first: it would get its node
    assert harness.do("fault", "clear") == 0


def test_a_job_larger_than_its_pool_is_refused_at_preview_and_indeed_cannot_run(harness: Harness):
    large = copy.deepcopy(_stack(POOLS, ["p5"]))
    large["trainyard:environment"]["jobs"]["p5"]["nodes"] = 3
    [fault] = plan_stack(read(large, stack="capacity", project="trainyard")).errors
    assert "raise pools.p5.max_nodes to 3" in str(fault)
    harness.apply(_gang(harness, "large", 3))
    assert until(lambda: _status(harness, " of 3 nodes since"), every=3)
    assert len(_nodes(harness, "p5")) <= 2
    harness.shell("kubectl -n training delete trainjob large --wait")


def test_reservations_and_blocks_are_used_while_they_are_active_and_only_then(harness: Harness):
    # Jobs by hand may have left a second p5 node, and an ODCR counts against the quota as other
    # instances do.
    assert harness.do("fault", "quota", "--code", "L-417A185B", "--value", "1920") == 0
    now = datetime.now(UTC).replace(microsecond=0)
    ends, later = now + timedelta(hours=20), now + timedelta(hours=10)
    assert harness.do(*RESERVE, "cr-00000000000000001") == 0
    for name, start in (
        ("cr-00000000000000002", now - timedelta(hours=1)),
        ("cr-00000000000000003", later),
    ):
        assert (
            harness.do(
                *RESERVE, name, "--block", "--starts", start.isoformat(), "--ends", ends.isoformat()
            )
            == 0
        )
    base = {"instance_types": ["p5.48xlarge"], "max_nodes": 1}
    pools = POOLS | {
        "odcr": (
            base
            | {
                "capacity": "reservation",
                "reservation": {"id": "cr-00000000000000001", "instances": 1},
            }
        ),
        "block": (
            base
            | {
                "capacity": "block",
                "reservation": {
                    "id": "cr-00000000000000002",
                    "instances": 1,
                    "starts": (now - timedelta(hours=1)).isoformat(),
                    "ends": ends.isoformat(),
                },
            }
        ),
        "later": (
            base
            | {
                "capacity": "block",
                "reservation": {
                    "id": "cr-00000000000000003",
                    "instances": 1,
                    "starts": later.isoformat(),
                    "ends": ends.isoformat(),
                },
            }
        ),
    }
    _up(harness, pools, ["p5", "p5en", "p4d", "g6", "odcr", "block"])
    for pool, kind in (("odcr", "default"), ("block", "capacity-block")):
        [node] = _nodes(harness, pool)
        labels = node["metadata"]["labels"]
        assert labels["karpenter.sh/capacity-type"] == "reserved"
        assert labels["karpenter.k8s.aws/capacity-reservation-type"] == kind
        assert (
            _instance(harness, node)["CapacityReservationId"]
            == labels["karpenter.k8s.aws/capacity-reservation-id"]
        )
    harness.apply(_gang(harness, "early", 1, "later"))
    assert until(lambda: _status(harness, "TrainJob early has waited for 1 of 1 nodes"), every=3)
    assert _nodes(harness, "later") == [], "a block that has not begun gives nothing"
    harness.shell("kubectl -n training delete trainjob early --wait")
    said = harness.shell(f"{sys.executable} -m trainyard check capacity --rehearsal", check=False)
    assert "the reservation is scheduled; jobs of the pool wait until" in said, said


def test_a_block_that_is_over_takes_its_node_away_and_gives_none(harness: Harness):
    assert len(_nodes(harness, "block")) == 1
    over = datetime.now(UTC).replace(microsecond=0)
    times = ("--starts", (over - timedelta(hours=2)).isoformat(), "--ends", over.isoformat())
    assert harness.do(*RESERVE, "cr-00000000000000002", "--block", *times) == 0
    assert until(lambda: not _nodes(harness, "block"))
    harness.apply(_gang(harness, "late", 1, "block"))
    assert until(lambda: _status(harness, "TrainJob late has waited for 1 of 1 nodes"), every=3)
    assert _nodes(harness, "block") == [], "what is over gives nothing"
    harness.shell("kubectl -n training delete trainjob late --wait")
    said = harness.shell(f"{sys.executable} -m trainyard check capacity --rehearsal", check=False)
    assert "pools.block.reservation.id" in said and "expired" in said, said


def test_a_kept_node_that_died_was_replaced(harness: Harness, before: set[str]):
    def again() -> bool:
        ready = {
            n["spec"]["providerID"]
            for n in _nodes(harness, "g6e")
            if any(
                c["type"] == "Ready" and c["status"] == "True" for c in n["status"]["conditions"]
            )
        }
        return len(ready) == 2 and ready != before

    assert until(again)


@pytest.mark.soak
def test_down_takes_the_placement_group_too_and_leaves_reservations_to_their_owner(
    harness: Harness,
):
    assert harness.do("down") == 0, harness.log.read_text()


def _gang(harness: Harness, name: str, nodes: int, pool: str = "p5") -> Object:
    """A run like the pool's job, of another size, as somebody would apply it by hand."""
    found = harness.get("trainjob p5 -n training")
    spec = copy.deepcopy(found["spec"])
    spec["trainer"] |= {"numNodes": nodes, "command": ["sleep", "600"]}
    spec["podTemplateOverrides"][0]["spec"]["nodeSelector"]["trainyard.io/pool"] = pool
    return {
        "apiVersion": found["apiVersion"],
        "kind": found["kind"],
        "spec": spec,
        "metadata": {"name": name, "namespace": "training"},
    }


def _status(harness: Harness, words: str) -> str:
    said = harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack}", check=False
    )
    return said if words in said else ""
