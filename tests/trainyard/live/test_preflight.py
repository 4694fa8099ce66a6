"""What only the account knows is said before anything is created, and asked without changing
anything."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread
from typing import Any
from unittest.mock import Mock

import boto3
import botocore.session
import pytest
from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.stub import Stubber
from moto import mock_aws

from tests.support.existing_vpc import EXISTING_VPC, SUBNETS, VPC
from tests.support.patience import PATIENCE
from tests.support.recording import CHECKOUT
from tests.support.stackfile import (
    Edit,
    at,
    environment_plan,
    reading,
    team_plan,
    values,
    without,
)
from tests.support.sweep import lines_not_reached
from tests.support.teams import with_queues
from tests.support.tool import run_word
from tests.trainyard.existing.test_vpc_faults import OWNER
from tests.trainyard.existing.test_vpc_faults import SHARED as SHARED_VPC
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.catalog.aws.endpoints import ALWAYS
from trainyard.catalog.versions import BOTTLEROCKET_RELEASE, KUBERNETES
from trainyard.decide import plan_stack
from trainyard.derive.credentials import NotAssumed
from trainyard.existing.store_faults import RuleFound
from trainyard.live import preflight, service_roles, zone_choice
from trainyard.live.existing import free_addresses
from trainyard.live.existing import vpc as existing_vpc
from trainyard.live.questions import account as account_module
from trainyard.live.questions import caller as caller_module
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.network_questions import EndpointFound, NetworkQuestions, SubnetRoom
from trainyard.live.questions.store_questions import StoreQuestions
from trainyard.plan import EnvironmentPlan
from trainyard.plans.access import AccessPlan, AssumedRole
from trainyard.plans.identity import Identity
from trainyard.problems import InputError, InputWarning
from trainyard.settings.reading.reader import read

REGION, ZONE = "ap-northeast-2", "ap-northeast-2a"
ROLE, SESSION = (
    "arn:aws:iam::123456789012:role/path/Admin",
    "arn:aws:sts::123456789012:assumed-role/Admin/me",
)
ID, STARTS, ENDS = (
    "cr-0123456789abcdef0",
    datetime(2098, 12, 1, 11, 30, tzinfo=UTC),
    datetime(2098, 12, 8, tzinfo=UTC),
)
DESCRIBED = {
    "State": "active",
    "InstanceType": "p5.48xlarge",
    "AvailabilityZone": ZONE,
    "TotalInstanceCount": 2,
    "AvailableInstanceCount": 1,
    "StartDate": STARTS,
    "EndDate": ENDS,
    "ReservationType": "capacity-block",
}
SYSTEM = {"m7i.xlarge": [f"{REGION}{letter}" for letter in "abcd"]}
"""Offer of the type of the system nodes."""
SOUND: dict[str, Any] = {
    "caller_arn": SESSION,
    "own_address": "203.0.113.7",
    "has_cluster": False,
    "has_entry": False,
    "reservation": DESCRIBED,
    "zones": {f"{REGION}{letter}": f"apne2-az{number}" for number, letter in enumerate("abc", 1)},
    "offers": {**SYSTEM, "g6e.48xlarge": [ZONE], "p5.48xlarge": [ZONE]},
    "quota": (768, 0),
    "lustre_storage": (100800, 0),
    "disks": (50.0, 0),
    "addresses": {},
    "public_addresses": (5, 4),
    "vpcs": (5, 4),
    "key": {},
    "default_key": {},
    "key_policy": "",
    "cost_tag": "Active",
    "log_group": {},
    "secret": {"Name": "vision/hf"},
    "keeps_versions": True,
    "is_public": False,
    "vpc": None,
    "without_s3": [],
    "s3_policies": {},
    "endpoints": [],
    "cluster_groups": (),
    "endpoint_offers": {
        api: tuple(f"{REGION}{letter}" for letter in "abcd")
        for api in (*ALWAYS, "elasticfilesystem")
    },
    "name_servers": [],
    "acls": {},
    "has_role": True,
    "has_policy": True,
    "has_image": True,
    "pull_through_rules": [],
    "add_on_builds": [build for each in KUBERNETES.values() for build in each.add_ons.values()],
    "kubelet_of_ami": "1.35.8",
    "recommended_ami": "1.35.8-20261101",
    "has_bottlerocket": True,
    "newest_bottlerocket": BOTTLEROCKET_RELEASE,
}


@pytest.fixture(autouse=True)
def state_in_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://my-states?region=ap-northeast-2")


def account(**answers: Any) -> Any:
    """An account that answers so, and soundly otherwise."""
    told = Mock(spec=Account)
    told.role_arn.side_effect = lambda name: f"{ROLE.rpartition('/')[0]}/{name}"
    for name, answer in (SOUND | answers).items():
        how = "side_effect" if isinstance(answer, Exception) else "return_value"
        getattr(told, name).configure_mock(**{how: answer})
    return told


def block(settings: dict[str, Any]) -> None:
    """An edit: the pool of two p5 is a Capacity Block."""
    held = {"id": ID, "instances": 2, "starts": STARTS.isoformat(), "ends": ENDS.isoformat()}
    settings["pools"]["h100"] |= {"capacity": "block", "reservation": held}


def found(*edits: Edit, **answers: Any) -> list[InputError | InputWarning]:
    config = reading(*edits).config
    assert config
    return preflight.preflight(account(**answers), environment_plan(*edits), config.environment, 60)


def errors(*edits: Edit, **answers: Any) -> list[str]:
    return [str(one) for one in found(*edits, **answers) if isinstance(one, InputError)]


# What the answers mean.


def test_a_sound_account_says_who_asks_and_which_id_the_zone_has() -> None:
    who, zone_id = (str(one) for one in found())
    assert who == f"account: the caller is {SESSION}" and zone_id.endswith(
        "add this line to the stack file: zone_id: apne2-az1"
    )
    assert len(found(at("zone_id", "apne2-az1"))) == 1


@pytest.mark.parametrize(
    ("caller", "exists", "refused"),
    [
        (SESSION, False, True),
        (ROLE, False, True),
        (SESSION, True, False),
        (SESSION.replace("Admin", "Other"), False, False),
        (SESSION.replace("123", "321"), False, False),
        ("arn:aws:iam::123456789012:user/Admin", False, False),
    ],
)
def test_who_creates_the_cluster_is_no_second_admin_of_it(
    caller: str, exists: bool, refused: bool
) -> None:
    for people in ("admins", "viewers"):
        said = errors(
            at(f"cluster.{people}.me.role_arn", ROLE), caller_arn=caller, has_cluster=exists
        )
        assert [one.endswith(f"got {ROLE}. Fix: delete it") for one in said] == [True][:refused]


DEPLOYER = "arn:aws:iam::123456789012:role/deployer"
DEPLOYED = at("cluster.deployer_role_arn", DEPLOYER)


def test_a_role_that_did_not_make_the_cluster_needs_an_access_entry_and_the_commands_are_named() -> (
    None
):
    assert errors(DEPLOYED) == errors(DEPLOYED, has_cluster=True, has_entry=True) == []
    [said] = errors(DEPLOYED, has_cluster=True)
    assert f"none for {DEPLOYER} in dev-cluster-" in said and "which another identity" in said
    assert "aws eks create-access-entry --region ap-northeast-2 --cluster-name dev-cluster-" in said
    assert "AmazonEKSClusterAdminPolicy --access-scope type=cluster`" in said


# Who asks, and in which account.


def in_accounts(*ids: str, key: str = "aws:allowedAccountIds", stack: str = "dev") -> Any:
    """The plan of a stack file that names these accounts."""
    changed = values(stack=stack) | {key: list(ids)}
    return plan_stack(read(changed, stack=stack, project="trainyard"), CHECKOUT).accepted()


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
@pytest.mark.parametrize(
    ("key", "ids", "refused"),
    [
        ("aws:allowedAccountIds", ["999999999999"], True),
        ("aws:allowedAccountIds", ["999999999999", "123456789012"], False),
        ("aws:forbiddenAccountIds", ["123456789012"], True),
        ("aws:forbiddenAccountIds", ["999999999999"], False),
    ],
)
def test_an_account_that_is_not_allowed_is_refused_and_asked_nothing_more(
    key: str, ids: list[str], refused: bool, stack: str
) -> None:
    asked, plan = account(), in_accounts(*ids, key=key, stack=stack)
    wanted = None if stack != "dev" else getattr(reading().config, "environment", None)
    said = [
        str(one)
        for one in preflight.preflight(asked, plan, wanted, 60)
        if isinstance(one, InputError)
    ]
    assert (
        said
        == [
            f"{key}: must allow the account of the caller, 123456789012; got {', '.join(ids)}. Fix: log in"
            f" to another account, or change {key}"
        ][: int(refused)]
    )
    assert (len(asked.method_calls) == 1) == (refused or stack != "dev")


def test_a_role_that_may_not_be_assumed_is_an_error_with_the_reasons_there_may_be() -> None:
    [said] = errors(DEPLOYED, caller_arn=NotAssumed(DEPLOYER, "AccessDenied"))
    assert f"got sts:AssumeRole of {DEPLOYER}: AccessDenied. Fix: name the caller in" in said
    assert said.endswith("or delete the role here if the caller has it already")


def test_zones_that_the_account_lacks_or_knows_by_another_id_are_refused() -> None:
    [lacking] = errors(zones={ZONE: "apne2-az1", f"{REGION}b": "apne2-az2"})
    assert lacking.startswith(
        "environment.network.zones: must be available to this account, which has ap-northeast-2a,"
        " ap-northeast-2b; got ap-northeast-2c. Fix: write network: {zones: ["
    )
    [other] = errors(
        at("zone_id", "apne2-az2"),
        at("pools.h100.instance_types", ["g6e.48xlarge"]),
        quota=(1536, 0),
    )
    assert (
        other == "environment.zone_id: must be the id of ap-northeast-2a in this account; got"
        " apne2-az2. Fix: write apne2-az1"
    )


@pytest.mark.parametrize(
    ("ids", "says"),
    [
        (
            {"b": "use1-az3"},
            [
                "environment.network.zones: must list zones in which EKS places control planes; got"
                " us-east-1b, which is use1-az3 in this account. Fix: write network: {zones:"
                " [us-east-1a, us-east-1c, us-east-1f]}"
            ],
        ),
        (
            {"a": "use1-az3"},
            [
                "environment.zone: must be a zone in which EKS places control planes; got"
                " us-east-1a, which is use1-az3 in this account. Fix: write zone: us-east-1f, and"
                " zone_id: use1-az1"
            ],
        ),
        ({"d": "use1-az3"}, []),
    ],
)
def test_a_zone_in_which_eks_has_no_control_plane_is_refused_by_its_id(
    ids: dict[str, str], says: list[str]
) -> None:
    """f is az1 here: what to write instead is chosen by id, not by letter."""
    zones = {"a": "use1-az6", "b": "use1-az5", "c": "use1-az4", "d": "use1-az2", "f": "use1-az1"}
    found = values(at("zone", "us-east-1a"))
    found["aws:region"] = "us-east-1"
    plan = plan_stack(read(found, stack="dev", project="trainyard"), CHECKOUT).accepted()
    assert isinstance(plan, EnvironmentPlan)
    named = {f"us-east-1{letter}": id_ for letter, id_ in (zones | ids).items()}
    refused = preflight.zone_findings(plan, None, named)
    assert [str(one) for one in refused if isinstance(one, InputError)] == says


@pytest.mark.parametrize(
    ("zone", "zones", "fix"),
    [
        ("a", "ac", "write network: {zones: [us-west-1a, us-west-1c]}"),
        ("b", "ac", "write zone: us-west-1c, and zone_id: usw1-az1"),
        ("c", "bc", "write network: {zones: [us-west-1b, us-west-1c]}"),
    ],
)
def test_an_account_with_letters_that_others_lack_is_told_its_own(
    zone: str, zones: str, fix: str
) -> None:
    """Each account has two of a, b and c in us-west-1."""
    found = values(at("zone", f"us-west-1{zone}"), at("pools", {}), at("jobs", {}))
    found["aws:region"] = "us-west-1"
    plan = plan_stack(read(found, stack="dev", project="trainyard"), CHECKOUT).accepted()
    assert isinstance(plan, EnvironmentPlan)
    assert len(plan.network.zones) == 2, "an account has no third one"
    ids = dict(
        zip((f"us-west-1{letter}" for letter in zones), ("usw1-az3", "usw1-az1"), strict=True)
    )
    [refused] = [
        one for one in preflight.zone_findings(plan, None, ids) if isinstance(one, InputError)
    ]
    assert refused.fix == fix


def test_another_zone_for_a_zone_that_the_account_lacks_is_a_line_of_the_stack_file() -> None:
    [lacking] = errors(zones={ZONE: "apne2-az1", f"{REGION}d": "apne2-az4", f"{REGION}b": "x"})
    assert lacking.endswith(
        ". Fix: write network: {zones: [ap-northeast-2a, ap-northeast-2b, ap-northeast-2d]}"
    )
    [*_, alone] = errors(zones={ZONE: "apne2-az1"})
    assert alone.endswith(". Fix: take another region: EKS needs two zones")


SPOT = at("pools.h100.capacity", "spot")


def test_a_spot_pool_is_refused_in_an_account_that_never_had_spot_instances() -> None:
    [said] = errors(SPOT, has_role=False)
    assert said == (
        "environment.pools.h100.capacity: must not be spot in an account without the role"
        " AWSServiceRoleForEC2Spot: EC2 launches no spot instance without it, and Karpenter may not"
        " create it; got spot. Fix: run `aws iam create-service-linked-role --aws-service-name"
        " spot.amazonaws.com`, once for the account"
    )
    assert errors(SPOT) == [] and errors(has_role=False) == []


def test_roles_that_services_make_themselves_are_named_with_the_command_for_who_may() -> None:
    said = [str(one) for one in found(has_role=False) if "has no role" in str(one)]
    assert [re.findall(r"AWSServiceRole\w+|\S+\.amazonaws\.com", one) for one in said] == [
        ["AWSServiceRoleForAmazonEKS", "eks.amazonaws.com"],
        ["AWSServiceRoleForAmazonEKSNodegroup", "eks-nodegroup.amazonaws.com"],
        ["AWSServiceRoleForAmazonFSx", "fsx.amazonaws.com"],
        ["AWSServiceRoleForAmazonElasticFileSystem", "elasticfilesystem.amazonaws.com"],
    ]
    assert said[2] == (
        "account: the account has no role AWSServiceRoleForAmazonFSx. FSx creates it when it is"
        " first needed, if the caller may call iam:CreateServiceLinkedRole; if not, somebody who may"
        " must run `aws iam create-service-linked-role --aws-service-name fsx.amazonaws.com` first"
    )
    assert "has no role" not in str(found())


def test_a_role_that_may_not_be_looked_at_is_said_once() -> None:
    reason = NotAnswered("iam:GetRole: AccessDenied")
    assert [str(one) for one in found(SPOT, has_role=reason)].count(
        f"account: a question failed: {reason}"
    ) == 1
    assert errors(SPOT, has_role=reason) == []


def test_a_type_is_refused_where_the_account_cannot_buy_it_and_where_it_can_is_said() -> None:
    two_zones = at("pools.g6e.fallback_zones", [f"{REGION}b"])
    sold = {**SYSTEM, "g6e.48xlarge": [ZONE, f"{REGION}c"]}
    g6e, h100 = errors(two_zones, at("jobs", {}), offers=sold)
    assert (
        g6e == "environment.pools.g6e.fallback_zones: must be on offer to this account in"
        " ap-northeast-2b; got g6e.48xlarge. Fix: take a zone that has it: ap-northeast-2a,"
        " ap-northeast-2c"
    )
    assert h100.startswith("environment.pools.h100.instance_types: ") and h100.endswith(
        "take another type: no zone of ap-northeast-2 has it"
    )


def of_system_nodes(zones: str, *edits: Edit) -> list[str]:
    """Errors where the account is offered the type of the system nodes in these zones only."""
    sold = {**SOUND["offers"], "m7i.xlarge": [f"{REGION}{letter}" for letter in zones]}
    return [each for each in errors(*edits, offers=sold) if "system_nodes" in each]


def test_a_type_of_system_nodes_that_a_zone_of_the_network_lacks_is_refused() -> None:
    must = (
        "environment.system_nodes.instance_type: must be on offer to this account in each zone of the network:"
        " EKS refuses the node group otherwise; got m7i.xlarge, without an offer in"
    )
    assert of_system_nodes("abcd") == of_system_nodes("abc") == []
    assert of_system_nodes("ac") == [
        f"{must} {REGION}b. Fix: write network: {{zones: [{ZONE}, {REGION}c]}}, or take another type"
    ]
    assert of_system_nodes("ac", at("network.zones", [ZONE, f"{REGION}c"])) == []
    assert of_system_nodes("bc") == [f"{must} {ZONE}. Fix: take another type"]
    assert of_system_nodes("") == [
        f"{must} {ZONE}, {REGION}b, {REGION}c. Fix: take another type: no zone of {REGION} has it"
    ]


def test_a_quota_that_jobs_exceed_is_refused_with_the_command_that_raises_it() -> None:
    system, g6e = errors(quota=(0, 4))
    assert system.startswith(
        "environment.system_nodes: must need at most the 0 vCPUs of quota L-1216C47A; got 8 for"
        " system nodes, beside 4"
    )
    assert (
        "environment.pools: must need at most the 0 vCPUs of quota L-DB2E81BA; got 384 for g6e, beside"
        " 4 that others use. Fix: run `aws service-quotas" in g6e
    )
    assert "--quota-code L-DB2E81BA --desired-value 772 --region" in g6e
    assert g6e.endswith("`, or lower the nodes of the jobs")


EACH_ZONE = at("network.nat", "each_zone")


def test_a_state_that_can_be_lost_or_that_everybody_reads_is_told() -> None:
    [lost] = [str(one) for one in found(at("zone_id", "apne2-az1"), keeps_versions=False)][1:]
    assert "bucket my-states keeps the state, and no old versions of it" in lost
    [public] = errors(is_public=True)
    assert public.startswith(
        "account: must keep the state where not everybody can read it; got buck"
    )


def test_more_nat_gateways_than_public_addresses_are_refused() -> None:
    assert errors(EACH_ZONE, public_addresses=(5, 2)) == []
    [many] = errors(EACH_ZONE, public_addresses=(5, 3))
    assert many.startswith(
        "environment.network.nat: must need at most the 5 public addresses of quota L-0263D0A3; got"
        " 3 for NAT gateways, beside 3 that others use. Fix: write nat: single, or run `aws"
    )
    assert "--desired-value 6 --region" in many
    [none] = errors(public_addresses=(5, 5))
    assert "got 1 for NAT gateways, beside 5 that others use. Fix: run `aws" in none


def test_an_account_without_room_for_the_vpc_is_refused() -> None:
    """A stack that has its VPC already is not counted among the others."""
    assert errors(vpcs=(5, 4)) == errors(EXISTING_VPC, vpc=SOUND_VPC, vpcs=(5, 5)) == []
    [full] = errors(vpcs=(5, 5))
    assert full.startswith(
        "environment.network: must need at most the 5 VPCs of quota L-F678F1CE; got one, beside 5 that others"
    )
    assert "--service-code vpc --quota-code L-F678F1CE --desired-value 6 --region ap-" in full
    assert full.endswith("`, or write vpc_id and private_subnets of an existing VPC")


def test_a_quota_that_only_full_pools_exceed_is_a_warning() -> None:
    """`up` works in an account without a quota for pools that stay idle."""

    def quotas(*edits: Edit, vcpus: int) -> list[str]:
        said = [str(one) for one in found(*edits, quota=(vcpus, 0)) if "quota" in str(one)]
        return [one.split(":")[0] + " " + one.partition("in all it takes ")[2] for one in said]

    enough = environment_plan().system_nodes.nodes * 4 + 384
    assert errors(quota=(enough, 0)) == [] and quotas(vcpus=768) == []
    [g6e] = quotas(vcpus=384)
    assert g6e.startswith("environment.pools 768 for g6e: run `aws service-quotas")
    assert errors(quota=(383, 0)) != []
    assert errors(at("pools.h100.replicas", 2), quota=(384, 0)) == []
    assert errors(at("pools.h100.replicas", 2), at("jobs", {}), quota=(383, 0)) != []


def test_a_quota_below_what_teams_are_guaranteed_is_said_at_the_teams() -> None:
    """Two nodes of g6e for vision take 384 vCPUs."""

    def warned(vcpus: int) -> list[str]:
        said = map(str, found(with_queues, quota=(vcpus, 0)))
        return [one.partition("; in all")[0] for one in said if "quota L-DB2E81BA" in one]

    enough = "is {} vCPUs, enough for the jobs of this stack"
    assert warned(384) == [f"environment.pools: quota L-DB2E81BA {enough.format(384)}"]
    assert warned(383) == [
        f"environment.teams: quota L-DB2E81BA {enough.format(383)}, and not for the 384 of nodes that teams are"
        " guaranteed"
    ]
    several = at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"])
    assert not [
        each
        for each in map(str, found(with_queues, several, quota=(383, 0)))
        if "guaranteed" in each
    ]


@pytest.mark.parametrize(
    ("quota", "others", "kind"),
    [
        (120000, 0, None),
        (120000, 1200, InputError),
        (None, 0, InputWarning),
        (None, 1200, InputWarning),
    ],
)
def test_lustre_beyond_the_quota_of_the_account_is_refused_and_beyond_the_default_a_warning(
    quota: float | None, others: int, kind: type | None
) -> None:
    half = {"lustre": {"capacity_gib": 60000, "throughput_mbps_per_tib": 125}}
    stores = at("storage.scratch", half), at("storage.other", half)
    said = [
        one for one in found(*stores, lustre_storage=(quota, others)) if "L-8F1B9C74" in str(one)
    ]
    assert [type(one) for one in said] == ([kind] if kind else [])
    beside = (
        f" for scratch, other, beside {others} that others use" if others else " for scratch, other"
    )
    for one in said:
        assert f"{beside}" in str(one) and f"--desired-value {120000 + others} --region" in str(one)


def test_disks_beyond_the_quota_are_refused_where_jobs_take_them_and_else_a_warning() -> None:
    """System nodes have 100 GiB; two of four nodes of g6e have jobs, and h100 has none."""

    def said(*edits: Edit, quota: float = 50.0, others: int = 0) -> list[str]:
        told = found(*edits, disks=(quota, others))
        return [f"{type(one).__name__} {one}" for one in told if "L-7A658B76" in str(one)]

    large = at("pools.g6e.root_volume_gib", 16000)
    full = 100 + 4 * 16000 + 2 * 200
    [warned] = said(large)
    assert warned.startswith("InputWarning environment.pools: quota L-7A658B76 is 50 TiB, enough ")
    assert f"disks take {full} GiB for system nodes, g6e, h100. EC2 ends" in warned
    assert "--service-code ebs --quota-code L-7A658B76 --desired-value 63 --region ap-" in warned
    [refused] = said(large, others=20000)
    assert refused.startswith("InputError environment.pools: must need at most the 50 TiB of quota")
    assert "got 32100 GiB for system nodes, g6e, beside 20000 that others use. Fix: run" in refused
    assert "--desired-value 83 --region" in refused
    assert said(large, quota=63) == said() == said(others=49900) == []


def test_a_capacity_block_needs_no_quota_and_says_what_is_free_or_when_it_begins() -> None:
    assert errors(block) == [] and len(errors(block, quota=(0, 0))) == 2, "g6e and the system nodes"
    assert "environment.pools.h100.reservation: 1 of 2 instances are free" in [
        str(one) for one in found(block)
    ]
    assert "the reservation is scheduled; jobs of the pool wait until 2098-12-01 11:30" in str(
        found(block, reservation=DESCRIBED | {"State": "scheduled"})
    )


@pytest.mark.parametrize(
    ("described", "says"),
    [
        (
            {},
            f"id: must be a reservation that is active or will be; got {ID}, unknown to this account",
        ),
        (
            {"State": "expired"},
            f"id: must be a reservation that is active or will be; got {ID}, expired. Fix: write the id",
        ),
        (
            {"InstanceType": "p5en.48xlarge"},
            f"h100.instance_types: must agree with {ID}; got p5.48xlarge. Fix: write p5en.48xlarge",
        ),
        ({"AvailabilityZone": f"{REGION}b"}, "got ap-northeast-2a. Fix: write ap-northeast-2b"),
        (
            {"ReservationType": "default"},
            f"capacity: must agree with {ID}; got block. Fix: write reservation",
        ),
        (
            {"StartDate": ENDS},
            f"starts: must agree with {ID}; got 2098-12-01 11:30:00+00:00. Fix: write 2098-12-08 00:00",
        ),
        (
            {"EndDate": None},
            f"ends: must agree with {ID}; got 2098-12-08 00:00:00+00:00. Fix: delete it",
        ),
        ({"TotalInstanceCount": 1}, f"max_nodes: must agree with {ID}; got 2. Fix: write 1"),
    ],
)
def test_a_reservation_that_is_not_what_the_stack_file_says_is_refused(
    described: dict[str, Any], says: str
) -> None:
    [said] = errors(block, reservation=DESCRIBED | described if described else {})
    assert says in said


ENDED = {
    "expired",
    "cancelling",
    "cancelled",
    "failed",
    "payment-failed",
    "unsupported",
    "unavailable",
}


def test_a_reservation_is_gone_in_the_states_that_end_it_and_in_no_other() -> None:
    """A block that is delayed or not yet paid is still to come."""
    model = botocore.session.get_session().get_service_model("ec2")
    states = model.shape_for("CapacityReservationState").enum
    refused = {state for state in states if errors(block, reservation=DESCRIBED | {"State": state})}
    assert set(states) > ENDED and refused == ENDED


def test_a_reservation_gives_its_instances_only_in_the_group_it_was_made_in() -> None:
    named = at("pools.h100.reservation.placement_group", "near")
    near = DESCRIBED | {
        "PlacementGroupArn": f"arn:aws:ec2:{REGION}:123456789012:placement-group/near"
    }
    says = f"environment.pools.h100.reservation.placement_group: must agree with {ID}; got "
    assert errors(block, named, reservation=near) == []
    assert errors(block, named) == [says + "near. Fix: delete it"] and errors(
        block, reservation=near
    ) == [says + "nothing. Fix: write near"]


def _room(free: int, pool_nodes: int = 0, system_nodes: int = 0) -> SubnetRoom:
    return SubnetRoom(free=free, pool_nodes=pool_nodes, system_nodes=system_nodes)


def test_what_stands_already_needs_no_more_addresses() -> None:
    """126 of full pools, 21 of a system node, 10 of stores and EKS."""
    for enough in _room(157), _room(136, 1), _room(126, 0, 1), _room(105, 1, 1), _room(0, 6, 1):
        assert errors(addresses={ZONE: enough}) == []
    [said] = errors(addresses={ZONE: _room(104, 1, 1)})
    assert said == (
        f"environment.pools: must need at most the 104 free addresses of the private subnet in {ZONE};"
        " got 105: full pools and the rest need 84 for pool g6e, 42 for pool h100, 21 for system nodes,"
        " 3 for store scratch, 1 for store home, 6 for EKS; 52 are there already. Fix: delete what else"
        " has addresses in that subnet, or lower max_nodes of g6e, h100"
    )
    assert (
        1
        == len(errors(addresses={ZONE: _room(156)}))
        == len(errors(addresses={ZONE: _room(135, 1)}))
    )


def test_every_zone_of_the_network_must_have_addresses() -> None:
    c = f"{REGION}c"
    assert errors(addresses={c: _room(27)}) == []
    [said] = errors(addresses={c: _room(26)})
    assert said.startswith("environment.network: must need at most the 26 free addresses of the")
    [existing] = [
        one for one in errors(EXISTING_VPC, addresses={c: _room(26)}) if "free addresses" in one
    ]
    assert existing.endswith(f"or write a larger subnet of {c}")


def test_an_existing_vpc_is_judged_with_the_rules_of_the_preview() -> None:
    [said] = errors(EXISTING_VPC, zones={})
    assert said.startswith("environment.network.vpc_id: must be a VPC of this account")
    plan = environment_plan(EXISTING_VPC)
    told = account()
    preflight.preflight(told, plan, reading(EXISTING_VPC).config.environment, 60)  # pyright: ignore[reportOptionalMemberAccess]
    told.vpc.assert_called_once_with(VPC, [*SUBNETS.values()])
    assert told.addresses.call_args.args[1] == [*SUBNETS.values()], "of its subnets by id"
    told.without_s3.assert_called_once_with(VPC, [*SUBNETS.values()])


def test_whether_an_existing_vpc_needs_an_endpoint_of_s3_is_said() -> None:
    def said(*edits: Edit, **answers: Any) -> list[str]:
        return [
            str(one) for one in found(EXISTING_VPC, *edits, **answers) if "s3_endpoint" in str(one)
        ]

    wanted, both = at("network.s3_endpoint", True), [*SUBNETS.values()]
    assert said() == said(wanted, without_s3=both) == []
    assert "with s3_endpoint: true the stack makes a gateway endpoint" in said(without_s3=both)[0]
    assert "AWS refuses a second one: delete s3_endpoint" in said(wanted)[0]


NO_INTERNET = (
    EXISTING_VPC,
    at("network.internet", "none"),
    at("artifacts.images", "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"),
)


def for_apis(*apis: str, state: str = "available", **differs: Any) -> list[EndpointFound]:
    """Endpoints that let both subnets in."""
    rule = RuleFound(
        egress=False, protocol="tcp", ports=(443, 443), cidr="10.20.0.0/16", group_id=""
    )
    told: dict[str, Any] = {"private_dns": True, "groups": ("sg-1",), "rules": (rule,), **differs}
    return [EndpointFound(id=f"vpce-{api}", api=api, state=state, **told) for api in sorted(apis)]


def test_an_endpoint_of_an_existing_vpc_must_be_available_and_let_nodes_in() -> None:
    """Also beside a way to the internet: its names lead nowhere else."""

    def said(*there: EndpointFound) -> list[str]:
        return errors(EXISTING_VPC, vpc=SOUND_VPC, endpoints=there)

    assert said(*for_apis("sqs")) == []
    assert said(*for_apis("kms", state="pending")) == [], "nothing of the stack calls it"
    assert said(*for_apis("sqs", state="rejected", private_dns=False)) == []
    [waits] = said(*for_apis("sqs", state="pendingAcceptance"))
    assert "must be endpoints that are available" in waits
    assert "got vpce-sqs for sqs, which is pendingAcceptance" in waits
    part = RuleFound(
        egress=False, protocol="tcp", ports=(443, 443), cidr="10.20.16.0/20", group_id=""
    )
    [shut] = said(*for_apis("sqs", rules=(part,)))
    assert (
        "got vpce-sqs for sqs, whose security groups (sg-1) have no rule for 10.20.48.0/20" in shut
    )
    assert shut.endswith(
        "authorize-security-group-ingress --group-id sg-1 --ip-permissions"
        " IpProtocol=tcp,FromPort=443,ToPort=443,IpRanges=[{CidrIp=10.20.48.0/20}]`"
    )
    out = RuleFound(egress=True, protocol="-1", ports=(-1, -1), cidr="0.0.0.0/0", group_id="")
    assert "no rule for 10.20.16.0/20, 10.20.48.0/20" in said(*for_apis("sqs", rules=(out,)))[0]


def test_endpoints_of_another_vpc_are_named_and_not_looked_for() -> None:
    elsewhere = at("network.endpoints", "elsewhere")
    told = found(*NO_INTERNET, elsewhere, vpc=SOUND_VPC, without_s3=[SUBNETS[ZONE]])
    assert not [one for one in told if isinstance(one, InputError)]
    [said] = [str(one) for one in told if "endpoints" in str(one)]
    apis = ", ".join(["s3", *sorted({*ALWAYS, "elasticfilesystem"})])
    assert f"elsewhere: nothing checks that nodes in {VPC} reach {apis} by endpoints" in said
    assert environment_plan(*NO_INTERNET, elsewhere).network.endpoints is None


def test_an_existing_vpc_without_the_internet_leads_to_every_api_that_is_called() -> None:
    def said(*edits: Edit, **answers: Any) -> list[str]:
        return [str(one) for one in found(*edits, **answers) if "endpoint" in str(one)]

    every = {*ALWAYS, "elasticfilesystem"}
    assert said(*NO_INTERNET, endpoints=for_apis(*every)) == []
    [missing] = said(*NO_INTERNET, endpoints=for_apis(*every - {"sqs", "ecr.api"}))
    assert "got no endpoint with private DNS for ecr.api, sqs. Fix: make those" in missing
    [s3] = said(*NO_INTERNET, endpoints=for_apis(*every), without_s3=[SUBNETS[ZONE]])
    assert "network.s3_endpoint: must be true: without the internet images come from S3" in s3
    ours = at("network.endpoints", "private")
    assert said(*NO_INTERNET, ours) == []
    [unknown] = said(*NO_INTERNET, ours, endpoint_offers={})
    assert f"private, and {REGION} has none for {', '.join(sorted(every))}" in unknown
    [twice] = said(*NO_INTERNET, ours, endpoints=for_apis("sqs", "kms"))
    assert "has endpoints for sqs; unless they are this stack's own" in twice
    assert said(EXISTING_VPC) == []


def test_endpoints_of_a_shared_vpc_are_not_called_missing() -> None:
    """Only their owner sees them."""

    def said(*edits: Edit) -> list[str]:
        unseen = found(*edits, vpc=SHARED_VPC, without_s3=[*SUBNETS.values()])
        return [str(one) for one in unseen if "endpoint" in str(one) or isinstance(one, InputError)]

    here = f"environment.network.vpc_id: {VPC} belongs to account {OWNER}, which shares it;"
    apis = ", ".join(sorted({*ALWAYS, "elasticfilesystem"}))
    [with_internet] = said(EXISTING_VPC)
    assert with_internet.startswith(here)
    assert f"any of them with private DNS for {apis} must be available and let" in with_internet
    [without_internet] = said(*NO_INTERNET)
    assert without_internet.startswith(here)
    assert f"nothing checks that it has them for s3, {apis};" in without_internet
    [elsewhere] = said(*NO_INTERNET, at("network.endpoints", "elsewhere"))
    assert "elsewhere: nothing checks" in elsewhere
    refused, _ = said(EXISTING_VPC, at("network.s3_endpoint", True))
    assert "network.s3_endpoint: must not be true: only the account that owns" in refused


def test_a_private_endpoint_in_an_existing_vpc_needs_no_public_one_before_it() -> None:
    private = at("cluster.endpoint", "private"), without("cluster.public_access_cidrs")
    inside, tunnel = at("cluster.inside_vpc", True), at("cluster.tunnel_port", 8443)
    public_first = "must be public-and-private until the cluster exists"
    assert any(public_first in said for said in errors(*private, inside))
    assert not any(public_first in said for said in errors(EXISTING_VPC, *private, inside))
    assert any(
        "the node that the tunnel" in said for said in errors(EXISTING_VPC, *private, tunnel)
    )


def test_every_error_of_an_account_is_caused_by_a_test_above() -> None:
    """Counted by line: a new error without a case fails here."""

    def run() -> None:
        found(at("cluster.admins.me.role_arn", ROLE))
        found(DEPLOYED, has_cluster=True)
        found(DEPLOYED, caller_arn=NotAssumed(DEPLOYER, "AccessDenied"))
        found(caller_arn=NotAnswered("denied"))
        found(at("zone_id", "apne2-az2"), at("pools.h100.instance_types", ["g6e.48xlarge"]))
        found(SPOT, has_role=False, quota=(0, 4), addresses={ZONE: _room(1)}, offers={}, zones={})
        found(zones={ZONE: "use1-az3"})
        found(block, reservation={})
        found(block, reservation=DESCRIBED | {"InstanceType": "p5en.48xlarge"})
        preflight.preflight(account(), in_accounts("999999999999"), None, 60)
        found(EXISTING_VPC, vpc=SOUND_VPC, endpoints=for_apis("sqs", state="pending", rules=()))
        found(*NO_INTERNET, at("network.endpoints", "elsewhere"))
        found(EXISTING_VPC, without_s3=[SUBNETS[ZONE]])
        found(EXISTING_VPC, at("network.s3_endpoint", True))
        found(*NO_INTERNET, without_s3=[SUBNETS[ZONE]])
        found(*NO_INTERNET, at("network.endpoints", "private"), endpoints=for_apis("sqs"))

    modules = preflight, existing_vpc, free_addresses, service_roles, zone_choice
    assert lines_not_reached(modules, run) == []


# What is not answered.


def test_a_denied_call_is_one_warning() -> None:
    reason = NotAnswered("servicequotas:GetServiceQuota: AccessDenied")
    _, *zones, denied = found(quota=reason, zones={})
    assert str(denied) == f"account: a question failed: {reason}" and len(zones) == 3


def test_an_account_that_does_not_know_the_caller_is_asked_nothing_more_and_is_an_error() -> None:
    reason = NotAnswered("sts:GetCallerIdentity: Unable to locate credentials")
    assert errors(caller_arn=reason, zones={}) == [
        f"account: must say who the caller is; nothing in the account was checked; got {reason}."
        " Fix: log in, for example with `aws sso login`, or leave --live out"
    ]


def test_a_team_asks_who_it_is_and_no_more() -> None:
    [said] = preflight.preflight(asked := account(), team_plan(), None, 60)
    assert str(said) == f"account: the caller is {SESSION}; nothing more is checked for a team"
    assert [name for name, *_ in asked.method_calls] == ["caller_arn"]


# What has no answer in time.


def test_a_question_without_an_answer_is_named_and_the_others_are_judged() -> None:
    asked = account(zones={ZONE: "apne2-az1", f"{REGION}b": "apne2-az2"})
    asked.addresses.side_effect = lambda *rest: Event().wait(60)
    config = reading().config
    assert config
    said = [
        str(one)
        for one in preflight.preflight(asked, environment_plan(), config.environment, deadline=3)
    ]
    assert "account: no answer in 3 s, so this is not checked: free addresses" in said
    assert any(
        "environment.network.zones: must be available to this account" in one for one in said
    )
    assert sum("no answer" in one for one in said) == 1


def test_a_defect_of_this_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        found(zones=ZeroDivisionError())


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch) -> Iterator[set[str]]:
    """An endpoint on loopback that takes every question and answers none but those whose words are
    in the set."""
    answered, over = set[str](), Event()

    class Endpoint(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"])).decode()
            if not any(word in body for word in answered):
                over.wait(60)
            told = f"<GetCallerIdentityResponse><GetCallerIdentityResult><Arn>{SESSION}</Arn></GetCallerIdentityResult>"
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{told}</GetCallerIdentityResponse>".encode())

        do_GET = do_POST

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, daemon=True).start()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            monkeypatch.setenv(name, "testing")
        monkeypatch.delenv("AWS_PROFILE", raising=False)
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        yield answered
        over.set()
        server.shutdown()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], ["the caller"]),
        (
            ["GetCallerIdentity"],
            ["zones", "instance types on offer", "quota L-DB2E81BA", "free addresses"],
        ),
    ],
)
def test_a_check_of_an_account_that_hangs_ends_in_time_and_says_what_it_did_not_learn(
    words: list[str], says: list[str], hanging: set[str]
) -> None:
    """On a machine that is busy even the answer about the caller comes late: a longer limit is tried then."""
    hanging.update(words)
    for limit in ("5", "20", "60"):
        done = subprocess.run(
            [sys.executable, "-m", "trainyard", "check", "dev", "--rehearsal", "--deadline", limit],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert "Traceback" not in done.stderr
        if not words or "not checked: the caller" not in done.stdout:
            break
    assert all(
        f"warning  account: no answer in {limit} s, so this is not checked: {what}" in done.stdout
        for what in says
    )
    assert done.returncode == 0 and "next: trainyard plan dev" in done.stderr


# `trainyard check`.


def test_a_plain_check_loads_nothing_that_asks_the_account_or_reads_yaml_jobs() -> None:
    program = (
        "import sys; from trainyard.cli.main import typed; typed(['check', 'dev']);"
        " print([m for m in ('botocore', 'trainyard.live.preflight', 'trainyard.live.questions.account',"
        " 'trainyard.manifests.admission') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(("quota", "code"), [((384, 0), 0), ((383, 0), 1)])
def test_a_live_check_fails_where_the_account_has_something_against_it(
    quota: Any, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(account_module, "Account", lambda access: account(quota=quota))
    assert (run_word("check", ["--live", "dev"]), run_word("check", ["dev"])) == (code, 0)
    live, plain = capsys.readouterr().out.split("dev: ")[:2]
    assert "zone_id: apne2-az1" in live and "are checked against" not in live
    assert "are checked against the region" in plain
    assert ("must need at most the 383 vCPUs of quota" in live) == bool(code)


# The account itself.

ME = Identity(project="trainyard", stack="dev", region=REGION)


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        yield Account(AccessPlan(region=REGION))


def test_questions_are_asked_as_the_last_role_of_the_stack_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With the profile's keys the first role is assumed, with its keys the second."""
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    (tmp_path / "config").write_text(
        "[profile corp]\naws_access_key_id = AKIACORP\naws_secret_access_key = x\n"
    )
    roles = (
        AssumedRole(arn="arn:aws:iam::123456789012:role/hub", external_id="ours"),
        AssumedRole(arn="arn:aws:iam::123456789012:role/deployer", session_name="ci"),
    )
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name, raising=False)
    sent = list[Any]()
    with mock_aws():
        monkeypatch.setattr(
            "botocore.client.BaseClient._make_api_call",
            lambda self, name, given, call=BaseClient._make_api_call: (
                sent.append((self._request_signer._credentials.access_key, given)),
                call(self, name, given),
            )[1],
        )
        asked = Account(AccessPlan(region=REGION, profile="corp", roles=roles))
        assert asked.caller_arn() == "arn:aws:sts::123456789012:assumed-role/deployer/ci"
    (first, hub), (second, deployer), (third, _) = sent
    assert first == "AKIACORP" and len({first, second, third}) == 3
    assert hub == {
        "RoleArn": "arn:aws:iam::123456789012:role/hub",
        "RoleSessionName": "trainyard",
        "ExternalId": "ours",
    }
    assert deployer == {
        "RoleArn": "arn:aws:iam::123456789012:role/deployer",
        "RoleSessionName": "ci",
    }


