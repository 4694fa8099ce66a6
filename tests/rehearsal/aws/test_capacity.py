"""Placement groups, reservations, shortage, quotas, addresses: what stops a launch though all its
parts are right."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from rehearsal.aws import backends, capacity, instances, quotas
from tests.rehearsal.aws.test_instances import Fleet
from tests.rehearsal.aws_world import NEVER, REGION, Account, Network, refused, served, speak_to
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.live.questions.account import Account as Asked
from trainyard.plans.access import AccessPlan
from trainyard.plans.identity import Identity

ODCR, BLOCK = "cr-00000000000000001", "cr-00000000000000002"
P5: dict[str, Any] = {"type_": "p5.48xlarge", "zones": "a"}


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


@pytest.fixture
def fleet(account: Account) -> Fleet:
    return Fleet(account)


def reserve(account: Account, id_: str, **more: Any) -> None:
    wanted = {
        "kind": "reserve",
        "id": id_,
        "instance_type": "p5.48xlarge",
        "zone": f"{REGION}a",
        "instances": 1,
    }
    status, answer = account.world("POST", "faults", wanted | more)
    assert status == 200, answer


def targeting(id_: str, *, block: bool = False, **more: Any) -> dict[str, Any]:
    """Launch template data as Karpenter writes it for a reservation."""
    specification = {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationId": id_},
    }
    market = {"InstanceMarketOptions": {"MarketType": "capacity-block"}} if block else {}
    return P5 | {"CapacityReservationSpecification": specification, **market, **more}


def after(**more: float) -> str:
    return (datetime.now(UTC) + timedelta(**more)).isoformat()


def reservation(fleet: Fleet, id_: str) -> Any:
    return fleet.ec2.describe_capacity_reservations(CapacityReservationIds=[id_])[
        "CapacityReservations"
    ][0]


def group(fleet: Fleet, name: str = "close") -> str:
    return fleet.ec2.create_placement_group(GroupName=name, Strategy="cluster")["PlacementGroup"][
        "GroupId"
    ]


def test_instances_are_in_the_placement_group_of_their_template_which_stays_while_they_live(
    fleet: Fleet,
) -> None:
    id_ = group(fleet)
    ids, errors = fleet.launch(zones="a", Placement={"GroupId": id_})
    assert (len(ids), errors) == (1, [])
    assert (
        fleet.describe(ids[0])["Placement"].items()
        >= {
            "GroupName": "close",
            "GroupId": id_,
        }.items()
    )
    with refused("InvalidPlacementGroup.InUse"):
        fleet.ec2.delete_placement_group(GroupName="close")
    assert "placement-group" in fleet.account.types()
    fleet.account.world("POST", f"instances/{ids[0]}/vanish")
    fleet.ec2.delete_placement_group(GroupName="close")
    assert "placement-group" not in fleet.account.types()


def test_a_placement_group_that_nobody_made_is_unknown_to_everything(fleet: Fleet) -> None:
    assert fleet.launch(zones="a", Placement={"GroupName": "cluster"}) == (
        [],
        ["InvalidPlacementGroup.Unknown"],
    )
    for ask in (
        fleet.ec2.describe_placement_groups,
        lambda GroupNames: fleet.ec2.delete_placement_group(GroupName=GroupNames[0]),
    ):
        with refused("InvalidPlacementGroup.Unknown"):
            ask(GroupNames=["cluster"])
    with refused("NotImplemented"):
        fleet.ec2.create_placement_group(GroupName="spread", Strategy="spread")


def test_a_placement_group_is_found_by_name_id_and_state_and_its_tags_change(fleet: Fleet) -> None:
    id_ = group(fleet)
    with refused("InvalidPlacementGroup.Duplicate"):
        group(fleet)
    fleet.ec2.create_tags(Resources=[id_], Tags=[{"Key": "team", "Value": "red"}])
    available = [{"Name": "state", "Values": ["available"]}]
    for asked in ({"GroupNames": ["close"]}, {"GroupIds": [id_]}):
        [found] = fleet.ec2.describe_placement_groups(Filters=available, **asked)["PlacementGroups"]
        assert (
            found["GroupName"],
            found["GroupId"],
            found["State"],
            found["Strategy"],
            found["Tags"],
        ) == ("close", id_, "available", "cluster", [{"Key": "team", "Value": "red"}])
        assert found["GroupArn"].endswith(":placement-group/close")


def test_a_reservation_gives_as_many_instances_as_it_holds_and_each_names_it(
    account: Account, fleet: Fleet
) -> None:
    reserve(account, ODCR, instances=2)
    account.world("POST", "faults", {"kind": "no-capacity", "count": -1})
    ids, errors = fleet.launch(count=3, **targeting(ODCR))
    assert (len(ids), errors) == (
        2,
        ["ReservationCapacityExceeded"],
    ), "what is reserved is no matter of shortage"
    assert fleet.describe(ids[0])["CapacityReservationId"] == ODCR
    assert reservation(fleet, ODCR)["AvailableInstanceCount"] == 0
    account.world("POST", f"instances/{ids[0]}/vanish")
    assert reservation(fleet, ODCR)["AvailableInstanceCount"] == 1


def test_an_instance_that_shuts_down_holds_its_place_in_the_reservation_still(
    account: Account, fleet: Fleet
) -> None:
    reserve(account, ODCR)
    ids, _ = fleet.launch(**targeting(ODCR))
    account.speed(NEVER)
    fleet.ec2.terminate_instances(InstanceIds=ids)
    assert fleet.launch(**targeting(ODCR)) == ([], ["ReservationCapacityExceeded"])


def test_a_launch_that_does_not_target_a_reservation_leaves_it_alone(
    account: Account, fleet: Fleet
) -> None:
    reserve(account, ODCR)
    none = {"CapacityReservationPreference": "none"}
    ids, _ = fleet.launch(**P5, CapacityReservationSpecification=none)
    assert "CapacityReservationId" not in fleet.describe(ids[0])
    assert fleet.describe(ids[0])["CapacityReservationSpecification"] == none
    assert reservation(fleet, ODCR)["AvailableInstanceCount"] == 1


@pytest.mark.parametrize(
    ("planted", "asked", "code"),
    [
        ({}, {"type_": "g6e.48xlarge"}, "ReservationCapacityExceeded"),
        ({"zone": f"{REGION}b"}, {}, "ReservationCapacityExceeded"),
        ({"starts": after(hours=1)}, {}, "ReservationCapacityExceeded"),
        ({"starts": after(hours=-2), "ends": after(hours=-1)}, {}, "ReservationCapacityExceeded"),
        ({"block": True, "ends": after(hours=9)}, {}, "ReservationCapacityExceeded"),
        ({"placement_group": "close"}, {}, "InsufficientInstanceCapacity"),
        ({}, {"Placement": {"GroupName": "close"}}, "InsufficientInstanceCapacity"),
        ({"id": BLOCK}, {}, "InvalidCapacityReservationId.NotFound"),
    ],
)
def test_a_reservation_gives_nothing_to_a_launch_that_it_does_not_fit(
    account: Account, fleet: Fleet, planted: dict[str, Any], asked: dict[str, Any], code: str
) -> None:
    group(fleet)
    reserve(account, ODCR, **planted)
    assert fleet.launch(**(targeting(ODCR) | asked)) == ([], [code])


def test_a_reservation_gives_to_the_placement_group_it_was_made_in(
    account: Account, fleet: Fleet
) -> None:
    group(fleet)
    reserve(account, ODCR, placement_group="close")
    assert reservation(fleet, ODCR)["PlacementGroupArn"].endswith("/close")
    assert fleet.launch(**targeting(ODCR, Placement={"GroupName": "close"}))[1] == []


def test_reservations_are_found_as_karpenter_asks_for_them(account: Account, fleet: Fleet) -> None:
    reserve(account, ODCR, tags={"team": "red"})
    reserve(account, BLOCK, block=True, starts=after(hours=-1), ends=after(hours=9))
    reserve(account, "cr-00000000000000003", starts=after(hours=1))
    for filters, found in (
        ({"state": "active"}, {ODCR, BLOCK}),
        ({"state": "scheduled"}, {"cr-00000000000000003"}),
        ({"state": "active", "tag:team": "red"}, {ODCR}),
        ({"tag-key": "team"}, {ODCR}),
        (
            {
                "owner-id": backends.ACCOUNT,
                "instance-match-criteria": "targeted",
                "state": "active",
            },
            {ODCR, BLOCK},
        ),
        ({"owner-id": "210987654321"}, set()),
    ):
        asked = [{"Name": name, "Values": [value]} for name, value in filters.items()]
        said = fleet.ec2.describe_capacity_reservations(Filters=asked)["CapacityReservations"]
        assert {one["CapacityReservationId"] for one in said} == found, filters
    with refused("InvalidCapacityReservationId.NotFound"):
        fleet.ec2.describe_capacity_reservations(CapacityReservationIds=["cr-0"])
    told = reservation(fleet, BLOCK)
    assert (told["ReservationType"], told["AvailabilityZoneId"]) == ("capacity-block", "apne2-az1")
    assert told["EndDate"] > told["StartDate"]


def test_the_instances_of_a_block_are_terminated_half_an_hour_before_its_end(
    account: Account, fleet: Fleet
) -> None:
    reserve(account, BLOCK, block=True, ends=after(hours=9))
    ids, errors = fleet.launch(**targeting(BLOCK, block=True))
    assert errors == []
    assert fleet.describe(ids[0])["InstanceLifecycle"] == "capacity-block"
    reserve(account, BLOCK, block=True, ends=after(seconds=capacity.RECLAIMED))
    assert fleet.ec2.describe_vpcs() and fleet.describe(ids[0])["State"]["Name"] == "terminated"
    assert reservation(fleet, BLOCK)["State"] == "active"
    assert fleet.launch(**targeting(BLOCK, block=True)) == ([], ["ReservationCapacityExceeded"])


def test_the_instances_of_a_reservation_that_ends_run_on_as_any_other(
    account: Account, fleet: Fleet
) -> None:
    reserve(account, ODCR)
    ids, _ = fleet.launch(**targeting(ODCR))
    reserve(account, ODCR, ends=after(seconds=0))
    assert reservation(fleet, ODCR)["State"] == "expired"
    found = fleet.describe(ids[0])
    assert (found["State"]["Name"], found.get("CapacityReservationId")) == ("running", None)


@pytest.mark.parametrize(
    "wrong",
    [
        {"zone": "moon-1a"},
        {"instance_type": "p5.huge"},
        {"block": True},
        {"ends": "2026-12-01T11:30:00"},
        {"color": "red"},
    ],
)
def test_a_reservation_that_cannot_be_is_not_planted(
    account: Account, fleet: Fleet, wrong: dict[str, Any]
) -> None:
    wanted = {
        "kind": "reserve",
        "id": ODCR,
        "instance_type": "p5.48xlarge",
        "zone": f"{REGION}a",
        "instances": 1,
    }
    assert account.world("POST", "faults", wanted | wrong)[0] == 400
    with refused("InvalidCapacityReservationId.NotFound"):
        reservation(fleet, ODCR)


def test_a_fleet_gets_what_is_to_be_had_still_and_an_error_for_the_rest(
    account: Account, fleet: Fleet
) -> None:
    account.world(
        "POST", "faults", {"kind": "no-capacity", "instance_type": "p5.48xlarge", "available": 1}
    )
    ids, errors = fleet.launch(count=2, **P5)
    assert (len(ids), errors) == (1, ["InsufficientInstanceCapacity"])
    assert fleet.launch(**P5) == ([], ["InsufficientInstanceCapacity"])
    assert fleet.launch(type_="g6e.48xlarge", zones="a")[1] == []
    account.world("DELETE", "faults")
    assert fleet.launch(**P5)[1] == []


def run_dry(fleet: Fleet, zone: str) -> None:
    """RunInstances as Karpenter tries an EC2NodeClass: a p5.48xlarge, its subnet in its
    interface."""
    subnet = fleet.network.subnets["ac".index(zone)]
    fleet.ec2.run_instances(
        DryRun=True,
        MinCount=1,
        MaxCount=1,
        InstanceType="p5.48xlarge",
        LaunchTemplate={"LaunchTemplateId": fleet.template(), "Version": "$Latest"},
        NetworkInterfaces=[{"DeviceIndex": 0, "NetworkCardIndex": 0, "SubnetId": subnet}],
    )


def test_a_dry_run_of_a_type_that_the_zone_does_not_sell_is_refused_in_ec2s_words(
    fleet: Fleet,
) -> None:
    with pytest.raises(ClientError) as caught:
        run_dry(fleet, "c")
    assert caught.value.response["Error"] == {
        "Code": "Unsupported",
        "Message": (
            "Your requested instance type (p5.48xlarge) is not supported in your requested"
            " Availability Zone (ap-northeast-2c). Please retry your request by not specifying an"
            " Availability Zone or choosing ap-northeast-2a."
        ),
    }
    with refused("DryRunOperation"):
        run_dry(fleet, "a")


def test_a_dry_run_of_a_fleet_wants_one_zone_that_sells_its_type(fleet: Fleet) -> None:
    with refused("Unsupported"):
        fleet.launch(type_="p5.48xlarge", zones="c", dry=True)
    for zones in ("a", "ca"):
        with refused("DryRunOperation"):
            fleet.launch(type_="p5.48xlarge", zones=zones, dry=True)


def test_a_dry_run_looks_at_neither_capacity_nor_quota(account: Account, fleet: Fleet) -> None:
    account.world("POST", "faults", {"kind": "no-capacity", "count": -1})
    account.world("POST", "faults", {"kind": "quota", "code": "L-417A185B", "value": 0})
    with refused("DryRunOperation"):
        run_dry(fleet, "a")


def test_quotas_are_told_and_can_be_set(account: Account) -> None:
    quotas = account.client("service-quotas")
    told = {
        one["QuotaCode"]: one["Value"]
        for one in quotas.list_service_quotas(ServiceCode="ec2")["Quotas"]
    }
    assert {"L-417A185B", "L-DB2E81BA", "L-1216C47A", "L-7212CCBC", "L-3819A6DF"} <= told.keys()
    account.world("POST", "faults", {"kind": "quota", "code": "L-417A185B", "value": 0})
    assert (
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-417A185B")["Quota"]["Value"] == 0
    )
    assert account.world("POST", "faults", {"kind": "quota", "code": "L-0", "value": 1})[0] == 404
    with refused("NoSuchResourceException"):
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-0")
    disks = quotas.get_service_quota(ServiceCode="ebs", QuotaCode="L-7A658B76")["Quota"]
    assert (disks["ServiceCode"], disks["Value"]) == ("ebs", 50)
    with refused("NoSuchResourceException"):
        quotas.get_service_quota(ServiceCode="ec2", QuotaCode="L-7A658B76")


def test_disks_and_vpcs_are_counted_as_a_live_check_counts_them(
    account: Account, fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account has its default VPC and that of the fleet."""
    speak_to(account, monkeypatch)
    asked, me = Asked(AccessPlan(region=REGION)), Identity(project="p", stack="s", region=REGION)
    before = asked.disks(me)
    disk = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 300, "VolumeType": "gp3"}}
    fleet.launch(BlockDeviceMappings=[disk])
    assert before[0] == 50 and asked.disks(me) == (50, before[1] + 300)
    assert asked.vpcs(me) == (5, 2)


