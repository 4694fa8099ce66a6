"""Each thing that the dev stack has on AWS is missed by somebody: it is taken out of the account, one at
a time, and what nodes and pods then ask fails and says why. `make soak` does the same in whole worlds."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlencode

import pytest
from botocore.exceptions import ClientError

from rehearsal import paths
from rehearsal.aws.identity import ACCOUNT
from rehearsal.kubelet import drivers, machine
from rehearsal.kubelet.aws import PEERS, AwsError, InstanceToken
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.kubelet import CREDENTIALS
from tests.rehearsal.aws_world import REGION
from tests.rehearsal.product_world import Product, product
from tests.support.leave_outs import EVENTS, LEAVE_OUTS, REDUNDANT, STATEMENTS, LeaveOut, rule
from tests.support.patience import PATIENCE
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects.deployer import Scope, deployer_policies
from trainyard.objects.iam.policies import document

ASSUME = ["sts:AssumeRole"]
FAST = [one for one in LEAVE_OUTS if one.probe]
NOBODY = {f"network-public-{zone}" for zone in "bc"}
"""Associations of subnets that hold nothing but interfaces of the API server: test_consumers.py."""


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("account")
        patch.setattr(paths, "FILE_SYSTEMS", folder / "file-systems")
        with product(folder) as made:
            made.account.client("ecr").create_repository(repositoryName="train")
            yield made


@pytest.fixture(scope="module")
def node(stack: Product) -> str:
    return stack.launch()


def _boots(stack: Product, instance: str) -> str:
    machine._described(instance, stack.asked)
    return ""


def _every_system_zone(stack: Product, _: str) -> str:
    """A node of the group may be in any of its subnets; here each gets one for a moment."""
    group = stack.made["NodeGroup", "system"].inputs
    role = stack.made["Role", "system"].state["name"]
    profiles = stack.account.client("iam").list_instance_profiles_for_role(RoleName=role)
    [profile] = profiles["InstanceProfiles"]
    for subnet in group["subnetIds"]:
        instance = stack.launch(subnet, profile["InstanceProfileName"])
        try:
            machine._described(instance, stack.asked)
        finally:
            stack.ec2.terminate_instances(InstanceIds=[instance])
    return ""


def _joins(stack: Product, instance: str) -> str:
    machine._reached(instance, stack.asked, stack.cluster)
    token = InstanceToken(stack.asked, instance, stack.cluster)()
    review = {"kind": "TokenReview", "spec": {"token": token}}
    _, answer = stack.account.world("POST", "token-review", review)
    return "" if answer["status"]["authenticated"] else "401: Unauthorized"


def _pulls(stack: Product, instance: str) -> str:
    ids = [{"imageTag": "1"}]
    asked = stack.asked.as_instance(instance)
    asked.ecr("BatchGetImage", {"repositoryName": "train", "imageIds": ids})
    return ""


def _mounts(store: str) -> Callable[[Product, str], str]:
    def mounts(stack: Product, instance: str) -> str:
        volume = stack.graph.one("PersistentVolume", f"training-{store}-volume").inputs["spec"]
        kubelet: Any = SimpleNamespace(id=instance, account=stack.asked, zone=f"{REGION}a")
        drivers.DRIVERS[volume["csi"]["driver"]][1](kubelet, {}, volume)
        return ""

    return mounts


def _keys(stack: Product, account: str) -> dict[str, str]:
    """Of a service account in kube-system, by the names of their variables."""
    asked = {"cluster": stack.cluster, "namespace": "kube-system", "service_account": account}
    found = stack.asked.private(f"/pod-identity?{urlencode(asked)}") or {}
    return {variable: found[key] for variable, key in CREDENTIALS.items() if found}


def _addresses(stack: Product, instance: str) -> str:
    found = stack.ec2.describe_instances(InstanceIds=[instance])["Reservations"][0]["Instances"]
    interface = found[0]["NetworkInterfaces"][0]["NetworkInterfaceId"]
    return stack.asked.assigns(instance, interface, _keys(stack, "aws-node"))


def _as_karpenter(stack: Product, service: str) -> Any:
    keys = _keys(stack, "karpenter")
    named = {key: keys[variable] for variable, key in CREDENTIALS.items()}
    return stack.account.client(service, named)


def _launches(stack: Product, _: str) -> str:
    """As Karpenter does: a launch template with its tags, and a fleet of one from it."""
    stack.launch_as(_as_karpenter(stack, "ec2"))
    return ""


def _describes(stack: Product, _: str) -> str:
    _as_karpenter(stack, "ec2").describe_instances()
    return ""


def _messages(stack: Product) -> int:
    """How many the queue held; it holds none after that."""
    sqs, number = stack.account.client("sqs"), 0
    [url] = sqs.list_queues()["QueueUrls"]
    while found := sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages"):
        number += len(found)
        for one in found:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=one["ReceiptHandle"])
    return number


def _told(kind: str) -> Callable[[Product, str], str]:
    def told(stack: Product, _: str) -> str:
        _messages(stack)
        stack.announce(kind)
        return "" if _messages(stack) else "no message"

    return told


def _deletes(stack: Product, _: str) -> str:
    """Whoever deploys with the policies of `trainyard policy`, and finds what is his by a tag. The group is
    in use still, which EC2 says to whoever may delete it."""
    iam = stack.account.client("iam")
    trusted = document({"Principal": {"AWS": f"arn:aws:iam::{ACCOUNT}:root"}, "Action": ASSUME})
    if "deployer" not in [one["RoleName"] for one in iam.list_roles()["Roles"]]:
        iam.create_role(RoleName="deployer", AssumeRolePolicyDocument=json.dumps(trusted))
        types = {kind for kind in AWS_TYPES if kind.startswith("aws:ec2/")}
        made = deployer_policies(types, Scope(stack="dev", region=REGION))
        for name, policy in made.items():
            at = {"RoleName": "deployer", "PolicyName": name}
            iam.put_role_policy(**at, PolicyDocument=json.dumps(policy))
    arn = iam.get_role(RoleName="deployer")["Role"]["Arn"]
    keys = stack.account.client("sts").assume_role(RoleArn=arn, RoleSessionName="ci")
    ec2 = stack.account.client("ec2", keys["Credentials"])
    try:
        ec2.delete_security_group(GroupId=stack.made["SecurityGroup", "nodes"].id, DryRun=True)
    except ClientError as error:
        if error.response["Error"]["Code"] != "DependencyViolation":
            raise
    return ""


PROBES: dict[str, Callable[[Product, str], str]] = {
    "a GPU node boots": _boots,
    "a GPU node joins": _joins,
    "a GPU node pulls from ECR": _pulls,
    "a system node pulls from ECR": lambda stack, _: _pulls(stack, stack.system_nodes()[0]),
    "system nodes boot in every zone": _every_system_zone,
    "the API server reaches kubelets": lambda stack, instance: stack.asked.unreached(
        instance, stack.cluster, 10250
    ),
    "the API server reaches webhooks": lambda stack, _: stack.asked.unreached(
        stack.system_nodes()[0], stack.cluster, 9443
    ),
    "EFA reaches the peers": lambda stack, instance: stack.asked.blocked(instance, PEERS),
    "scratch is mounted": _mounts("scratch"),
    "home is mounted": _mounts("home"),
    "pods get addresses": _addresses,
    "Karpenter has its role": lambda stack, _: (
        "" if _keys(stack, "karpenter") else "no Pod Identity association lends a role"
    ),
    "a node is launched": _launches,
    "instances are described": _describes,
    **{f"{kind} is told": _told(kind) for kind in ("health", "rebalance", "reservation", "spot")},
    "state is told": _told("state"),
    "who deploys may delete it": _deletes,
}
"""What works with the whole stack, and says why where it does not."""


def _said(probe: str, stack: Product, instance: str) -> str:
    """An AWS call's error, a kubelet's, or nothing."""
    try:
        return PROBES[probe](stack, instance)
    except (AwsError, NotReady, ClientError) as error:
        return str(error)


def _until(wanted: Callable[[str], bool], probe: str, stack: Product, instance: str) -> str:
    """What the probe says; some things take AWS a moment."""
    end = time.monotonic() + PATIENCE
    while not wanted(said := _said(probe, stack, instance)) and time.monotonic() < end:
        time.sleep(0.2)
    return said


@pytest.mark.parametrize("probe", PROBES)
def test_the_whole_stack_works(stack: Product, node: str, probe: str) -> None:
    assert _said(probe, stack, node) == ""


@pytest.mark.parametrize("case", FAST, ids=lambda case: case.what)
def test_what_is_left_out_is_missed(stack: Product, node: str, case: LeaveOut) -> None:
    bring_back = case.away(stack.account.client)
    try:
        said = _until(lambda said: case.words in said, case.probe, stack, node)
    finally:
        bring_back()
    assert case.words in said
    assert _until(lambda said: not said, case.probe, stack, node) == "", "it is back"


@pytest.mark.parametrize("name", REDUNDANT)
def test_a_rule_that_nobody_misses_says_why(stack: Product, node: str, name: str) -> None:
    """It is there for whoever takes the cluster's group from the nodes."""
    bring_back = rule(name, stack.account.client)
    try:
        for probe in ("a GPU node boots", "EFA reaches the peers", "scratch is mounted"):
            assert _said(probe, stack, node) == "", REDUNDANT[name]
    finally:
        bring_back()


