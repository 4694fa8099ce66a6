"""Settings of an existing cluster's VPC CNI, and what follows from them."""

from __future__ import annotations

import pytest

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.stackfile import environment_plan
from trainyard.catalog.aws.instances import TYPES
from trainyard.existing.cni import (
    CniFound,
    cni_of,
    env_of,
    node_addresses,
    without_config,
    without_room,
)
from trainyard.plans.clusters import ExistingClusterPlan

CUSTOM = CniFound(custom=True)


@pytest.mark.parametrize(
    "configuration",
    ['{"env": {"WARM_IP_TARGET": "4"}}', "env:\n  WARM_IP_TARGET: 4\nenableNetworkPolicy: 'true'"],
)
def test_the_variables_are_read_from_json_and_from_yaml(configuration: str) -> None:
    assert env_of(configuration) == {"WARM_IP_TARGET": "4"}


@pytest.mark.parametrize("configuration", ["", "{", "[]", '"text"', '{"env": []}', '{"env": null}'])
def test_a_configuration_without_variables_has_none(configuration: str) -> None:
    assert env_of(configuration) == {}


def test_an_environment_without_settings_has_the_defaults_of_the_cni() -> None:
    assert cni_of({}) == cni_of({"WARM_ENI_TARGET": "1", "WARM_IP_TARGET": "0"}) == CniFound()
    assert cni_of({"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}) == CUSTOM


@pytest.mark.parametrize(
    ("kind", "env", "addresses"),
    [
        # docs/eni-and-ip-target.md: two interfaces of 50 once there are pods.
        ("g6e.48xlarge", {}, 100),
        ("g6e.48xlarge", {"WARM_ENI_TARGET": "2"}, 150),
        ("g6e.48xlarge", {"WARM_ENI_TARGET": "0"}, 50),
        # Card 0 takes two interfaces, and one of them is that of EFA.
        ("p5.48xlarge", {}, 50),
        ("p5en.48xlarge", {"WARM_ENI_TARGET": "9"}, 150),
        ("g6e.48xlarge", {"MINIMUM_IP_TARGET": "16", "WARM_IP_TARGET": "4"}, 21),
        ("g6e.48xlarge", {"WARM_IP_TARGET": "5"}, 6),
        ("g6e.48xlarge", {"ENABLE_PREFIX_DELEGATION": "true"}, 33),
        (
            "g6e.48xlarge",
            {"ENABLE_PREFIX_DELEGATION": "true", "MINIMUM_IP_TARGET": "16", "WARM_IP_TARGET": "4"},
            33,
        ),
        ("g6e.48xlarge", {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}, 1),
    ],
)
def test_a_node_takes_what_its_cni_holds(kind: str, env: dict[str, str], addresses: int) -> None:
    assert node_addresses(TYPES[kind], cni_of(env)) == addresses


def test_further_interfaces_can_be_in_subnets_of_their_own() -> None:
    assert node_addresses(TYPES["g6e.48xlarge"], CniFound(), elsewhere=True) == 50


def test_custom_networking_needs_an_interface_that_card_0_of_p5_lacks() -> None:
    plan = environment_plan(*IN_CLUSTER).cluster
    assert isinstance(plan, ExistingClusterPlan) and plan.full_types == {"h100": "p5.48xlarge"}
    [fault] = without_room(plan, CUSTOM)
    assert str(fault).startswith(
        "environment.pools.h100.instance_types: must be types with a free interface on card 0: the VPC CNI of"
        " research has custom networking"
    )
    assert "got p5.48xlarge, whose card 0 takes 2" in str(fault) and "such as p5en" in fault.fix
    assert [*without_room(plan, CniFound())] == []


CUSTOMIZED = {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}
ZONES = ("us-east-2a", "us-east-2b")


@pytest.mark.parametrize(
    ("label", "there", "lacking"),
    [
        ("topology.kubernetes.io/zone", ["us-east-2a"], "us-east-2b"),
        ("topology.kubernetes.io/zone", ["default"], "us-east-2a, us-east-2b"),
        ("topology.kubernetes.io/zone", [*ZONES], ""),
        ("failure-domain.beta.kubernetes.io/zone", [*ZONES], ""),
        ("", [*ZONES], "default"),
        ("k8s.amazonaws.com/eniConfig", ["default"], ""),
        ("example.com/subnets", [], ""),
    ],
)
def test_nodes_of_the_stack_need_an_eni_config_that_they_find(
    label: str, there: list[str], lacking: str
) -> None:
    """Without it the CNI fails, and a node never becomes Ready."""
    env = CUSTOMIZED | ({"ENI_CONFIG_LABEL_DEF": label} if label else {})
    errors = [str(each) for each in without_config("research", env, ZONES, there)]
    assert len(errors) == bool(lacking)
    assert all(f"none is called {lacking}: nodes never become Ready" in one for one in errors)
    assert [*without_config("research", {"ENI_CONFIG_LABEL_DEF": label}, ZONES, [])] == []