def test_spot_and_on_demand_have_quotas_of_their_own_and_blocks_none(
    account: Account, fleet: Fleet
) -> None:
    account.world("POST", "faults", {"kind": "quota", "code": "L-417A185B", "value": 0})
    reserve(account, ODCR)
    reserve(account, BLOCK, block=True, ends=after(hours=9))
    assert fleet.launch(**P5) == ([], ["VcpuLimitExceeded"])
    assert fleet.launch(**targeting(ODCR)) == ([], ["VcpuLimitExceeded"])
    assert fleet.launch(**targeting(BLOCK, block=True))[1] == []
    assert quotas.quota_code("p5.48xlarge", "spot") != quotas.quota_code("p4d.24xlarge", "spot")


def test_interfaces_take_an_address_each_but_those_that_are_only_efa(fleet: Fleet) -> None:
    def free() -> int:
        found = fleet.ec2.describe_subnets(SubnetIds=fleet.network.subnets[:1])["Subnets"][0]
        return found["AvailableIpAddressCount"]

    before = free()
    fleet.launch(zones="a", count=2)
    assert free() == before - 2, (
        "each has one interface with an address, and four that are only EFA"
    )


def test_a_type_is_sold_in_a_zone_by_its_name_and_by_its_id(fleet: Fleet) -> None:
    for kind, name in (("availability-zone", f"{REGION}a"), ("availability-zone-id", "apne2-az1")):
        offered = fleet.ec2.describe_instance_type_offerings(
            LocationType=kind, Filters=[{"Name": "instance-type", "Values": ["p5.48xlarge"]}]
        )
        assert [one["Location"] for one in offered["InstanceTypeOfferings"]] == [name]


