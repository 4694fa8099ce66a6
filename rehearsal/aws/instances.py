"""EC2 instances: launching them as their launch template says, what stops a launch, and their ends.

Everything launches through `launch`: CreateFleet (Karpenter), RunInstances and managed node groups.
"""

from __future__ import annotations

import secrets
from collections import Counter
from typing import Any

from moto.core.exceptions import ServiceException

from rehearsal.aws import backends, capacity, keys, launch_templates, quotas, services
from rehearsal.aws.capacity import CapacityReservation as Reservation
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.faults import FAULTS
from rehearsal.aws.operations import Call, Fields, answers, refuse, refuses

GONE = ("shutting-down", "terminated")
DESCRIBE_CACHE: dict[str, Any] = {}
"""Answers to DescribeInstances while no instance has changed: nodes and Karpenter ask several times a second."""
refuses(
    "ec2",
    "CreateFleet",
    "NotImplemented",
    "the rehearsal's account does not implement fleets of type {Type} with "
    "{TargetCapacitySpecification}",
    lambda call: (
        call["Type"] != "instant" or _capacity(call) not in ("on-demand", "spot", "capacity-block")
    ),
    status=501,
)


def find(instance_id: str) -> Any:
    """The instance in whatever region, terminated ones too; None where it never was."""
    return next(
        filter(None, (ec2.get_instance_by_id(instance_id) for ec2 in backends.used("ec2"))), None
    )


def _capacity(call: Call) -> str:
    return call["TargetCapacitySpecification"].get("DefaultTargetCapacityType", "on-demand")


@answers("ec2", "CreateFleet")
def _create_fleet(call: Call) -> Fields:
    """Pool after pool by priority, which Karpenter makes the price; what went wrong in a pool is said in Errors."""
    fleet, left = (
        f"fleet-{secrets.token_hex(16)}",
        call["TargetCapacitySpecification"]["TotalTargetCapacity"],
    )
    tags = _tags(call["TagSpecifications"]).get("instance", {}) | {"aws:ec2:fleet-id": fleet}
    pools = [
        {
            "LaunchTemplateSpecification": config["LaunchTemplateSpecification"],
            "Overrides": override,
        }
        for config in call["LaunchTemplateConfigs"]
        for override in config.get("Overrides") or [{}]
    ]
    launched, errors = [], []
    for pool in sorted(pools, key=lambda pool: pool["Overrides"].get("Priority", 0)):
        data = (
            launch_templates.data(call.region, pool["LaunchTemplateSpecification"])
            | pool["Overrides"]
        )
        said = {"LaunchTemplateAndOverrides": pool, "Lifecycle": _capacity(call)}
        try:
            for _ in range(left):
                made = launch(
                    call.region,
                    data,
                    tags,
                    spot=_capacity(call) == "spot",
                    launcher=call.principal.entity,
                )
                place = {
                    "AvailabilityZone": made.placement.zone,
                    "SubnetId": made.subnet_id,
                    "InstanceType": made.instance_type,
                    "ImageId": made.image_id,
                }
                launched.append(
                    said
                    | {
                        "LaunchTemplateAndOverrides": (
                            pool | {"Overrides": pool["Overrides"] | place}
                        ),
                        "InstanceIds": [made.id],
                        "InstanceType": made.instance_type,
                    }
                )
                left -= 1
        except ServiceException as error:
            errors.append(said | {"ErrorCode": error.code, "ErrorMessage": error.message})
    return {"FleetId": fleet, "Errors": errors, "Instances": launched}


@answers("ec2", "RunInstances")
def _run_instances(call: Call) -> Any:
    """As the launch template and the call say; the call wins."""
    given = {name: value for name, value in call.params.items() if value not in (None, [], {})}
    template = (
        launch_templates.data(call.region, given["LaunchTemplate"])
        if "LaunchTemplate" in given
        else {}
    )
    tags = _tags(call["TagSpecifications"]).get("instance", {})
    made = [
        launch(call.region, template | given, tags, launcher=call.principal.entity)
        for _ in range(call["MinCount"])
    ]
    return {"ReservationId": made[0].reservation_id, "OwnerId": backends.ACCOUNT, "Instances": made}


