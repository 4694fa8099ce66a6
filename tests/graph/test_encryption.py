"""What a key of the company encrypts, how long logs stay, and what protects the cluster: in the
graph."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recording import Graph
from tests.support.stackfile import at, environment_plan, planned
from tests.support.stacks import KEY, recorded
from tests.support.stacks import planned as planned_stack
from trainyard.plans.clusters import OwnClusterPlan
from trainyard.reports import plan as report
from trainyard.reports.costs import cost

SEALED = "a key of the company and logs"


@pytest.fixture(scope="module")
def sealed() -> Graph:
    return recorded(SEALED)


@pytest.fixture(scope="module")
def dev() -> Graph:
    return recorded("dev")


def statements(graph: Graph, policy: str) -> dict[str, Any]:
    document = json.loads(graph[f"RolePolicy {policy}"].inputs["policy"])
    return {each["Sid"]: each for each in document["Statement"]}


def test_without_a_key_no_resource_names_one(dev: Graph) -> None:
    text = dev.golden().replace("alias/aws/sns", "")
    assert "kms" not in text.lower() and "encryptionConfigKeyArn" not in text
    assert not dev.of("FlowLog")
    assert dev["Queue karpenter"].inputs["sqsManagedSseEnabled"] is True


def test_the_key_encrypts_everything_that_the_stack_stores(sealed: Graph) -> None:
    assert sealed["eks:index:Cluster cluster"].inputs["encryptionConfigKeyArn"] == KEY
    assert sealed["FileSystem home"].inputs["kmsKeyId"] == KEY
    assert sealed["LustreFileSystem scratch"].inputs["kmsKeyId"] == KEY
    assert {group.inputs["kmsKeyId"] for group in sealed.of("LogGroup")} == {KEY}
    assert sealed["Topic alertmanager-topic"].inputs["kmsMasterKeyId"] == KEY
    queue = sealed["Queue karpenter"].inputs
    assert queue["kmsMasterKeyId"] == KEY and "sqsManagedSseEnabled" not in queue
    [disk] = sealed["LaunchTemplate system"].inputs["blockDeviceMappings"]
    assert disk["ebs"]["kmsKeyId"] == KEY and disk["ebs"]["encrypted"] == "true"
    classes = [one for one in sealed.nodes.values() if one.kind.endswith(":EC2NodeClass")]
    disks = [each["ebs"] for one in classes for each in one.inputs["spec"]["blockDeviceMappings"]]
    assert disks and all(disk["kmsKeyID"] == KEY for disk in disks)


def test_karpenter_may_use_the_key_through_ec2_and_read_its_queue(sealed: Graph) -> None:
    found = statements(sealed, "karpenter-volumes")
    assert {each["Resource"] for each in found.values()} == {KEY}
    grant = found["GrantVolumes"]["Condition"]
    assert grant["Bool"] == {"kms:GrantIsForAWSResource": "true"}
    via = {sid: each["Condition"]["StringEquals"]["kms:ViaService"] for sid, each in found.items()}
    assert via == {
        "EncryptVolumes": "ec2.ap-northeast-2.amazonaws.com",
        "GrantVolumes": "ec2.ap-northeast-2.amazonaws.com",
        "ReadQueue": "sqs.ap-northeast-2.amazonaws.com",
    }


def test_alertmanager_may_encrypt_for_its_topic(sealed: Graph) -> None:
    assert statements(sealed, "alertmanager-topic")["Key"]["Resource"] == KEY


def test_the_log_group_of_the_control_plane_is_there_before_the_cluster(sealed: Graph) -> None:
    cluster, group = sealed["eks:index:Cluster cluster"], sealed["LogGroup cluster-logs"]
    assert group.inputs["name"] == f"/aws/eks/{cluster.inputs['name']}/cluster"
    assert group.inputs["retentionInDays"] == 90
    assert group.urn in cluster.needs


def test_flow_logs_are_written_by_a_role_that_can_write_nowhere_else(sealed: Graph) -> None:
    flow, group = sealed["FlowLog network-flow-logs"], sealed["LogGroup network-flow-logs"]
    assert (flow.inputs["trafficType"], group.inputs["retentionInDays"]) == ("ALL", 14)
    found = statements(sealed, "network-flow-logs-write")
    arn = flow.inputs["logDestination"]
    assert found["WriteGroup"]["Resource"] == [arn, f"{arn}:*"]
    assert "logs:CreateLogGroup" not in json.dumps(found)
    trust = json.loads(sealed["Role network-flow-logs"].inputs["assumeRolePolicy"])
    assert "aws:SourceAccount" in json.dumps(trust)


def test_deletion_protection_reaches_eks_and_the_engine(sealed: Graph, dev: Graph) -> None:
    """EKS would refuse only when nodes and jobs are gone already."""
    cluster = sealed["eks:index:Cluster cluster"]
    assert cluster.inputs["deletionProtection"] is True and cluster.options.protect
    assert sealed.outputs["deletion_protection"] is True
    unprotected = dev["eks:index:Cluster cluster"]
    assert "deletionProtection" not in unprotected.inputs and not unprotected.options.protect
    assert "deletion_protection" not in dev.outputs


def test_the_tier_reaches_the_control_plane_inside_of_pulumi_eks(sealed: Graph, dev: Graph) -> None:
    def scaled(graph: Graph, type_: str) -> object:
        found = graph.inside(graph["eks:index:Cluster cluster"], type_, {"name": "demo"})
        assert found["name"] == "demo"
        return found.get("controlPlaneScalingConfig")

    assert scaled(sealed, "aws:eks/cluster:Cluster") == {"tier": "tier-xl"}
    assert scaled(sealed, "aws:iam/role:Role") is None
    assert scaled(dev, "aws:eks/cluster:Cluster") is None


def test_protection_that_is_taken_away_is_said_to_eks() -> None:
    """EKS keeps what is left out."""
    cluster = environment_plan(at("cluster.deletion_protection", False)).cluster
    assert isinstance(cluster, OwnClusterPlan) and cluster.deletion_protection is False


def test_make_plan_says_what_the_key_encrypts() -> None:
    text = report.text(planned_stack(SEALED))
    assert "encryption" in text and KEY in text
    for word in ("Kubernetes secrets", "disks of nodes", "store scratch", "store home", "topic"):
        assert word in " ".join(text.split()), word
    assert "encryption" not in report.text(planned_stack("dev")).splitlines()


def test_make_plan_says_what_a_gigabyte_of_flow_logs_costs() -> None:
    rates = {line.what: line.assumption for line in cost.estimate(planned_stack(SEALED)).usage}
    assert rates["flow logs"] == "0.76 USD a GB, by use"
    assert "flow logs" not in [line.what for line in cost.estimate(planned_stack("dev")).usage]


@pytest.mark.parametrize(
    ("bucket", "expected"),
    [({}, KEY), ({"kms_key_arn": f"{KEY[:-1]}1"}, f"{KEY[:-1]}1"), ({"bucket": "theirs"}, None)],
    ids=["the stack's", "with a key of its own", "somebody's"],
)
def test_a_bucket_of_the_stack_has_its_key_unless_the_store_names_one(
    bucket: dict[str, str], expected: str | None
) -> None:
    plan = environment_plan(at("kms_key_arn", KEY), at("storage.sets", {"s3": bucket}))
    assert plan.stores["sets"].kms_key_arn == expected  # pyright: ignore[reportAttributeAccessIssue]


def test_a_scratch_store_is_refused_with_a_key() -> None:
    scratch = at("storage.scratch.lustre", {"capacity_gib": 1200, "deployment": "SCRATCH_2"})
    assert planned(at("kms_key_arn", KEY), scratch).errors
    assert not planned(scratch).errors
