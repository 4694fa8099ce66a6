"""One instance from power-on: `python -m rehearsal.nodes.machine ID REGION` boots, joins the cluster, runs pods."""

from __future__ import annotations

import base64
import sys
import threading
import time
from datetime import datetime
from typing import Any

from catalog.latencies import TYPICAL
from rehearsal import paths
from rehearsal.kube import Api, ApiError, Object
from rehearsal.nodes import aws, logs, network, node
from rehearsal.nodes.aws import TROUBLE
from rehearsal.nodes.devices import Devices
from rehearsal.nodes.kubelet import RETRY_SECONDS, Kubelet

ON_EVERY_NODE = ("dev", "etc", "lib/modules", "proc", "run", "sys", "tmp", "usr", "var/log",
                 "var/lib/kubelet/device-plugins", "var/lib/kubelet/plugins_registry")
"""Folders that host paths of type Directory may name; all are empty."""


def wait_for_boot(instance: Object, speed: float) -> None:
    """A boot takes its typical time from the launch."""
    launched = datetime.fromisoformat(instance["launchTime"]).timestamp()
    time.sleep(max(0.0, launched + TYPICAL["ec2.instance-boot"] / speed - time.time()))


def instance_facts(account: aws.Account, name: str) -> dict[str, Any]:
    """Everything about the instance that its node needs."""
    found = account.ec2("DescribeInstances", **{"InstanceId.1": name})["reservationSet"][0]["instancesSet"][0]
    kind = account.ec2("DescribeInstanceTypes", **{"InstanceType.1": found["instanceType"]})["instanceTypeSet"][0]
    disks = account.ec2("DescribeVolumes", **{"Filter.1.Name": "attachment.instance-id", "Filter.1.Value.1": name})
    data = account.ec2("DescribeInstanceAttribute", InstanceId=name, Attribute="userData").get("userData") or {}
    return {"instance": found, "kind": kind,
            "disk_gib": sum(int(d["size"]) for d in disks.get("volumeSet") or []),
            "user_data": base64.b64decode(data.get("value") or "").decode()}


def kubelet(name: str, region: str, world: paths.World) -> tuple[Kubelet, Object]:
    """The instance's kubelet, and the Node it is to register; NoNodeConfig where the user data says nothing of one."""
    account = aws.account(world.account_url, region)
    facts = instance_facts(account, name)
    instance, kind = facts["instance"], facts["kind"]
    wait_for_boot(instance, world.speed)
    config = node.node_config(facts["user_data"])
    folder, address = paths.NODES / name, network.node_address()
    (folder / "address").write_text(address)
    for path in ON_EVERY_NODE:
        (folder / "host" / path).mkdir(parents=True, exist_ok=True)
    (folder / "ca.crt").write_bytes(config.authority)
    api = Api(config.endpoint, ca_file=str(folder / "ca.crt"), token=aws.InstanceToken(account, name, config.cluster))
    capacity = node.capacity(config, kind, facts["disk_gib"])

    def status(devices: dict[str, int], ready: Object) -> Object:
        shown = capacity | {kind: str(count) for kind, count in devices.items()}
        return node.status(instance, address, version(api), shown, ready)

    made = Kubelet(api=api, account=account, world=world, instance=name, name=instance["privateDnsName"],
                   zone=instance["placement"]["availabilityZone"], cluster=config.cluster, address=address,
                   folder=folder, devices=Devices(node.devices(instance, kind)),
                   allocatable=node.allocatable(capacity), status=status)
    starting = node.condition("Ready", False, "KubeletNotReady", "kubelet is starting", node.now())
    return made, node.node(config, instance, {"starting": starting})


def version(api: Api) -> str:
    """The control plane's: EKS images follow it."""
    return api.request("GET", "/version")["gitVersion"]


def register(made: Kubelet, wanted: Object) -> None:
    """Try as long as the instance lives; what a refusal says goes to the log, as on AWS."""
    starting = wanted["status"]["starting"]
    while True:
        try:
            made.api.request("POST", "/api/v1/nodes", wanted | {"status": made.status({}, starting)})
            return made.log(f"registered node {made.name}")
        except ApiError as error:
            if error.code == 409:
                return made.log(f"node {made.name} is registered already")
            made.log(f"Unable to register node with API server: {error}")
        except TROUBLE as error:
            made.log(f"Unable to register node with API server: {error}")
        time.sleep(RETRY_SECONDS)


def main(name: str, region: str) -> None:
    """Until the instance ends, which is a SIGKILL."""
    try:
        made, wanted = kubelet(name, region, paths.world())
    except node.NoNodeConfig as error:
        print(f"{error}: this instance does not join a cluster", file=sys.stderr, flush=True)
        threading.Event().wait()
        return
    register(made, wanted)
    threading.Thread(target=logs.server(made.address, made.find).serve_forever, daemon=True).start()
    threading.Thread(target=made.heartbeat, daemon=True).start()
    made.watch()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
