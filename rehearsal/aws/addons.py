"""EKS add-ons: the API here, what AWS ships under each name in CATALOG; the keeper creates it in
the cluster.

The workloads are as small as they can be: real names, images, service accounts and tolerations,
none of the rest. Of configurationValues only the tolerations in CONFIGURED reach a workload; the keeper
logs the rest. A new add-on is a row.
"""

from __future__ import annotations

import ipaddress
import json
import re
import secrets
import time
from dataclasses import dataclass
from typing import Any

from rehearsal.aws import eks, secrets_store
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.eks import IN_USE, INVALID, ClusterPart, cluster, only
from rehearsal.aws.operations import Call, Fields, answers, refuse
from trainyard.catalog.versions import KUBERNETES

_VERSION = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")

CATALOG: dict[str, tuple[tuple[str, str, int], ...]] = {
    "vpc-cni": (("aws-node", "aws-node", 0),),
    "kube-proxy": (("kube-proxy", "kube-proxy", 0),),
    "coredns": (("coredns", "coredns", 2),),
    "eks-pod-identity-agent": (("eks-pod-identity-agent", "default", 0),),
    **{
        f"aws-{system}-csi-driver": (
            (f"{system}-csi-controller", f"{system}-csi-controller-sa", 2),
            (f"{system}-csi-node", f"{system}-csi-node-sa", 0),
        )
        for system in ("fsx", "efs")
    },
    "aws-mountpoint-s3-csi-driver": (
        ("s3-csi-controller", "s3-csi-driver-controller-sa", 1),
        ("s3-csi-node", "s3-csi-driver-sa", 0),
    ),
    secrets_store.ADD_ON: tuple(
        (name, name, 0) for name in (secrets_store.DRIVER, secrets_store.PROVIDER)
    ),
    "eks-node-monitoring-agent": (
        ("eks-node-monitoring-agent", "eks-node-monitoring-agent", 0),
        ("dcgm-server", "default", 0),
    ),
}
"""Add-on → its workloads, in kube-system unless NAMESPACES says otherwise: name, service account, and
a Deployment's replicas; a DaemonSet has none."""

NAMESPACES = {secrets_store.ADD_ON: secrets_store.NAMESPACE}

CONFIGURED = {"dcgm-server": "dcgmAgent"}
"""Workload that tolerates nothing by itself → the part of configurationValues with its tolerations."""


@dataclass(kw_only=True)
class Addon(ClusterPart):
    """One installed add-on."""

    give_up_at: float = 0.0
    overwrites: bool = True
    """Objects in the cluster that have its names become the add-on's."""
    applied: bool = False
    available: bool = False

    def objects(self) -> list[Fields]:
        """Objects of the add-on in the cluster, the workloads last."""
        name, parts = self.view["addonName"], CATALOG[self.view["addonName"]]
        values, ours = self.view["configurationValues"], name == secrets_store.ADD_ON
        made = secrets_store.before(values) if ours else []
        made += [
            self._object("v1", "ServiceAccount", account)
            for _, account, _ in parts
            if account != "default"
        ]
        if name.endswith("-csi-driver"):
            made.append(
                self._object(
                    "storage.k8s.io/v1",
                    "CSIDriver",
                    f"{name.removesuffix('-csi-driver').rpartition('-')[2]}.csi.aws.com",
                    attachRequired=False,
                )
            )
        if name == "coredns":
            addresses = ipaddress.IPv4Network(
                self.owner.view["kubernetesNetworkConfig"]["serviceIpv4Cidr"]
            )
            made.append(
                self._object(
                    "v1",
                    "Service",
                    "kube-dns",
                    clusterIP=str(addresses[10]),
                    ports=[
                        {"name": f"dns-{protocol.lower()}", "port": 53, "protocol": protocol}
                        for protocol in ("UDP", "TCP")
                    ],
                    selector=_labels(name),
                )
            )
        return [*made, *(self._workload(*part) for part in parts)]

    def _tolerations(self, name: str, replicas: int) -> list[Fields]:
        if part := CONFIGURED.get(name):
            values = json.loads(self.view.get("configurationValues") or "{}")
            return values.get(part, {}).get("tolerations", [])
        return [{"operator": "Exists"} | ({"key": "CriticalAddonsOnly"} if replicas else {})]

    def _workload(self, name: str, account: str, replicas: int) -> Fields:
        addon = self.view["addonName"]
        ours = addon == secrets_store.ADD_ON
        image = f"602401143452.dkr.ecr.{self.owner.region}.amazonaws.com/" + (
            "amazon-k8s-cni" if addon == "vpc-cni" else f"eks/{name if ours else addon}"
        )
        container = {
            "name": name,
            "image": f"{image}:{self.view['addonVersion']}",
            "resources": {"requests": {"cpu": "50m"}},
        }
        pod = {
            "serviceAccountName": account,
            "hostNetwork": not replicas,
            "containers": [container],
            "priorityClassName": "system-cluster-critical" if replicas else "system-node-critical",
            "tolerations": self._tolerations(name, replicas),
        }
        if ours:
            said = secrets_store.pod_of(name, self.view["configurationValues"])
            container["args"], pod["tolerations"] = said["args"], said["tolerations"]
        labels, copies = _labels(name), {"replicas": replicas} if replicas else {}
        return self._object(
            "apps/v1",
            "Deployment" if replicas else "DaemonSet",
            name,
            selector={"matchLabels": labels},
            template={"metadata": {"labels": labels}, "spec": pod},
            **copies,
        )

    def _object(self, version: str, kind: str, name: str, **spec: Any) -> Fields:
        space = NAMESPACES.get(self.view["addonName"], "kube-system")
        made = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": space}}
        return made | ({"spec": spec} if spec else {})


