"""One instance from power-on: `python -m rehearsal.kubelet.machine ID REGION` boots, joins the
cluster, runs pods."""

from __future__ import annotations

import base64
import shutil
import sys
import threading
import time
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from rehearsal import paths
from rehearsal.kube import Api, Object
from rehearsal.kubelet import logs, network, node
from rehearsal.kubelet.aws import Account, AwsError, InstanceToken
from rehearsal.kubelet.damage import Damage
from rehearsal.kubelet.fluent_bit import FluentBit
from rehearsal.kubelet.kubelet import Kubelet
from trainyard.catalog.aws.latencies import TYPICAL

NODEADM_SECONDS = 60
"""Seconds that a node without an answer waits to ask again; divided by the world's speed."""
T = TypeVar("T")


def boot(name: str, account: Account, world: paths.World) -> Kubelet:
    """The instance's kubelet, after the time a boot takes; NoNodeConfig where the user data does
    not make a node."""
    instance = _insistently(world.speed, lambda: _described(name, account))
    kind = account.ec2("DescribeInstanceTypes", **{"InstanceType.1": instance["instanceType"]})[
        "instanceTypeSet"
    ][0]
    disks = account.ec2(
        "DescribeVolumes", **{"Filter.1.Name": "attachment.instance-id", "Filter.1.Value.1": name}
    )
    data = (
        account.ec2("DescribeInstanceAttribute", InstanceId=name, Attribute="userData").get(
            "userData"
        )
        or {}
    )
    launched = datetime.fromisoformat(instance["launchTime"]).timestamp()
    time.sleep(max(0.0, launched + TYPICAL["ec2.instance-boot"] / world.speed - time.time()))
    config = node.node_config(base64.b64decode(data.get("value") or "").decode())
    _insistently(world.speed, lambda: _reached(name, account, config.cluster))
    folder, address = paths.NODES / name, network.node_address()
    (folder / "address").write_text(address)
    if (paths.NODES / "ami").exists():
        shutil.copytree(paths.NODES / "ami", folder / "host", dirs_exist_ok=True)
    (folder / "ca.crt").write_bytes(config.authority)
    api = Api(
        config.endpoint,
        ca_file=str(folder / "ca.crt"),
        token=InstanceToken(account, name, config.cluster),
    )
    return Kubelet(
        api=api,
        account=account,
        world=world,
        instance=instance,
        config=config,
        address=address,
        capacity=node.capacity(
            config, kind, sum(int(d["size"]) for d in disks.get("volumeSet") or [])
        ),
        devices=node.devices(instance, kind),
    )


def _described(name: str, account: Account) -> Object:
    """Description of the instance that nodeadm gets from EC2 with the instance's role."""
    _reached(name, account, "aws:ec2")
    found = account.as_instance(name).ec2("DescribeInstances", **{"InstanceId.1": name})
    return found["reservationSet"][0]["instancesSet"][0]


def _reached(name: str, account: Account, to: str) -> None:
    if wall := account.blocked(name, to):
        raise AwsError(f"dial {to}: i/o timeout: {wall}")


def _insistently(speed: float, ask: Callable[[], T]) -> T:
    """The answer to what a boot asks again and again."""
    while True:
        try:
            return ask()
        except AwsError as error:
            print(f"nodeadm: {error}", file=sys.stderr, flush=True)
            time.sleep(NODEADM_SECONDS / speed)


def main(name: str, region: str) -> None:
    """Until the instance ends, which is a SIGKILL."""
    world = paths.world()
    account = Account(url=world.account_url, secret=world.world_secret, region=region)
    try:
        kubelet = boot(name, account, world)
    except node.NoNodeConfig as error:
        print(f"{error}: this instance does not join a cluster", file=sys.stderr, flush=True)
        threading.Event().wait()
        return
    kubelet.register()
    threading.Thread(
        target=logs.server(kubelet.address, kubelet.find, kubelet.unreached).serve_forever,
        daemon=True,
    ).start()
    damage = Damage(kubelet)
    kubelet.health = damage.conditions
    threading.Thread(target=damage.follow, daemon=True).start()
    threading.Thread(target=FluentBit(kubelet).follow, daemon=True).start()
    threading.Thread(target=kubelet.heartbeat, daemon=True).start()
    kubelet.watch()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
