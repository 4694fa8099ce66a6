"""EKS clusters, whose control plane really starts, and what all that belongs to a cluster has in common.

One cluster at a time, of the one Kubernetes version the rehearsal has, with authentication mode API.
"""

from __future__ import annotations

import base64
import ipaddress
import re
import secrets
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rehearsal import kube, paths, plane
from rehearsal.account import backends, network, principals
from rehearsal.account.clock import CLOCK
from rehearsal.account.operations import Call, Fields, NotBuilt, Refused, answers

_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}", re.ASCII)
_PRIVATE = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_NOT_BUILT = ("outpostConfig", "remoteNetworkConfig", "kubeApiServerConfig", "kubeSchedulerConfig",
              "kubeControllerManagerConfig")
_LOG_TYPES = ("api", "audit", "authenticator", "controllerManager", "scheduler")
_UPDATES = {"resourcesVpcConfig": "EndpointAccessUpdate", "logging": "LoggingUpdate",
            "upgradePolicy": "UpgradePolicyUpdate", "deletionProtection": "DeletionProtectionUpdate"}


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of thing that belongs to a cluster, and its words in the API."""

    key: str
    answer: str
    arn: str
    plural: str = ""


KINDS = {
    "Nodegroup": Kind(key="nodegroupName", answer="nodegroup", arn="nodegroup"),
    "Addon": Kind(key="addonName", answer="addon", arn="addon"),
    "AccessEntry": Kind(key="principalArn", answer="accessEntry", arn="access-entry", plural="AccessEntries"),
    "PodIdentityAssociation": Kind(key="associationId", answer="association", arn="podidentityassociation"),
}


@dataclass(kw_only=True)
class Part:
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
    updates: dict[str, Fields] = field(default_factory=dict)
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

    def arn(self, kind: str, *rest: str) -> str:
        return f"arn:aws:eks:{self.region}:{backends.ACCOUNT}:{'/'.join((kind, self.name, *rest))}"

    def add(self, kind: str, key: str, part: Any) -> Fields:
        """Keep the part and answer with it; ResourceInUseException where there is one of that key."""
        words = KINDS[kind]
        if key in self.parts[kind]:
            raise Refused("ResourceInUseException", f"{kind} already exists: {key}")
        part.view |= {words.key: key, "clusterName": self.name, "createdAt": time.time(), "modifiedAt": time.time(),
                      f"{words.answer}Arn": self.arn(words.arn, key.rpartition("/")[2], secrets.token_hex(8)),
                      "tags": part.view.get("tags") or {}}
        self.parts[kind][key] = part
        return {words.answer: part.view}


CLUSTERS: dict[str, Cluster] = {}


def new_plane() -> Any:
    """A control plane that has not started."""
    return plane.ControlPlane(paths.world())


def admin() -> kube.Api:
    """The cluster as its own parts see it."""
    return plane.admin(paths.world())


def invalid(message: str) -> Refused:
    """EKS's usual no."""
    return Refused("InvalidParameterException", message)


def in_use(message: str) -> Refused:
    return Refused("ResourceInUseException", message)


def not_built(call: Call, *names: str) -> None:
    """Refuse the parameters that the account does not know what to do with."""
    for name in names:
        if call[name] and not (isinstance(call[name], dict) and call[name].get("enabled") is False):
            raise NotBuilt(f"{call.name} with {name}")


def cluster(call: Call, *, active: bool = False) -> Cluster:
    """The cluster a call is about; Refused where there is none, or it is not ACTIVE though it must be."""
    name = call["clusterName"] or call["name"]
    found = CLUSTERS.get(name)
    if found is None or found.region != call.region:
        raise Refused("ResourceNotFoundException", f"No cluster found for name: {name}.")
    if active and not found.active:
        raise Refused("InvalidRequestException", f"Cluster '{name}' is not in ACTIVE status")
    return found


def part(call: Call, kind: str) -> Any:
    """The part of the cluster a call is about."""
    found, key = cluster(call), call[KINDS[kind].key]
    if key not in found.parts[kind]:
        raise Refused("ResourceNotFoundException", f"No {kind} found in cluster {found.name}: {key}")
    return found.parts[kind][key]


def _describe(kind: str) -> Callable[[Call], Fields]:
    return lambda call: {KINDS[kind].answer: part(call, kind).view}


def _list(kind: str, field_: str) -> Callable[[Call], Fields]:
    return lambda call: {field_: list(cluster(call).parts[kind])}


for _kind, _words in KINDS.items():
    _plural = _words.plural or f"{_kind}s"
    answers("eks", f"Describe{_kind}")(_describe(_kind))
    answers("eks", f"List{_plural}")(_list(_kind, _plural[0].lower() + _plural[1:]))


def updated(owner: Cluster, view: Fields, kind: str, what: str, params: Fields) -> Fields:
    """Begin an update of the view; it is ACTIVE again after the time `what` takes."""
    update = {"id": secrets.token_hex(16), "status": "InProgress", "type": kind, "createdAt": time.time(), "errors": [],
              "params": [{"type": name, "value": str(value)} for name, value in params.items()]}
    owner.updates[update["id"]] = update
    view["status"] = "UPDATING"

    def done() -> None:
        update["status"] = "Successful"
        view["status"] = "ACTIVE" if view["status"] == "UPDATING" else view["status"]

    CLOCK.later(what, done)
    return {"update": update}


