"""A node as its instance makes it: user data to labels and taints, instance type to capacity.
Pure."""

from __future__ import annotations

import base64
import email
import shlex
import time
import tomllib
from dataclasses import dataclass
from typing import Any

import yaml

from rehearsal.kube import Object
from trainyard.catalog.fabric import LAYER, network_layers

GPU, EFA = "nvidia.com/gpu", "vpc.amazonaws.com/efa"
DEVICE_FILES = {GPU: "/dev/nvidia{}", EFA: "/dev/infiniband/uverbs{}"}
"""Files of devices that a container sees: plain files, since no driver is behind them."""
NODE_CONFIG = "application/node.eks.aws"
ARCHITECTURES = {"x86_64": "amd64", "arm64": "arm64"}
MIB_FOR_KUBELET, MIB_FOR_EACH_POD, MIB_EVICTION = 255, 11, 100
MILLICORES_FOR_KUBELET, MILLICORES_FOR_EACH_CORE = 70, 2.5
"""Millicores that nodeadm keeps for system and kubelet, of four cores and more."""
VM_OVERHEAD = 0.98
"""Share of an instance's memory that its operating system sees."""


class NoNodeConfig(ValueError):
    """The instance's user data does not make it a node."""


@dataclass(frozen=True, kw_only=True)
class NodeConfig:
    """Configuration that nodeadm, or Bottlerocket, reads at boot."""

    cluster: str
    endpoint: str
    authority: bytes
    kubelet: Object
    flags: tuple[str, ...]
    raid: bool
    """True where local disks are joined to the node's ephemeral storage."""
    bottlerocket: bool = False
    """Its GPUs need no plugin in a pod."""


def node_config(user_data: str) -> NodeConfig:
    """Every NodeConfig part of the user data, later ones winning; or the settings of Bottlerocket."""
    spec = _settings(user_data) if user_data.startswith("[settings") else {}
    parts = email.message_from_string(user_data).walk() if "MIME-Version" in user_data else []
    texts = [str(p.get_payload()) for p in parts if p.get_content_type() == NODE_CONFIG]
    for text in texts or ([user_data] if "node.eks.aws" in user_data else []):
        spec = merged(spec, yaml.safe_load(text).get("spec", {}))
    cluster = spec.get("cluster", {})
    if missing := [
        k for k in ("name", "apiServerEndpoint", "certificateAuthority") if not cluster.get(k)
    ]:
        raise NoNodeConfig(
            f"the user data has no NodeConfig with cluster.{', cluster.'.join(missing)}"
        )
    kubelet = spec.get("kubelet", {})
    return NodeConfig(
        cluster=cluster["name"],
        endpoint=cluster["apiServerEndpoint"],
        authority=base64.b64decode(cluster["certificateAuthority"]),
        kubelet=kubelet.get("config", {}),
        flags=tuple(word for flag in kubelet.get("flags", []) for word in shlex.split(flag)),
        raid=spec.get("instance", {}).get("localStorage", {}).get("strategy") == "RAID0",
        bottlerocket=spec.get("bottlerocket", False),
    )


def _settings(user_data: str) -> Object:
    """Bottlerocket's settings in the words of a NodeConfig."""
    settings = tomllib.loads(user_data)["settings"]
    given, commands = settings["kubernetes"], settings.get("bootstrap-commands", {})
    labels = ",".join(f"{key}={value}" for key, value in given.get("node-labels", {}).items())
    taints = [
        {"key": key, "value": taint.partition(":")[0], "effect": taint.partition(":")[2]}
        for key, each in given.get("node-taints", {}).items()
        for taint in each
    ]
    disks = any(
        "ephemeral-storage" in words for one in commands.values() for words in one["commands"]
    )
    return {
        "bottlerocket": True,
        "cluster": {
            "name": given.get("cluster-name"),
            "apiServerEndpoint": given.get("api-server"),
            "certificateAuthority": given.get("cluster-certificate"),
        },
        "kubelet": {
            "config": {"maxPods": given.get("max-pods"), "registerWithTaints": taints},
            "flags": [f"--node-labels={labels}"],
        },
        "instance": {"localStorage": {"strategy": "RAID0" if disks else ""}},
    }


def merged(left: Any, right: Any) -> Any:
    """Dictionaries are merged, lists joined, anything else replaced, as nodeadm does."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left | {k: merged(left[k], v) if k in left else v for k, v in right.items()}
    return left + right if isinstance(left, list) and isinstance(right, list) else right


def labels(config: NodeConfig, instance: Object) -> dict[str, str]:
    """The user data's labels and those of kubelet and cloud provider."""
    flags = [flag.partition("=")[2] for flag in config.flags if flag.startswith("--node-labels=")]
    own = dict(pair.split("=", 1) for flag in flags for pair in flag.split(",") if pair)
    zone, zone_id = (
        instance["placement"][key] for key in ("availabilityZone", "availabilityZoneId")
    )
    return own | {
        "kubernetes.io/hostname": instance["privateDnsName"],
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": ARCHITECTURES[instance.get("architecture") or "x86_64"],
        "node.kubernetes.io/instance-type": instance["instanceType"],
        "topology.kubernetes.io/zone": zone,
        "topology.kubernetes.io/region": zone[:-1],
        "topology.k8s.aws/zone-id": zone_id,
        **_network(instance),
    }


