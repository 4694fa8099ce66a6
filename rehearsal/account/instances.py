"""EC2 instances: launching them as their launch template says, what stops a launch, their AMIs and their ends.

Everything launches through `launch`: CreateFleet (Karpenter), RunInstances and managed node groups.
"""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Iterator
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.types import Base64EncodedString

from rehearsal.account import backends, prices, services
from rehearsal.account.clock import CLOCK
from rehearsal.account.faults import FAULTS
from rehearsal.account.operations import Call, Fields, NotBuilt, Refused, answers, refuses

QUOTAS = {"G": 1536, "P": 768, "Standard": 1280}
"""vCPUs of running On-Demand instances, by Service Quotas family; POST /_world/quotas changes them."""
GONE = ("shutting-down", "terminated")
_AMI_PARAMETER = re.compile(
    r"/aws/service/eks/optimized-ami/(?P<version>1\.\d\d)/amazon-linux-2023/(?P<arch>x86_64|arm64)/"
    r"(?P<variant>standard|nvidia|neuron)/(recommended|amazon-eks-node-al2023-(?P=arch)-(?P=variant)-(?P=version)-"
    r"(?P<date>v\d{8}))/image_id")
_NEWEST_RELEASE = "v20261101"

refuses("ec2", "DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound",
        "The capacity reservation '{hit}' does not exist", lambda call: ", ".join(call["CapacityReservationIds"] or ()))
refuses("ec2", "DescribePlacementGroups", "InvalidPlacementGroup.Unknown", "The Placement Group '{hit}' is unknown.",
        lambda call: ", ".join([*(call["GroupNames"] or ()), *(call["GroupIds"] or ())]))
refuses("ec2", "CreateFleet", "NotImplemented", "the rehearsal's account does not implement fleets of type {Type} with "
        "{hit} capacity", lambda call: (call["Type"] != "instant" or _capacity(call) not in ("on-demand", "spot"))
        and _capacity(call), status=501)
answers("ec2", "DescribeCapacityReservations")(lambda call: {"CapacityReservations": []})
answers("ec2", "DescribePlacementGroups")(lambda call: {"PlacementGroups": []})


def find(instance_id: str) -> Any:
    """The instance in whatever region, terminated ones too; None where it never was."""
    found = (backend.get_instance_by_id(instance_id) for _, backend in backends.used_regions("ec2"))
    return next((one for one in found if one), None)


def also_needed(call: Call) -> Iterator[str]:
    """Actions that AWS checks besides the one that is called."""
    if call.service == "ec2" and call["TagSpecifications"]:
        yield "ec2:CreateTags"
    if call.name == "ec2:CreateFleet":
        yield "ec2:RunInstances"
    if call.name in ("ec2:CreateFleet", "ec2:RunInstances") and any(
            data.get("IamInstanceProfile") for data in (call.params, *_templates_of(call))):
        yield "iam:PassRole"


def _templates_of(call: Call) -> Iterator[Fields]:
    named = [config["LaunchTemplateSpecification"] for config in call["LaunchTemplateConfigs"] or ()]
    yield from (template_data(call.region, one) for one in (*named, call["LaunchTemplate"]) if one)


def template_data(region: str, specification: Fields) -> Fields:
    """The launch template data that a specification names."""
    id_, name = specification.get("LaunchTemplateId"), specification.get("LaunchTemplateName")
    for template in backends.ec2(region).launch_templates.values():
        if id_ == template.id or name == template.name:
            return template.get_version(specification.get("Version") or "$Default").data
    raise Refused("InvalidLaunchTemplateId.NotFound" if id_ else "InvalidLaunchTemplateName.NotFoundException",
                  f"The specified launch template, {id_ or name}, does not exist.")


def _capacity(call: Call) -> str:
    return call["TargetCapacitySpecification"].get("DefaultTargetCapacityType", "on-demand")


