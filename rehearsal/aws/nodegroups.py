"""Managed node groups: instances with EKS's user data, as many as desired, ACTIVE when their nodes are Ready."""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from moto.core.exceptions import ServiceException
from moto.core.types import Base64EncodedString

from rehearsal.aws import (
    access,
    backends,
    eks,
    images,
    instances,
    keys,
    launch_templates,
    network,
    principals,
)
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.eks import IN_USE, INVALID, Cluster, ClusterPart, cluster
from rehearsal.aws.operations import Call, Fields, NotBuilt, answers, refuse

_KIND = {"capacityType": "ON_DEMAND", "amiType": "AL2023_x86_64_STANDARD"}
"""The one kind of node group that is built."""
_DEFAULTS: Fields = _KIND | {"diskSize": 20, "labels": {}, "updateConfig": {"maxUnavailable": 1}}
_BUILT = " ".join(
    (
        *_DEFAULTS,
        "nodegroupName nodeRole subnets instanceTypes scalingConfig tags version releaseVersion"
        " launchTemplate",
    )
)
DIED = (
    "Instance became unhealthy while waiting for instance to be in InService state. Termination"
    " Reason: "
)
"""Auto Scaling's words before EC2's state reason."""
_RELEASE = re.compile(r"(?P<version>1\.\d\d)\.\d+-(?P<day>\d{8})")
_TEMPLATED = ("BlockDeviceMappings", "MetadataOptions", "TagSpecifications")
"""Data of a launch template that instances of a node group get."""


@dataclass(kw_only=True)
class Nodegroup(ClusterPart):
    """One node group and its instances."""

    data: Fields
    """Launch template data of its instances."""
    members: list[Any] = field(default_factory=list)
    outdated: set[str] = field(default_factory=set)
    """Instances that an update replaces, one after the other."""
    ready: bool = False
    """True where all nodes of the group are Ready; the keeper sets it."""

    def alive(self) -> list[Any]:
        return [one for one in self.members if one.state not in instances.GONE]

    def leaving(self) -> Any:
        """The next instance to replace; None where none is outdated."""
        return next((one for one in self.alive() if one.id in self.outdated), None)

    def size(self) -> int:
        """Number of instances there should be: one more while an update replaces some."""
        return int(self.view["scalingConfig"]["desiredSize"]) + (self.leaving() is not None)


@answers("eks", "CreateNodegroup")
def _create(call: Call) -> Fields:
    owner, given = (
        cluster(call, active=True),
        _DEFAULTS | {name: it for name, it in call.params.items() if it},
    )
    _check_new(call, owner, given)
    given |= _versions(owner, given.get("version"), given.get("releaseVersion"))
    profile, give_up_at = f"eks-{secrets.token_hex(16)}", CLOCK.deadline("eks.nodegroup.timeout")
    view = given | {
        "status": "CREATING",
        "health": {"issues": []},
        "resources": {"autoScalingGroups": [{"name": f"{given['nodegroupName']}-{profile}"}]},
    }
    if given.get("launchTemplate"):
        del view["diskSize"]
    group = Nodegroup(owner=owner, data=_launch_data(owner, given, profile), view=view)
    answer = owner.add("Nodegroup", given["nodegroupName"], group)
    backends.iam().create_instance_profile(profile, "/", [given["nodeRole"].rpartition("/")[2]])
    if given["nodeRole"] not in owner.parts["AccessEntry"]:
        access.admit(owner, given["nodeRole"])
    reconcile(group)
    CLOCK.later(
        "eks.nodegroup",
        lambda: _end_of_creation(group),
        ready=lambda: group.ready or time.time() > give_up_at or group.view["status"] != "CREATING",
    )
    return answer