def test_a_role_that_aws_refuses_is_named(ours: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "AssumeRole")
    monkeypatch.setattr("botocore.client.BaseClient._make_api_call", Mock(side_effect=refusal))
    with pytest.raises(NotAssumed, match=f"^sts:AssumeRole of {DEPLOYER}: AccessDenied$"):
        Account(AccessPlan(region=REGION, roles=(AssumedRole(arn=DEPLOYER),))).caller_arn()


def test_every_question_reads() -> None:
    kinds = (Account, NetworkQuestions, StoreQuestions)
    asked = "".join(inspect.getsource(kind) for kind in kinds)
    actions = re.findall(r'"[a-z0-9]+:([A-Z][A-Za-z]+)"', asked)
    reads = ("Get", "Describe", "Head", "List")
    assert len(actions) == 67 and all(action.startswith(reads) for action in actions)


def test_an_account_is_asked_through_botocore(ours: Account) -> None:
    assert ours.caller_arn().startswith("arn:aws:sts::123456789012:") and not ours.has_cluster(
        "dev"
    )
    assert (
        ours.zones()[ZONE] == "apne2-az1" and ZONE in ours.offers(["g6e.48xlarge"])["g6e.48xlarge"]
    )
    boto3.client("iam").create_role(
        RoleName="AWSServiceRoleForEC2Spot",
        Path="/aws-service-role/",
        AssumeRolePolicyDocument="{}",
    )
    assert ours.has_role("AWSServiceRoleForEC2Spot") and not ours.has_role("AWSServiceRoleForX")
    arn = ours.role_arn("AWSServiceRoleForEC2Spot")
    assert arn and arn.endswith(":role/aws-service-role/AWSServiceRoleForEC2Spot")


