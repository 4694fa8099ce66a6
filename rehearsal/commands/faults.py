"""`fault`: list the faults of the embedded account, add one, clear all, make an instance vanish,
announce its end, or break it."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from rehearsal import paths, world
from rehearsal.terminal import REFUSED

FAULTS = (
    "throttle",
    "lose-answer",
    "error",
    "no-capacity",
    "delay",
    "reserve",
    "quota",
    "share",
    "api-away",
    "vanish",
    "notice",
    "break",
    "clear",
)
NOTICES = ("spot", "rebalance", "reservation", "health")
"""Notices that AWS sends about an instance: aws/notices.py."""
BREAKS = (
    "xid",
    "efa-down",
    "nvme-gone",
    "kubelet-dead",
    "kubelet-silent",
    "node-lost",
    "node-slow",
    "rank-killed",
    "rank-hung",
    "rank-out-of-memory",
    "checkpoint-damaged",
    "store-full",
    "store-away",
    "mended",
)
"""Damages to a machine: kubelet/damage.py."""
OF_BREAK = {"xid": "xid", "kubelet-silent": "seconds"}
"""Damage to a machine → the option that its command must have, besides."""
FAULT_FIELDS: dict[str, tuple[Any, str]] = {
    "service": (str, "only calls to this service, such as ec2"),
    "action": (str, "only this call, such as RunInstances"),
    "zone": (str, "only in this zone, such as ap-northeast-2a"),
    "instance_type": (str, "only for this instance type, such as g6e.48xlarge"),
    "count": (int, "how often it happens (once by default); -1: until `clear`"),
    "seconds": (
        float,
        "delay: how long each call takes; api-away, and break of a kubelet-silent: how long it lasts",
    ),
    "available": (int, "no-capacity: how many instances AWS can still launch"),
    "id": (str, "reserve: id of the reservation"),
    "starts": (str, "reserve: when it starts, such as 2027-01-04T11:30:00Z"),
    "ends": (str, "reserve: when it ends"),
    "placement_group": (str, "reserve: ARN of its placement group"),
    "code": (str, "error: AWS's code; quota: code of the quota, such as L-DB2E81BA"),
    "instances": (int, "reserve: how many instances"),
    "value": (float, "quota: its new value"),
    "vpc": (str, "share: id of a VPC of the account"),
    "owner": (str, "share: the account that owns it from now on, and shares it"),
}
"""Field of a fault → its type and its help text. Seconds of `api-away` and of
`kubelet-silent` are those of this machine, as those of leases are. The last eight are for `reserve`, which
creates a capacity reservation or a Capacity Block, for `quota`, and for `share`."""


def fault(options: argparse.Namespace) -> int:
    """List the faults of the account, add one, clear all, make an instance vanish, announce its end,
    or break it."""
    options_of_fault = {
        name: value
        for name in (*FAULT_FIELDS, "block", "instance", "notice", "what", "xid")
        if (value := getattr(options, name)) is not None
    }
    fits = {
        "vanish": {"instance"} == options_of_fault.keys(),
        "notice": {"instance", "notice"} == options_of_fault.keys(),
        "break": {
            "instance",
            "what",
            *([OF_BREAK[what]] if (what := options.what) in OF_BREAK else []),
        }
        == options_of_fault.keys(),
        "api-away": {"seconds"} == options_of_fault.keys(),
        "clear": not options_of_fault,
        None: not options_of_fault,
    }
    of_instances = {"instance", "notice", "what", "xid"}
    if not fits.get(options.kind, not of_instances & options_of_fault.keys()):
        print(
            "`vanish` must have --instance and no other option; `notice` must have --instance and"
            " --notice; `break` must have --instance and --what, for `xid` also --xid, and for"
            " `kubelet-silent` also --seconds; `api-away` must have --seconds; `clear` and `fault`"
            " alone must have none",
            file=sys.stderr,
        )
        return REFUSED
    if options.kind == "vanish":
        world.ask("POST", f"instances/{options.instance}/vanish", {})
    elif options.kind == "notice":
        world.ask("POST", f"instances/{options.instance}/notice", {"notice": options.notice})
    elif options.kind == "break":
        return break_machine(options)
    elif options.kind == "clear":
        world.ask("DELETE", "faults")
    elif options.kind:
        world.ask("POST", "faults", {"kind": options.kind, **options_of_fault})
    print(json.dumps(world.ask("GET", "faults"), indent=1))
    return 0


def break_machine(options: argparse.Namespace) -> int:
    """Tell the machine of an instance what is broken."""
    folder = paths.NODES / options.instance
    if not (folder / "address").exists():
        print(f"{options.instance} has no machine that runs", file=sys.stderr)
        return REFUSED
    said = {"kind": options.what}
    if more := OF_BREAK.get(options.what):
        said[more] = getattr(options, more)
    with (folder / paths.DAMAGE).open("a") as file:
        file.write(f"{json.dumps(said)}\n")
    return 0
