"""Checks of FSx for Lustre on a file system: sizes, throughputs and closed security groups.

Sizes and throughputs:
https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
"""

from __future__ import annotations

import re
from typing import Any

from rehearsal.aws import network
from rehearsal.aws.operations import Call, Fields

THROUGHPUTS = {"PERSISTENT_2": (125, 250, 500, 1000), "SCRATCH_2": (None,)}
"""Deployment type → MB/s per TiB of SSD storage to choose from; the other types are not built."""
SMALLEST, STEP = 1200, 2400
"""GiB: SSD is sold in 1200, 2400, then in steps of 2400."""
LUSTRE_PORT = 988
VERSIONS = ("2.10", "2.12", "2.15")
EFA_STEP = 4_800_000
"""GiB times MB/s per TiB: with EFA, capacity is a multiple of this divided by the throughput."""
_KNOWN = {
    "DeploymentType",
    "PerUnitStorageThroughput",
    "DataCompressionType",
    "AutomaticBackupRetentionDays",
    "EfaEnabled",
    "MetadataConfiguration",
    "WeeklyMaintenanceStartTime",
}


def not_built(call: Call) -> str:
    """Parts of the request that the rehearsal does not build, in one line."""
    lustre = call["LustreConfiguration"] or {}
    kind = (call["FileSystemType"], call["StorageType"] or "SSD", lustre.get("DeploymentType"))
    built = kind[:2] == ("LUSTRE", "SSD") and kind[2] in THROUGHPUTS
    return ", ".join(sorted(lustre.keys() - _KNOWN)) if built else str(kind)


def bad_size(capacity: int, lustre: Fields) -> str:
    """Fault in the size or the throughput; empty where there is none."""
    kind, throughput = lustre["DeploymentType"], lustre.get("PerUnitStorageThroughput")
    if throughput not in THROUGHPUTS[kind]:
        return f"PerUnitStorageThroughput {throughput} is not one of {THROUGHPUTS[kind]} for {kind}"
    if kind != "PERSISTENT_2" and lustre.get("AutomaticBackupRetentionDays"):
        return f"Backups need PERSISTENT_2, not {kind}"
    if lustre.get("EfaEnabled"):
        if not throughput or not lustre.get("MetadataConfiguration"):
            return "EfaEnabled needs PERSISTENT_2 and a MetadataConfiguration"
        if capacity * throughput % EFA_STEP:
            return (
                f"StorageCapacity {capacity} is invalid with EFA: increments of"
                f" {EFA_STEP / throughput:.0f} GiB"
            )
    bad = capacity < SMALLEST or (capacity % STEP and capacity != SMALLEST)
    return (
        f"StorageCapacity {capacity} is invalid: {SMALLEST} or increments of {STEP} GiB"
        if bad
        else ""
    )


def bad_window(lustre: Fields | None) -> bool:
    """FSx API, WeeklyMaintenanceStartTime: day of the week, hour and minute."""
    window = (lustre or {}).get("WeeklyMaintenanceStartTime")
    return window is not None and not re.fullmatch(r"[1-7]:([01]\d|2[0-3]):[0-5]\d", window)


def closed_to_lustre(call: Call) -> bool:
    """FSx checks at creation that clients could reach it."""
    groups = call["SecurityGroupIds"] or ()
    network.placed(call.region, call["SubnetIds"], groups, "InvalidNetworkSettings")
    rules = [
        rule for id_ in groups for rule in call.ec2.get_security_group_from_id(id_).ingress_rules
    ]
    return not any(
        rule.ip_protocol == "-1"
        or (rule.ip_protocol == "tcp" and rule.from_port <= LUSTRE_PORT <= rule.to_port)
        for rule in rules
    )


def closed_to_efa(call: Call) -> bool:
    """True where no group lets all of its own traffic in and out, by the group's id."""
    if not call["LustreConfiguration"].get("EfaEnabled"):
        return False
    groups = [call.ec2.get_security_group_from_id(id_) for id_ in call["SecurityGroupIds"] or ()]
    return not any(
        _everything(group.ingress_rules, group.id) and _everything(group.egress_rules, group.id)
        for group in groups
    )


def _everything(rules: Any, group: str) -> bool:
    """True where a rule names the group, for all traffic."""
    return any(
        rule.ip_protocol == "-1" and rule.source_group.get("GroupId") == group for rule in rules
    )