@pytest.mark.parametrize("name", GPU_TYPES)
def test_the_account_and_the_catalogue_agree_on_a_types_network(name: str) -> None:
    network = backends.instance_types()[name]["NetworkInfo"]
    facts = GPU_TYPES[name]
    assert (
        network["MaximumNetworkCards"],
        network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    ) == (facts.cards, facts.efa)


@pytest.mark.parametrize(
    ("nics", "code"),
    [
        ([(0, "interface"), (32, "efa-only")], "InvalidNetworkInterface.NetworkCardIndex"),
        (
            [(0, "interface"), (1, "efa-only"), (1, "efa-only"), (1, "efa-only")],
            "AttachmentLimitExceeded",
        ),
    ],
)
def test_interfaces_that_a_type_has_no_room_for_are_refused(
    fleet: Fleet, nics: list[tuple[int, str]], code: str
) -> None:
    wanted = [
        {
            "DeviceIndex": 1,
            "NetworkCardIndex": card,
            "InterfaceType": kind,
            "Groups": [fleet.network.group],
        }
        for card, kind in nics
    ]
    assert fleet.launch(**P5, NetworkInterfaces=wanted) == ([], [code])


def test_card_0_of_p6_b300_takes_no_efa(account: Account) -> None:
    network, facts = Network(account), backends.instance_types()["p6-b300.48xlarge"]["NetworkInfo"]
    nics = [{"NetworkCardIndex": 0}, {"NetworkCardIndex": 0, "InterfaceType": "efa-only"}]
    with pytest.raises(Exception, match="card 0 of p6-b300.48xlarge does not support EFA"):
        instances._check_interfaces("p6-b300.48xlarge", facts, nics)
    assert network.subnets