@answers("ec2", "CreateFleet")
def _create_fleet(call: Call) -> Fields:
    """Pool after pool as AWS tries them, until there is enough; what went wrong in a pool is said in Errors."""
    fleet, left, spot = f"fleet-{secrets.token_hex(16)}", _wanted(call), _capacity(call) == "spot"
    tags = _tags(call["TagSpecifications"]).get("instance", {}) | {"aws:ec2:fleet-id": fleet}
    launched, errors = [], []
    for specification, override in _cheapest_first(call["LaunchTemplateConfigs"]):
        pool = {"LaunchTemplateSpecification": specification, "Overrides": override}
        try:
            for _ in range(left):
                data = template_data(call.region, specification) | override
                launched.append(_launched(pool, _capacity(call), launch(call.region, data, tags, spot=spot)))
                left -= 1
        except ServiceException as error:
            errors.append({"LaunchTemplateAndOverrides": pool, "Lifecycle": _capacity(call), "ErrorCode": error.code,
                           "ErrorMessage": error.message})
    return {"FleetId": fleet, "Errors": errors, "Instances": launched}


def _wanted(call: Call) -> int:
    return call["TargetCapacitySpecification"]["TotalTargetCapacity"]


def _cheapest_first(configs: list[Fields]) -> list[tuple[Fields, Fields]]:
    pools = [(config["LaunchTemplateSpecification"], override) for config in configs
             for override in config.get("Overrides") or [{}]]
    return sorted(pools, key=lambda pool: (pool[1].get("Priority", 0), prices.of(pool[1].get("InstanceType", ""))))


def _launched(pool: Fields, kind: str, instance: Any) -> Fields:
    place = {"AvailabilityZone": instance.placement.zone, "SubnetId": instance.subnet_id,
             "InstanceType": instance.instance_type, "ImageId": instance.image_id}
    return {"LaunchTemplateAndOverrides": pool | {"Overrides": pool["Overrides"] | place}, "Lifecycle": kind,
            "InstanceIds": [instance.id], "InstanceType": instance.instance_type}


@answers("ec2", "RunInstances")
def _run_instances(call: Call) -> Any:
    """As the launch template and the call say; the call wins."""
    given = {name: value for name, value in call.params.items() if value not in (None, [], {})}
    template = template_data(call.region, given["LaunchTemplate"]) if "LaunchTemplate" in given else {}
    if "UserData" in given:
        given["UserData"] = Base64EncodedString(given["UserData"])
    tags = _tags(call["TagSpecifications"]).get("instance", {})
    made = [launch(call.region, template | given, tags) for _ in range(call["MinCount"])]
    return {"ReservationId": made[0].reservation_id, "OwnerId": backends.ACCOUNT, "Instances": made}


def launch(region: str, data: Fields, tags: dict[str, str], *, spot: bool = False) -> Any:
    """One instance by launch template data; Refused with EC2's reason where it cannot be."""
    ec2, nics = backends.ec2(region), data.get("NetworkInterfaces") or []
    subnet_id = data.get("SubnetId") or next((nic["SubnetId"] for nic in nics if nic.get("SubnetId")), None)
    if not subnet_id:
        raise NotBuilt("instances in a default subnet")
    subnet, own = ec2.get_subnet(subnet_id), nics[0].get("Groups") if nics else None
    groups = own or data.get("SecurityGroupIds") or []
    _check_launch(ec2, data, subnet, groups)
    specified = _tags(data.get("TagSpecifications"))
    instance = ec2.run_instances(
        image_id=data["ImageId"], count=1, user_data=data.get("UserData"), security_group_names=[],
        security_group_ids=list(groups), instance_type=data["InstanceType"], is_instance_type_default=False,
        subnet_id=subnet.id, region_name=region, key_name=data.get("KeyName"), placement=None,
        lifecycle="spot" if spot else None, metadata_options=data.get("MetadataOptions", {}),
        monitoring_state="enabled" if (data.get("Monitoring") or {}).get("Enabled") else "disabled",
        block_device_mappings=_mappings(data),
        tags={"instance": specified.get("instance", {}) | tags, "volume": specified.get("volume", {})}).instances[0]
    instance.reservation_id = next(one.id for one in ec2.reservations.values() if instance in one.instances)
    instance.placement.availability_zone_id = subnet.availability_zone_id
    instance.spot_instance_request_id = f"sir-{secrets.token_hex(4)}" if spot else None
    _attach(ec2, instance, nics)
    if profile := data.get("IamInstanceProfile"):
        ec2.associate_iam_instance_profile(instance_id=instance.id, iam_instance_profile_name=profile.get("Name"),
                                           iam_instance_profile_arn=profile.get("Arn"))
    _changed(region, instance)
    return instance


