"""Managed node groups: instances with EKS's user data, as many as desired, ACTIVE when their nodes are Ready."""

from __future__ import annotations

import ipaddress
import json
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.types import Base64EncodedString

from rehearsal.account import access, backends, eks, instances, network, principals
from rehearsal.account.clock import CLOCK
from rehearsal.account.eks import Cluster, Part, cluster, in_use, invalid
from rehearsal.account.operations import Call, Fields, NotBuilt, answers

AMIS = {"AL2023_x86_64_STANDARD": ("x86_64", "standard"), "AL2023_x86_64_NVIDIA": ("x86_64", "nvidia"),
        "AL2023_ARM_64_STANDARD": ("arm64", "standard"), "AL2023_ARM_64_NVIDIA": ("arm64", "nvidia")}
EFFECTS = {"NO_SCHEDULE": "NoSchedule", "NO_EXECUTE": "NoExecute", "PREFER_NO_SCHEDULE": "PreferNoSchedule"}
_DEFAULTS: Fields = {"capacityType": "ON_DEMAND", "amiType": "AL2023_x86_64_STANDARD", "instanceTypes": ["t3.medium"],
                     "diskSize": 20, "labels": {}, "taints": [], "updateConfig": {"maxUnavailable": 1}}
_NOT_BUILT = ("remoteAccess", "warmPoolConfig", "launchTemplate", "nodeRepairConfig", "releaseVersion")


@dataclass(kw_only=True)
class Nodegroup(Part):
    """One node group and its instances."""

    data: Fields
    """Launch template data of its instances."""
    give_up_at: float
    members: list[Any] = field(default_factory=list)
    ready: bool = False
    """Whether all its nodes are Ready; the keeper says so."""

    @property
    def profile(self) -> str:
        return self.data["IamInstanceProfile"]["Name"]

    def alive(self) -> list[Any]:
        return [one for one in self.members if one.state not in instances.GONE]


@answers("eks", "CreateNodegroup")
def _create(call: Call) -> Fields:
    owner = cluster(call, active=True)
    given = _DEFAULTS | {name: value for name, value in call.params.items() if value}
    given["scalingConfig"] = {"minSize": 1, "maxSize": 1, "desiredSize": 1} | given.get("scalingConfig", {})
    _check_new(call, owner, given)
    profile = f"eks-{secrets.token_hex(16)}"
    group = Nodegroup(owner=owner, data=_launch_data(owner, given, profile), view=_view(owner, given, profile),
                      give_up_at=CLOCK.deadline("eks.nodegroup.timeout"))
    answer = owner.add("Nodegroup", given["nodegroupName"], group)
    backends.iam().create_instance_profile(profile, "/", [given["nodeRole"].rpartition("/")[2]])
    access.admit_nodes(owner, given["nodeRole"])
    reconcile(group)
    CLOCK.later("eks.nodegroup", lambda: _end_of_creation(group),
                ready=lambda: group.ready or time.time() > group.give_up_at or group.view["status"] != "CREATING")
    return answer


def _check_new(call: Call, owner: Cluster, given: Fields) -> None:
    eks.not_built(call, *_NOT_BUILT)
    if given["amiType"] not in AMIS or given["capacityType"] not in ("ON_DEMAND", "SPOT"):
        raise NotBuilt(f"node groups with AMI type {given['amiType']} and capacity type {given['capacityType']}")
    if call["version"] not in (None, owner.view["version"]):
        raise NotBuilt(f"node groups of Kubernetes {call['version']} in a cluster of {owner.view['version']}")
    if not principals.trusts(given["nodeRole"], "ec2.amazonaws.com"):
        raise invalid("Following required service principals [ec2.amazonaws.com] were not found in the trust "
                      f"relationships of nodeRole {given['nodeRole']}")
    subnets = network.placed(owner.region, given["subnets"], [owner.group], "InvalidParameterException")
    zones = sorted({subnet.availability_zone for subnet in subnets})
    for name in given["instanceTypes"]:
        if not any(instances.offered(owner.region, name, zone) for zone in zones):
            raise invalid(f"[{name}] is not a valid instance type for requested Availability Zones {zones}")
    for taint in given["taints"]:
        if taint.get("effect") not in EFFECTS:
            raise invalid(f"Taint effect {taint.get('effect')} is invalid")
    _check_scaling(given["scalingConfig"])


def _check_scaling(scaling: Fields) -> None:
    if not 0 <= scaling["minSize"] <= scaling["desiredSize"] <= scaling["maxSize"] or scaling["maxSize"] < 1:
        raise invalid("Minimum capacity {minSize}, desired capacity {desiredSize} and maximum size {maxSize} must be "
                      "in this order".format_map(scaling))


def _view(owner: Cluster, given: Fields, profile: str) -> Fields:
    named = (*_DEFAULTS, "nodeRole", "subnets", "scalingConfig", "tags")
    return {name: given.get(name) for name in named} | {
        "status": "CREATING", "version": owner.view["version"], "releaseVersion": f"{owner.view['version']}.2-20261101",
        "health": {"issues": []}, "resources": {"autoScalingGroups": [{"name": f"{given['nodegroupName']}-{profile}"}]}}


