"""IAM documents: no more than is needed, and nothing that AWS would refuse."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.crds import upstream
from tests.support.recording import Graph
from trainyard.objects.iam import policies

READS = re.compile(r"(Describe|Get|List|Receive)[A-Za-z]*$")
MADE = (
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
)
"""What Karpenter creates: it may only do so with the tags of this cluster."""

MODULES = [f"github.com/aws/karpenter-provider-aws@v{release}" for release in ("1.14.1", "1.15.0")]
"""What the rehearsal runs."""
NODE_ROLE = "arn:aws:iam::123456789012:role/nodes"
RULES = [f"arn:aws:events:eu-west-1:123456789012:rule/{name}" for name in ("spot", "health")]

DOCUMENTS = {
    "nodes": policies.karpenter_nodes(region="eu-west-1", cluster="dev-cluster-0"),
    "identity": policies.karpenter_identity(
        node_role_arn=NODE_ROLE, cluster_arn="arn:cluster", queue_arn="arn:queue"
    ),
    "discovery": policies.karpenter_discovery(region="eu-west-1"),
    "queue": policies.interruption_queue("arn:queue", RULES),
}


def _all(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def _allowed() -> Iterator[tuple[str, dict[str, Any]]]:
    for name, document in DOCUMENTS.items():
        for statement in document["Statement"]:
            if statement["Effect"] == "Allow":
                yield name, statement


def _writes(statement: dict[str, Any]) -> list[str]:
    return [a for a in _all(statement["Action"]) if not READS.match(a.partition(":")[2])]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_document_is_one_that_iam_reads(name: str) -> None:
    document = json.loads(json.dumps(DOCUMENTS[name]))
    assert document["Version"] == "2012-10-17"
    sids = [s["Sid"] for s in document["Statement"] if "Sid" in s]
    assert len(sids) == len(set(sids)) and all(re.fullmatch("[A-Za-z0-9]+", sid) for sid in sids)
    for statement in document["Statement"]:
        assert set(statement) <= {"Sid", "Effect", "Principal", "Action", "Resource", "Condition"}
        assert all(
            re.fullmatch(r"[a-z0-9]+:[A-Za-z]+|sqs:\*", action)
            for action in _all(statement["Action"])
        )


def test_nothing_is_allowed_by_wildcard() -> None:
    for name, statement in _allowed():
        assert not [a for a in _all(statement["Action"]) if "*" in a], name
        assert statement.get("Principal") != "*", name


def test_whatever_writes_has_a_condition_or_names_what_it_writes_to() -> None:
    for name, statement in _allowed():
        if _writes(statement) and "Condition" not in statement:
            assert all(r.startswith("arn:") for r in _all(statement["Resource"])), (
                name,
                statement["Sid"],
            )
            assert not [
                r for r in _all(statement["Resource"]) if re.search(rf":({'|'.join(MADE)})/", r)
            ], name


def test_reads_are_the_only_thing_allowed_everywhere() -> None:
    everywhere = [a for _, s in _allowed() if s.get("Resource") == "*" for a in _all(s["Action"])]
    assert everywhere and all(READS.match(action.partition(":")[2]) for action in everywhere)


def test_karpenter_launches_tags_and_ends_only_what_carries_this_clusters_tag() -> None:
    tag = "kubernetes.io/cluster/dev-cluster-0"
    for statement in DOCUMENTS["nodes"]["Statement"]:
        if any(re.search(rf":({'|'.join(MADE)})/", r) for r in _all(statement["Resource"])):
            equal = statement["Condition"]["StringEquals"]
            assert (
                equal.get(f"aws:RequestTag/{tag}", equal.get(f"aws:ResourceTag/{tag}")) == "owned"
            ), statement["Sid"]


def test_ending_an_instance_asks_for_the_tag_it_has_and_not_for_one_it_is_given() -> None:
    [end] = [
        s for s in DOCUMENTS["nodes"]["Statement"] if "ec2:TerminateInstances" in _all(s["Action"])
    ]
    assert all("ResourceTag" in key for test in end["Condition"].values() for key in test)


def test_the_node_role_is_handed_to_ec2_only() -> None:
    [handed] = [s for _, s in _allowed() if s["Action"] == "iam:PassRole"]
    assert handed["Resource"] == NODE_ROLE
    assert handed["Condition"] == {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}}


NEVER_CALLED = re.compile(
    r"iam:((Create|Delete|Tag)InstanceProfile|(AddRoleTo|RemoveRoleFrom)InstanceProfile|GetRole)"
    r"|sqs:SendMessage|timestreamwrite:.*|arczonalshift:.*|ec2:RebootInstances"
)
"""Profiles are the graph's; the rest is for Karpenter's own tests, for zonal shift, and for reboots
(RebootForRepair of 1.15), which are off."""


@pytest.mark.parametrize("module", MODULES)
def test_karpenter_may_make_every_call_that_its_source_names(module: str) -> None:
    """Too little is as bad as too much: a call that is denied stops all nodes, on AWS alone."""
    source = upstream(f"{module}/pkg/aws/sdk.go").read_text()
    calls = {
        f"{service}:{call}"
        for call, service in re.findall(r"^\t(\w+)\(.*?\*(\w+)\.\w+Input", source, re.MULTILINE)
    }
    allowed = {action for _, s in _allowed() for action in _all(s["Action"])}
    assert "ec2:RunInstances" in calls
    assert {call for call in calls - allowed if not NEVER_CALLED.fullmatch(call)} == set()


@pytest.mark.parametrize("module", MODULES)
def test_karpenter_may_set_every_tag_that_it_puts_on_a_node_later(module: str) -> None:
    """The instance is tagged once its node has joined; a denied tag is tried again for ever."""
    names = {
        "NameTagKey": "Name",
        "NodeClaimTagKey": "karpenter.sh/nodeclaim",
        "EKSClusterNameTagKey": "eks:eks-cluster-name",
    }
    source = upstream(f"{module}/pkg/controllers/nodeclaim/tagging/controller.go").read_text()
    [tag] = [s for s in DOCUMENTS["nodes"]["Statement"] if s["Sid"] == "TagOwnInstances"]
    assert set(tag["Condition"]["ForAllValues:StringEquals"]["aws:TagKeys"]) == {
        names[name] for name in re.findall(r"v1\.(\w+TagKey)\b", source)
    }


def test_karpenter_owns_no_instance_profile() -> None:
    actions = {a for _, s in _allowed() for a in _all(s["Action"])}
    assert {a for a in actions if "InstanceProfile" in a} == {
        "iam:GetInstanceProfile",
        "iam:ListInstanceProfiles",
    }


def test_karpenter_reads_profiles_of_its_own_account_only() -> None:
    [read] = [s for _, s in _allowed() if s["Action"] == "iam:GetInstanceProfile"]
    assert read["Resource"] == "arn:aws:iam::123456789012:instance-profile/*"


def test_an_own_instance_cannot_be_tagged_as_another_clusters() -> None:
    [tag] = [s for s in DOCUMENTS["nodes"]["Statement"] if s["Sid"] == "TagOwnInstances"]
    named = {"aws:RequestTag/eks:eks-cluster-name": "dev-cluster-0"}
    assert tag["Condition"]["StringEqualsIfExists"] == named


def test_only_the_given_rules_send_to_the_queue() -> None:
    allow, _ = DOCUMENTS["queue"]["Statement"]
    assert allow["Principal"] == {"Service": "events.amazonaws.com"}
    assert allow["Condition"] == {"ArnEquals": {"aws:SourceArn": sorted(RULES)}}


def test_the_queue_refuses_what_is_not_encrypted_on_its_way() -> None:
    _, deny = DOCUMENTS["queue"]["Statement"]
    assert (deny["Effect"], deny["Condition"]) == (
        "Deny",
        {"Bool": {"aws:SecureTransport": "false"}},
    )


def test_a_region_that_is_not_the_stacks_is_not_looked_at() -> None:
    [read] = [s for s in DOCUMENTS["discovery"]["Statement"] if s.get("Sid") == "ReadRegion"]
    assert read["Condition"] == {"StringEquals": {"aws:RequestedRegion": "eu-west-1"}}


@pytest.mark.parametrize(
    ("document", "service", "actions"),
    [
        (policies.trust("ec2.amazonaws.com"), "ec2.amazonaws.com", ["sts:AssumeRole"]),
        (
            policies.pod_identity_trust(account="123456789012", region="eu-west-1", cluster="c"),
            "pods.eks.amazonaws.com",
            ["sts:AssumeRole", "sts:TagSession"],
        ),
    ],
)
def test_a_role_trusts_one_service(
    document: dict[str, Any], service: str, actions: list[str]
) -> None:
    [statement] = document["Statement"]
    assert (statement["Principal"], statement["Action"]) == ({"Service": service}, actions)


def test_a_role_of_pods_trusts_the_pods_of_one_cluster() -> None:
    document = policies.pod_identity_trust(account="123456789012", region="eu-west-1", cluster="c")
    assert document["Statement"][0]["Condition"] == {
        "StringEquals": {"aws:SourceAccount": "123456789012"},
        "ArnEquals": {"aws:SourceArn": "arn:aws:eks:eu-west-1:123456789012:cluster/c"},
    }


def test_a_role_of_the_graph_holds_at_most_what_iam_takes_inline(dev: Graph) -> None:
    """10,240 characters of inline documents a role, 2,048 of trust; blanks do not count."""
    held: dict[str, int] = {}
    for policy in dev.of("RolePolicy"):
        text = json.dumps(json.loads(policy.inputs["policy"]), separators=(",", ":"))
        held[policy.inputs["role"]] = held.get(policy.inputs["role"], 0) + len(text)
    assert held and max(held.values()) <= 10_240, held
    trust = [len(role.inputs["assumeRolePolicy"]) for role in dev.of("Role")]
    assert trust and max(trust) <= 2_048


def test_documents_of_the_graph_name_the_graphs_own_resources(dev: Graph) -> None:
    def resources(sid: str) -> Any:
        document = json.loads(dev["RolePolicy karpenter-identity"].inputs["policy"])
        return next(s["Resource"] for s in document["Statement"] if s["Sid"] == sid)

    assert resources("PassNodeRole") == "arn:aws:iam:::gpu-nodes"
    assert resources("ReadInterruptions") == "arn:aws:sqs:::karpenter"
    assert (
        resources("ReadCluster")
        == f"arn:aws:eks:::cluster/{dev['eks:index:Cluster cluster'].inputs['name']}"
    )
    send = json.loads(dev["QueuePolicy karpenter"].inputs["policy"])["Statement"][0]
    assert send["Resource"] == "arn:aws:sqs:::karpenter"
    rules = [f"arn:aws:cloudwatch:::{rule.name}" for rule in dev.of("EventRule")]
    assert len(rules) == 5 and send["Condition"] == {"ArnEquals": {"aws:SourceArn": sorted(rules)}}


def test_roles_of_pods_trust_the_graphs_own_cluster_and_do_not_wait_for_it(dev: Graph) -> None:
    cluster = dev["eks:index:Cluster cluster"]
    roles = {each.inputs["roleArn"] for each in dev.of("PodIdentityAssociation")}
    for role in (dev["Role cni"], dev["Role karpenter"]):
        [statement] = json.loads(role.inputs["assumeRolePolicy"])["Statement"]
        source = statement["Condition"]["ArnEquals"]["aws:SourceArn"]
        assert source == f"arn:aws:eks:ap-northeast-2::cluster/{cluster.inputs['name']}"
        assert f"arn:aws:iam:::{role.name}" in roles
        assert not dev.waits_for(role, cluster)


def test_karpenters_region_and_cluster_are_the_plans(dev: Graph) -> None:
    text = dev["RolePolicy karpenter-nodes"].inputs["policy"]
    assert f"kubernetes.io/cluster/{dev['eks:index:Cluster cluster'].inputs['name']}" in text
    assert "arn:aws:ec2:ap-northeast-2:*:instance/*" in text and "eu-west-1" not in text
