"""Findings of `trainyard check --live` about existing file systems."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import Mock

import pytest

from tests.support.existing_cluster import GROUP, IN_CLUSTER, NAME
from tests.support.existing_stores import EFS, EXISTING_STORES
from tests.support.existing_vpc import EXISTING_VPC, VPC
from tests.support.stackfile import environment, environment_plan
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.existing.store_faults import Client, RuleFound, ServersFound, StoreFound
from trainyard.live.existing.stores import store_checks, store_findings
from trainyard.live.questions.account import Account
from trainyard.plans.identity import Identity
from trainyard.plans.stores import ExistingLustrePlan
from trainyard.problems import InputWarning

ZONE = "us-east-2a"
PLAN = ExistingLustrePlan(
    identity=Identity(project="p", stack="s", region="us-east-2"),
    kind="any",
    keep=True,
    path="environment.storage.x",
    file_system_id="fs-0123456789abcdef1",
    zones=(ZONE,),
)
OPEN = tuple(
    RuleFound(egress=egress, protocol="tcp", ports=(0, 65535), cidr="10.0.0.0/16", group_id="")
    for egress in (False, True)
)
SERVERS = ServersFound(vpc_id="vpc-1", groups=("sg-1",), rules=OPEN)


@pytest.mark.parametrize(("deployment", "loses"), [("SCRATCH_2", True), ("PERSISTENT_2", False)])
def test_only_a_scratch_file_system_loses_data_with_a_server(deployment: str, loses: bool) -> None:
    told = StoreFound(servers={ZONE: SERVERS}, version="2.15", deployment=deployment)
    nodes = (Client(zone=ZONE, cidr="10.0.0.0/20"),)
    [said] = store_findings(PLAN, "vpc-1", nodes, told)
    assert isinstance(said, InputWarning) and deployment in said.text
    assert ("loses data with a server" in said.text) is loses


@pytest.mark.parametrize("apart", [True, False])
def test_root_squash_of_a_lustre_is_a_warning_with_the_command(apart: bool) -> None:
    """Pods run as root unless their image or file says more: their saves failed."""
    told = StoreFound(servers={ZONE: SERVERS}, version="2.15", root_becomes="65534:65534")
    nodes = (Client(zone=ZONE, cidr="10.0.0.0/20"),)
    [said] = store_findings(replace(PLAN, apart=apart), "vpc-1", nodes, told)
    assert isinstance(said, InputWarning) and "write to it as 65534:65534, and fail" in said.text
    assert "RootSquashConfiguration={RootSquash=0:0}`" in said.text
    assert ("the directories of teams" in said.text) is apart
    some = replace(told, root_stays=("10.0.1.[2-255]@tcp",))
    [said] = store_findings(PLAN, "vpc-1", nodes, some)
    assert isinstance(said, InputWarning) and "but for clients 10.0.1.[2-255]@tcp" in said.text


def test_the_group_of_an_existing_cluster_is_one_of_the_nodes() -> None:
    asked = Mock(spec=Account)
    asked.vpc.return_value = SOUND_VPC
    asked.group_ids.return_value = ("sg-nodes",)
    asked.cluster_groups.return_value = (GROUP,)
    by_group = tuple(replace(rule, cidr="", group_id=GROUP) for rule in OPEN)
    asked.efs_file_system.return_value = StoreFound(
        servers={
            zone: ServersFound(vpc_id=VPC, groups=("sg-1",), rules=by_group)
            for zone in ("ap-northeast-2a", "ap-northeast-2c")
        }
    )
    for edits, faults in (((EXISTING_VPC,), 1), (IN_CLUSTER, 0)):
        edits = (*edits, EXISTING_STORES)
        checks = store_checks(asked, environment_plan(*edits), environment(*edits))
        assert len([*checks[f"file system {EFS}"]()]) == faults
    asked.cluster_groups.assert_called_once_with(NAME)