def launch(
    region: str, data: Fields, tags: dict[str, str], *, spot: bool = False, launcher: str
) -> Any:
    """One instance by launch template data; Refused with EC2's reason where it cannot be. `launcher`:
    ARN of whoever launches it. Where that one may not use the key of a volume, the instance ends."""
    ec2, nics = backends.ec2(region), data.get("NetworkInterfaces") or []
    subnet, own = subnet_named(ec2, data), nics[0].get("Groups") if nics else None
    refuse(subnet is None, "NotImplemented", "the rehearsal's account has no default subnets")
    groups = own or data.get("SecurityGroupIds") or []
    held = _check_launch(ec2, data, subnet, groups, spot)
    specified, root = _tags(data.get("TagSpecifications")), {"DeviceName": "/dev/xvda", "Ebs": {}}
    instance = ec2.run_instances(
        image_id=data["ImageId"],
        count=1,
        user_data=data.get("UserData"),
        security_group_names=[],
        security_group_ids=list(groups),
        instance_type=data["InstanceType"],
        is_instance_type_default=False,
        subnet_id=subnet.id,
        region_name=region,
        lifecycle=_lifecycle(spot, held),
        metadata_options=data.get("MetadataOptions", {}),
        block_device_mappings=[
            disk | {"Ebs": {"VolumeSize": 20, "DeleteOnTermination": True} | disk["Ebs"]}
            for disk in data.get("BlockDeviceMappings") or [root]
        ],
        tags={
            "instance": specified.get("instance", {}) | tags,
            "volume": specified.get("volume", {}),
        },
    ).instances[0]
    instance.reservation_id = next(
        one.id for one in ec2.reservations.values() if instance in one.instances
    )
    instance.placement.availability_zone_id = subnet.availability_zone_id
    instance.spot_instance_request_id = f"sir-{secrets.token_hex(4)}" if spot else None
    instance.capacity_reservation_id = held.id if held else None
    instance.capacity_reservation_specification = data.get("CapacityReservationSpecification") or {
        "CapacityReservationPreference": "open"
    }
    if group := capacity.group_of(ec2, data):
        instance.placement.group_name, instance.placement.group_id = group.name, group.id
    _attach(ec2, instance, nics)
    if profile := data.get("IamInstanceProfile"):
        ec2.associate_iam_instance_profile(
            instance_id=instance.id, iam_instance_profile_name=profile["Name"]
        )
    _changed(instance)
    _end_without_key(instance, keys.volume_fault(region, data, launcher))
    return instance


def _end_without_key(instance: Any, fault: tuple[str, str] | None) -> None:
    """EC2 finds out about the key of a volume only now. `fault`: code and message of that."""
    if fault:
        instance.launch_fault = fault
        terminate(instance)


def subnet_named(ec2: Any, data: Fields) -> Any:
    """The subnet that launch template data names, at the top or in an interface; None where it names none."""
    nics = data.get("NetworkInterfaces") or []
    subnet_id = data.get("SubnetId") or next(
        (nic["SubnetId"] for nic in nics if nic.get("SubnetId")), None
    )
    return ec2.get_subnet(subnet_id) if subnet_id else None


def _attach(ec2: Any, instance: Any, nics: list[Fields]) -> None:
    """The interfaces beyond the first, by card: moto knows one per device index only, hence the made-up keys."""
    instance.nics[0].delete_on_termination = True
    for number, nic in enumerate(nics[1:], 1):
        eni = ec2.create_network_interface(
            ec2.get_subnet(instance.subnet_id),
            [],
            group_ids=nic.get("Groups"),
            delete_on_termination=True,
        )
        instance.attach_eni(eni, 100 + number)
        eni.device_index, eni.network_card_index = (
            nic["DeviceIndex"],
            nic.get("NetworkCardIndex", 0),
        )
    for eni, nic in zip(instance.nics.values(), nics, strict=False):
        eni.interface_type = nic.get("InterfaceType") or "interface"
        if eni.interface_type == "efa-only":  # takes no address
            eni.private_ip_address, eni.private_ip_addresses = None, []


def _lifecycle(spot: bool, held: Reservation | None) -> str | None:
    return "spot" if spot else "capacity-block" if held and held.is_block else None


def _check_launch(
    ec2: Any, data: Fields, subnet: Any, groups: list[str], spot: bool
) -> Reservation | None:
    """The reservation to use, if any. What EC2 says no to: what is asked for, where, and then
    whether there is any."""
    name, image = data.get("InstanceType", ""), ec2.amis.get(data.get("ImageId"))
    facts = _facts(name)
    refuse(
        image is None,
        "InvalidAMIID.NotFound",
        f"The image id '[{data.get('ImageId')}]' does not exist",
    )
    for id_ in groups:
        group = ec2.get_security_group_from_id(id_)
        refuse(group is None, "InvalidGroup.NotFound", f"The security group '{id_}' does not exist")
        elsewhere = group.vpc_id != subnet.vpc_id
        refuse(
            elsewhere,
            "InvalidParameter",
            f"{id_} and subnet {subnet.id} belong to different networks.",
        )
    profile = (data.get("IamInstanceProfile") or {}).get("Name")
    refuse(
        profile and profile not in backends.iam().instance_profiles,
        "InvalidParameterValue",
        f"Value ({profile}) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance"
        " Profile name",
    )
    _check_interfaces(name, facts["NetworkInfo"], data.get("NetworkInterfaces") or [])
    zone = check_sold(ec2, name, subnet)
    held = capacity.reserved(ec2, data, zone)
    alive = [one for one in ec2.all_instances() if one.state not in GONE]
    quotas.check(alive, name, _lifecycle(spot, held))
    refuse(
        subnet.available_ip_address_count < 1,
        "InsufficientFreeAddressesInSubnet",
        f"{subnet.id} is full",
    )
    refuse(
        not held and FAULTS.no_capacity(name, zone),
        "InsufficientInstanceCapacity",
        f"We currently do not have sufficient {name} capacity in the Availability Zone you"
        f" requested ({zone}).",
    )
    return held