def _labels(workload: str) -> Fields:
    """Labels of a workload's pods. CoreDNS has those of the program that it replaced."""
    return {"k8s-app": "kube-dns" if workload == "coredns" else workload}


@answers("eks", "DescribeAddonVersions")
def _versions(call: Call) -> Fields:
    """Offered is the build that the catalogue has for the minor release, and no other."""
    only(call, "kubernetesVersion addonName maxResults nextToken")
    release, name = call["kubernetesVersion"], call["addonName"]
    builds = KUBERNETES[release].add_ons if release in KUBERNETES else {}
    return {
        "addons": [
            {"addonName": add_on, "addonVersions": [_offer(build, release)]}
            for add_on, build in builds.items()
            if name in (None, add_on)
        ]
    }


def _build(release: str, name: str) -> str:
    """The build that EKS installs where the caller names none."""
    return KUBERNETES[release].add_ons.get(name, "") if release in KUBERNETES else ""


def _offer(build: str, release: str) -> Fields:
    fits = {"clusterVersion": release, "platformVersions": ["*"], "defaultVersion": True}
    return {"addonVersion": build, "architecture": ["amd64", "arm64"], "compatibilities": [fits]}


@answers("eks", "CreateAddon")
def _create(call: Call) -> Fields:
    owner, name = cluster(call, active=True), call["addonName"]
    refuse(
        name not in CATALOG,
        INVALID,
        f"Addon {name} specified is not supported; {', '.join(CATALOG)} are",
    )
    addon = Addon(
        overwrites=call["resolveConflicts"] == "OVERWRITE",
        owner=owner,
        view={"health": {"issues": []}, "tags": call["tags"]}
        | _checked(call, {"addonVersion": _build(owner.view["version"], name)}),
    )
    answer = owner.add("Addon", name, addon)
    _begin(addon, "CREATING")
    return answer


def _checked(call: Call, now: Fields) -> Fields:
    """Version and configuration as they will be."""
    only(call, "addonName addonVersion configurationValues resolveConflicts tags")
    version = call["addonVersion"] or now.get("addonVersion") or ""
    refuse(
        not _VERSION.fullmatch(version),
        INVALID,
        f"Addon version specified is not supported: {version}",
    )
    values = call["configurationValues"] or now.get("configurationValues")
    return {"addonVersion": version, "configurationValues": values}


def _begin(addon: Addon, status: str) -> None:
    """Let the keeper install it anew."""
    addon.view["status"], addon.give_up_at = status, CLOCK.deadline("eks.addon.timeout")
    addon.applied = addon.available = False
    CLOCK.later(
        "eks.addon",
        lambda: addon.view["status"] == status and show_health(addon),
        ready=lambda: bool(
            addon.available or addon.view["status"] != status or time.time() > addon.give_up_at
        ),
    )


def conflict(addon: Addon, workload: str) -> None:
    """Keep the object that has the name of a workload, and let the add-on fail (EKS user guide,
    creating-an-add-on, conflict resolution None)."""
    problem = {
        "code": "ConfigurationConflict",
        "message": f"Conflicts found when trying to apply: {workload}",
        "resourceIds": [],
    }
    addon.view |= {"status": "CREATE_FAILED", "health": {"issues": [problem]}}


def show_health(addon: Addon) -> None:
    """ACTIVE while the workloads are available, DEGRADED while they are not."""
    trouble = {
        "code": "InsufficientNumberOfReplicas",
        "message": "fewer replicas than desired",
        "resourceIds": [],
    }
    addon.view |= {
        "status": "ACTIVE" if addon.available else "DEGRADED",
        "health": {"issues": [] if addon.available else [trouble]},
    }


@answers("eks", "UpdateAddon")
def _update(call: Call) -> Fields:
    addon: Addon = eks.part(call, "Addon")
    refuse(
        addon.view["status"] not in ("ACTIVE", "DEGRADED"),
        IN_USE,
        f"The add-on is {addon.view['status']}",
    )
    addon.view |= _checked(call, addon.view)
    _begin(addon, "UPDATING")
    return {
        "update": {"id": secrets.token_hex(16), "status": "InProgress", "createdAt": time.time()}
    }


@answers("eks", "DeleteAddon")
def _delete(call: Call) -> Fields:
    """Its workloads go with it, by the keeper."""
    addon: Addon = eks.part(call, "Addon")
    only(call, "addonName")
    if addon.view["status"] != "DELETING":
        addon.view["status"] = "DELETING"
        CLOCK.later(
            "eks.addon.delete",
            lambda: addon.owner.parts["Addon"].pop(call["addonName"]),
            ready=lambda: not addon.applied or not addon.owner.active,
        )
    return {"addon": addon.view}
