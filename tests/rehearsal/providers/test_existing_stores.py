"""Look-ups of existing file systems against the rehearsal's account: as the components ask, and as
`trainyard check --live` asks, the same is found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pulumi
import pytest

from rehearsal.aws import cloudwatch
from rehearsal.providers.aws.provider import Aws
from rehearsal.providers.call import Call
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import Properties
from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import AT_ONCE, REGION, Account, Network, served, speak_to
from tests.rehearsal.providers.test_lookups import _main, _settings
from tests.support.patience import until
from tests.support.recording import BUCKET, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment, environment_plan
from trainyard.existing.bucket_faults import BucketFound, found_by_status
from trainyard.live.existing.stores import store_checks
from trainyard.live.questions.account import Account as Asked
from trainyard.plans.access import AccessPlan


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    with (
        pytest.MonkeyPatch.context() as patch,
        served(tmp_path_factory.mktemp("account"), patch) as account,
    ):
        speak_to(account, patch)
        account.speed(AT_ONCE)
        yield account


@dataclass
class Stores:
    """A VPC with a NAT gateway, and an EFS and a Lustre in it behind one security group."""

    network: Network
    lustre: str
    efs: str

    @property
    def edits(self) -> tuple[Edit, ...]:
        return (
            at("network", _settings(self.network)),
            at(
                "storage",
                {
                    "scratch": {"lustre": {"file_system_id": self.lustre}},
                    "home": {"efs": {"file_system_id": self.efs}},
                },
            ),
        )

    def open(self, *ports: tuple[int, int]) -> None:
        """To the whole VPC."""
        for first, last in ports:
            self.network.ec2.authorize_security_group_ingress(
                GroupId=self.network.group,
                IpProtocol="tcp",
                FromPort=first,
                ToPort=last,
                CidrIp="10.20.0.0/16",
            )


@pytest.fixture(scope="module")
def stores(account: Account) -> Stores:
    network = Network(account)
    nat, _ = network.nat()
    for name in ("EnableDnsSupport", "EnableDnsHostnames"):
        network.ec2.modify_vpc_attribute(VpcId=network.vpc, **{name: {"Value": True}})
    network.ec2.create_route(
        RouteTableId=_main(network), DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat
    )
    made = Stores(network, "", "")
    made.open((988, 988))
    fsx, efs = account.client("fsx"), account.client("efs")
    made.lustre = fsx.create_file_system(
        FileSystemType="LUSTRE",
        StorageCapacity=1200,
        SubnetIds=network.subnets[:1],
        SecurityGroupIds=[network.group],
        FileSystemTypeVersion="2.15",
        LustreConfiguration={"DeploymentType": "SCRATCH_2"},
    )["FileSystem"]["FileSystemId"]
    made.efs = efs.create_file_system(CreationToken="ours")["FileSystemId"]
    until(lambda: efs.describe_file_systems()["FileSystems"][0]["LifeCycleState"] == "available")
    efs.create_mount_target(
        FileSystemId=made.efs, SubnetId=network.subnets[0], SecurityGroups=[network.group]
    )
    until(lambda: fsx.describe_file_systems()["FileSystems"][0]["Lifecycle"] == "AVAILABLE")
    return made


def _answers(plugin: Aws) -> Any:
    """Look-ups and reads of the program, by the aws plugin."""

    def answer(token: str, arguments: Properties) -> Properties:
        if not token.startswith("read:"):
            return plugin.invoke(token, arguments)
        urn = f"urn:pulumi:dev::trainyard::{token.removeprefix('read:')}::it"
        found = plugin.read(Call(urn=urn, id=arguments["id"]), {}, {})
        assert found, arguments
        return found.state

    return answer


def _plugin() -> Aws:
    plugin = Aws()
    plugin.configure({"region": REGION})
    return plugin


def _deployed(stores: Stores) -> Graph:
    plugin = _plugin()

    def changes(values: dict[str, Any]) -> None:
        for edit in stores.edits:
            edit(values[ENVIRONMENT])

    return deploy("dev", changes, vpc=_answers(plugin))


def _findings(stores: Stores, *edits: Edit) -> list[str]:
    plan = environment_plan(*stores.edits, *edits)
    wanted = environment(*stores.edits, *edits)
    checks = store_checks(Asked(AccessPlan(region=REGION)), plan, wanted)
    assert len(checks) == 3, "two file systems, and the policy of one"
    return [str(finding) for check in checks.values() for finding in check()]


def test_closed_groups_are_found_by_the_components_and_by_the_check(stores: Stores) -> None:
    with pytest.raises(pulumi.RunError, match="must let TCP 1018-1023 in from 10.20.0.0/20"):
        _deployed(stores)
    lustre, _, efs = _findings(stores)
    assert "scratch.lustre.file_system_id: must let TCP 1018-1023 in from 10.20.0.0/20" in lustre
    assert "home.efs.file_system_id: must let TCP 2049 in from 10.20.0.0/20" in efs


def test_open_groups_are_found_sound_by_the_components_and_by_the_check(stores: Stores) -> None:
    stores.open((1018, 1023), (2049, 2049))
    graph = _deployed(stores)
    handles = {v.inputs["spec"]["csi"]["volumeHandle"] for v in graph.of("PersistentVolume")}
    assert handles == {stores.lustre, stores.efs}
    deployment, room = _findings(stores)
    assert "it is SCRATCH_2, which loses data with a server" in deployment
    assert "1,128 of its 1,200 GiB are free" in room


def test_checkpoints_are_compared_with_the_room_that_cloudwatch_tells(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloudwatch, "_free", lambda system: 500 * 2**30)
    room, tight = _findings(stores, at("jobs.t5-large.parameters_billion", 30))[-2:]
    assert "500 of its 1,200 GiB are free" in room and "and 500 GiB are free on scratch" in tight


def test_a_file_system_that_does_not_exist_is_none() -> None:
    asked = Asked(AccessPlan(region=REGION))
    assert asked.lustre_file_system("fs-0123456789abcdef9") is None
    assert asked.efs_file_system("fs-0123456789abcdef9") is None
    assert asked.efs_policy("fs-0123456789abcdef9") == ""


def test_the_policy_of_an_efs_file_system_is_told_as_it_is_and_none_as_nothing(
    stores: Stores, account: Account
) -> None:
    asked = Asked(AccessPlan(region=REGION))
    assert asked.efs_policy(stores.efs) == ""
    policy = {"Version": "2012-10-17", "Statement": []}
    account.client("efs").put_file_system_policy(FileSystemId=stores.efs, Policy=json.dumps(policy))
    assert json.loads(asked.efs_policy(stores.efs)) == policy


def test_a_bucket_is_looked_up_as_it_is_asked_for(account: Account) -> None:
    s3, asked, plugin = account.client("s3"), Asked(AccessPlan(region=REGION)), _plugin()
    place = {"LocationConstraint": REGION}
    s3.create_bucket(Bucket="our-sets", CreateBucketConfiguration=place)
    assert plugin.invoke(BUCKET, {"bucket": "our-sets"})["bucketRegion"] == REGION
    assert asked.bucket("our-sets") == BucketFound(region=REGION)
    with pytest.raises(Refused) as refused:
        plugin.invoke(BUCKET, {"bucket": "no-sets"})
    assert found_by_status(str(refused.value)) is None is asked.bucket("no-sets")


def test_a_bucket_that_a_role_may_not_list_is_there(
    account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    account.client("s3").create_bucket(
        Bucket="their-sets", CreateBucketConfiguration={"LocationConstraint": REGION}
    )
    for name, value in Somebody(account, "stranger").keys.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(Refused) as refused:
        _plugin().invoke(BUCKET, {"bucket": "their-sets"})
    assert found_by_status(str(refused.value)) == BucketFound(seen=False)
    found = Asked(AccessPlan(region=REGION)).bucket("their-sets")
    assert found and not found.seen
