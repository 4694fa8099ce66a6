"""NodeClass and NodePool of every type in the catalogue, against Karpenter's own CRDs."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from catalog.instances import INSTANCE_TYPES
from catalog.zones import ZONE_LETTERS, regions_with
from components.gpu_pool import node_class_spec, node_pool_spec
from components.plans import GpuPoolPlan
from stacks.config import read
from stacks.plan import EnvironmentPlan, plan_stack
from tests import crds
from tests.stackfile import ENVIRONMENT, values


def pool(instance_type: str) -> GpuPoolPlan:
    """A pool of a type, planned in the first region that sells it."""
    region = regions_with(instance_type)[0]
    stack = values()
    stack["aws:region"] = region
    stack[ENVIRONMENT] |= {"zone": region + ZONE_LETTERS[region][0], "jobs": {},
                           "pools": {"gpu": {"instance_types": [instance_type], "max_nodes": 3}}}
    plan = plan_stack(read(stack, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan.pools["gpu"]


def node_class(instance_type: str) -> dict[str, Any]:
    plan = pool(instance_type)
    spec = node_class_spec(plan, plan.types[0], subnet_ids=["subnet-0a"], profile_name="profile",
                           security_group_ids=["sg-0a", "sg-0b"])
    return {"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass", "metadata": {"name": "gpu"}, "spec": spec}


def node_pool(instance_type: str) -> dict[str, Any]:
    plan = pool(instance_type)
    return {"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "gpu"},
            "spec": node_pool_spec(plan, plan.types[0])}


@pytest.mark.parametrize("instance_type", INSTANCE_TYPES)
def test_karpenter_admits_the_class_and_the_pool_of_every_type(instance_type: str) -> None:
    assert crds.problems(node_class(instance_type)) == []
    assert crds.problems(node_pool(instance_type)) == []


@pytest.mark.parametrize("instance_type", INSTANCE_TYPES)
def test_a_pool_offers_one_type_in_one_zone_on_demand(instance_type: str) -> None:
    found = {r["key"]: (r["operator"], r["values"])
             for r in node_pool(instance_type)["spec"]["template"]["spec"]["requirements"]}
    assert found["node.kubernetes.io/instance-type"] == ("In", [instance_type])
    assert found["karpenter.sh/capacity-type"] == ("In", ["on-demand"])
    operator, zones = found["topology.kubernetes.io/zone"]
    assert operator == "In" and len(zones) == 1


def test_a_class_runs_containers_on_local_disks_and_pins_its_image() -> None:
    spec = node_class("p5.48xlarge")["spec"]
    assert spec["instanceStorePolicy"] == "RAID0" and "@latest" not in spec["amiSelectorTerms"][0]["alias"]
    [disk] = spec["blockDeviceMappings"]
    assert disk["rootVolume"] and disk["ebs"]["encrypted"] and disk["ebs"]["deleteOnTermination"]


def test_a_class_names_the_graphs_profile_and_no_role() -> None:
    spec = node_class("g6e.48xlarge")["spec"]
    assert spec["instanceProfile"] == "profile" and "role" not in spec


# The check is worth something only if it sees what people get wrong.

MISTAKES: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "role and profile": (lambda s: s.update(role="nodes"), "role"),
    "no addressed interface": (lambda s: s["networkInterfaces"].pop(0), "interface"),
    "two EFA devices on a card": (
        lambda s: s["networkInterfaces"].append({"networkCardIndex": 1, "deviceIndex": 1, "interfaceType": "efa-only"}),
        "networkInterfaces"),
    "a tag of Karpenter's": (lambda s: s["tags"].update({"karpenter.sh/nodepool": "gpu"}), "tag"),
    "an alias beside an id": (lambda s: s["amiSelectorTerms"].append({"id": "ami-0a"}), "alias"),
    "an unknown field": (lambda s: s.update(subnets=["subnet-0a"]), "subnets"),
    "an unknown policy": (lambda s: s.update(instanceStorePolicy="RAID1"), "RAID1"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_people_get_wrong_in_a_class_is_seen(mistake: str) -> None:
    change, says = MISTAKES[mistake]
    wrong = copy.deepcopy(node_class("p5.48xlarge"))
    change(wrong["spec"])
    assert says in " ".join(crds.problems(wrong))


def test_what_people_get_wrong_in_a_pool_is_seen() -> None:
    wrong = node_pool("p5.48xlarge")
    wrong["spec"]["template"]["spec"]["requirements"].append({"key": "karpenter.k8s.aws/gpus", "operator": "Exists"})
    assert any("karpenter.k8s.aws" in found for found in crds.problems(wrong))


def test_karpenters_rules_are_read() -> None:
    assert crds.rules_of("EC2NodeClass", "karpenter.k8s.aws/v1") >= 40
