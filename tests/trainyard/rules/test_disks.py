"""Disks of nodes that a new account has no quota for."""

from __future__ import annotations

from tests.support.stackfile import Edit, at, environment, planned
from trainyard.derive.disks import disks_when_full


def warned(*edits: Edit) -> list[str]:
    return [each for each in map(str, planned(*edits).warnings) if "gp3" in each]


def test_disks_beyond_the_quota_of_a_new_account_are_a_warning_with_the_command_that_raises_it() -> (
    None
):
    """51,200 GiB. EC2 ends each instance beyond them at launch, and Karpenter launches the next one."""
    large = at("pools.g6e.max_nodes", 64), at("pools.g6e.root_volume_gib", 793)
    assert sum(disks_when_full(environment(*large)).values()) == 2 * 50 + 2 * 200 + 64 * 793
    [said] = warned(*large, at("pools.h100.max_nodes", 3))
    assert said.startswith("environment.pools: disks of system nodes, g6e, h100 take 51452 GiB")
    assert "quota L-7A658B76 is 50 TiB in an account that asked for no more" in said
    assert "--service-code ebs --quota-code L-7A658B76 --desired-value 51 --region ap-" in said
    at_most = at("pools.g6e.root_volume_gib", 792)
    assert warned(*large, at_most) == warned() == []


def test_bottlerocket_has_a_second_disk_on_each_node() -> None:
    bottlerocket = at("pools.g6e.ami_family", "Bottlerocket")
    assert disks_when_full(environment(bottlerocket))["g6e"] == 4 * 204
    two_types = at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"])
    assert disks_when_full(environment(two_types))["g6e"] == 2 * 4 * 200
