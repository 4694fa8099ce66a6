"""EKS add-ons: the API here, what AWS ships under each name in CATALOG; the keeper creates it in the cluster.

The workloads are as small as they can be: real names, images, service accounts and tolerations, none of the rest. Of
configurationValues only the keys in _APPLIED reach a workload; the keeper logs the others. A new add-on is a row.
"""

from __future__ import annotations

import ipaddress
import json
import re
import time
from dataclasses import dataclass
from typing import Any

from catalog.versions import KUBERNETES
from rehearsal.account import access, eks, principals
from rehearsal.account.clock import CLOCK
from rehearsal.account.eks import Cluster, Part, cluster, in_use, invalid
from rehearsal.account.operations import Call, Fields, answers

_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")
_APPLIED = ("tolerations", "nodeSelector", "affinity", "replicaCount")
_SYSTEM = [{"key": "CriticalAddonsOnly", "operator": "Exists"}]


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A Deployment or DaemonSet of an add-on, in kube-system."""

    name: str
    image: str
    account: str = "default"
    replicas: int = 0
    """Of a Deployment; a DaemonSet has none."""
    cpu: str = "10m"
    section: str = ""
    """The part of configurationValues that is about this workload."""


def _driver(service: str) -> tuple[Workload, ...]:
    image, name = f"eks/aws-{service}-csi-driver", f"{service}-csi"
    return (Workload(name=f"{name}-controller", image=image, account=f"{name}-controller-sa", replicas=2,
                     section="controller"),
            Workload(name=f"{name}-node", image=image, account=f"{name}-node-sa", section="node"))


CATALOG: dict[str, tuple[Workload, ...]] = {
    "vpc-cni": (Workload(name="aws-node", image="amazon-k8s-cni", account="aws-node", cpu="50m"),),
    "kube-proxy": (Workload(name="kube-proxy", image="eks/kube-proxy", account="kube-proxy", cpu="100m"),),
    "coredns": (Workload(name="coredns", image="eks/coredns", account="coredns", replicas=2, cpu="100m"),),
    "eks-pod-identity-agent": (Workload(name="eks-pod-identity-agent", image="eks/eks-pod-identity-agent"),),
    "eks-node-monitoring-agent": (Workload(name="eks-node-monitoring-agent", image="eks/eks-node-monitoring-agent"),),
    "metrics-server": (Workload(name="metrics-server", image="eks/metrics-server", account="metrics-server", replicas=2,
                                cpu="100m"),),
    "aws-fsx-csi-driver": _driver("fsx"),
    "aws-efs-csi-driver": _driver("efs"),
    "aws-ebs-csi-driver": _driver("ebs"),
}


@dataclass(kw_only=True)
class Addon(Part):
    """One installed add-on."""

    resolve: str
    """What to do about objects that somebody else made: NONE, OVERWRITE or PRESERVE."""
    give_up_at: float
    applied: bool = False
    conflict: str = ""
    available: bool = False

    @property
    def values(self) -> Fields:
        return json.loads(self.view.get("configurationValues") or "{}")

    @property
    def ignored(self) -> list[str]:
        """Configuration that reaches no workload here."""
        sections = {one.section for one in CATALOG[self.view["addonName"]]}
        return [key for key in self.values if key not in (*_APPLIED, *sections)]

    def objects(self) -> list[Fields]:
        """What the add-on consists of in the cluster, the workloads last."""
        name, parts = self.view["addonName"], CATALOG[self.view["addonName"]]
        driver = _object("storage.k8s.io/v1", "CSIDriver", f"{name.split('-')[1]}.csi.aws.com") | {
            "spec": {"attachRequired": name == "aws-ebs-csi-driver"}} if name.endswith("-csi-driver") else None
        extra = driver or (self._dns() if name == "coredns" else None)
        accounts = [_object("v1", "ServiceAccount", one.account) for one in parts if one.account != "default"]
        return [*accounts, *([extra] if extra else []), *map(self._workload, parts)]

    def _dns(self) -> Fields:
        addresses = ipaddress.IPv4Network(self.owner.view["kubernetesNetworkConfig"]["serviceIpv4Cidr"])
        ports = [{"name": "dns", "port": 53, "protocol": "UDP"}, {"name": "dns-tcp", "port": 53, "protocol": "TCP"}]
        return _object("v1", "Service", "kube-dns") | {
            "spec": {"clusterIP": str(addresses[10]), "selector": {"k8s-app": "coredns"}, "ports": ports}}

    def _workload(self, one: Workload) -> Fields:
        labels, values = {"k8s-app": one.name}, self.values | self.values.get(one.section, {})
        image = f"602401143452.dkr.ecr.{self.owner.region}.amazonaws.com/{one.image}:{self.view['addonVersion']}"
        pod = {"serviceAccountName": one.account, "hostNetwork": not one.replicas,
               "containers": [{"name": one.name, "image": image, "resources": {"requests": {"cpu": one.cpu}}}],
               "priorityClassName": "system-cluster-critical" if one.replicas else "system-node-critical",
               "tolerations": _SYSTEM if one.replicas else [{"operator": "Exists"}],
               **{key: values[key] for key in _APPLIED[:-1] if values.get(key)}}
        spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod},
                **({"replicas": values.get("replicaCount", one.replicas)} if one.replicas else {})}
        return _object("apps/v1", "Deployment" if one.replicas else "DaemonSet", one.name) | {"spec": spec}


def _object(version: str, kind: str, name: str) -> Fields:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": "kube-system"}}


@answers("eks", "CreateAddon")
def _create(call: Call) -> Fields:
    owner, name = cluster(call, active=True), call["addonName"]
    if name not in CATALOG:
        raise invalid(f"Addon {name} specified is not supported in {owner.view['version']} kubernetes version (the "
                      "rehearsal's account knows those of addons.CATALOG)")
    view = {"status": "CREATING", "health": {"issues": []}, "tags": call["tags"]} | _checked(owner, call.params)
    addon = Addon(owner=owner, view=view, resolve=call["resolveConflicts"] or "NONE",
                  give_up_at=CLOCK.deadline("eks.addon.timeout"))
    answer = owner.add("Addon", name, addon)
    addon.view["podIdentityAssociations"] = [
        access.associate(owner, one | {"namespace": "kube-system"}, owner=addon.view["addonArn"])["association"][
            "associationArn"] for one in call["podIdentityAssociations"] or ()]
    CLOCK.later("eks.addon", lambda: _settled(addon), ready=lambda: _decided(addon))
    return answer


def _checked(owner: Cluster, params: Fields) -> Fields:
    pinned = KUBERNETES.get(owner.view["version"], {}).get(params["addonName"], "v1.0.0-eksbuild.1")
    version, role = params.get("addonVersion") or pinned, params.get("serviceAccountRoleArn")
    if not _VERSION.fullmatch(version):
        raise invalid(f"Addon version specified is not supported: {version}")
    if role and principals.role(role) is None:
        raise invalid(f"Role provided in the request does not exist: {role}")
    try:
        dict(json.loads(params.get("configurationValues") or "{}"))
    except (ValueError, TypeError) as error:
        raise invalid(f"ConfigurationValue provided in request is not supported: {error}") from error
    return {"addonVersion": version, "serviceAccountRoleArn": role,
            "configurationValues": params.get("configurationValues")}


def _decided(addon: Addon) -> bool:
    leaving = addon.view["status"] == "DELETING"
    return addon.available or bool(addon.conflict) or leaving or time.time() > addon.give_up_at


def _settled(addon: Addon) -> None:
    if addon.conflict:
        _show(addon, "CREATE_FAILED", "ConfigurationConflict", addon.conflict)
    elif addon.view["status"] in ("CREATING", "UPDATING"):
        show_health(addon)


def show_health(addon: Addon) -> None:
    """ACTIVE while the workloads are available, DEGRADED while they are not."""
    if addon.available:
        addon.view |= {"status": "ACTIVE", "health": {"issues": []}}
    else:
        _show(addon, "DEGRADED", "InsufficientNumberOfReplicas", "The add-on is unhealthy because it doesn't have the "
              "desired number of replicas.")


def _show(addon: Addon, status: str, code: str, message: str) -> None:
    addon.view |= {"status": status, "health": {"issues": [{"code": code, "message": message, "resourceIds": []}]}}


@answers("eks", "UpdateAddon")
def _update(call: Call) -> Fields:
    addon: Addon = eks.part(call, "Addon")
    if addon.view["status"] not in ("ACTIVE", "DEGRADED", "CREATE_FAILED"):
        raise in_use(f"Addon {call['addonName']} cannot be updated as it is currently in {addon.view['status']} state")
    given = {name: value for name, value in call.params.items() if value is not None}
    addon.view |= _checked(addon.owner, addon.view | given)
    addon.resolve = call["resolveConflicts"] or addon.resolve
    addon.give_up_at = CLOCK.deadline("eks.addon.timeout")
    addon.applied, addon.available, addon.conflict = False, False, ""
    answer = eks.updated(addon.owner, {"status": ""}, "AddonUpdate", "eks.addon", {})
    addon.view["status"] = "UPDATING"
    CLOCK.later("eks.addon", lambda: _settled(addon), ready=lambda: _decided(addon))
    return answer


@answers("eks", "DeleteAddon")
def _delete(call: Call) -> Fields:
    """Its workloads go with it, by the keeper, unless they are to be preserved."""
    addon: Addon = eks.part(call, "Addon")
    if addon.view["status"] != "DELETING":
        addon.view["status"], addon.applied = "DELETING", addon.applied and not call["preserve"]
        CLOCK.later("eks.addon.delete", lambda: _gone(addon), ready=lambda: not addon.applied or not addon.owner.active)
    return {"addon": addon.view}


def _gone(addon: Addon) -> None:
    del addon.owner.parts["Addon"][addon.view["addonName"]]
    associations = addon.owner.parts["PodIdentityAssociation"]
    for id_ in [id_ for id_, one in associations.items() if one.view["ownerArn"] == addon.view["addonArn"]]:
        del associations[id_]


def workloads(addon: Addon) -> list[Any]:
    """The Deployments and DaemonSets among its objects."""
    return [one for one in addon.objects() if one["kind"] in ("Deployment", "DaemonSet")]
