"""From `schedule` of a job to its times, and to the plan of its CronJob.

Grammar of a time: github.com/robfig/cron/v3, ParseStandard, which the API server and the controller of CronJobs
read it with (Kubernetes 1.34, pkg/apis/batch/validation). @every is left out: it has no times, only intervals.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import islice, pairwise, takewhile
from zoneinfo import ZoneInfo, available_timezones

from trainyard.catalog.versions import PYTHON_IMAGE
from trainyard.parts.programs import program_files
from trainyard.plans.jobs import SCHEDULE, JobPlan, SchedulePlan
from trainyard.settings.job import AnyJob, JobConfig
from trainyard.settings.training.schedule import ScheduleConfig

PROGRAM = "scheduled"
"""Folder of the program in trainyard/in_cluster."""
SHORT = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
"""Word → the fields that it stands for."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: tuple[tuple[str, int, int, tuple[str, ...]], ...] = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day of the month", 1, 31, ()),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 6, _DAYS),
)
"""Name, least and greatest number of each field, and the names of its numbers."""
STARS = ("*", "?", "*/1", "?/1")
"""Parts of a field that leave the day to the other kind of days."""
_PART = re.compile(r"(?P<first>\*|\?|\w+)(?:-(?P<last>\w+))?(?:/(?P<step>\d+))?")
_FIRST_DAY, _FOUR_YEARS = date(2025, 1, 1), 1461
"""A day, and the days of four years from it."""
_YEARS = 8
"""Years in which a time is looked for: 29 February is at most 8 years away."""


@dataclass(frozen=True, kw_only=True)
class Times:
    """The times of a schedule."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    """Days of the month."""
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both kinds of days are named, and one of them is enough."""

    def on(self, day: date) -> bool:
        """True for a day that has times."""
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        fits = in_month or in_week if self.either_day else in_month and in_week
        return fits and day.month in self.months

    @property
    def a_month(self) -> float:
        """Times of a month, on average over four years."""
        days = sum(self.on(_FIRST_DAY + timedelta(days=day)) for day in range(_FOUR_YEARS))
        return days * len(self.hours) * len(self.minutes) / 48

    def after(self, moment: datetime, zone: ZoneInfo) -> Iterator[datetime]:
        """The times after a moment, in UTC. A time that its day has not, as the clocks go forward, is left out; one
        that it has twice, as they go back, comes twice (robfig/cron v3.0.1, spec_test.go)."""
        first = moment.astimezone(zone).date()
        for number in range(366 * _YEARS):
            day = first + timedelta(days=number)
            if self.on(day):
                yield from (found for found in self._of_day(day, zone) if found > moment)

    def _of_day(self, day: date, zone: ZoneInfo) -> list[datetime]:
        """The times of a day that has some."""
        every = {
            datetime(day.year, day.month, day.day, hour, minute, tzinfo=zone, fold=fold).astimezone(
                UTC
            )
            for hour in self.hours
            for minute in self.minutes
            for fold in (0, 1)
        }
        return sorted(found for found in every if self._shows(found.astimezone(zone)))

    def _shows(self, clock: datetime) -> bool:
        return clock.hour in self.hours and clock.minute in self.minutes


class NoTimes(ValueError):
    """A text that is no schedule; the message is what it got, in words."""


def times_of(cron: str) -> Times:
    """The times of a schedule. Raises NoTimes."""
    words = SHORT.get(cron, cron).split()
    if len(words) != len(_FIELDS):
        raise NoTimes(f"{cron or 'nothing'}, which has {len(words)} of 5 fields")
    minutes, hours, days, months, weekdays = map(_numbers, words, _FIELDS)
    every = any(part in STARS for number in (2, 4) for part in words[number].split(","))
    return Times(
        minutes=minutes,
        hours=hours,
        days=days,
        months=months,
        weekdays=weekdays,
        either_day=not every,
    )


def _numbers(text: str, field: tuple[str, int, int, tuple[str, ...]]) -> frozenset[int]:
    """Numbers of one field."""
    name, least, most, names = field
    found = set[int]()
    for part in text.split(","):
        match = _PART.fullmatch(part)
        if not match:
            raise NoTimes(f"{text} as the {name}")
        star = match["first"] in "*?"
        first = least if star else _number(match["first"], names)
        last = most if star or (match["step"] and not match["last"]) else first
        last = _number(match["last"], names) if match["last"] else last
        step = int(match["step"] or 1)
        if first is None or last is None or not least <= first <= last <= most or not step:
            raise NoTimes(f"{text} as the {name}, which is a number from {least} to {most}")
        found |= {*range(first, last + 1, step)}
    return frozenset(found)


def _number(text: str, names: tuple[str, ...]) -> int | None:
    """A number, or that of a name; None of anything else."""
    if text.lower() in names:
        return names.index(text.lower()) + (1 if names is _MONTHS else 0)
    return int(text) if text.isdecimal() else None


def known_zone(name: str) -> bool:
    """True for a time zone, and where this machine has no list of them."""
    return not (zones := _zones()) or name in zones


def zone_of(name: str) -> ZoneInfo:
    """The zone; UTC where this machine does not have it."""
    return ZoneInfo(name if name in _zones() else "UTC")


@cache
def _zones() -> set[str]:
    """The time zones of this machine, whose files are read once."""
    return available_timezones()


def next_times(cron: str, time_zone: str, now: datetime, count: int = 1) -> list[datetime]:
    """The next times of a schedule, in UTC. Raises NoTimes."""
    return [*islice(times_of(cron).after(now, zone_of(time_zone)), count)]


def repeated_time(cron: str, time_zone: str, now: datetime) -> datetime | None:
    """The first time of the coming year that comes twice, because the clocks of the zone go back: as they show it the
    first time. None for a schedule with more times than two a day: one more counts for little. Raises NoTimes."""
    times, zone = times_of(cron), zone_of(time_zone)
    if times.a_month > 2 * 31:
        return None
    coming = takewhile(lambda found: found < now + timedelta(days=366), times.after(now, zone))
    clocks = (found.astimezone(zone) for found in coming)
    same = (sooner for sooner, later in pairwise(clocks) if sooner == later.replace(fold=0))
    return next(same, None)


def labelled(name: str, job: JobConfig) -> JobConfig:
    """A job with the label by which the runs of its schedule, and their pods, are found."""
    return replace(job, labels={**job.labels, SCHEDULE: name}) if job.schedule else job


def scheduled(
    plans: Mapping[str, JobPlan], jobs: Mapping[str, AnyJob], account: str | None
) -> dict[str, JobPlan]:
    """The plans of jobs with their schedules. `account`: as of SchedulePlan."""
    found = dict(plans)
    for name, job in jobs.items():
        if isinstance(job, JobConfig) and job.schedule:
            found[name] = replace(plans[name], schedule=_plan(job.schedule, account))
    return found


def _plan(schedule: ScheduleConfig, account: str | None) -> SchedulePlan:
    return SchedulePlan(
        cron=schedule.cron,
        time_zone=schedule.time_zone,
        replaces=schedule.concurrency_policy == "replace",
        deadline_minutes=schedule.starting_deadline_minutes,
        keep_runs=schedule.keep_runs,
        suspended=schedule.suspend,
        runs_a_month=times_of(schedule.cron).a_month,
        image=PYTHON_IMAGE,
        files=program_files(PROGRAM),
        account=account,
    )
