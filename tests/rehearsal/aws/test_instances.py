"""Launching instances as Karpenter and people do, and what becomes of them."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import identity
from rehearsal.aws.images import NEWEST_RELEASE
from tests.rehearsal.aws_world import (
    NEVER,
    REGION,
    Account,
    Network,
    profile,
    refused,
    served,
    speak_to,
    trust,
)
from trainyard.catalog.versions import KUBERNETES
from trainyard.live.questions.account import Account as Asked
from trainyard.plans.access import AccessPlan

AMI = "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/nvidia/{}/image_id"
PINNED = "amazon-eks-node-al2023-x86_64-nvidia-1.34-v20260724"


def test_the_recommended_ami_has_the_patch_release_of_the_kubelet(account: Account) -> None:
    ssm = account.client("ssm")
    name = AMI.format("recommended").replace("image_id", "release_version")
    found = ssm.get_parameter(Name=name)["Parameter"]["Value"]
    assert found == f"{KUBERNETES['1.34'].ami_patch}-{NEWEST_RELEASE.removeprefix('v')}"
    with refused("ParameterNotFound"):
        ssm.get_parameter(Name=name.replace("1.34", "1.29"))


@pytest.mark.parametrize(("day", "kubelet"), [("v20261012", "1.35.8"), ("v20260724", "1.35.4")])
def test_the_kubelet_of_any_release_is_read_as_a_live_check_reads_it(
    account: Account, monkeypatch: pytest.MonkeyPatch, day: str, kubelet: str
) -> None:
    """Neither is the release that EKS recommends."""
    speak_to(account, monkeypatch)
    asked = Asked(AccessPlan(region=REGION))
    assert asked.kubelet_of_ami("1.35", "standard", day) == kubelet
    assert asked.recommended_ami("1.35", "standard").endswith(NEWEST_RELEASE.removeprefix("v"))
    assert asked.kubelet_of_ami("1.35", "standard", "20261012") == ""


class Fleet:
    """A launch template as Karpenter writes it for whole EFA nodes, and fleets of it."""

    def __init__(self, account: Account) -> None:
        self.network, self.account = Network(account), account
        self.ec2 = self.network.ec2
        profile(account, "node")
        self.image = account.client("ssm").get_parameter(Name=AMI.format(PINNED))["Parameter"][
            "Value"
        ]
        nics = [{"DeviceIndex": 0, "NetworkCardIndex": 0, "Groups": [self.network.group]}] + [
            {
                "DeviceIndex": 1,
                "NetworkCardIndex": card,
                "InterfaceType": "efa-only",
                "Groups": [self.network.group],
            }
            for card in range(4)
        ]
        self.data: dict[str, Any] = {
            "ImageId": self.image,
            "IamInstanceProfile": {"Name": "node"},
            "NetworkInterfaces": nics,
            "UserData": base64.b64encode(b"boot").decode(),
        }

    def template(self, **data: Any) -> str:
        return self.ec2.create_launch_template(
            LaunchTemplateName=f"lt-{secrets.token_hex(4)}", LaunchTemplateData=self.data | data
        )["LaunchTemplate"]["LaunchTemplateId"]

    def launch(
        self,
        count: int = 1,
        zones: str = "ac",
        type_: str = "g6e.48xlarge",
        client: Any = None,
        dry: bool = False,
        spot: bool = False,
        **data: Any,
    ) -> Any:
        overrides = [
            {
                "InstanceType": type_,
                "SubnetId": self.network.subnets["ac".index(zone)],
                "AvailabilityZone": f"{REGION}{zone}",
            }
            for zone in zones
        ]
        fleet = (client or self.ec2).create_fleet(
            DryRun=dry,
            Type="instant",
            TargetCapacitySpecification={
                "TotalTargetCapacity": count,
                "DefaultTargetCapacityType": "spot" if spot else "on-demand",
            },
            LaunchTemplateConfigs=[
                {
                    "Overrides": overrides,
                    "LaunchTemplateSpecification": {
                        "LaunchTemplateId": self.template(**data),
                        "Version": "$Latest",
                    },
                }
            ],
            TagSpecifications=[
                {
                    "ResourceType": "instance",
                    "Tags": [{"Key": "karpenter.sh/nodepool", "Value": "gpu"}],
                }
            ],
        )
        return [id_ for one in fleet["Instances"] for id_ in one["InstanceIds"]], [
            error["ErrorCode"] for error in fleet["Errors"]
        ]

    def describe(self, id_: str) -> Any:
        return self.ec2.describe_instances(InstanceIds=[id_])["Reservations"][0]["Instances"][0]


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def fleet(account: Account) -> Fleet:
    return Fleet(account)


def test_a_fleet_launches_what_its_template_says(fleet: Fleet) -> None:
    ids, errors = fleet.launch(count=2)
    assert (len(ids), errors) == (2, [])
    found = fleet.describe(ids[0])
    assert found["State"]["Name"] == "running"
    assert found["IamInstanceProfile"]["Arn"].endswith("instance-profile/node")
    assert [group["GroupId"] for group in found["SecurityGroups"]] == [fleet.network.group]
    place = {"AvailabilityZone": f"{REGION}a", "AvailabilityZoneId": "apne2-az1"}
    assert place.items() <= found["Placement"].items()
    assert {"Key": "karpenter.sh/nodepool", "Value": "gpu"} in found["Tags"]
    data = fleet.ec2.describe_instance_attribute(InstanceId=ids[0], Attribute="userData")[
        "UserData"
    ]["Value"]
    assert base64.b64decode(data) == b"boot"


def test_every_efa_interface_is_seen_on_its_card(fleet: Fleet) -> None:
    ids, _ = fleet.launch()
    nics = fleet.describe(ids[0])["NetworkInterfaces"]
    assert [(nic["InterfaceType"], nic["Attachment"]["NetworkCardIndex"]) for nic in nics] == [
        ("interface", 0),
        ("efa-only", 0),
        ("efa-only", 1),
        ("efa-only", 2),
        ("efa-only", 3),
    ]


def test_a_fleet_without_capacity_in_one_zone_launches_in_the_other_and_says_so(
    account: Account, fleet: Fleet
) -> None:
    account.world("POST", "faults", {"kind": "no-capacity", "zone": f"{REGION}a", "count": -1})
    ids, errors = fleet.launch(
        zones="ac", type_="g6.48xlarge", NetworkInterfaces=fleet.data["NetworkInterfaces"][:1]
    )
    assert errors == ["InsufficientInstanceCapacity"]
    assert fleet.describe(ids[0])["Placement"]["AvailabilityZone"] == f"{REGION}c"


def test_a_type_that_a_zone_does_not_sell_is_unsupported_there(fleet: Fleet) -> None:
    assert fleet.launch(zones="c", type_="p5.48xlarge") == ([], ["Unsupported"])


def test_a_fleet_stops_at_the_vcpu_quota(account: Account, fleet: Fleet) -> None:
    account.world("POST", "faults", {"kind": "quota", "code": "L-DB2E81BA", "value": 200})
    ids, errors = fleet.launch(count=2, zones="a")
    assert (len(ids), errors) == (1, ["VcpuLimitExceeded"])


@pytest.mark.parametrize(
    ("data", "code"),
    [
        ({"ImageId": "ami-0"}, "InvalidAMIID.NotFound"),
        ({"IamInstanceProfile": {"Name": "nobody"}}, "InvalidParameterValue"),
        ({"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["sg-0"]}]}, "InvalidGroup.NotFound"),
        (
            {"NetworkInterfaces": [{"DeviceIndex": 0, "NetworkCardIndex": 9}]},
            "InvalidNetworkInterface.NetworkCardIndex",
        ),
        ({"Placement": {"GroupName": "cluster"}}, "InvalidPlacementGroup.Unknown"),
    ],
)
def test_a_template_that_ec2_would_refuse_launches_nothing(
    fleet: Fleet, data: dict[str, Any], code: str
) -> None:
    assert fleet.launch(zones="a", **data) == ([], [code])


def test_a_dry_run_tells_whether_one_may_and_does_nothing(account: Account, fleet: Fleet) -> None:
    with refused("DryRunOperation"):
        fleet.ec2.run_instances(
            DryRun=True, MinCount=1, MaxCount=1, InstanceType="m7i.large", ImageId=fleet.image
        )
    assert "instance" not in account.types()


def test_a_role_that_may_not_pass_the_nodes_role_launches_nothing(
    account: Account, fleet: Fleet
) -> None:
    iam = account.client("iam")
    document = json.loads(trust("pods.eks.amazonaws.com"))
    document["Statement"][0]["Principal"] = {"AWS": f"arn:aws:iam::{identity.ACCOUNT}:root"}
    arn = iam.create_role(RoleName="karpenter", AssumeRolePolicyDocument=json.dumps(document))[
        "Role"
    ]["Arn"]
    credentials = account.client("sts").assume_role(RoleArn=arn, RoleSessionName="karpenter")[
        "Credentials"
    ]
    for actions, code in (
        (["ec2:CreateFleet"], "UnauthorizedOperation"),
        (["ec2:CreateFleet", "ec2:RunInstances", "ec2:CreateTags"], "UnauthorizedOperation"),
    ):
        policy = {
            "Version": "2012-10-17",
            "Statement": [{"Effect": "Allow", "Action": actions, "Resource": "*"}],
        }
        iam.put_role_policy(RoleName="karpenter", PolicyName="p", PolicyDocument=json.dumps(policy))
        with refused(code):
            fleet.launch(client=account.client("ec2", credentials))
    policy["Statement"][0]["Action"] += ["iam:PassRole"]
    iam.put_role_policy(RoleName="karpenter", PolicyName="p", PolicyDocument=json.dumps(policy))
    assert fleet.launch(client=account.client("ec2", credentials))[0]


def test_a_terminated_instance_shuts_down_first_and_then_leaves_nothing_behind(
    account: Account, fleet: Fleet
) -> None:
    ids, _ = fleet.launch()
    account.speed(NEVER)
    change = fleet.ec2.terminate_instances(InstanceIds=ids)["TerminatingInstances"][0]
    assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (
        "running",
        "shutting-down",
    )
    assert fleet.describe(ids[0])["State"]["Name"] == "shutting-down"
    with refused("DependencyViolation"):
        fleet.ec2.delete_security_group(GroupId=fleet.network.group)
    account.world("POST", f"instances/{ids[0]}/vanish")
    assert fleet.describe(ids[0])["State"]["Name"] == "terminated"
    assert not account.types() & {"instance", "volume", "network-interface"}


def test_the_address_of_a_vanished_instance_is_not_the_next_ones(
    account: Account, fleet: Fleet
) -> None:
    [gone], _ = fleet.launch(zones="a")
    address = fleet.describe(gone)["PrivateIpAddress"]
    account.world("POST", f"instances/{gone}/vanish")
    ids, _ = fleet.launch(count=3, zones="a")
    assert address not in {fleet.describe(id_)["PrivateIpAddress"] for id_ in ids}


def test_a_vanished_instance_is_an_event_in_the_queue_of_the_rule(
    account: Account, fleet: Fleet
) -> None:
    sqs, events = account.client("sqs"), account.client("events")
    url = sqs.create_queue(QueueName="interruption")["QueueUrl"]
    queue = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"][
        "QueueArn"
    ]
    pattern = {
        "source": ["aws.ec2"],
        "detail-type": ["EC2 Instance State-change Notification"],
        "detail": {"state": ["terminated"]},
    }
    events.put_rule(Name="states", EventPattern=json.dumps(pattern))
    events.put_targets(Rule="states", Targets=[{"Id": "queue", "Arn": queue}])
    ids, _ = fleet.launch(count=3)
    account.world("POST", f"instances/{ids[0]}/vanish")
    assert "Messages" not in sqs.receive_message(QueueUrl=url), "no policy lets EventBridge in"
    statement = {
        "Effect": "Allow",
        "Principal": {"Service": "events.amazonaws.com"},
        "Action": "sqs:SendMessage",
        "Resource": queue,
    }
    rules = f"arn:aws:events:{REGION}:{identity.ACCOUNT}:rule"
    for number, rule in enumerate(("other", "states"), start=1):
        condition = {"ArnEquals": {"aws:SourceArn": [f"{rules}/{rule}"]}}
        document = {"Statement": [{**statement, "Condition": condition}]}
        sqs.set_queue_attributes(QueueUrl=url, Attributes={"Policy": json.dumps(document)})
        assert "Messages" not in sqs.receive_message(QueueUrl=url), "for another rule"
        account.world("POST", f"instances/{ids[number]}/vanish")
    body = json.loads(sqs.receive_message(QueueUrl=url)["Messages"][0]["Body"])
    assert body["detail"] == {"instance-id": ids[2], "state": "terminated"}


def test_the_ami_of_a_release_is_the_same_whoever_asks(account: Account, fleet: Fleet) -> None:
    ssm = account.client("ssm")
    assert ssm.get_parameter(Name=AMI.format(PINNED))["Parameter"]["Value"] == fleet.image
    with refused("ParameterNotFound"):
        ssm.get_parameter(Name=AMI.format("latest"))
    assert (
        fleet.ec2.describe_images(ImageIds=[fleet.image])["Images"][0]["Architecture"] == "x86_64"
    )


def test_bottlerocket_has_images_of_its_own_for_each_variant_and_release(account: Account) -> None:
    ssm, ec2 = account.client("ssm"), account.client("ec2")
    name = "/aws/service/bottlerocket/aws-k8s-{}/x86_64/{}/image_id"

    def image(variant: str, release: str) -> str:
        found = ssm.get_parameter(Name=name.format(variant, release))["Parameter"]["Value"]
        return ec2.describe_images(ImageIds=[found])["Images"][0]["Name"]

    assert image("1.35-nvidia", "1.68.1") == "bottlerocket-aws-k8s-1.35-nvidia-x86_64-v1.68.1"
    assert image("1.35", "1.68.0") == "bottlerocket-aws-k8s-1.35-x86_64-v1.68.0"
    newest = "/aws/service/bottlerocket/aws-k8s-1.35-nvidia/x86_64/latest/image_version"
    assert ssm.get_parameter(Name=newest)["Parameter"]["Value"].startswith("1.")
    for variant, release in (("1.29-nvidia", "1.68.1"), ("1.35-nvidia", "v1.68.1")):
        with refused("ParameterNotFound"):
            image(variant, release)


@pytest.mark.parametrize("tenancy", ["Shared", "Dedicated"])
def test_the_price_list_is_not_empty_for_machines_or_metal_or_karpenter_would_ask_without_end(
    account: Account, tenancy: str
) -> None:
    shared = [{"Type": "TERM_MATCH", "Field": "tenancy", "Value": tenancy}]
    asked = account.client("pricing", region="us-east-1").get_products(
        ServiceCode="AmazonEC2", Filters=shared
    )
    terms = json.loads(asked["PriceList"][0])["terms"]["OnDemand"]
    assert float(terms["term"]["priceDimensions"]["hourly"]["pricePerUnit"]["USD"]) > 0


def test_a_type_that_does_not_exist_here_is_refused_with_the_families_that_do(fleet: Fleet) -> None:
    with pytest.raises(ClientError, match="m7i.huge.*g6e.*p5"):
        fleet.ec2.run_instances(
            MinCount=1,
            MaxCount=1,
            InstanceType="m7i.huge",
            ImageId=fleet.image,
            SubnetId=fleet.network.subnets[0],
        )


def test_a_poll_of_instances_sees_every_change(account: Account, fleet: Fleet) -> None:
    ids, _ = fleet.launch(count=2)
    assert fleet.describe(ids[0]) == fleet.describe(ids[0])
    fleet.ec2.create_tags(Resources=[ids[0]], Tags=[{"Key": "Name", "Value": "node"}])
    assert {"Key": "Name", "Value": "node"} in fleet.describe(ids[0])["Tags"]
    account.world("POST", f"instances/{ids[0]}/vanish")
    assert fleet.describe(ids[0])["State"]["Name"] == "terminated"


def test_all_launch_templates_are_listed(fleet: Fleet) -> None:
    for number in range(20):
        fleet.ec2.create_launch_template(
            LaunchTemplateName=f"t{number}", LaunchTemplateData=fleet.data
        )
    assert len(fleet.ec2.describe_launch_templates()["LaunchTemplates"]) == 20


def test_the_tags_of_a_launch_template_are_no_data_of_its_instances(fleet: Fleet) -> None:
    def tagged(kind: str) -> dict[str, Any]:
        return {"ResourceType": kind, "Tags": [{"Key": "Name", "Value": kind}]}

    made = fleet.ec2.create_launch_template(
        LaunchTemplateName="tagged",
        LaunchTemplateData=fleet.data | {"TagSpecifications": [tagged("instance")]},
        TagSpecifications=[tagged("launch-template")],
    )["LaunchTemplate"]
    assert made["Tags"] == [{"Key": "Name", "Value": "launch-template"}]
    versions = fleet.ec2.describe_launch_template_versions(LaunchTemplateName="tagged")
    [version] = versions["LaunchTemplateVersions"]
    assert version["LaunchTemplateData"]["TagSpecifications"] == [tagged("instance")]
