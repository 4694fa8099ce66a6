"""EKS clusters, whose control plane really starts, and what all that belongs to a cluster has in
common.

One cluster at a time, of a Kubernetes version that the rehearsal has, with authentication mode API.
"""

from __future__ import annotations

import base64
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rehearsal import control_plane, paths
from rehearsal.aws import backends, network, principals
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, NotBuilt, Refused, answers, refuse

KINDS = {
    "Nodegroup": ("nodegroupName", "nodegroup", "nodegroup"),
    "Addon": ("addonName", "addon", "addon"),
    "AccessEntry": ("principalArn", "accessEntry", "access-entry"),
    "PodIdentityAssociation": ("associationId", "association", "podidentityassociation"),
}
"""Kind of a cluster's part → the parameter that names one, its word in answers, its word in ARNs."""
WITHOUT_EKS = ("use1-az3", "usw1-az2", "cac1-az3")
"""Zone ids in which EKS places no control plane (eksctl, pkg/az/az.go); a list of its own, so that
an error in the program's is seen."""
LOGS = ["api", "audit", "authenticator", "controllerManager", "scheduler"]
UPDATABLE = "resourcesVpcConfig logging upgradePolicy deletionProtection controlPlaneScalingConfig"
INVALID, IN_USE, ABSENT = (
    "InvalidParameterException",
    "ResourceInUseException",
    "ResourceNotFoundException",
)


@dataclass(kw_only=True)
class ClusterPart:
    """A node group, add-on, access entry or association."""

    owner: Cluster
    view: Fields
    """As its Describe operation shows it."""


@dataclass(kw_only=True)
class Cluster:
    """One cluster and everything that goes with it when it is deleted."""

    region: str
    view: Fields
    plane: Any
    interfaces: list[str]
    parts: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))
    """Kind → key → part."""

    @property
    def name(self) -> str:
        return self.view["name"]

    @property
    def group(self) -> str:
        return self.view["resourcesVpcConfig"]["clusterSecurityGroupId"]

    @property
    def active(self) -> bool:
        return self.view["status"] in ("ACTIVE", "UPDATING")

    def add(self, kind: str, key: str, part: Any) -> Fields:
        """Keep the part and answer with it; ResourceInUseException where there is one of that key."""
        parameter, word, in_arn = KINDS[kind]
        refuse(key in self.parts[kind], IN_USE, f"{kind} already exists: {key}")
        arn = self.view["arn"].replace(":cluster/", f":{in_arn}/")
        part.view |= {
            parameter: key,
            "clusterName": self.name,
            "createdAt": time.time(),
            "modifiedAt": time.time(),
            f"{word}Arn": f"{arn}/{key.rpartition('/')[2]}/{secrets.token_hex(8)}",
            "tags": part.view.get("tags") or {},
        }
        self.parts[kind][key] = part
        return {word: part.view}


CLUSTERS: dict[str, Cluster] = {}


def new_plane() -> Any:
    """A control plane that has not started."""
    return control_plane.ControlPlane(paths.world())


def only(call: Call, built: str) -> None:
    """Refuse parameters that the account does not know what to do with, unless they turn something off."""
    for name in call.params.keys() - {*built.split(), "clusterName", "clientRequestToken"}:
        if call[name] and not (isinstance(call[name], dict) and call[name].get("enabled") is False):
            raise NotBuilt(f"{call.name} with {name}")


def cluster(call: Call, *, active: bool = False) -> Cluster:
    """The cluster a call is about; Refused where there is none, or it is not ACTIVE though it must be."""
    name = call["clusterName"] or call["name"]
    refuse(
        name not in CLUSTERS or CLUSTERS[name].region != call.region,
        ABSENT,
        f"No cluster found for name: {name}.",
    )
    refuse(
        active and not CLUSTERS[name].active,
        "InvalidRequestException",
        f"Cluster '{name}' is not in ACTIVE status",
    )
    return CLUSTERS[name]


def part(call: Call, kind: str) -> Any:
    """The part of the cluster a call is about."""
    found, key = cluster(call), call[KINDS[kind][0]]
    refuse(key not in found.parts[kind], ABSENT, f"No {kind} found in cluster {found.name}: {key}")
    return found.parts[kind][key]


@answers("eks", *(f"Describe{kind}" for kind in KINDS))
def _describe(call: Call) -> Fields:
    kind = call.action.removeprefix("Describe")
    return {KINDS[kind][1]: part(call, kind).view}


def updated(
    view: Fields, what: str = "eks.update", *, ready: Callable[[], bool] = lambda: True, **then: Any
) -> Fields:
    """Begin an update; the view is ACTIVE again after the time of `what` and when it is ready, unless
    it is something else by then. `then`: what it says besides from then on."""
    view["status"] = "UPDATING"

    def end() -> None:
        if view["status"] == "UPDATING":
            view.update(status="ACTIVE", **then)

    CLOCK.later(what, end, ready=ready)
    return {
        "update": {"id": secrets.token_hex(16), "status": "InProgress", "createdAt": time.time()}
    }


