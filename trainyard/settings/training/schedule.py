"""Settings of a schedule: one entry of `jobs` that starts a run at each of its times.

What follows from them: trainyard/derive/schedule.py. What is refused: trainyard/rules/schedule.py.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic


@dataclass(frozen=True, kw_only=True)
class ScheduleConfig:
    """Starts a run of the job at each time, by a CronJob of Kubernetes. `pulumi up` makes the CronJob and starts
    no run. `{scheduled_time}` in any text of the entry stands for the time of the run, such as
    20261130-0300. See docs/jobs.md."""

    cron: str
    """Minute, hour, day of the month, month and day of the week, such as `0 3 * * 1`; or @hourly, @daily,
    @weekly, @monthly or @yearly."""
    time_zone: Annotated[str, pydantic.Field(min_length=1)] = "Etc/UTC"
    """Time zone of `cron`, by its name in the tz database, such as Asia/Seoul. The name of a run has its time
    in UTC."""
    concurrency_policy: Literal["forbid", "replace"] = "forbid"
    """Policy for a time at which the run before still goes on. `forbid`: that run goes on, and the new one
    begins when it has ended, or never if that is later than `starting_deadline_minutes`. `replace`: that run
    is deleted, and the new one begins when its pods are gone."""
    starting_deadline_minutes: Annotated[int, pydantic.Field(ge=1, strict=True)] = 60
    """Minutes after its time in which a run can still be made; later it is left out. So long it waits for the run
    before it, for room in the team's quota and for the API server. A run that is made and waits in a queue is not left
    out."""
    keep_runs: Annotated[int, pydantic.Field(ge=1, le=100, strict=True)] = 3
    """Number of complete runs that stay in the cluster with their pods and logs, and of failed ones. Older
    ones are deleted. `environment.history` keeps a record of each."""
    suspend: bool = False
    """`true`: no run begins. A run that goes on is not ended. `false` again starts the last time that was left out, if
    it is no longer ago than `starting_deadline_minutes`."""
