"""CloudWatch, of which the rehearsal has one metric: how much room is free on a Lustre file system.

What lies on it is measured when somebody asks, so only the newest whole minute has a value. Nothing has
a value in another region, or under an id that FSx does not know.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from rehearsal import paths
from rehearsal.aws import storage
from rehearsal.aws.operations import Call, Fields, NotBuilt, answers
from trainyard.catalog.aws.storage import LUSTRE_USABLE

METRIC, FREE = ("AWS/FSx", "FreeDataStorageCapacity"), ("Sum", 60)
"""Namespace and name; statistic and period in seconds."""
BLOCK = 512
"""Bytes of `st_blocks`."""


@answers("cloudwatch", "GetMetricData")
def _metric_data(call: Call) -> Fields:
    queries: list[Fields] = call["MetricDataQueries"]
    return {"MetricDataResults": [_result(call, query) for query in queries], "Messages": []}


def _result(call: Call, query: Fields) -> Fields:
    wanted = query.get("MetricStat") or {}
    metric = wanted.get("Metric", {})
    asked = (metric.get("Namespace"), metric.get("MetricName"))
    if (asked, (wanted.get("Stat"), wanted.get("Period"))) != (METRIC, FREE):
        raise NotBuilt(f"{call.name} of anything but the sum of {METRIC[1]} over a minute")
    named = {each["Name"]: each["Value"] for each in metric.get("Dimensions", ())}
    at = _newest_minute(call["EndTime"])
    view = storage.here(call).get(named.get("FileSystemId", ""))
    there = view is not None and view["Lifecycle"] != "CREATING" and at >= call["StartTime"]
    return {
        "Id": query["Id"],
        "Label": METRIC[1],
        "StatusCode": "Complete",
        "Timestamps": [at] if there else [],
        "Values": [_free(view)] if view and there else [],
    }


def _newest_minute(until: datetime) -> datetime:
    """Start of the last minute that is over. Times are UTC without a zone, as moto reads them."""
    end = min(until, datetime.now(UTC).replace(tzinfo=None))
    return end.replace(second=0, microsecond=0) - timedelta(minutes=1)


def _free(system: Fields) -> float:
    """Bytes that files can still fill."""
    held = (paths.FILE_SYSTEMS / system["FileSystemId"]).rglob("*")
    used = sum(_blocks(each) for each in held) * BLOCK
    return max(0.0, system["StorageCapacity"] * 2**30 * LUSTRE_USABLE - used)


def _blocks(path: Path) -> int:
    """Blocks that a file or directory takes; 0 where a job has deleted it meanwhile."""
    try:
        return path.lstat().st_blocks
    except FileNotFoundError:
        return 0
