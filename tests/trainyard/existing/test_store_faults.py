"""Errors about an existing file system that cannot be used."""

from __future__ import annotations

from dataclasses import replace

import pytest

from trainyard.existing.store_faults import (
    Client,
    RuleFound,
    ServersFound,
    StoreFound,
    efs_faults,
    lustre_faults,
)
from trainyard.plans.identity import Identity
from trainyard.plans.stores import ExistingEfsPlan, ExistingLustrePlan, ExistingStorePlan

VPC, ID, A, C = "vpc-1", "fs-0123456789abcdef1", "us-east-2a", "us-east-2c"
CLIENTS = Client(zone=A, cidr="10.0.0.0/20"), Client(zone=C, cidr="10.0.16.0/20")


def _rule(first: int, last: int, *, egress: bool = False, cidr: str = "10.0.0.0/16") -> RuleFound:
    return RuleFound(egress=egress, protocol="tcp", ports=(first, last), cidr=cidr, group_id="")


OPEN = tuple(_rule(0, 65535, egress=egress) for egress in (False, True))
SERVERS = ServersFound(vpc_id=VPC, groups=("sg-1",), rules=OPEN)
LUSTRE = StoreFound(servers={A: SERVERS}, version="2.15")
EFS = StoreFound(servers={A: SERVERS, C: SERVERS})


def _of(kind: type[ExistingStorePlan]) -> ExistingStorePlan:
    return kind(
        identity=Identity(project="p", stack="s", region="us-east-2"),
        kind="any",
        keep=True,
        path="environment.storage.x",
        file_system_id=ID,
        zones=(A, C),
    )


def _lustre(found: StoreFound | None) -> list[str]:
    plan = _of(ExistingLustrePlan)
    assert isinstance(plan, ExistingLustrePlan)
    return [str(fault) for fault in lustre_faults(plan, VPC, CLIENTS, found)]


def _efs(found: StoreFound | None) -> list[str]:
    plan = _of(ExistingEfsPlan)
    assert isinstance(plan, ExistingEfsPlan)
    return [str(fault) for fault in efs_faults(plan, VPC, CLIENTS, found)]


def _with_rules(*rules: RuleFound) -> ServersFound:
    return replace(SERVERS, rules=rules)


def test_sound_file_systems_have_no_fault() -> None:
    assert _lustre(LUSTRE) == [] and _efs(EFS) == []


@pytest.mark.parametrize("state", ["AVAILABLE", "UPDATING"])
def test_a_file_system_that_grows_can_be_mounted(state: str) -> None:
    assert _lustre(replace(LUSTRE, lifecycle=state)) == []


FAULTY: dict[str, tuple[StoreFound | None, str]] = {
    "none": (None, f"be an FSx for Lustre file system of this account and region; got {ID}, which"),
    "failed": (replace(LUSTRE, lifecycle="FAILED"), f"be AVAILABLE; got {ID}, which is FAILED"),
    "too old for the client": (
        replace(LUSTRE, version="2.10"),
        f"have Lustre 2.12 or later: the client of the nodes is 2.15; got {ID} with 2.10. Fix: run"
        f" `aws fsx update-file-system --file-system-id {ID} --file-system-type-version 2.15`",
    ),
    "in another zone": (
        replace(LUSTRE, servers={C: SERVERS}),
        f"be a file system in {A}, where the GPU nodes are; got {ID} in {C}",
    ),
    "in another VPC": (
        replace(LUSTRE, servers={A: replace(SERVERS, vpc_id="vpc-2")}),
        f"be in {VPC}, the VPC of the environment; got {ID} in vpc-2. Fix: write vpc_id: vpc-2",
    ),
    "closed to nodes": (
        replace(LUSTRE, servers={A: _with_rules(OPEN[1], _rule(988, 988))}),
        "let TCP 1018-1023 in from 10.0.0.0/20, the nodes' subnet in us-east-2a; got sg-1, whose"
        " rules do not. Fix: run `aws ec2 authorize-security-group-ingress --group-id sg-1"
        " --ip-permissions IpProtocol=tcp,FromPort=1018,ToPort=1023,IpRanges=[{CidrIp=10.0.0.0/20}]`",
    ),
    "closed to half of the subnet": (
        replace(LUSTRE, servers={A: _with_rules(OPEN[1], _rule(0, 65535, cidr="10.0.0.0/21"))}),
        "let TCP 988, 1018-1023 in from 10.0.0.0/20",
    ),
    "servers cannot call": (
        replace(LUSTRE, servers={A: _with_rules(OPEN[0])}),
        "let TCP 988, 1018-1023 out to 10.0.0.0/20, the nodes' subnet in us-east-2a; got sg-1, whose"
        " rules do not. Fix: run `aws ec2 authorize-security-group-egress --group-id sg-1",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_each_fault_of_a_lustre_is_said_with_its_way_out(case: str) -> None:
    found, says = FAULTY[case]
    faults = _lustre(found)
    assert faults and all(fault.startswith("environment.storage.x: must ") for fault in faults)
    assert f"environment.storage.x: must {says}" in faults[0]


EFS_FAULTY: dict[str, tuple[StoreFound | None, str]] = {
    "none": (None, "be an EFS file system with a mount target of this account and region"),
    "being deleted": (replace(EFS, lifecycle="DELETING"), "be AVAILABLE"),
    "no mount target in a zone": (
        replace(EFS, servers={A: SERVERS}),
        f"have a mount target in {C}, where nodes of a pool may be; got {ID} with mount targets in"
        f" {A}. Fix: run `aws efs create-mount-target --file-system-id {ID}",
    ),
    "closed in one zone": (
        replace(EFS, servers={A: SERVERS, C: _with_rules(_rule(2049, 2049, cidr="10.0.0.0/20"))}),
        "let TCP 2049 in from 10.0.16.0/20, the nodes' subnet in us-east-2c",
    ),
    "open to UDP": (
        replace(EFS, servers={A: _with_rules(replace(OPEN[0], protocol="udp")), C: SERVERS}),
        "let TCP 2049 in from 10.0.0.0/20",
    ),
}


@pytest.mark.parametrize("case", EFS_FAULTY)
def test_each_fault_of_an_efs_is_said_with_its_way_out(case: str) -> None:
    found, says = EFS_FAULTY[case]
    [fault] = _efs(found)
    assert f"environment.storage.x: must {says}" in fault


def test_a_rule_that_names_a_group_of_the_nodes_is_as_good_as_their_range() -> None:
    named = replace(OPEN[0], cidr="", group_id="sg-nodes")
    shut = replace(EFS, servers={A: _with_rules(named), C: SERVERS})
    assert len(_efs(shut)) == 1
    nodes = [replace(client, groups=("sg-nodes",)) for client in CLIENTS]
    plan = _of(ExistingEfsPlan)
    assert isinstance(plan, ExistingEfsPlan) and [*efs_faults(plan, VPC, nodes, shut)] == []
