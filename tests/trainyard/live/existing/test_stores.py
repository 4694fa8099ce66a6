"""Findings of `trainyard check --live` about existing file systems."""

from __future__ import annotations

import pytest

from trainyard.existing.store_faults import Client, RuleFound, ServersFound, StoreFound
from trainyard.live.existing.stores import store_findings
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