def test_what_is_ours_is_told_by_its_tags(ours: Account) -> None:
    ec2 = boto3.client("ec2", REGION)
    [subnet] = ec2.describe_subnets(Filters=[{"Name": "availability-zone", "Values": [ZONE]}])[
        "Subnets"
    ]
    made = ec2.run_instances(
        ImageId="ami-12c6146b", InstanceType="p5.48xlarge", MinCount=4, MaxCount=4
    )["Instances"]
    for id_, name in (
        (subnet["SubnetId"], "network-private-a"),
        (made[0]["InstanceId"], "h100-node"),
    ):
        tags = {"project": "trainyard", "stack": "dev", "name": name}.items()
        ec2.create_tags(
            Resources=[id_],
            Tags=[{"Key": f"trainyard:{key}", "Value": value} for key, value in tags],
        )
    node_group = [{"Key": "eks:nodegroup-name", "Value": "dev-system"}]
    ec2.create_tags(Resources=[made[1]["InstanceId"]], Tags=node_group)
    assert ours.addresses(ME, ["network-private-b"], ["g6e"], "dev-system") == {}
    assert ours.addresses(
        ME, ["network-private-a", "network-private-b"], ["h100"], "dev-system"
    ) == {ZONE: _room(4091 - 4, 1, 1)}
    by_id = ours.addresses(ME, [subnet["SubnetId"]], [], "another")
    assert by_id == {ZONE: _room(4091 - 4)}
    with Stubber(ours._clients["servicequotas"]) as stub:
        stub.add_response("get_service_quota", {"Quota": {"Value": 768.0}})
        assert ours.quota(ME, "dev-system", "L-417A185B") == (768, 2 * 192)