def _launch_data(owner: Cluster, given: Fields, profile: str) -> Fields:
    image = instances.ami(owner.region, owner.view["version"], *AMIS[given["amiType"]])
    disk = {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": given["diskSize"], "VolumeType": "gp3"}}
    return {"BlockDeviceMappings": [disk], "SecurityGroupIds": [owner.group], "IamInstanceProfile": {"Name": profile},
            "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2}, "ImageId": image,
            "InstanceType": given["instanceTypes"][0], "UserData": _user_data(owner, given, image)}


def _user_data(owner: Cluster, given: Fields, image: str) -> Base64EncodedString:
    """MIME with nodeadm's NodeConfig (JSON is YAML), as EKS writes it for AL2023."""
    service_cidr = owner.view["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
    dns = str(ipaddress.IPv4Network(service_cidr)[10])
    labels = {"eks.amazonaws.com/nodegroup": given["nodegroupName"], "eks.amazonaws.com/nodegroup-image": image,
              "eks.amazonaws.com/capacityType": given["capacityType"], **given["labels"]}
    taints = [{**taint, "effect": EFFECTS[taint["effect"]]} for taint in given["taints"]]
    config = {"apiVersion": "node.eks.aws/v1alpha1", "kind": "NodeConfig", "spec": {
        "cluster": {"name": owner.name, "apiServerEndpoint": owner.view["endpoint"], "cidr": service_cidr,
                    "certificateAuthority": owner.view["certificateAuthority"]["data"]},
        "kubelet": {"config": {"clusterDNS": [dns], "registerWithTaints": taints},
                    "flags": ["--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items())]}}}
    return Base64EncodedString.from_raw_string(
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
        f"--//\nContent-Type: application/node.eks.aws\n\n{json.dumps(config)}\n--//--\n")


def reconcile(group: Nodegroup) -> None:
    """What the Auto Scaling group does: as many instances as desired, spread over the subnets."""
    wanted, alive, subnets = group.view["scalingConfig"]["desiredSize"], group.alive(), group.view["subnets"]
    name = group.view["nodegroupName"]
    tags = {"eks:cluster-name": group.owner.name, "eks:nodegroup-name": name,
            f"kubernetes.io/cluster/{group.owner.name}": "owned"}
    for surplus in alive[wanted:]:
        instances.terminate(group.owner.region, surplus)
    try:
        for number in range(len(alive), wanted):
            data = group.data | {"SubnetId": subnets[number % len(subnets)]}
            group.members.append(instances.launch(group.owner.region, data, tags,
                                                  spot=group.view["capacityType"] == "SPOT"))
    except ServiceException as error:
        _ails(group, "AsgInstanceLaunchFailures", f"{error.code}: {error.message}")


def _ails(group: Nodegroup, code: str, message: str) -> None:
    ids = [one.id for one in group.members] or [group.profile]
    group.view["health"] = {"issues": [{"code": code, "message": message, "resourceIds": ids}]}


def _end_of_creation(group: Nodegroup) -> None:
    if group.view["status"] != "CREATING":
        return
    group.view["status"] = "ACTIVE" if group.ready else "CREATE_FAILED"
    if group.ready:
        group.view["health"] = {"issues": []}
    elif not group.view["health"]["issues"]:
        _ails(group, "NodeCreationFailure", "Instances failed to join the kubernetes cluster")


@answers("eks", "UpdateNodegroupConfig")
def _update(call: Call) -> Fields:
    """Scaling and update settings. Labels and taints, which would change nodes in place, are not built."""
    group: Nodegroup = eks.part(call, "Nodegroup")
    eks.not_built(call, "labels", "taints", *_NOT_BUILT)
    if group.view["status"] != "ACTIVE":
        raise in_use(f"Nodegroup cannot be updated as it is currently not in Active State: {group.view['status']}")
    scaling = group.view["scalingConfig"] | (call["scalingConfig"] or {})
    _check_scaling(scaling)
    group.view |= {"scalingConfig": scaling, "updateConfig": call["updateConfig"] or group.view["updateConfig"]}
    reconcile(group)
    return eks.updated(group.owner, group.view, "ConfigUpdate", "eks.nodegroup.update", scaling)


@answers("eks", "DeleteNodegroup")
def _delete(call: Call) -> Fields:
    group: Nodegroup = eks.part(call, "Nodegroup")
    if group.view["status"] == "UPDATING":
        raise in_use(f"Nodegroup {call['nodegroupName']} currently has an update in progress")
    if group.view["status"] != "DELETING":
        group.view["status"] = "DELETING"
        for one in group.alive():
            instances.terminate(group.owner.region, one)
        CLOCK.later("eks.nodegroup.delete", lambda: _gone(group),
                    ready=lambda: all(one.state == "terminated" for one in group.members))
    return {"nodegroup": group.view}


def _gone(group: Nodegroup) -> None:
    backends.iam().remove_role_from_instance_profile(group.profile, group.view["nodeRole"].rpartition("/")[2])
    backends.iam().delete_instance_profile(group.profile)
    del group.owner.parts["Nodegroup"][group.view["nodegroupName"]]