def _facts(name: str) -> Fields:
    known = backends.instance_types()
    refuse(
        name not in known,
        "InvalidParameterValue",
        f"Invalid value '{name}' for InstanceType (the rehearsal has "
        f"those of {', '.join(sorted(backends.FAMILIES))})",
    )
    return known[name]


def _check_interfaces(name: str, network: Fields, nics: list[Fields]) -> None:
    """p6-b300's card 0 takes no EFA: one card more than EFA interfaces. EC2's code for that is not known to us."""
    efas = [
        nic.get("NetworkCardIndex", 0) for nic in nics if "efa" in (nic.get("InterfaceType") or "")
    ]
    used, most = (
        Counter(nic.get("NetworkCardIndex", 0) for nic in nics),
        network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
    )
    room = {
        card["NetworkCardIndex"]: card["MaximumNetworkInterfaces"]
        for card in network["NetworkCards"]
    }
    refuse(
        used.keys() - room,
        "InvalidNetworkInterface.NetworkCardIndex",
        f"{name} has {len(room)} network cards only",
    )
    refuse(
        len(efas) > most or any(used[card] > room[card] for card in used),
        "AttachmentLimitExceeded",
        f"Interface count {len(nics)}, {len(efas)} of them EFA, exceeds the limit of {name} or of"
        " one of its cards",
    )
    refuse(
        0 in efas and len(room) > most,
        "InvalidParameterValue",
        f"Network card 0 of {name} does not support EFA",
    )


def check_sold(ec2: Any, name: str, subnet: Any) -> str:
    """The subnet's zone; Refused, in EC2's words, where AWS does not sell the type there."""
    zone, sold = subnet.availability_zone, zones_with(ec2.region_name, name)
    instead = f" or choosing {', '.join(sold)}" if sold else ""
    refuse(
        zone not in sold,
        "Unsupported",
        f"Your requested instance type ({name}) is not supported in your requested Availability"
        f" Zone ({zone}). Please retry your request by not specifying an Availability Zone"
        f"{instead}.",
    )
    return zone


def zones_with(region: str, name: str) -> list[str]:
    """The zones of the region in which AWS sells the type."""
    offers = backends.ec2(region).describe_instance_type_offerings(
        "availability-zone", {"instance-type": [name]}
    )
    return sorted(offer["Location"] for offer in offers)


@answers("ec2", "TerminateInstances")
def _terminate_instances(call: Call) -> Fields:
    before = {one: one.state for one in call.ec2.get_multi_instances_by_id(call["InstanceIds"])}
    for one in before:
        terminate(one)
    return {
        "TerminatingInstances": [
            {
                "InstanceId": one.id,
                "PreviousState": {"Name": state},
                "CurrentState": {"Name": one.state},
            }
            for one, state in before.items()
        ]
    }


def terminate(instance: Any) -> None:
    """Begin the instance's end."""
    if instance.state not in GONE:
        instance._state.name, instance._state.code = "shutting-down", 32
        _changed(instance)
        CLOCK.later("ec2.instance-terminate", lambda: vanish(instance))


def reclaim(ended: Reservation) -> None:
    """A block's instances are terminated; those of a reservation that ends run on, as any other."""
    for one in ended.users():
        if ended.is_block:
            terminate(one)
        else:
            one.capacity_reservation_id = None
    DESCRIBE_CACHE.clear()


def vanish(instance: Any) -> None:
    """The instance is gone now, with its interfaces and volumes. Its address is not given to the next: nodes are named
    by address, and a kubelet that finds the Node of the dead one loses it with that."""
    if instance.state != "terminated":
        subnet, address = (
            backends.ec2(instance.region_name).get_subnet(instance.subnet_id),
            instance.private_ip,
        )
        instance.terminate()
        if fault := getattr(instance, "launch_fault", None):
            instance.state_reason.code, instance.state_reason.message = fault
        subnet._unused_ips.discard(address)
        _changed(instance)


def _changed(instance: Any) -> None:
    DESCRIBE_CACHE.clear()
    services.emit(
        instance.region_name,
        "EC2 Instance State-change Notification",
        f"arn:aws:ec2:{instance.region_name}:{backends.ACCOUNT}:instance/{instance.id}",
        {"instance-id": instance.id, "state": instance.state},
    )


def _tags(specifications: Any) -> dict[str, dict[str, str]]:
    return {
        one["ResourceType"]: {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags") or ()}
        for one in specifications or ()
    }