def _instance(kind: str, **more: Any) -> dict[str, Any]:
    return {"InstanceType": kind, **more}


@pytest.mark.parametrize(
    ("code", "others"),
    [
        ("L-DB2E81BA", 5 * 48 + 24 + 4),
        ("L-3819A6DF", 16),
        ("L-417A185B", 8 + 192 + 48),
        ("L-7212CCBC", 32),
        ("L-C4BD4855", 16),
        ("L-1216C47A", 2 + 2 + 16 + 8 + 1),
        ("L-34B43A08", 8),
    ],
)
def test_instances_of_any_family_count_as_vcpus_that_others_use(
    ours: Account, code: str, others: int
) -> None:
    """Each quota counts the families of its name; those of inf, trn, dl, x, u, hpc, f and mac have their own."""
    spot, half = (
        {"InstanceLifecycle": "spot"},
        {"CpuOptions": {"CoreCount": 48, "ThreadsPerCore": 1}},
    )
    own = {
        "Tags": [
            {"Key": f"trainyard:{k}", "Value": v}
            for k, v in (("project", "trainyard"), ("stack", "dev"))
        ]
    }
    group = {"Tags": [{"Key": "eks:nodegroup-name", "Value": "dev-system"}]}
    running = [
        *5 * [_instance("g4dn.12xlarge", CpuOptions={"CoreCount": 24, "ThreadsPerCore": 2})],
        *map(_instance, ("vt1.6xlarge", "gr6.xlarge", "p3.2xlarge", "p6-b200.48xlarge")),
        _instance("p4d.24xlarge", **half),
        _instance("g5g.4xlarge", **spot),
        _instance("p3.8xlarge", **spot),
        _instance("p5.4xlarge", **spot),
        _instance("p6-b300.48xlarge", **spot),
        _instance("p5.48xlarge", InstanceLifecycle="capacity-block"),
        *map(_instance, ("t3.large", "im4gn.large", "i4i.4xlarge", "m7i-flex.2xlarge")),
        _instance("t2.micro", CpuOptions={"CoreCount": 1, "ThreadsPerCore": 1}),
        _instance("c6g.2xlarge", **spot),
        _instance("m5.24xlarge", Placement={"Tenancy": "host"}),
        _instance("g6e.48xlarge", **own),
        _instance("m7i.xlarge", **group),
        *map(
            _instance,
            ("inf2.xlarge", "trn1.32xlarge", "dl1.24xlarge", "x2idn.16xlarge", "f2.6xlarge"),
        ),
        *map(_instance, ("u-6tb1.metal", "u7i-12tb.224xlarge", "hpc7a.96xlarge", "mac2-m2.metal")),
    ]
    with Stubber(ours._clients["servicequotas"]) as quotas, Stubber(ours._clients["ec2"]) as ec2:
        ec2.add_response("describe_instances", {"Reservations": [{"Instances": running}]})
        for _ in range(2):
            quotas.add_response("get_service_quota", {"Quota": {"Value": 768.0}})
            assert ours.quota(ME, "dev-system", code) == (768, others), "asked once for all quotas"