@answers("eks", "DescribeUpdate")
def _describe_update(call: Call) -> Fields:
    if call["updateId"] not in cluster(call).updates:
        raise Refused("ResourceNotFoundException", f"No update found for ID: {call['updateId']}")
    return {"update": cluster(call).updates[call["updateId"]]}


@answers("eks", "CreateCluster")
def _create_cluster(call: Call) -> Fields:
    _check_new(call)
    subnets = _check_network(call.region, call["resourcesVpcConfig"])
    service_cidr = _service_cidr(call, subnets[0].vpc_id)
    control_plane, version = new_plane(), call["version"] or plane.VERSION
    try:
        control_plane.start(version, service_cidr)
    except ValueError as error:
        raise invalid(f"unsupported Kubernetes version {version}: {error}") from error
    group = network.cluster_group(call.region, subnets[0].vpc_id, call["name"])
    groups = [group, *call["resourcesVpcConfig"].get("securityGroupIds", ())]
    zones = list({subnet.availability_zone: subnet.id for subnet in reversed(subnets)}.values())[:2]
    made = CLUSTERS[call["name"]] = Cluster(
        region=call.region, plane=control_plane, view=_view(call, version, service_cidr, group, subnets[0].vpc_id),
        interfaces=[network.own_interface(call.region, one, groups, f"Amazon EKS {call['name']}") for one in zones])
    CLOCK.later("eks.cluster", lambda: _cluster_up(made), ready=control_plane.ready)
    return {"cluster": made.view}


def _check_new(call: Call) -> None:
    mode = (call["accessConfig"] or {}).get("authenticationMode", "CONFIG_MAP")
    if not _NAME.fullmatch(call["name"]):
        raise invalid(f"The cluster name '{call['name']}' is invalid")
    if call["name"] in CLUSTERS:
        raise in_use(f"Cluster already exists with name: {call['name']}")
    if CLUSTERS:
        raise NotBuilt(f"a second cluster beside {next(iter(CLUSTERS))}")
    not_built(call, *_NOT_BUILT, "computeConfig", "zonalShiftConfig")
    if mode != "API" or call["bootstrapSelfManagedAddons"] is not False:
        raise NotBuilt("clusters with bootstrapSelfManagedAddons, or an authentication mode other than API")
    if not principals.trusts(call["roleArn"], "eks.amazonaws.com"):
        raise invalid(f"Role with arn: {call['roleArn']}, could not be assumed because it does not exist or the "
                      "trusted entity is not correct")


def _check_network(region: str, config: Fields) -> list[Any]:
    subnets = network.placed(region, config.get("subnetIds", ()), config.get("securityGroupIds", ()),
                             "InvalidParameterException")
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        raise invalid("Subnets specified must be in at least two different AZs")
    if not config.get("endpointPublicAccess", True) and not config.get("endpointPrivateAccess", False):
        raise invalid("Private and public endpoint access cannot be disabled at the same time")
    for cidr in config.get("publicAccessCidrs", ()):
        try:
            ipaddress.ip_network(cidr)
        except ValueError as error:
            raise invalid(f"The CIDR {cidr} is invalid: {error}") from error
    return subnets


def _service_cidr(call: Call, vpc: str) -> str:
    cidrs = [ipaddress.IPv4Network(one["cidr_block"]) for one in call.ec2.get_vpc(vpc).get_cidr_block_association_set()]
    default = "172.20.0.0/16" if any(cidr.overlaps(_PRIVATE[0]) for cidr in cidrs) else "10.100.0.0/16"
    chosen = ipaddress.IPv4Network((call["kubernetesNetworkConfig"] or {}).get("serviceIpv4Cidr") or default)
    if not any(chosen.subnet_of(block) for block in _PRIVATE) or not 12 <= chosen.prefixlen <= 24:
        raise invalid(f"The service CIDR {chosen} must be a private range between /12 and /24")
    if any(chosen.overlaps(cidr) for cidr in cidrs):
        raise invalid(f"The service CIDR {chosen} overlaps with the CIDR of the VPC")
    return str(chosen)


def _view(call: Call, version: str, service_cidr: str, group: str, vpc: str) -> Fields:
    issuer = f"https://oidc.eks.{call.region}.amazonaws.com/id/{secrets.token_hex(16).upper()}"
    creator = (call["accessConfig"] or {}).get("bootstrapClusterCreatorAdminPermissions", True)
    return {
        "name": call["name"], "arn": f"arn:aws:eks:{call.region}:{backends.ACCOUNT}:cluster/{call['name']}",
        "createdAt": time.time(), "version": version, "roleArn": call["roleArn"], "status": "CREATING",
        "platformVersion": "eks.1", "identity": {"oidc": {"issuer": issuer}}, "tags": call["tags"] or {},
        "resourcesVpcConfig": {"endpointPublicAccess": True, "endpointPrivateAccess": False, "securityGroupIds": [],
                               "publicAccessCidrs": ["0.0.0.0/0"], **call["resourcesVpcConfig"],
                               "clusterSecurityGroupId": group, "vpcId": vpc},
        "kubernetesNetworkConfig": {"serviceIpv4Cidr": service_cidr, "ipFamily": "ipv4"},
        "logging": _logging(call["logging"] or {}), "encryptionConfig": call["encryptionConfig"],
        "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": creator},
        "upgradePolicy": call["upgradePolicy"] or {"supportType": "EXTENDED"},
        "deletionProtection": call["deletionProtection"] or False,
    }


