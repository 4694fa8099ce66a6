"""CloudWatch Logs: for how many days it can keep a line (API, PutRetentionPolicy; read in botocore
1.44.5, whose model names the values)."""

from __future__ import annotations

RETENTION_DAYS = (
    *(1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731),
    *(1096, 1827, 2192, 2557, 2922, 3288, 3653),
)


def offered(days: int) -> int:
    """The retention that CloudWatch offers for so many days: the next longer one, or the longest."""
    return next((each for each in RETENTION_DAYS if each >= days), RETENTION_DAYS[-1])