def test_lustre_of_others_is_counted_by_its_deployment(ours: Account) -> None:
    def system(gib: int, deployment: str, **more: Any) -> dict[str, Any]:
        lustre = {"FileSystemType": "LUSTRE", "LustreConfiguration": {"DeploymentType": deployment}}
        return {"StorageCapacity": gib, "Lifecycle": "AVAILABLE", **lustre, **more}

    own = {"trainyard:project": "trainyard", "trainyard:stack": "dev"}.items()
    every = [
        system(1200, "PERSISTENT_2"),
        system(2400, "PERSISTENT_2", Tags=[{"Key": k, "Value": v} for k, v in own]),
        system(4800, "PERSISTENT_2", Lifecycle="DELETING"),
        system(9600, "PERSISTENT_1"),
        system(3600, "SCRATCH_1"),
        system(7200, "SCRATCH_2"),
        {"FileSystemType": "WINDOWS", "StorageCapacity": 5, "Lifecycle": "AVAILABLE"},
        system(8, "PERSISTENT_2", StorageType="INTELLIGENT_TIERING"),
    ]
    with Stubber(ours._clients["servicequotas"]) as quotas, Stubber(ours._clients["fsx"]) as fsx:
        quotas.add_response("get_service_quota", {"Quota": {"Value": 200000.0}})
        quotas.add_client_error("get_service_quota", "NoSuchResourceException")
        for _ in range(2):
            fsx.add_response("describe_file_systems", {"FileSystems": every})
        assert ours.lustre_storage(ME, "PERSISTENT_2") == (200000, 1200)
        assert ours.lustre_storage(ME, "SCRATCH_2") == (None, 10800)


