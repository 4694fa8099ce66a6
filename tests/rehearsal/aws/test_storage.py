"""FSx for Lustre and EFS: sizes, time, and what their interfaces block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.aws_world import NEVER, REGION, Account, Network, refused, served

PERSISTENT = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def network(account: Account) -> Network:
    network = Network(account)
    open_to_lustre(network)
    return network


def open_to_lustre(network: Network) -> None:
    """Let the members of its group talk as Lustre's clients and servers do."""
    rule = {
        "IpProtocol": "tcp",
        "FromPort": 988,
        "ToPort": 988,
        "UserIdGroupPairs": [{"GroupId": network.group}],
    }
    network.ec2.authorize_security_group_ingress(GroupId=network.group, IpPermissions=[rule])


def create(
    account: Account, network: Network, lustre: dict[str, Any] | None = None, **more: Any
) -> Any:
    wanted = {
        "FileSystemType": "LUSTRE",
        "FileSystemTypeVersion": "2.15",
        "StorageCapacity": 1200,
        "SubnetIds": network.subnets[:1],
        "SecurityGroupIds": [network.group],
        "LustreConfiguration": PERSISTENT if lustre is None else lustre,
    }
    return account.client("fsx").create_file_system(**(wanted | more))["FileSystem"]


def test_a_lustre_file_system_is_created_used_and_deleted_in_its_own_time(
    account: Account, network: Network
) -> None:
    fsx = account.client("fsx")
    account.speed(NEVER)
    made = create(account, network, Tags=[{"Key": "Name", "Value": "scratch"}])
    assert made["Lifecycle"] == "CREATING"
    with refused("BadRequest"):
        fsx.delete_file_system(FileSystemId=made["FileSystemId"])
    account.speed(1e9)
    second = create(account, network)
    found = fsx.describe_file_systems(FileSystemIds=[second["FileSystemId"]])["FileSystems"][0]
    assert found["Lifecycle"] == "AVAILABLE"
    assert found["DNSName"] == f"{second['FileSystemId']}.fsx.{REGION}.amazonaws.com"
    assert found["LustreConfiguration"]["MountName"]
    fsx.delete_file_system(FileSystemId=second["FileSystemId"])
    with refused("FileSystemNotFound"):
        fsx.describe_file_systems(FileSystemIds=[second["FileSystemId"]])


def test_its_interface_blocks_subnet_and_security_group(account: Account, network: Network) -> None:
    made = create(account, network)
    for blocked, argument in (
        (network.ec2.delete_subnet, {"SubnetId": network.subnets[0]}),
        (network.ec2.delete_security_group, {"GroupId": network.group}),
    ):
        with refused("DependencyViolation"):
            blocked(**argument)
    account.client("fsx").delete_file_system(FileSystemId=made["FileSystemId"])
    network.ec2.delete_subnet(SubnetId=network.subnets[0])