def _check_new(call: Call, owner: Cluster, given: Fields) -> None:
    eks.only(call, _BUILT)
    if not _KIND.items() <= given.items():
        raise NotBuilt(f"node groups other than of {_KIND}")
    refuse(
        not principals.trusts(given["nodeRole"], "ec2.amazonaws.com"),
        INVALID,
        "Following required service principals [ec2.amazonaws.com] were not found in the trust"
        f" relationships of nodeRole {given['nodeRole']}",
    )
    refuse(
        call["launchTemplate"] and call["diskSize"],
        INVALID,
        "Disk size must be specified within the launch template.",
    )
    subnets = network.placed(owner.region, given["subnets"], [owner.group], INVALID)
    zones = sorted({subnet.availability_zone for subnet in subnets})
    for name in given["instanceTypes"]:
        refuse(
            set(zones).isdisjoint(instances.zones_with(owner.region, name)),
            INVALID,
            f"[{name}] is not a valid instance type for requested Availability Zones {zones}",
        )


def _launch_data(owner: Cluster, given: Fields, profile: str) -> Fields:
    day = given["releaseVersion"].partition("-")[2]
    image = images.ami(owner.region, given["version"], "x86_64", "standard", f"v{day}")
    disk = {
        "DeviceName": "/dev/xvda",
        "Ebs": {"VolumeSize": given["diskSize"], "VolumeType": "gp3"},
    }
    return {
        "BlockDeviceMappings": [disk],
        "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
        **_templated(owner, given.get("launchTemplate")),
        "SecurityGroupIds": [owner.group],
        "IamInstanceProfile": {"Name": profile},
        "ImageId": image,
        "InstanceType": given["instanceTypes"][0],
        "UserData": _user_data(owner, given, image),
    }


def _templated(owner: Cluster, template: Fields | None) -> Fields:
    """Data of the instances from a launch template; NotBuilt where it has data that is not in the rehearsal."""
    if not template:
        return {}
    named = {"LaunchTemplateId": template["id"], "Version": template.get("version")}
    said = launch_templates.data(owner.region, named)
    if other := sorted(said.keys() - set(_TEMPLATED)):
        raise NotBuilt(f"a node group whose launch template has {', '.join(other)}")
    return said


def _versions(owner: Cluster, version: str | None, release: str | None) -> Fields:
    """Kubernetes version and AMI release, as given or as EKS chooses; Refused where they do not
    go with each other or with the cluster."""
    cluster_version = owner.view["version"]
    version = str(version or cluster_version)
    refuse(
        eks.minor(version) > eks.minor(cluster_version),
        INVALID,
        f"Nodegroup Kubernetes version should be equal to or less than Cluster kubernetes version"
        f" {cluster_version}",
    )
    release = release or images.node_release(version, images.NEWEST_RELEASE)
    found = _RELEASE.fullmatch(release)
    refuse(
        not found or release != images.node_release(version, f"v{found['day']}"),
        INVALID,
        f"Requested release version {release} is not valid for kubernetes version {version}.",
    )
    return {"version": version, "releaseVersion": release}