def _network(instance: Object) -> dict[str, str]:
    """The network nodes above the instance: one a zone in the widest layers, two in the nearest
    ones."""
    side = instance["instanceId"][-1] in "02468ace"
    zone = instance["placement"]["availabilityZoneId"]
    return {
        LAYER.format(layer): f"nn-{zone}-{layer}{'-a' if layer > 2 and side else ''}"
        for layer in range(1, network_layers(instance["instanceType"]) + 1)
    }


def devices(instance: Object, kind: Object) -> dict[str, int]:
    """GPUs of the type; EFA devices are the interfaces this instance was launched with."""
    gpus = sum(int(g["count"]) for g in (kind.get("gpuInfo") or {}).get("gpus") or [])
    cards = [i.get("interfaceType") for i in instance.get("networkInterfaceSet") or []]
    return {GPU: gpus, EFA: sum(card in ("efa", "efa-only") for card in cards)}


def capacity(config: NodeConfig, kind: Object, disk_gib: int) -> dict[str, str]:
    """Without devices: those come with their plugin's pod. Pods have one address each, as the VPC
    CNI gives them without prefix delegation."""
    cards, local = (
        kind["networkInfo"],
        int((kind.get("instanceStorageInfo") or {}).get("totalSizeInGB") or 0),
    )
    addresses = (
        int(cards["maximumNetworkInterfaces"]) * (int(cards["ipv4AddressesPerInterface"]) - 1) + 2
    )
    return {
        "cpu": kind["vCpuInfo"]["defaultVCpus"],
        "pods": str(config.kubelet.get("maxPods") or addresses),
        "memory": f"{int(int(kind['memoryInfo']['sizeInMiB']) * VM_OVERHEAD)}Mi",
        "hugepages-2Mi": "0",
        "ephemeral-storage": f"{local}G" if config.raid and local else f"{disk_gib}Gi",
    }


def allocatable(given: dict[str, str]) -> dict[str, str]:
    """Capacity less what nodeadm reserves."""
    pods, cores = int(given["pods"]), int(given["cpu"])
    reserved = MILLICORES_FOR_KUBELET + int(MILLICORES_FOR_EACH_CORE * cores)
    memory = int(given["memory"][:-2]) - MIB_FOR_KUBELET - MIB_FOR_EACH_POD * pods - MIB_EVICTION
    return given | {"cpu": f"{cores * 1000 - reserved}m", "memory": f"{memory}Mi"}


def node(config: NodeConfig, instance: Object) -> Object:
    """The Node a kubelet registers, without its status."""
    place = f"aws:///{instance['placement']['availabilityZone']}/{instance['instanceId']}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": instance["privateDnsName"], "labels": labels(config, instance)},
        "spec": {"providerID": place, "taints": config.kubelet.get("registerWithTaints", [])},
    }


def status(
    instance: Object,
    address: str,
    version: str,
    given: dict[str, str],
    conditions: list[Object],
    unhealthy_gpus: int = 0,
) -> Object:
    """A node's status; `given` is its capacity with devices."""
    name = instance["privateDnsName"]
    info = {
        "architecture": ARCHITECTURES[instance.get("architecture") or "x86_64"],
        "operatingSystem": "linux",
        "machineID": instance["instanceId"],
        "systemUUID": instance["instanceId"],
        "bootID": instance["instanceId"],
        "kernelVersion": "6.12.40-64.114.amzn2023.x86_64",
        "osImage": "Amazon Linux 2023 (rehearsed)",
        "containerRuntimeVersion": "process-pods://1",
        "kubeletVersion": f"{version}-eks",
        "kubeProxyVersion": "",
    }
    return {
        "capacity": given,
        "allocatable": allocatable(given) | _healthy(given, unhealthy_gpus),
        "nodeInfo": info,
        "addresses": [
            {"type": "InternalIP", "address": address},
            {"type": "Hostname", "address": name},
            {"type": "InternalDNS", "address": name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "conditions": conditions,
    }


def _healthy(given: dict[str, str], unhealthy_gpus: int) -> dict[str, str]:
    """GPUs that the device plugin still gives to pods: all stay part of the capacity."""
    gpus = int(given.get(GPU, 0))
    return {GPU: str(max(0, gpus - unhealthy_gpus))} if gpus else {}


def ready_condition(value: bool, message: str, since: str) -> Object:
    """Condition Ready of a node, as of now."""
    return {
        "type": "Ready",
        "status": str(value),
        "reason": "KubeletReady" if value else "KubeletNotReady",
        "message": message,
        "lastTransitionTime": since,
        "lastHeartbeatTime": now(),
    }


def now() -> str:
    """Kubernetes' time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