@pytest.mark.parametrize(
    ("more", "lustre"),
    [
        ({"StorageCapacity": 1201}, PERSISTENT),
        ({"StorageCapacity": 3600}, PERSISTENT),
        ({}, PERSISTENT | {"PerUnitStorageThroughput": 333}),
        ({}, {"DeploymentType": "PERSISTENT_2"}),
        ({}, {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": 50}),
        ({}, {"DeploymentType": "SCRATCH_2", "AutomaticBackupRetentionDays": 7}),
        ({"FileSystemTypeVersion": "2.99"}, PERSISTENT),
    ],
)
def test_sizes_that_fsx_does_not_sell_are_refused(
    account: Account, network: Network, more: dict, lustre: dict
) -> None:
    with refused("BadRequest"):
        create(account, network, lustre, **more)


def test_lustre_needs_one_subnet_and_an_open_port(account: Account, network: Network) -> None:
    closed = network.ec2.create_security_group(
        GroupName="closed", Description="c", VpcId=network.vpc
    )["GroupId"]
    wrong: list[dict[str, Any]] = [
        {"SubnetIds": ["subnet-0123456789abcdef0"]},
        {"SecurityGroupIds": [closed]},
        {"SecurityGroupIds": ["sg-0123456789abcdef0"]},
    ]
    for more in wrong:
        with refused("InvalidNetworkSettings"):
            create(account, network, **more)


EFA = PERSISTENT | {
    "EfaEnabled": True,
    "MetadataConfiguration": {"Mode": "AUTOMATIC"},
    "PerUnitStorageThroughput": 1000,
}


@pytest.fixture
def open_group(network: Network) -> str:
    """A group as EFA needs it."""
    group = network.ec2.create_security_group(GroupName="efa", Description="e", VpcId=network.vpc)[
        "GroupId"
    ]
    rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
    network.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
    network.ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[rule])
    return group


def test_efa_takes_a_step_of_its_own_metadata_and_an_open_group(
    account: Account, network: Network, open_group: str
) -> None:
    made = create(account, network, EFA, StorageCapacity=4800, SecurityGroupIds=[open_group])
    wrong: list[dict[str, Any]] = [
        {"StorageCapacity": 7200},
        {"LustreConfiguration": EFA | {"PerUnitStorageThroughput": 500}},
        {"LustreConfiguration": PERSISTENT | {"EfaEnabled": True}},
    ]
    for more in wrong:
        with refused("BadRequest"):
            create(
                account,
                network,
                EFA,
                **({"StorageCapacity": 4800, "SecurityGroupIds": [open_group]} | more),
            )
    with refused("InvalidNetworkSettings"):
        create(account, network, EFA, StorageCapacity=4800)
    account.client("fsx").describe_file_systems()
    with refused("BadRequest"):
        account.client("fsx").update_file_system(
            FileSystemId=made["FileSystemId"],
            StorageCapacity=9600,
            LustreConfiguration={"PerUnitStorageThroughput": 500},
        )


def test_capacity_only_grows(account: Account, network: Network) -> None:
    fsx, made = account.client("fsx"), create(account, network, StorageCapacity=2400)
    with refused("BadRequest"):
        fsx.update_file_system(FileSystemId=made["FileSystemId"], StorageCapacity=1200)
    fsx.update_file_system(FileSystemId=made["FileSystemId"], StorageCapacity=4800)
    assert fsx.describe_file_systems()["FileSystems"][0]["StorageCapacity"] == 4800


def test_size_and_speed_change_once_in_six_hours(account: Account, network: Network) -> None:
    fsx, made = account.client("fsx"), create(account, network, StorageCapacity=2400)
    id_, faster = made["FileSystemId"], {"PerUnitStorageThroughput": 500}
    fsx.update_file_system(FileSystemId=id_, StorageCapacity=4800)
    for more in ({"StorageCapacity": 7200}, {"LustreConfiguration": faster}):
        with refused("BadRequest"):
            fsx.update_file_system(FileSystemId=id_, **more)
    window = {"WeeklyMaintenanceStartTime": "7:16:30"}
    fsx.update_file_system(FileSystemId=id_, LustreConfiguration=window)
    with refused("BadRequest"):
        window = {"WeeklyMaintenanceStartTime": "sunday 16:30"}
        fsx.update_file_system(FileSystemId=id_, LustreConfiguration=window)


def test_efs_changes_its_throughput_mode_once_a_day(account: Account) -> None:
    efs = account.client("efs")
    id_ = efs.create_file_system(CreationToken="x", ThroughputMode="elastic")["FileSystemId"]
    provisioned = {"ThroughputMode": "provisioned", "ProvisionedThroughputInMibps": 128.0}
    with refused("BadRequest"):
        efs.update_file_system(FileSystemId=id_, ThroughputMode="provisioned")
    efs.update_file_system(FileSystemId=id_, **provisioned)
    efs.update_file_system(FileSystemId=id_, **provisioned | {"ProvisionedThroughputInMibps": 256})
    for again in (provisioned, {"ThroughputMode": "elastic"}):
        with refused("TooManyRequests"):
            efs.update_file_system(FileSystemId=id_, **again)


def test_efs_archives_after_infrequent_access_and_with_elastic_throughput_only(
    account: Account,
) -> None:
    efs = account.client("efs")
    elastic, bursting = (
        efs.create_file_system(CreationToken=mode, ThroughputMode=mode)["FileSystemId"]
        for mode in ("elastic", "bursting")
    )
    archive = [{"TransitionToIA": "AFTER_30_DAYS"}, {"TransitionToArchive": "AFTER_90_DAYS"}]
    efs.put_lifecycle_configuration(FileSystemId=elastic, LifecyclePolicies=archive)
    both = [{**archive[0], **archive[1]}]
    early = [archive[0], {"TransitionToArchive": "AFTER_14_DAYS"}]
    for id_, policies in ((bursting, archive), (elastic, both), (elastic, early)):
        with refused("BadRequest"):
            efs.put_lifecycle_configuration(FileSystemId=id_, LifecyclePolicies=policies)


def test_tags_come_and_go(account: Account, network: Network) -> None:
    fsx, arn = (
        account.client("fsx"),
        create(account, network, Tags=[{"Key": "a", "Value": "1"}])["ResourceARN"],
    )
    fsx.tag_resource(ResourceARN=arn, Tags=[{"Key": "b", "Value": "2"}])
    fsx.untag_resource(ResourceARN=arn, TagKeys=["a"])
    assert fsx.describe_file_systems()["FileSystems"][0]["Tags"] == [{"Key": "b", "Value": "2"}]


@pytest.mark.parametrize(
    ("lustre", "more"),
    [
        ({}, {"FileSystemType": "OPENZFS"}),
        (PERSISTENT, {"StorageType": "HDD"}),
        ({"DeploymentType": "PERSISTENT_1"}, {}),
    ],
)
def test_another_kind_of_fsx_is_named(
    account: Account, network: Network, lustre: dict, more: dict
) -> None:
    with refused("NotImplemented"):
        create(account, network, lustre, **more)


def link(
    account: Account, made: Any, path: str = "/data", s3: str = "s3://sets/a/", **more: Any
) -> Any:
    return account.client("fsx").create_data_repository_association(
        FileSystemId=made["FileSystemId"], FileSystemPath=path, DataRepositoryPath=s3, **more
    )["Association"]


def test_a_link_to_s3_comes_after_its_file_system_and_goes_with_it(
    account: Account, network: Network
) -> None:
    fsx = account.client("fsx")
    account.speed(NEVER)
    made = create(account, network)
    queued = link(account, made)
    account.speed(1e9)
    assert link(account, made, "/more", "s3://runs")["Lifecycle"] == "CREATING"
    assert {
        one["Lifecycle"] for one in fsx.describe_data_repository_associations()["Associations"]
    } == {"CREATING"}
    other = create(account, network)
    alone = link(
        account,
        other,
        S3={"AutoImportPolicy": {"Events": ["NEW"]}},
        Tags=[{"Key": "Name", "Value": "a"}],
    )
    [found] = fsx.describe_data_repository_associations(AssociationIds=[alone["AssociationId"]])[
        "Associations"
    ]
    assert (found["Lifecycle"], found["FileSystemPath"], found["Tags"]) == (
        "AVAILABLE",
        "/data",
        [{"Key": "Name", "Value": "a"}],
    )
    of = [{"Name": "file-system-id", "Values": [made["FileSystemId"]]}]
    assert len(fsx.describe_data_repository_associations(Filters=of)["Associations"]) == 2
    fsx.delete_file_system(FileSystemId=other["FileSystemId"])
    left = fsx.describe_data_repository_associations()["Associations"]
    assert queued["AssociationId"] in {one["AssociationId"] for one in left} and len(left) == 2


def test_a_link_takes_time_to_go_and_is_then_unknown(account: Account, network: Network) -> None:
    fsx, made = account.client("fsx"), link(account, create(account, network))
    account.speed(NEVER)
    answer = fsx.delete_data_repository_association(AssociationId=made["AssociationId"])
    assert (answer["Lifecycle"], answer["DeleteDataInFileSystem"]) == ("DELETING", False)
    with refused("BadRequest"):
        fsx.update_data_repository_association(AssociationId=made["AssociationId"], S3={})
    account.speed(1e9)
    fsx.delete_data_repository_association(AssociationId=made["AssociationId"])
    with refused("DataRepositoryAssociationNotFound"):
        fsx.describe_data_repository_associations(AssociationIds=[made["AssociationId"]])


def test_policies_of_a_link_change_and_those_that_are_not_named_stay(
    account: Account, network: Network
) -> None:
    fsx = account.client("fsx")
    made = link(account, create(account, network), S3={"AutoImportPolicy": {"Events": ["NEW"]}})
    fsx.describe_data_repository_associations()
    fsx.update_data_repository_association(
        AssociationId=made["AssociationId"], S3={"AutoExportPolicy": {"Events": ["CHANGED"]}}
    )
    [found] = fsx.describe_data_repository_associations()["Associations"]
    assert found["S3"] == {
        "AutoImportPolicy": {"Events": ["NEW"]},
        "AutoExportPolicy": {"Events": ["CHANGED"]},
    }


@pytest.mark.parametrize(
    ("path", "s3"),
    [
        ("/data/more", "s3://other"),
        ("/", "s3://other"),
        ("/data/", "s3://other"),
        ("/more", "s3://sets"),
        ("/more", "s3://sets/a/b/"),
        ("data", "s3://other"),
        ("/more", "https://other"),
    ],
)
def test_links_that_fsx_does_not_make(
    account: Account, network: Network, path: str, s3: str
) -> None:
    made = create(account, network)
    link(account, made)
    with refused("BadRequest"):
        link(account, made, path, s3)


def test_a_file_system_has_links_or_backups_and_no_ninth_link(
    account: Account, network: Network
) -> None:
    kept = create(account, network, PERSISTENT | {"AutomaticBackupRetentionDays": 7})
    with refused("BadRequest"):
        link(account, kept)
    with refused("FileSystemNotFound"):
        link(account, {"FileSystemId": "fs-0123456789abcdef0"})
    made = create(account, network)
    for number in range(8):
        link(account, made, f"/{number}", f"s3://sets/{number}")
    with refused("ServiceLimitExceeded"):
        link(account, made, "/8", "s3://sets/8")
    with refused("BadRequest"):
        account.client("fsx").update_file_system(
            FileSystemId=made["FileSystemId"],
            LustreConfiguration={"AutomaticBackupRetentionDays": 1},
        )


def test_an_efs_mount_target_takes_time_and_blocks_its_subnet(
    account: Account, network: Network
) -> None:
    efs = account.client("efs")
    made = efs.create_file_system(CreationToken="data", Tags=[{"Key": "Name", "Value": "data"}])
    assert (made["LifeCycleState"], made["Tags"][0]["Value"]) == ("creating", "data")
    account.speed(1e9)
    target = efs.create_mount_target(
        FileSystemId=made["FileSystemId"],
        SubnetId=network.subnets[0],
        SecurityGroups=[network.group],
    )
    assert target["LifeCycleState"] == "creating"
    found = efs.describe_mount_targets(MountTargetId=target["MountTargetId"])["MountTargets"][0]
    assert found["LifeCycleState"] == "available"
    with refused("MountTargetConflict"):
        efs.create_mount_target(FileSystemId=made["FileSystemId"], SubnetId=network.subnets[0])
    with refused("DependencyViolation"):
        network.ec2.delete_subnet(SubnetId=network.subnets[0])
    with refused("FileSystemInUse"):
        efs.delete_file_system(FileSystemId=made["FileSystemId"])
    efs.delete_mount_target(MountTargetId=target["MountTargetId"])
    efs.delete_file_system(FileSystemId=made["FileSystemId"])
    network.ec2.delete_subnet(SubnetId=network.subnets[0])
    assert not account.types() & {"efs-file-system", "efs-mount-target", "network-interface"}


def test_a_file_system_that_is_not_there_yet_takes_no_mount_target(
    account: Account, network: Network
) -> None:
    account.speed(NEVER)
    made = account.client("efs").create_file_system(CreationToken="data")
    with refused("IncorrectFileSystemLifeCycleState"):
        account.client("efs").create_mount_target(
            FileSystemId=made["FileSystemId"], SubnetId=network.subnets[0]
        )


def test_a_bucket_is_listed_until_it_is_deleted_and_needs_to_be_empty_for_that(
    account: Account,
) -> None:
    s3 = account.client("s3")
    place = {"LocationConstraint": "ap-northeast-2"}
    s3.create_bucket(Bucket="our-corpus", CreateBucketConfiguration=place)
    s3.put_object(Bucket="our-corpus", Key="a.txt", Body=b"one line")
    assert "s3-bucket" in account.types()
    with refused("BucketNotEmpty"):
        s3.delete_bucket(Bucket="our-corpus")
    s3.delete_object(Bucket="our-corpus", Key="a.txt")
    s3.delete_bucket(Bucket="our-corpus")
    assert "s3-bucket" not in account.types()


def test_a_delete_marker_goes_after_versions_are_kept_no_longer(account: Account) -> None:
    s3, bucket = account.client("s3"), "our-models"
    s3.create_bucket(
        Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": "ap-northeast-2"}
    )
    for status in ("Enabled", "Suspended"):
        s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": status})
        if status == "Enabled":
            s3.put_object(Bucket=bucket, Key="a.txt", Body=b"one line")
            s3.delete_object(Bucket=bucket, Key="a.txt")
    [marker] = s3.list_object_versions(Bucket=bucket)["DeleteMarkers"]
    s3.delete_object(Bucket=bucket, Key="a.txt", VersionId=marker["VersionId"])
    s3.delete_bucket(Bucket=bucket)