def _user_data(owner: Cluster, given: Fields, image: str) -> Base64EncodedString:
    """MIME with nodeadm's NodeConfig (JSON is YAML), as EKS writes it for AL2023."""
    service_cidr = owner.view["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
    labels = {
        "eks.amazonaws.com/nodegroup": given["nodegroupName"],
        "eks.amazonaws.com/nodegroup-image": image,
        "eks.amazonaws.com/capacityType": given["capacityType"],
        **given["labels"],
    }
    config = {
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "spec": {
            "cluster": {
                "name": owner.name,
                "apiServerEndpoint": owner.view["endpoint"],
                "cidr": service_cidr,
                "certificateAuthority": owner.view["certificateAuthority"]["data"],
            },
            "kubelet": {
                "config": {"clusterDNS": [str(ipaddress.IPv4Network(service_cidr)[10])]},
                "flags": [
                    "--node-labels=" + ",".join(f"{key}={value}" for key, value in labels.items())
                ],
            },
        },
    }
    return Base64EncodedString.from_raw_string(
        'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n'
        f"--//\nContent-Type: application/node.eks.aws\n\n{json.dumps(config)}\n--//--\n"
    )


def reconcile(group: Nodegroup) -> None:
    """Do as Auto Scaling: run as many instances as desired, spread over the subnets."""
    wanted, alive, subnets = group.size(), group.alive(), group.view["subnets"]
    if any(getattr(one, "launch_fault", None) for one in group.members):
        return  # Auto Scaling tries again and again, with the same end
    tags = {
        "eks:cluster-name": group.owner.name,
        "eks:nodegroup-name": group.view["nodegroupName"],
        f"kubernetes.io/cluster/{group.owner.name}": "owned",
    }
    for surplus in alive[wanted:]:
        instances.terminate(surplus)
    try:
        for number in range(len(alive), wanted):
            data = group.data | {"SubnetId": subnets[number % len(subnets)]}
            made = instances.launch(group.owner.region, data, tags, launcher=keys.AUTO_SCALING)
            group.members.append(made)
            if fault := getattr(made, "launch_fault", None):
                _ails(group, "AsgInstanceLaunchFailures", f"{DIED}{fault[1]}")
    except ServiceException as error:
        _ails(group, "AsgInstanceLaunchFailures", f"{error.code}: {error.message}")


def _ails(group: Nodegroup, code: str, message: str) -> None:
    issue = {"code": code, "message": message, "resourceIds": [one.id for one in group.members]}
    group.view["health"] = {"issues": [issue]}


def _end_of_creation(group: Nodegroup) -> None:
    if group.ready and group.view["status"] == "CREATING":
        group.view |= {"status": "ACTIVE", "health": {"issues": []}}
    elif group.view["status"] == "CREATING":
        group.view["status"] = "CREATE_FAILED"
        if not group.view["health"]["issues"]:
            _ails(group, "NodeCreationFailure", "Instances failed to join the kubernetes cluster")


@answers("eks", "UpdateNodegroupConfig")
def _update(call: Call) -> Fields:
    group: Nodegroup = eks.part(call, "Nodegroup")
    eks.only(call, "nodegroupName scalingConfig updateConfig")
    refuse(
        group.view["status"] != "ACTIVE",
        IN_USE,
        f"Nodegroup cannot be updated: it is {group.view['status']}",
    )
    for name in ("scalingConfig", "updateConfig"):
        group.view[name] = group.view[name] | (call[name] or {})
    reconcile(group)
    return eks.updated(group.view)


@answers("eks", "UpdateNodegroupVersion")
def _update_version(call: Call) -> Fields:
    """Another version, release or launch template: EKS launches a node, drains an old one and ends
    it, until none is left."""
    group: Nodegroup = eks.part(call, "Nodegroup")
    eks.only(call, "nodegroupName version releaseVersion launchTemplate")
    refuse(
        group.view["status"] != "ACTIVE",
        IN_USE,
        f"Nodegroup cannot be updated: it is {group.view['status']}",
    )
    refuse(
        bool(call["launchTemplate"]) and not group.view.get("launchTemplate"),
        INVALID,
        "You cannot specify a launch template for a nodegroup that was created without one",
    )
    now = group.view
    release = call["releaseVersion"] or (None if call["version"] else now["releaseVersion"])
    given = now | _versions(group.owner, call["version"] or now["version"], release)
    given |= {"launchTemplate": call["launchTemplate"]} if call["launchTemplate"] else {}
    data = _launch_data(group.owner, _DEFAULTS | given, group.data["IamInstanceProfile"]["Name"])
    group.view |= given
    group.data, group.outdated, group.ready = data, {one.id for one in group.alive()}, False
    return eks.updated(
        group.view, "eks.nodegroup.upgrade", ready=lambda: group.leaving() is None and group.ready
    )


@answers("eks", "DeleteNodegroup")
def _delete(call: Call) -> Fields:
    group: Nodegroup = eks.part(call, "Nodegroup")
    if group.view["status"] != "DELETING":
        group.view["status"] = "DELETING"
        for one in group.alive():
            instances.terminate(one)
        CLOCK.later(
            "eks.nodegroup.delete",
            lambda: _gone(group),
            ready=lambda: all(one.state == "terminated" for one in group.members),
        )
    return {"nodegroup": group.view}


def _gone(group: Nodegroup) -> None:
    profile = group.data["IamInstanceProfile"]["Name"]
    backends.iam().remove_role_from_instance_profile(
        profile, group.view["nodeRole"].rpartition("/")[2]
    )
    backends.iam().delete_instance_profile(profile)
    del group.owner.parts["Nodegroup"][group.view["nodegroupName"]]