def test_each_of_the_graph_is_left_out_once_or_says_why_not(stack: Product) -> None:
    """A new rule, route, attachment, association, statement or event needs a case."""
    whats = {one.what for one in LEAVE_OUTS}
    rules = {name for kind, name in stack.made if re.search("SecurityGroup.*Rule", kind)}
    assert rules == {name for name in rules if f"rule {name}" in whats} | REDUNDANT.keys()
    links = {name for kind, name in stack.made if kind == "RouteTableAssociation"}
    assert links == {name for name in links if f"association of {name}" in whats} | NOBODY
    routes = {name for kind, name in stack.made if kind == "Route"}
    assert {f"route {name}" for name in routes} <= whats
    attached = {name for kind, name in stack.made if kind == "RolePolicyAttachment"} - {"eks"}
    assert len(attached) == sum(what.startswith("Amazon") for what in whats)
    events = {name.partition("-")[2] for kind, name in stack.made if kind == "EventRule"}
    assert events == set(EVENTS)
    identities = {name for kind, name in stack.made if kind == "PodIdentityAssociation"}
    assert len(identities) == sum(what.startswith("identity of") for what in whats)


def test_each_statement_of_karpenter_has_a_verdict(stack: Product) -> None:
    iam, role = stack.account.client("iam"), stack.made["Role", "karpenter"].state["name"]
    for policy, sids in STATEMENTS.items():
        document = iam.get_role_policy(RoleName=role, PolicyName=policy)["PolicyDocument"]
        assert {one["Sid"] for one in document["Statement"]} == sids.keys()


def test_there_are_forty_and_more_in_a_whole_world() -> None:
    whole = [one for one in LEAVE_OUTS if one.named]
    assert len(FAST) >= 40
    assert len({one.what for one in LEAVE_OUTS}) == len(LEAVE_OUTS)
    assert all(bool(one.named) != bool(one.only_fast) for one in LEAVE_OUTS)
    assert len(whole) >= 34
