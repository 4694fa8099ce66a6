"""Pools that cannot launch nodes: which condition of their NodePool or EC2NodeClass is False."""

from __future__ import annotations

import re
from collections.abc import Iterator

from operations.snapshot import Object, Snapshot
from operations.symptoms import Finding
from plans.pod_template import POOL

REFUSED = re.compile(
    r'"EC2NodeClass":\{"name":"([^"]+)"\}[^\n]*?api error ([^"\n]*?)(?: \(aws-error-code|"|\n)'
)
"""In Karpenter's log: the EC2NodeClass, and the error of AWS in a dry run of a launch."""


def unready(snapshot: Snapshot, *, wanted: bool) -> Iterator[Finding]:
    """What pools lack: pools that a job may wait for if `wanted`, idle pools otherwise."""
    refused = {name: why for log in snapshot.logs.values() for name, why in REFUSED.findall(log)}
    for kind in ("ec2nodeclasses", "nodepools"):
        for obj in snapshot.of(kind):
            if _wanted(snapshot, obj) is not wanted:
                continue
            name = obj["metadata"]["name"]
            for condition in obj.get("status", {}).get("conditions", []):
                if condition["status"] == "False" and condition["type"] != "Ready":
                    message = condition.get("message") or condition.get("reason", "")
                    yield Finding(
                        what=f"{obj['kind']} {name}: {condition['type']} is False",
                        why=refused.get(_class(obj), message),
                        do=f"kubectl describe {obj['kind'].lower()} {name}",
                    )


def _class(obj: Object) -> str:
    """The name of the EC2NodeClass that the object is or uses."""
    used = _template(obj).get("spec", {}).get("nodeClassRef", {})
    return used.get("name", obj["metadata"]["name"])


def _template(obj: Object) -> Object:
    return obj.get("spec", {}).get("template", {})


def _wanted(snapshot: Snapshot, obj: Object) -> bool:
    """Whether a job that has not ended may wait for the pool. A job without pods may wait for any
    pool, and so may a pod that selects no pool."""
    pools = {
        _template(pool).get("metadata", {}).get("labels", {}).get(POOL)
        for pool in snapshot.of("nodepools")
        if _class(pool) == _class(obj)
    }
    selected = {
        pod.get("spec", {}).get("nodeSelector", {}).get(POOL)
        for job in snapshot.jobs()
        if not job.ended
        for pod in job.pods or ({},)
    }
    return None in selected | pools or not pools or bool(selected & pools)