@answers("eks", "DescribeUpdate")
def _describe_update(call: Call) -> Fields:
    """An update lasts as long as what is updated says so."""
    kind = "Nodegroup" if call["nodegroupName"] else "Addon" if call["addonName"] else ""
    going = (part(call, kind) if kind else cluster(call)).view["status"] == "UPDATING"
    return {"update": {"id": call["updateId"], "status": "InProgress" if going else "Successful"}}


@answers("eks", "CreateCluster")
def _create_cluster(call: Call) -> Fields:
    subnets = _check_new(call)
    given = (call["kubernetesNetworkConfig"] or {}).get("serviceIpv4Cidr")
    service_cidr = network.services(given, call.ec2.get_vpc(subnets[0].vpc_id), INVALID)
    control_plane = new_plane()
    try:
        control_plane.start(call["version"], service_cidr)
    except ValueError as error:
        raise Refused(
            INVALID, f"unsupported Kubernetes version {call['version']}: {error}"
        ) from error
    group = network.cluster_group(call.region, subnets[0].vpc_id, call["name"])
    view = _view(call, group, subnets[0].vpc_id, service_cidr)
    made = CLUSTERS[call["name"]] = Cluster(
        region=call.region,
        plane=control_plane,
        view=view,
        interfaces=network.control_plane_interfaces(call.region, view, subnets),
    )
    CLOCK.later("eks.cluster", lambda: _cluster_up(made), ready=control_plane.ready)
    return {"cluster": made.view}


def _check_new(call: Call) -> list[Any]:
    """The subnets, if the cluster can be made."""
    more = "version roleArn kubernetesNetworkConfig accessConfig tags encryptionConfig"
    only(call, f"name {UPDATABLE} {more}")
    refuse(call["name"] in CLUSTERS, IN_USE, f"Cluster already exists with name: {call['name']}")
    if CLUSTERS:
        raise NotBuilt(f"a second cluster beside {next(iter(CLUSTERS))}")
    if (call["accessConfig"] or {}).get("authenticationMode") != "API" or not call["version"]:
        raise NotBuilt("clusters without authentication mode API and a version")
    refuse(
        not principals.trusts(call["roleArn"], "eks.amazonaws.com"),
        INVALID,
        f"Role with arn: {call['roleArn']}, "
        "could not be assumed because it does not exist or the trusted entity is not correct",
    )
    subnets = _placed(call.region, call["resourcesVpcConfig"])
    _refuse_zones(call, subnets)
    return subnets


def _placed(region: str, config: Fields) -> list[Any]:
    subnets = network.placed(
        region, config["subnetIds"], config.get("securityGroupIds", ()), INVALID
    )
    zones = {subnet.availability_zone for subnet in subnets}
    refuse(len(zones) < 2, INVALID, "Subnets specified must be in at least two different AZs")
    return subnets


def _refuse_zones(call: Call, subnets: list[Any]) -> None:
    """EKS's words, as terraform users report them for us-east-1e."""
    zones = {zone.name: zone.zone_id for zone in call.ec2.describe_availability_zones()}
    without = {one.availability_zone for one in subnets if one.availability_zone_id in WITHOUT_EKS}
    usable = sorted(name for name, id_ in zones.items() if id_ not in WITHOUT_EKS)
    refuse(
        without,
        "UnsupportedAvailabilityZoneException",
        f"Cannot create cluster '{call['name']}' because EKS does not support creating control"
        f" plane instances in {', '.join(sorted(without))}, the targeted availability zone. Retry"
        " cluster creation using control plane subnets that span at least two of these"
        f" availability zones: {', '.join(usable)}.",
    )


def _view(call: Call, group: str, vpc: str, service_cidr: str) -> Fields:
    issuer = f"https://oidc.eks.{call.region}.amazonaws.com/id/{secrets.token_hex(16).upper()}"
    return {
        "name": call["name"],
        "arn": f"arn:aws:eks:{call.region}:{backends.ACCOUNT}:cluster/{call['name']}",
        "createdAt": time.time(),
        "version": call["version"],
        "roleArn": call["roleArn"],
        "status": "CREATING",
        "platformVersion": "eks.1",
        "identity": {"oidc": {"issuer": issuer}},
        "tags": call["tags"] or {},
        "resourcesVpcConfig": {
            "endpointPublicAccess": True,
            "endpointPrivateAccess": False,
            "securityGroupIds": [],
            "publicAccessCidrs": ["0.0.0.0/0"],
            **call["resourcesVpcConfig"],
            "clusterSecurityGroupId": group,
            "vpcId": vpc,
        },
        "kubernetesNetworkConfig": {"ipFamily": "ipv4", "serviceIpv4Cidr": service_cidr},
        "accessConfig": {"bootstrapClusterCreatorAdminPermissions": True} | call["accessConfig"],
        "upgradePolicy": call["upgradePolicy"] or {"supportType": "EXTENDED"},
        "logging": call["logging"] or {"clusterLogging": [{"types": LOGS, "enabled": False}]},
        "deletionProtection": bool(call["deletionProtection"]),
        "controlPlaneScalingConfig": call["controlPlaneScalingConfig"] or {"tier": "standard"},
        **({"encryptionConfig": call["encryptionConfig"]} if call["encryptionConfig"] else {}),
    }


