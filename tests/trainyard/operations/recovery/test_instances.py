"""Instances that run on after their cluster, in an account that answers as EC2 does (moto)."""

from __future__ import annotations

from typing import Any

import boto3
import pytest

from tests.support import aws_cli
from trainyard.derive.credentials import NotAssumed
from trainyard.operations.recovery import instances, interfaces

CLUSTER = "dev-cluster-12345678"
TAGS = {
    f"kubernetes.io/cluster/{CLUSTER}": "owned",
    "karpenter.sh/nodepool": "h100",
    "trainyard:stack": "dev",
}


def _state(subnet: str) -> dict[str, Any]:
    tags = {f"kubernetes.io/cluster/{CLUSTER}": "shared"}
    urn = f"urn:pulumi:dev::trainyard::{interfaces.SUBNET}::network-private"
    provider = {
        "type": "pulumi:providers:aws",
        "urn": "urn:pulumi:dev::trainyard::pulumi:providers:aws::aws",
        "inputs": {"region": "us-east-1"},
    }
    made = {"type": interfaces.SUBNET, "urn": urn, "id": subnet, "inputs": {"tags": tags}}
    return {"deployment": {"resources": [provider, made]}}


def _found(session: boto3.Session, subnet: str) -> list[instances.LeftInstance]:
    return instances.left(session, _state(subnet)["deployment"]["resources"])


def _launched(session: boto3.Session, subnet: str, tags: dict[str, str], **more: Any) -> str:
    ec2 = session.client("ec2")
    image = ec2.register_image(Name=f"of {len(ec2.describe_images()['Images'])}")["ImageId"]
    words = {"ResourceType": "instance", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
    made = ec2.run_instances(
        ImageId=image,
        InstanceType="p5.48xlarge",
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet,
        TagSpecifications=[words],
        **more,
    )
    return made["Instances"][0]["InstanceId"]


def test_a_node_that_runs_on_after_its_cluster_is_named_with_its_price_and_ended(
    session: boto3.Session, subnet: str
) -> None:
    ours = _launched(session, subnet, TAGS)
    found = _found(session, subnet)
    assert [str(each) for each in found] == [
        f"instance {ours}, p5.48xlarge, about $55.04/hour: its cluster is gone, and nobody else ends it"
    ]
    instances.end(session, found)
    assert _found(session, subnet) == []


def test_while_the_cluster_exists_karpenter_ends_its_nodes(
    session: boto3.Session, subnet: str
) -> None:
    _launched(session, subnet, TAGS)
    session.client("eks").create_cluster(
        name=CLUSTER,
        roleArn="arn:aws:iam::123456789012:role/eks",
        resourcesVpcConfig={"subnetIds": [subnet]},
    )
    assert _found(session, subnet) == []


@pytest.mark.parametrize("key", TAGS)
def test_instances_of_others_run_on(session: boto3.Session, subnet: str, key: str) -> None:
    _launched(session, subnet, {**{k: v for k, v in TAGS.items() if k != key}, f"{key}2": "owned"})
    if key != "karpenter.sh/nodepool":
        _launched(session, subnet, {**TAGS, key: "another"})
    assert _found(session, subnet) == []


def test_spot_costs_at_most_what_the_list_says_and_an_unknown_price_is_said() -> None:
    node = {"InstanceType": "p5.48xlarge", "InstanceLifecycle": "spot"}
    assert instances._cost(node, "us-east-1") == "at most $55.04/hour"
    assert "not known" in instances._cost(node, "mars-north-1")


def test_status_names_each_with_the_commands_that_end_it(
    session: boto3.Session, subnet: str
) -> None:
    ours = _launched(session, subnet, TAGS)
    [line, way] = instances.named("dev", _state(subnet))
    assert line.startswith(f"still runs: instance {ours}, p5.48xlarge, about $55.04/hour")
    assert "`trainyard repair --stack dev` ends these" in way
    command = f"aws ec2 terminate-instances --region us-east-1 --instance-ids {ours}"
    assert way.endswith(command) and [*aws_cli.faults(command)] == []


def test_status_of_a_stack_whose_account_does_not_answer_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refused(*_: Any) -> None:
        raise NotAssumed("arn:aws:iam::1:role/r", "AccessDenied")

    monkeypatch.setattr(instances, "left", refused)
    [line] = instances.named("dev", _state("subnet-1"))
    assert "its nodes may run on" in line and "AccessDenied" in line
    assert instances.named("dev", {"deployment": {}}) == []
