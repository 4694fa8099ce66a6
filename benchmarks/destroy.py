"""Measures a destroy beside the longest way through the graph that it takes away.

The real engine destroys the dev stack in an account whose calls take as long as those of AWS. No order
beats the bound of the graph: each resource goes after all that need it, and takes the time of its
type. Pulumi takes a graph away level by level, which is a second bound. Kubernetes only pretends, so
jobs and nodes of Karpenter, which `trainyard drain` ends before, take no time here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from trainyard import command_line
from trainyard.catalog.aws.latencies import TYPICAL

TAKES = {
    "aws:ec2/natGateway:NatGateway": "ec2.nat-gateway.delete",
    "aws:eks/addon:Addon": "eks.addon.delete",
    "aws:eks/cluster:Cluster": "eks.cluster.delete",
    "aws:eks/nodeGroup:NodeGroup": "eks.nodegroup.delete",
    "aws:efs/mountTarget:MountTarget": "efs.mount-target.delete",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx.lustre.delete",
}
"""Types whose deletion is waited for → its name in trainyard/catalog/aws/latencies.py. The others answer at once."""
_WITHOUT: dict[str, Any] = {"dependencies": (), "parent": "", "provider": ""}
"""A resource of a state that needs nothing."""
SPEED = 2.0
"""Of the account, while it destroys: at the speed of AWS, the engine's own seconds weigh half as much."""


def needs(resources: Sequence[Mapping[str, Any]]) -> dict[str, set[str]]:
    """Resource → what must outlive it: what it depends on, its parent and its provider."""
    known = {one["urn"] for one in resources}
    return {
        one["urn"]: known
        & {*one["dependencies"], one["parent"], one["provider"].rpartition("::")[0]}
        for one in ({**_WITHOUT, **each} for each in resources)
    }


def of_graph(resources: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> float:
    """Seconds until the last resource of a state is gone, where each goes as soon as it can. `seconds`:
    type → what its deletion takes."""
    needed, last = needs(resources), 0.0
    begins = dict.fromkeys(needed, 0.0)
    # A state lists a resource after all that it needs.
    for one in reversed(resources):
        gone = begins[one["urn"]] + seconds.get(one["type"], 0.0)
        begins |= {urn: max(begins[urn], gone) for urn in needed[one["urn"]]}
        last = max(last, gone)
    return last


def of_levels(resources: Sequence[Mapping[str, Any]], seconds: Mapping[str, float]) -> float:
    """Duration of a destroy in Pulumi's own order: level by level. The level of a resource is its
    longest dependency chain (ScheduleDeletes of pkg/resource/deploy/step_generator.go: "not true
    delete parallelism")."""
    needed, level = needs(resources), dict[str, int]()
    slowest = dict[int, float]()
    for one in resources:
        mine = level[one["urn"]] = 1 + max((level[urn] for urn in needed[one["urn"]]), default=0)
        slowest[mine] = max(slowest.get(mine, 0.0), seconds.get(one["type"], 0.0))
    return sum(slowest.values())


def measure(speed: float) -> tuple[float, float, float]:
    """Seconds of AWS: what a destroy of the dev stack takes, and both bounds."""
    from tests.support.alone import alone

    with alone("dev") as place:
        assert place.do("up") == 0, place.log.read_text()
        state, seconds = place.state(), {kind: TYPICAL[name] for kind, name in TAKES.items()}
        place.account.speed(speed)
        began = time.monotonic()
        assert place.do("down") == 0, place.log.read_text()
        took = (time.monotonic() - began) * speed
        return took, of_levels(state, seconds), of_graph(state, seconds)


def main(arguments: list[str]) -> int:
    """Measure once; 0."""
    parser = command_line.parser(
        "benchmarks.destroy", "Measure a destroy beside the longest way through its graph."
    )
    parser.add_argument(
        "--speed",
        type=float,
        default=SPEED,
        metavar="N",
        help="how many times as fast as AWS the account is (%(default)s by default)",
    )
    took, *bounds = measure(parser.parse_args(arguments).speed)
    print(f"destroy: dev stack, seconds of AWS\n  took {took:.0f}")
    for name, least in zip(("level by level", "by its graph"), bounds, strict=True):
        print(f"  {name:16}{least:5.0f}, x {took / least:.2f}")
    return 0


if __name__ == "__main__":
    command_line.run(main)