def test_vpcs_of_others_are_counted_with_the_default_and_without_shared_ones(ours: Account) -> None:
    ec2 = boto3.client("ec2", REGION)
    own = [
        {"Key": f"trainyard:{key}", "Value": ME.tags("network")[f"trainyard:{key}"]}
        for key in ("project", "stack")
    ]
    before = len(ec2.describe_vpcs()["Vpcs"])
    for tags in ([], own):
        made = ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        ec2.create_tags(Resources=[made], Tags=[*tags, {"Key": "x", "Value": "y"}])
    with Stubber(ours._clients["servicequotas"]) as quotas:
        asked = {"ServiceCode": "vpc", "QuotaCode": "L-F678F1CE"}
        quotas.add_response("get_service_quota", {"Quota": {"Value": 5.0}}, asked)
        assert before and ours.vpcs(ME) == (5, before + 1)


def test_disks_of_others_are_counted_in_gib(ours: Account) -> None:
    own = {"trainyard:project": "trainyard", "trainyard:stack": "dev"}.items()
    every = [
        {"Size": 200, "Tags": [{"Key": k, "Value": v} for k, v in own]},
        {"Size": 100},
        {"Size": 30, "Tags": [{"Key": "trainyard:stack", "Value": "dev"}]},
    ]
    with Stubber(ours._clients["servicequotas"]) as quotas, Stubber(ours._clients["ec2"]) as ec2:
        asked = {"ServiceCode": "ebs", "QuotaCode": "L-7A658B76"}
        quotas.add_response("get_service_quota", {"Quota": {"Value": 50.0}}, asked)
        gp3 = {"Filters": [{"Name": "volume-type", "Values": ["gp3"]}]}
        ec2.add_response("describe_volumes", {"Volumes": every}, gp3)
        assert ours.disks(ME) == (50, 130)