def _mappings(data: Fields) -> list[Fields]:
    root: Fields = {"DeviceName": "/dev/xvda", "Ebs": {}}
    return [mapping | {"Ebs": {"VolumeSize": 20, "DeleteOnTermination": True} | mapping["Ebs"]}
            for mapping in data.get("BlockDeviceMappings") or [root] if "Ebs" in mapping]


def _attach(ec2: Any, instance: Any, nics: list[Fields]) -> None:
    """The interfaces beyond the first, by card: moto knows one per device index only, hence the made-up keys."""
    instance.nics[0].delete_on_termination = True
    for number, nic in enumerate(nics[1:], 1):
        eni = ec2.create_network_interface(ec2.get_subnet(instance.subnet_id), [], group_ids=nic.get("Groups"),
                                           delete_on_termination=True)
        instance.attach_eni(eni, 100 + number)
        eni.device_index, eni.network_card_index = nic["DeviceIndex"], nic.get("NetworkCardIndex", 0)
    for eni, nic in zip(instance.nics.values(), nics, strict=False):
        eni.interface_type = nic.get("InterfaceType") or "interface"


def _check_launch(ec2: Any, data: Fields, subnet: Any, groups: list[str]) -> None:
    """What EC2 says no to, in its order: what is asked for, where, and only then whether there is any."""
    name, image = data.get("InstanceType", ""), ec2.amis.get(data.get("ImageId"))
    facts = _facts(name)
    if image is None:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{data.get('ImageId')}]' does not exist")
    if image.architecture not in facts["ProcessorInfo"]["SupportedArchitectures"]:
        raise Refused("InvalidParameterValue", f"The architecture '{image.architecture}' of the image does not match "
                      f"that of the instance type '{name}'")
    for id_ in groups:
        group = ec2.get_security_group_from_id(id_)
        if group is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{id_}' does not exist")
        if group.vpc_id != subnet.vpc_id:
            raise Refused("InvalidParameter", f"{id_} and subnet {subnet.id} belong to different networks.")
    profile = data.get("IamInstanceProfile") or {}
    wanted = profile.get("Name") or profile.get("Arn", "").rpartition("/")[2]
    if wanted and wanted not in backends.iam().instance_profiles:
        raise Refused("InvalidParameterValue", f"Value ({wanted}) for parameter iamInstanceProfile.name is invalid. "
                      "Invalid IAM Instance Profile name")
    if (data.get("CapacityReservationSpecification") or {}).get("CapacityReservationTarget"):
        raise Refused("InvalidCapacityReservationId.NotFound", "The capacity reservation does not exist")
    if placement := (data.get("Placement") or {}).get("GroupName"):
        raise Refused("InvalidPlacementGroup.Unknown", f"The Placement Group '{placement}' is unknown.")
    _check_interfaces(name, facts["NetworkInfo"], data.get("NetworkInterfaces") or [])
    _check_capacity(ec2, name, subnet, facts["VCpuInfo"]["DefaultVCpus"])


def _facts(name: str) -> Fields:
    found = next((one for one in backends.instance_types() if one["InstanceType"] == name), None)
    if found:
        return found
    if name.split(".")[0] in backends.FAMILIES:
        raise Refused("InvalidParameterValue", f"Invalid value '{name}' for InstanceType.")
    raise NotBuilt(f"instance types of the family {name.split('.')[0]} (backends.FAMILIES)")


def _check_interfaces(name: str, network: Fields, nics: list[Fields]) -> None:
    cards, efas = network.get("MaximumNetworkCards", 1), sum("efa" in (nic.get("InterfaceType") or "") for nic in nics)
    if any(nic.get("NetworkCardIndex", 0) >= cards for nic in nics):
        raise Refused("InvalidNetworkInterface.NetworkCardIndex", f"{name} has {cards} network cards only")
    if efas > network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0):
        raise Refused("AttachmentLimitExceeded", f"Interface count {efas} exceeds the EFA limit of {name}")


