"""Each policy, on the resources of real stacks: nothing of this program violates one, and each planted
violation is found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

from policy_pack.kinds import CLUSTER, INSTANCES
from policy_pack.policies import OWN_KEYS, RULES, BudgetRule
from policy_pack.resource import Resource, default_tags
from policy_pack.taggable import source_of, taggable
from tests.support.grammar import begins_with_a_verb
from tests.support.recording import CHECKOUT, Graph, Node
from tests.support.stacks import KEY, recorded

CONFIG = {
    "required": ["trainyard:project", "trainyard:stack"],
    "registries": [
        "*.dkr.ecr.*.amazonaws.com/",
        "public.ecr.aws/",
        "quay.io/",
        "ghcr.io/",
        "pytorch/",
        "nvcr.io/nvidia/",
    ],
    "max_usd_per_hour": 301,
    "keys": ["arn:aws:kms:*:123456789012:key/"],
}
BY_NAME = {rule.name: rule for rule in RULES}
TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
ROLE_POLICY = "aws:iam/rolePolicy:RolePolicy"
ROLE = "aws:iam/role:Role"
INGRESS = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
BLOCK = "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock"
Edit = Callable[[dict[str, Any]], object]


def resources(graph: Graph) -> list[Resource]:
    """What the engine would show to the policies: of pulumi-eks what it makes."""
    return [
        Resource(
            type=node.kind.replace("eks:index:Cluster", CLUSTER),
            name=node.name,
            urn=node.urn,
            props=_made_by_eks(node) if node.kind == "eks:index:Cluster" else deepcopy(node.inputs),
            protect=bool(node.options.protect),
            needs=frozenset(node.needs),
        )
        for node in graph.nodes.values()
    ]


def _made_by_eks(node: Node) -> dict[str, Any]:
    access = {
        key: node.inputs[key]
        for key in ("endpointPublicAccess", "publicAccessCidrs")
        if key in node.inputs
    }
    kept = {key: node.inputs[key] for key in ("enabledClusterLogTypes", "tags")}
    key = {"provider": {"keyArn": node.inputs.get("encryptionConfigKeyArn")}}
    return {**deepcopy(kept), "vpcConfig": deepcopy(access), "encryptionConfig": key}


def violations(name: str, of: list[Resource], **config: Any) -> Iterator[str]:
    rule, wanted = BY_NAME[name], {**CONFIG, **config}
    if rule.stack_check is not None:
        yield from (must for _, must in rule.stack_check(of, wanted))
    check = BudgetRule() if isinstance(rule.check, BudgetRule) else rule.check
    if check is not None:
        yield from (must for each in of for must in check(each, wanted))


def policy_of(*statements: dict[str, Any]) -> Edit:
    return lambda props: props.update(policy=json.dumps({"Statement": list(statements)}))


def ALLOW(**more: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Action": "s3:PutObject", "Resource": "arn:aws:s3:::a/*", **more}


def of(*path: str | int) -> Callable[[dict[str, Any]], Any]:
    def get(props: dict[str, Any]) -> Any:
        value: Any = props
        for key in path:
            value = value[key]
        return value

    return get


def put(*path: str | int, value: Any) -> Edit:
    return lambda props: of(*path[:-1])(props).__setitem__(path[-1], value)


def gone(*path: str | int) -> Edit:
    return lambda props: of(*path[:-1])(props).pop(path[-1])


PLANTED: list[tuple[str, str, Edit, str]] = [
    ("encrypted", "aws:efs/fileSystem:FileSystem", gone("encrypted"), "must be encrypted at rest"),
    ("encrypted", TEMPLATE, put("blockDeviceMappings", 0, "ebs", "encrypted", value="false"),
     "must encrypt the disk /dev/xvda"),
    ("encrypted", TEMPLATE, gone("blockDeviceMappings"), "must name its disks"),
    ("encrypted", NODE_CLASS, put("spec", "blockDeviceMappings", 0, "ebs", "encrypted", value=False),
     "must encrypt the disk /dev/xvda"),
    ("private", BLOCK, put("blockPublicPolicy", value=False), "must set blockPublicPolicy"),
    ("private", TEMPLATE, put("networkInterfaces", value=[{"associatePublicIpAddress": "true"}]),
     "must not give a node a public address"),
    ("private", NODE_CLASS, put("spec", "associatePublicIPAddress", value=True),
     "must not give a node a public address"),
    ("private", CLUSTER, put("vpcConfig", "publicAccessCidrs", value=["0.0.0.0/0"]),
     "must limit the public endpoint"),
    ("private", CLUSTER, gone("vpcConfig", "publicAccessCidrs"), "must limit the public endpoint"),
    ("private", CLUSTER, put("vpcConfig", "publicAccessCidrs", value=["0.0.0.0/1", "128.0.0.0/1"]),
     "must limit the public endpoint"),
    ("private", "aws:ec2/subnet:Subnet", put("mapPublicIpOnLaunch", value=True),
     "must not give public addresses"),
    ("private", "kubernetes:core/v1:Service", put("spec", "type", value="LoadBalancer"),
     "must not be a Service of type LoadBalancer"),
    ("no-public-ingress", INGRESS, put("cidrIpv4", value="0.0.0.0/0"), "must not let 0.0.0.0/0 in"),
    ("no-public-ingress", INGRESS, put("cidrIpv6", value="::/0"), "must not let ::/0 in"),
    ("no-public-ingress", "aws:ec2/securityGroup:SecurityGroup",
     put("ingress", value=[{"cidrBlocks": ["0.0.0.0/0"]}]), "must not let 0.0.0.0/0 in"),
    ("no-public-ingress", INGRESS, put("cidrIpv4", value="0.0.0.0/1"), "must not let 0.0.0.0/1 in"),
    ("no-public-ingress", "aws:ec2/securityGroup:SecurityGroup",
     put("ingress", value=[{"ipv6CidrBlocks": ["2000::/3"]}]), "must not let 2000::/3 in"),
    ("metadata-by-token", TEMPLATE, put("metadataOptions", "httpTokens", value="optional"),
     "must require a token"),
    ("metadata-by-token", NODE_CLASS, put("spec", "metadataOptions", "httpPutResponseHopLimit", value=2),
     "must keep instance metadata from pods"),
    ("tagged", "aws:ec2/vpc:Vpc", gone("tags", "trainyard:project"), "must have trainyard:project"),
    ("tagged", NODE_CLASS, gone("spec", "tags"), "the tags of its nodes"),
    ("tagged", TEMPLATE, gone("tagSpecifications", 1, "tags"), "the tags of each volume"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="s3:*")), "must not allow every action"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action=["s3:GetObject", "*"])), "every action"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Resource="*")), "must limit s3:PutObject"),
    ("least-privilege", ROLE_POLICY, policy_of({"Effect": "Allow", "NotAction": "iam:*", "Resource": "a"}),
     "NotAction"),
    ("least-privilege", "aws:sqs/queuePolicy:QueuePolicy", policy_of(ALLOW(Principal="*")),
     "must not allow every account"),
    ("least-privilege", "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
     put("policyArn", value="arn:aws:iam::aws:policy/AdministratorAccess"),
     "must not attach AdministratorAccess"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="iam:*Role*", Resource="*", Condition={"a": {}})),
     "must name each action that it allows on every resource; got iam:*Role*"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="iam:PassRole", Resource="arn:aws:iam::*:role/*")),
     "must limit iam:PassRole"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="secretsmanager:GetSecretValue", Resource="*")),
     "must limit secretsmanager:GetSecretValue"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="ssm:Get*", Resource="*")), "got ssm:Get*"),
    ("least-privilege", ROLE_POLICY, policy_of(ALLOW(Action="s3:**")), "must not allow every action"),
    ("least-privilege", "aws:sqs/queuePolicy:QueuePolicy",
     policy_of(ALLOW(Principal={"AWS": ["*", "123456789012"]})), "must not allow every account"),
    ("least-privilege", ROLE, put("managedPolicyArns", value=["arn:aws:iam::aws:policy/IAMFullAccess"]),
     "must not attach IAMFullAccess"),
    ("least-privilege", "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
     put("policyArn", value="arn:aws:iam::aws:policy/PowerUserAccess"), "must not attach PowerUserAccess"),
    ("least-privilege", ROLE,
     put("inlinePolicies", value=[{"name": "all", "policy": json.dumps({"Statement": ALLOW(Action="*")})}]),
     "must not allow every action"),
    ("audited", CLUSTER, put("enabledClusterLogTypes", value=["audit"]), "the log authenticator"),
    ("scanned", "aws:ecr/repository:Repository", gone("imageScanningConfiguration"), "must scan images"),
    ("images-from-allowed-registries", "kubernetes:apps/v1:DaemonSet",
     put("spec", "template", "spec", "containers", 0, "image", value="docker.io/miner:1"),
     "got docker.io/miner:1"),
    ("images-from-allowed-registries", "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob",
     put("spec", "trainer", "image", value="docker.io/miner:1"), "got docker.io/miner:1"),
    ("within-budget", "kubernetes:karpenter.sh/v1:NodePool", put("spec", "limits", "nodes", value="99"),
     "must leave the pools within 301.00 USD an hour"),
    ("within-budget", "kubernetes:karpenter.sh/v1:NodePool",
     put("spec", "template", "spec", "requirements", 0, "values", value=["z9.metal"]),
     "must have an instance type whose price is known"),
]  # fmt: skip


PUBLIC = {"type": "ingress", "cidrBlocks": ["10.0.0.0/8", "0.0.0.0/0"]}
DISK = {"encrypted": True, "kmsKeyId": KEY}
STRANGERS: list[tuple[str, str, dict[str, Any], dict[str, Any], str]] = [
    ("no-public-ingress", "aws:ec2/securityGroupRule:SecurityGroupRule", PUBLIC | {"type": "egress"},
     PUBLIC, "must not let 0.0.0.0/0 in"),
    ("no-public-ingress", "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup", {},
     {"ingress": [{"cidrBlocks": ["0.0.0.0/0"]}]}, "must not let 0.0.0.0/0 in"),
    ("private", "aws:ec2/instance:Instance", {"associatePublicIpAddress": False},
     {"associatePublicIpAddress": True}, "must not give a node a public address"),
    ("private", "aws:ec2/eip:Eip", {"domain": "vpc"}, {"domain": "vpc", "instance": "i-1"},
     "must not give a node a public address"),
    ("private", "aws:ec2/eipAssociation:EipAssociation", {"allocationId": "e"},
     {"allocationId": "e", "networkInterfaceId": "eni-1"}, "must not give a node a public address"),
    ("private", "aws:ec2/defaultSubnet:DefaultSubnet", {"mapPublicIpOnLaunch": False}, {},
     "must not give public addresses"),
    ("encrypted", "aws:ebs/volume:Volume", {"encrypted": True}, {}, "must be encrypted at rest"),
    ("encrypted", "aws:ec2/instance:Instance", {"rootBlockDevice": DISK}, {}, "must name its disks"),
    ("encrypted", "aws:ec2/instance:Instance", {"rootBlockDevice": DISK},
     {"rootBlockDevice": {"volumeSize": 9}}, "must encrypt the disk that it boots from"),
    ("encrypted", "aws:ec2/instance:Instance", {"rootBlockDevice": DISK},
     {"rootBlockDevice": DISK, "ebsBlockDevices": [{"deviceName": "/dev/sdb"}]},
     "must encrypt the disk /dev/sdb"),
    *(("metadata-by-token", kind, {"metadataOptions": {"httpTokens": "required"}},
       {"rootBlockDevice": DISK}, "must require a token for instance metadata") for kind in INSTANCES),
    ("least-privilege", "aws:iam/userPolicyAttachment:UserPolicyAttachment",
     {"policyArn": "arn:aws:iam::aws:policy/ReadOnlyAccess"},
     {"policyArn": "arn:aws:iam::aws:policy/AdministratorAccess"}, "must not attach AdministratorAccess"),
    ("own-key", "aws:ebs/volume:Volume", DISK, {"encrypted": True}, "got a key of AWS"),
    ("own-key", "aws:ec2/instance:Instance", {"rootBlockDevice": DISK},
     {"rootBlockDevice": {"encrypted": True}}, "must encrypt the disk that it boots from"),
    ("own-key", "aws:ecr/repository:Repository", {"encryptionConfigurations": [{"kmsKey": KEY}]}, {},
     "must encrypt its images"),
    ("own-key", "aws:secretsmanager/secret:Secret", {"kmsKeyId": KEY}, {"kmsKeyId": "alias/theirs"},
     "got alias/theirs"),
]  # fmt: skip
"""(policy, type that this program does not make, its properties as they may be, as they may not be)."""


@pytest.mark.parametrize(("name", "kind", "sound", "wrong", "said"), STRANGERS)
def test_a_violation_of_a_resource_that_somebody_adds_is_found(
    name: str, kind: str, sound: dict[str, Any], wrong: dict[str, Any], said: str
) -> None:
    assert source_of(kind), "the SDK has no such type"
    added = Resource(type=kind, name="added", urn="added", props=sound)
    assert not [*violations(name, [added])]
    assert any(said in must for must in violations(name, [replace(added, props=wrong)]))


@pytest.mark.parametrize(
    ("kind", "published"),
    [("Ingress", 1), ("IngressPatch", 1), ("IngressList", 1), ("IngressClass", 0)],
)
def test_an_ingress_publishes_a_service_and_its_class_does_not(kind: str, published: int) -> None:
    of = Resource(type=f"kubernetes:networking.k8s.io/v1:{kind}", name="a", urn="a", props={})
    assert [*violations("private", [of])] == published * [
        "must not be an Ingress: it publishes a Service"
    ]


PASSED: list[dict[str, Any]] = [
    ALLOW(Action=["ec2:Describe*", "iam:ListRoles"], Resource="*"),
    ALLOW(Action="s3:GetObject*", Resource="arn:aws:s3:::sets/*"),
    ALLOW(Action="iam:PassRole", Resource="arn:aws:iam::123456789012:role/*"),
    ALLOW(Action="ec2:CreateTags", Resource="*", Condition={"StringEquals": {}}),
]


@pytest.mark.parametrize("statement", PASSED)
def test_a_statement_that_is_narrow_passes(statement: dict[str, Any]) -> None:
    props = {"policy": json.dumps({"Statement": statement})}
    assert not [
        *violations("least-privilege", [Resource(type=ROLE_POLICY, name="", urn="", props=props)])
    ]


OWN_KEY = (
    "aws:efs/fileSystem:FileSystem",
    "aws:fsx/lustreFileSystem:LustreFileSystem",
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:sqs/queue:Queue",
    "aws:sns/topic:Topic",
    "aws:amp/workspace:Workspace",
    CLUSTER,
    TEMPLATE,
    NODE_CLASS,
)


def test_a_stack_with_a_key_of_the_company_encrypts_everything_with_it() -> None:
    with_key = resources(recorded("a key of the company and logs"))
    assert {*OWN_KEY} <= {each.type for each in with_key}
    assert [*violations("own-key", with_key)] == []
    without = [*violations("own-key", with_key, keys=["arn:aws:kms:*:999999999999:"])]
    assert len(without) >= len(OWN_KEY)


def test_a_bucket_that_names_no_key_is_found(stacks: dict[str, list[Resource]]) -> None:
    assert not [*violations("buckets-own-key", stacks["most"])]
    kind = "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration"
    nameless = [each for each in stacks["most"] if each.type != kind]
    assert "must have a BucketServerSide" in next(violations("buckets-own-key", nameless))


@pytest.fixture(scope="module")
def stacks(dev: Graph, most: Graph, team: Graph) -> dict[str, list[Resource]]:
    graphs = {
        "dev": dev,
        "most": most,
        "team": team,
        "existing VPC": recorded("existing VPC"),
    }
    return {name: resources(graph) for name, graph in graphs.items()}


@pytest.mark.parametrize(
    "name", [rule.name for rule in RULES if not rule.advisory and rule.config is not OWN_KEYS]
)
def test_no_stack_of_this_program_violates_a_policy(
    name: str, stacks: dict[str, list[Resource]]
) -> None:
    for stack, found in stacks.items():
        assert [*violations(name, found)] == [], stack


@pytest.mark.parametrize(("name", "kind", "edit", "said"), PLANTED)
def test_a_planted_violation_is_found(
    name: str, kind: str, edit: Edit, said: str, stacks: dict[str, list[Resource]]
) -> None:
    planted = deepcopy(next(s for s in stacks.values() if kind in {each.type for each in s}))
    one = next(each for each in planted if each.type == kind)
    assert not any(said in must for must in violations(name, planted))
    edit(one.props)  # type: ignore[arg-type]
    assert any(said in must for must in violations(name, planted))


def test_every_policy_has_a_planted_violation() -> None:
    elsewhere = {"buckets-blocked", "stores-protected", "buckets-own-key"}
    planted = {name for name, *_ in (*PLANTED, *STRANGERS)}
    assert planted | elsewhere == set(BY_NAME)


def test_the_configuration_of_the_checkout_names_policies_and_what_they_configure() -> None:
    levels = {"advisory", "mandatory", "disabled"}
    for name, given in json.loads((CHECKOUT / "policy_pack/config.json").read_text()).items():
        if isinstance(given, str):
            assert given in levels, name
        else:
            assert {*given} - {"enforcementLevel"} <= {*BY_NAME[name].config}, name


def test_a_bucket_without_its_block_is_found(stacks: dict[str, list[Resource]]) -> None:
    open_bucket = [each for each in stacks["most"] if each.type != BLOCK]
    assert [*violations("buckets-blocked", open_bucket)] == ["must have a BucketPublicAccessBlock"]


def test_a_store_that_destroy_would_delete_is_found(stacks: dict[str, list[Resource]]) -> None:
    kept = [each for each in stacks["most"] if each.name == "corpus" and each.protect]
    assert kept and not [*violations("stores-protected", kept)]
    lost = [replace(each, protect=False) for each in kept]
    assert "deletes it with its data" in next(violations("stores-protected", lost))


def test_tags_of_the_provider_count(stacks: dict[str, list[Resource]]) -> None:
    vpc = next(each for each in stacks["dev"] if each.type == "aws:ec2/vpc:Vpc")
    wanted = {"required": ["cost-center"]}
    assert [*violations("tagged", [vpc], **wanted)] == ["must have cost-center among its tags"]
    by_default = replace(
        vpc, default_tags=default_tags({"defaultTags": '{"tags": {"cost-center": "42"}}'})
    )
    assert not [*violations("tagged", [by_default], **wanted)]


def test_reserved_capacity_costs_a_budget_nothing(stacks: dict[str, list[Resource]]) -> None:
    pools = [each for each in deepcopy(stacks["dev"]) if "NodePool" in each.type]
    assert [*violations("within-budget", pools, max_usd_per_hour=1)]
    for pool in pools:
        requirements = pool.props["spec"]["template"]["spec"]["requirements"]
        kind = next(each for each in requirements if each["key"] == "karpenter.sh/capacity-type")
        kind["values"] = ["reserved"]
    assert not [*violations("within-budget", pools, max_usd_per_hour=1)]


def test_the_sdk_says_what_has_tags(stacks: dict[str, list[Resource]]) -> None:
    kinds = {each.type for each in stacks["most"] if each.type.startswith("aws:")}
    assert [kind for kind in kinds if source_of(kind) is None] == []
    assert taggable("aws:ec2/vpc:Vpc") and not taggable("aws:ec2/route:Route")
    assert not taggable("kubernetes:core/v1:Namespace")


def test_the_documentation_has_every_policy() -> None:
    text = (CHECKOUT / "docs/policies.md").read_text()
    for rule in RULES:
        row = f"| `{rule.name}` | {rule.description}" + (" A warning." if rule.advisory else "")
        assert f"{row} |" in text
        assert all(f"`{key}`" in text.partition(row)[2].partition("\n")[0] for key in rule.config)


def test_the_documentation_sends_nobody_to_publish_a_pack_that_needs_its_checkout() -> None:
    """`pulumi policy publish` takes the folder alone (pulumi 3.259, pkg/backend/httpstate/policypack.go)."""
    pack = "".join(file.read_text() for file in (CHECKOUT / "policy_pack").glob("*.py"))
    assert "from trainyard." in pack
    assert "cannot be published" in (CHECKOUT / "docs/policies.md").read_text()


def test_the_fix_of_every_policy_begins_with_a_verb() -> None:
    assert [rule.name for rule in RULES if not begins_with_a_verb(rule.fix)] == []
