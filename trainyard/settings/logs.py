"""Settings of the logs of pods. Their plan: trainyard/parts/logs.py."""

from dataclasses import dataclass
from typing import Annotated

import pydantic


@dataclass(frozen=True, kw_only=True)
class LogsConfig:
    """Logs that outlive their pods: a Fluent Bit on each node of a pool sends what the pods of jobs
    write to CloudWatch Logs, which bills it by the GB. `trainyard logs <job> --past` reads it. Write `{}`
    for the default."""

    days: Annotated[int, pydantic.Field(ge=1, strict=True)] = 30
    """Number of days that CloudWatch Logs keeps a line: 7, 14, 30, 90 or another number that CloudWatch
    offers."""
