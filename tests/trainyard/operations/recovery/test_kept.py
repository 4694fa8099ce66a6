"""What a destroy keeps, its price, and the commands that delete it, from a recorded state."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import aws_cli
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.operations.recovery import kept

ROOT = "urn:pulumi:prod::shop::"
PROTECTED = [kind for kind, row in AWS_TYPES.items() if row.deletions]
NETWORK = {
    "urn": f"{ROOT}aws:ec2/vpc:Vpc::network",
    "type": "aws:ec2/vpc:Vpc",
    "custom": True,
    "id": "vpc-1",
}


def _kept(kind: str, name: str = "it", **more: Any) -> dict[str, Any]:
    return {
        "urn": f"{ROOT}{kind}::{name}",
        "type": kind,
        "id": f"id-{name}",
        "protect": True,
        "custom": True,
        "outputs": {"region": "us-east-2"},
        "dependencies": [NETWORK["urn"]],
        **more,
    }


LUSTRE = _kept("aws:fsx/lustreFileSystem:LustreFileSystem", "scratch")
LINK = _kept(
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
    "scratch.out",
    dependencies=[LUSTRE["urn"]],
)
CLUSTER = _kept("aws:eks/cluster:Cluster", "cluster")


@pytest.mark.parametrize("kind", PROTECTED)
def test_each_command_names_the_object_and_its_region_and_is_one_of_the_aws_cli(kind: str) -> None:
    commands = kept.deletions(_kept(kind))
    assert "id-it" in commands[-1] and "--region us-east-2" in commands[-1]
    assert not any(name in command for command in commands for name in ("{id}", "{region}"))
    assert [fault for command in commands for fault in aws_cli.faults(command)] == []


def test_each_store_that_goes_with_its_files_is_named() -> None:
    goes = LUSTRE | {"protect": False}
    assert kept.lost([NETWORK, goes, LINK, CLUSTER]) == [
        "deletes store LustreFileSystem scratch id-scratch with all files in it (data: delete)"
    ]
    assert kept.lost([LUSTRE, goes | {"external": True}]) == []


def test_a_file_system_that_goes_before_its_export_has_ended_is_named() -> None:
    """FSx for Lustre user guide, delete-file-system."""
    goes = LUSTRE | {"protect": False}
    policy = {"autoExportPolicy": {"events": ["NEW"]}}
    link = LINK | {"outputs": {"fileSystemId": goes["id"], "s3": policy}}
    [line] = kept.exporting([NETWORK, goes, link | {"protect": False}, CLUSTER])
    assert "the destroy deletes it with what is not exported yet" in line
    assert line.startswith("LustreFileSystem scratch id-scratch exports to S3 in the background")
    assert "wait until its metric AgeOfOldestQueuedMessage in CloudWatch (AWS/FSx) is 0" in line
    assert kept.exporting([LUSTRE, link]) == [], "it stays, and goes on exporting"
    [line] = kept.exporting([LUSTRE, link, link | {"protect": False}])
    assert "the destroy keeps it and takes its links away, so that S3 never gets what is" in line
    assert "wait until its metric AgeOfOldestQueuedMessage in CloudWatch (AWS/FSx) is 0" in line
    for s3 in ({}, {"autoImportPolicy": {"events": ["NEW"]}}, {"autoExportPolicy": {"events": []}}):
        assert kept.exporting([goes, link | {"outputs": link["outputs"] | {"s3": s3}}]) == []
    assert kept.exporting([goes, LINK, NETWORK]) == []


def test_what_depends_on_another_is_deleted_first_and_then_the_state_forgets_it() -> None:
    found = kept.kept([NETWORK, LUSTRE, LINK])
    assert found == [LINK, LUSTRE]
    commands = [command for command, _ in kept.ways(found, destroy="pulumi destroy --stack prod")]
    assert [*map(_first_words, commands)] == [
        "aws fsx delete-data-repository-association",
        "pulumi state delete",
        "aws fsx delete-file-system",
        "pulumi state delete",
        "pulumi destroy --stack",
    ]
    assert commands[3] == f"pulumi state delete '{LUSTRE['urn']}' --force --yes --stack prod"
    assert kept.ways([], destroy="x") == []


def _first_words(command: str) -> str:
    return " ".join(command.split()[:3])


def test_before_the_destroy_the_stack_file_is_the_way() -> None:
    [line, way] = kept.before([NETWORK, LUSTRE], "prod", up="pulumi up --stack prod")
    assert line.startswith("the destroy keeps LustreFileSystem scratch id-scratch, ")
    assert "write `data: delete` at it in Pulumi.prod.yaml and run `pulumi up --stack prod`" in way
    assert kept.before([NETWORK], "prod", up="x") == []


def test_a_cluster_that_is_protected_is_listed_and_holds_no_data() -> None:
    assert kept.line(CLUSTER) == "Cluster cluster id-cluster, which is protected from deletion"
    assert kept.ways([CLUSTER], destroy="x") == [] and kept.before([CLUSTER], "prod", up="x") == []


@pytest.mark.parametrize(
    ("inputs", "price"),
    [
        ({}, "billed by the data in it"),
        ({"storageCapacity": 1200, "deploymentType": "SCRATCH_2"}, "about $"),
        (
            {"storageCapacity": 4800, "deploymentType": "OTHER"},
            "4,800 GiB, whose price in us-east-2 is not known here: https://aws.amazon.com/fsx/",
        ),
    ],
)
def test_the_price_of_what_is_kept_or_where_it_stands(inputs: dict[str, Any], price: str) -> None:
    assert price in kept.line({**LUSTRE, "inputs": inputs})


def test_provisioned_throughput_of_a_kept_store_is_paid_used_or_not() -> None:
    """1,024 MiB/s cost 6,144 a month, and the line said that the store is billed by its data."""
    more = {"provisionedThroughputInMibps": 1024, "throughputMode": "provisioned"}
    home = _kept("aws:efs/fileSystem:FileSystem", "home", inputs=more)
    assert "and money for 1,024 MiB/s, used or not" in kept.line(home), "no price of us-east-2"
    line = kept.line({**home, "outputs": {"region": "us-east-1"}})
    said, command, _ = line.split("`")
    assert said.endswith("data in it and up to $6,144/month for 1,024 MiB/s, used or not (")
    assert command.endswith("--file-system-id id-home --throughput-mode elastic --region us-east-1")
    assert [*aws_cli.faults(command)] == []


@pytest.mark.parametrize(
    ("more", "nothing"),
    [
        ([], True),
        ([{"urn": f"{ROOT}pulumi:providers:aws::aws", "type": "pulumi:providers:aws"}], True),
        ([{**NETWORK, "urn": f"{ROOT}aws:ec2/vpc:Vpc::other"}], False),
        ([{**NETWORK, "urn": f"{ROOT}aws:ec2/vpc:Vpc::read", "external": True}], True),
    ],
)
def test_a_destroy_that_would_delete_nothing_is_known(
    more: list[dict[str, Any]], nothing: bool
) -> None:
    assert kept.nothing_else([NETWORK, LUSTRE, LINK, *more]) is nothing