def _logging(config: Fields) -> Fields:
    on = {kind for one in config.get("clusterLogging", ()) if one.get("enabled") for kind in one["types"]}
    setups = [{"types": [kind for kind in _LOG_TYPES if (kind in on) is enabled], "enabled": enabled}
              for enabled in (True, False)]
    return {"clusterLogging": [setup for setup in setups if setup["types"]]}


def _cluster_up(made: Cluster) -> None:
    authority = base64.b64encode((paths.PLANE / "ca.crt").read_bytes()).decode()
    made.view.update(status="ACTIVE", endpoint=paths.world().api_url, certificateAuthority={"data": authority})
    _make_log_group(made)


def _make_log_group(made: Cluster) -> None:
    """EKS makes the group of its logs where nobody did; nothing ever deletes that one."""
    name, logs = f"/aws/eks/{made.name}/cluster", backends.logs(made.region)
    if made.view["logging"]["clusterLogging"][0]["enabled"] and name not in logs.groups:
        logs.create_log_group(name, {}, kmsKeyId=None)


@answers("eks", "DescribeCluster")
def _describe_cluster(call: Call) -> Fields:
    found = cluster(call)
    problem = getattr(found.plane, "problem", "") if found.view["status"] == "CREATING" else ""
    issues = [{"code": "Other", "message": problem, "resourceIds": []}] if problem else []
    return {"cluster": found.view | {"health": {"issues": issues}}}


@answers("eks", "ListClusters")
def _list_clusters(call: Call) -> Fields:
    return {"clusters": [name for name, found in CLUSTERS.items() if found.region == call.region]}


@answers("eks", "UpdateClusterConfig")
def _update_cluster(call: Call) -> Fields:
    found, wanted = cluster(call), {name: call[name] for name in _UPDATES if call[name] is not None}
    if found.view["status"] != "ACTIVE":
        raise in_use(f"Cannot update because cluster {found.name} currently has an update in progress")
    not_built(call, *_NOT_BUILT, "computeConfig", "zonalShiftConfig", "accessConfig", "kubernetesNetworkConfig")
    if len(wanted) != 1:
        raise invalid("Exactly one type of update can be made at a time")
    name, change = next(iter(wanted.items()))
    if name == "resourcesVpcConfig":
        change = found.view[name] | change
        if _check_network(found.region, change)[0].vpc_id != change["vpcId"]:
            raise invalid("Subnets must belong to the VPC of the cluster")
    change = _logging(change) if name == "logging" else change
    if change == found.view[name]:
        raise invalid(f"No changes needed for the {name} provided")
    found.view[name] = change
    _make_log_group(found)
    return updated(found, found.view, _UPDATES[name], "eks.cluster.update", wanted)


@answers("eks", "DeleteCluster")
def _delete_cluster(call: Call) -> Fields:
    found = cluster(call)
    if found.view["deletionProtection"]:
        raise Refused("InvalidRequestException", "Cannot delete cluster: deletion protection is enabled")
    if found.parts["Nodegroup"]:
        raise in_use("Cluster has nodegroups attached")
    if found.view["status"] in ("CREATING", "UPDATING"):
        raise in_use(f"Cannot delete because cluster {found.name} currently has an update in progress")
    if found.active:
        found.view["status"] = "DELETING"
        stopping = threading.Thread(target=found.plane.stop, name="stop control plane")
        stopping.start()
        CLOCK.later("eks.cluster.delete", lambda: _cluster_gone(found), ready=lambda: not stopping.is_alive())
    return {"cluster": found.view}


def _cluster_gone(found: Cluster) -> None:
    """EKS's own interfaces and security group go too; the group stays behind where somebody still uses it."""
    ec2 = backends.ec2(found.region)
    network.drop_interfaces(found.region, found.interfaces)
    if not network.group_in_use(ec2, found.group):
        ec2.delete_security_group(group_id=found.group)
    del CLUSTERS[found.name]


@answers("eks", "TagResource", "UntagResource", "ListTagsForResource")
def _tags(call: Call) -> Fields:
    views = [view for found in CLUSTERS.values()
             for view in (found.view, *(one.view for parts in found.parts.values() for one in parts.values()))]
    view = next((view for view in views if call["resourceArn"] in view.values()), None)
    if view is None:
        raise Refused("NotFoundException", f"No resource has the ARN {call['resourceArn']}", status=404)
    view["tags"].update(call["tags"] or {})
    for key in call["tagKeys"] or ():
        view["tags"].pop(key, None)
    return {"tags": view["tags"]} if call.action == "ListTagsForResource" else {}