def _place_endpoint(view: Fields) -> None:
    """Tell the relay whether callers outside the VPC reach the API server. Ranges of callers mean
    nothing here: the machine has no public address."""
    if view["resourcesVpcConfig"]["endpointPublicAccess"]:
        paths.private_endpoint().unlink(missing_ok=True)
    else:
        paths.private_endpoint().touch()


def _cluster_up(made: Cluster) -> None:
    _place_endpoint(made.view)
    authority = base64.b64encode((paths.PLANE / "ca.crt").read_bytes()).decode()
    made.view.update(
        status="ACTIVE", endpoint=paths.world().api_url, certificateAuthority={"data": authority}
    )


@answers("eks", "DescribeCluster")
def _describe_cluster(call: Call) -> Fields:
    found = cluster(call)
    problem = getattr(found.plane, "problem", "") if found.view["status"] == "CREATING" else ""
    issues = [{"code": "Other", "message": problem, "resourceIds": []}] if problem else []
    return {"cluster": found.view | {"health": {"issues": issues}}}


answers("eks", "ListClusters")(
    lambda call: {
        "clusters": [name for name, found in CLUSTERS.items() if found.region == call.region]
    }
)


@answers("eks", "UpdateClusterConfig")
def _update_cluster(call: Call) -> Fields:
    """Change API server access, subnets, logs, upgrade policy, deletion protection or tier."""
    found = cluster(call, active=True)
    view = found.view
    only(call, f"name {UPDATABLE}")
    refuse_second_update(view)
    changes = {name: call[name] for name in UPDATABLE.split() if call[name] is not None}
    refuse(len(changes) != 1, INVALID, "Only one type of update can be performed at a time")
    [(name, change)] = changes.items()
    if name == "deletionProtection":
        return updated(view, deletionProtection=change)
    refuse(change.items() <= view[name].items(), INVALID, "No changes needed")
    if name != "resourcesVpcConfig":
        view[name] = view[name] | change
        return updated(view)
    subnets = _placed(call.region, view[name] | change)
    view[name] = view[name] | change
    network.drop_interfaces(call.region, found.interfaces)
    found.interfaces = network.control_plane_interfaces(call.region, view, subnets)
    _place_endpoint(view)
    return updated(view)


def refuse_second_update(view: Fields) -> None:
    """ResourceInUseException while another update of the cluster goes on."""
    refuse(
        view["status"] != "ACTIVE",
        IN_USE,
        f"Cluster {view['name']} currently has an update in progress",
    )


def minor(version: str) -> int:
    """34 of 1.34."""
    return int(version.partition(".")[2])


@answers("eks", "DeleteCluster")
def _delete_cluster(call: Call) -> Fields:
    found = cluster(call)
    refuse(
        found.view["deletionProtection"],
        "InvalidRequestException",
        f"Cannot delete cluster {found.name}: deletion protection is enabled",
    )
    refuse(found.parts["Nodegroup"], IN_USE, "Cluster has nodegroups attached")
    refuse(
        found.view["status"] in ("CREATING", "UPDATING"),
        IN_USE,
        "Cluster currently has an update in progress",
    )
    if found.active:
        found.view["status"] = "DELETING"
        stopping = threading.Thread(target=found.plane.stop, name="stop control plane")
        stopping.start()
        CLOCK.later(
            "eks.cluster.delete",
            lambda: _cluster_gone(found),
            ready=lambda: not stopping.is_alive(),
        )
    return {"cluster": found.view}


def _cluster_gone(found: Cluster) -> None:
    """EKS's own interfaces and security group go too; the group stays behind where somebody still uses it."""
    paths.private_endpoint().unlink(missing_ok=True)
    network.drop_interfaces(found.region, found.interfaces)
    if not network.group_in_use(backends.ec2(found.region), found.group):
        backends.ec2(found.region).delete_security_group(group_id=found.group)
    del CLUSTERS[found.name]


@answers("eks", "TagResource", "UntagResource")
def _tags(call: Call) -> Fields:
    views = [
        view
        for found in CLUSTERS.values()
        for view in (
            found.view,
            *(one.view for parts in found.parts.values() for one in parts.values()),
        )
    ]
    for view in views:
        if call["resourceArn"] in map(str, view.values()):
            kept = {
                key: value
                for key, value in view["tags"].items()
                if key not in (call["tagKeys"] or ())
            }
            view["tags"] = kept | (call["tags"] or {})
            return {}
    raise Refused("NotFoundException", f"No resource has the ARN {call['resourceArn']}", status=404)