def test_a_reservation_that_ec2_does_not_know_is_empty_and_one_that_is_denied_not_answered(
    ours: Account,
) -> None:
    with Stubber(ours._clients["ec2"]) as stub:
        stub.add_response(
            "describe_capacity_reservations", {"CapacityReservations": [{"State": "active"}]}
        )
        stub.add_client_error(
            "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound"
        )
        stub.add_client_error("describe_capacity_reservations", "UnauthorizedOperation")
        assert (ours.reservation(ID), ours.reservation(ID)) == ({"State": "active"}, {})
        with pytest.raises(
            NotAnswered, match="^ec2:DescribeCapacityReservations: UnauthorizedOperation$"
        ):
            ours.reservation(ID)


@pytest.mark.parametrize(
    ("name", "value"), [("AWS_PROFILE", "nobody"), ("AWS_ENDPOINT_URL", "http://127.0.0.1:9")]
)
def test_profile_and_endpoint_are_those_of_the_aws_cli(
    name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caller_module, "TIMEOUTS", {"retries": {"total_max_attempts": 1}})
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", name):
        monkeypatch.setenv(key, value)
    with pytest.raises(NotAnswered, match=f"^sts:GetCallerIdentity: .*{value}"):
        Account(AccessPlan(region=REGION)).caller_arn()