def _check_capacity(ec2: Any, name: str, subnet: Any, vcpus: int) -> None:
    zone, quota = subnet.availability_zone, _quota(name)
    if not offered(ec2.region_name, name, zone):
        raise Refused("Unsupported", f"Your requested instance type ({name}) is not supported in your requested "
                      f"Availability Zone ({zone}).")
    used = sum(_facts(one.instance_type)["VCpuInfo"]["DefaultVCpus"] for one in ec2.all_instances()
               if one.state not in GONE and _quota(one.instance_type) == quota)
    if used + vcpus > QUOTAS[quota]:
        raise Refused("VcpuLimitExceeded", "You have requested more vCPU capacity than your current vCPU limit of "
                      f"{QUOTAS[quota]} allows for the instance bucket that the specified instance type belongs to.")
    if FAULTS.no_capacity(name, zone):
        raise Refused("InsufficientInstanceCapacity", f"We currently do not have sufficient {name} capacity in the "
                      f"Availability Zone you requested ({zone}).")
    if subnet.available_ip_address_count < 1:
        raise Refused("InsufficientFreeAddressesInSubnet", f"There are not enough free addresses in subnet {subnet.id}")


def offered(region: str, name: str, zone: str) -> bool:
    """Whether AWS sells the type in the zone."""
    return bool(backends.ec2(region).describe_instance_type_offerings(
        "availability-zone", {"instance-type": [name], "location": [zone]}))


def _quota(name: str) -> str:
    return {"g": "G", "p": "P"}.get(name[:1], "Standard")


@answers("ec2", "TerminateInstances")
def _terminate_instances(call: Call) -> Fields:
    found = call.ec2.get_multi_instances_by_id(call["InstanceIds"])
    for instance in found:
        if instance.disable_api_termination:
            raise Refused("OperationNotPermitted", f"The instance '{instance.id}' may not be terminated. Modify its "
                          "'disableApiTermination' instance attribute and try again.")
    return {"TerminatingInstances": [terminate(call.region, instance) for instance in found]}


def terminate(region: str, instance: Any) -> Fields:
    """Begin the instance's end; the change of its state."""
    before = {"Code": instance.state_code, "Name": instance.state}
    if instance.state not in GONE:
        instance._state.name, instance._state.code = "shutting-down", 32
        _changed(region, instance)
        CLOCK.later("ec2.instance-terminate", lambda: vanish(region, instance))
    return {"InstanceId": instance.id, "PreviousState": before,
            "CurrentState": {"Code": instance.state_code, "Name": instance.state}}


def vanish(region: str, instance: Any) -> None:
    """The instance is gone now, with its interfaces and volumes."""
    if instance.state != "terminated":
        instance.terminate()
        _changed(region, instance)


def _changed(region: str, instance: Any) -> None:
    services.emit(region, "EC2 Instance State-change Notification",
                  f"arn:aws:ec2:{region}:{backends.ACCOUNT}:instance/{instance.id}",
                  {"instance-id": instance.id, "state": instance.state})


@answers("ssm", "GetParameter", "GetParameters")
def _get_parameters(call: Call) -> Fields:
    """Of all parameters only the public ones of EKS's AMIs exist here."""
    asked = {name: _parameter(call.region, name) for name in call["Names"] or [call["Name"]]}
    if call.action == "GetParameters":
        return {"Parameters": list(filter(None, asked.values())), "InvalidParameters": [
            name for name, found in asked.items() if not found]}
    if not asked[call["Name"]]:
        raise Refused("ParameterNotFound", f"Parameter {call['Name']} not found.")
    return {"Parameter": asked[call["Name"]]}


def _parameter(region: str, name: str) -> Fields | None:
    asked = _AMI_PARAMETER.fullmatch(name)
    if not asked or (asked["arch"], asked["variant"]) == ("arm64", "neuron"):
        return None
    value = ami(region, asked["version"], asked["arch"], asked["variant"], asked["date"] or _NEWEST_RELEASE)
    return {"Name": name, "Type": "String", "Value": value, "Version": 1, "DataType": "text",
            "ARN": f"arn:aws:ssm:{region}::parameter{name}"}


def ami(region: str, version: str, arch: str, variant: str, date: str = _NEWEST_RELEASE) -> str:
    """Id of EKS's AL2023 AMI of that release: the same in every run."""
    name = f"amazon-eks-node-al2023-{arch}-{variant}-{version}-{date}"
    id_ = "ami-0" + hashlib.sha1(f"{region}/{name}".encode()).hexdigest()[:16]
    backends.publish_ami(region, id_, name=name, architecture=arch, owner_id="602401143452", owner_alias="amazon")
    return id_


def _tags(specifications: Any) -> dict[str, dict[str, str]]:
    return {one["ResourceType"]: {tag["Key"]: tag.get("Value", "") for tag in one.get("Tags") or ()}
            for one in specifications or ()}
