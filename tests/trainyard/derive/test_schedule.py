"""What follows from `schedule`: its times, and the plan of its CronJob."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.stackfile import Edit, environment_plan
from trainyard.derive.schedule import NoTimes, next_times, times_of
from trainyard.plans.jobs import SCHEDULE

NIGHTLY = "jobs.nightly"
SUNDAY = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def nightly(**more: Any) -> Edit:
    """A job of one node like the dev file's, every Monday. `more`: its settings; None deletes one."""

    def edit(settings: dict[str, Any]) -> None:
        job = {
            **settings["jobs"]["t5-large"],
            "nodes": 1,
            "checkpoints": {"store": "scratch", "directory": "nightly/{scheduled_time}"},
            "schedule": {"cron": "0 3 * * 1"},
            **more,
        }
        settings["jobs"]["nightly"] = {key: it for key, it in job.items() if it is not None}

    return edit


def said(cron: str, zone: str = "Etc/UTC", count: int = 3) -> list[str]:
    times = next_times(cron, zone, SUNDAY, count)
    return [time.strftime("%a %Y-%m-%d %H:%M") for time in times]


def test_the_next_times_are_those_of_the_controller_of_cron_jobs() -> None:
    """Written down by hand, from the grammar of cron and a calendar."""
    assert said("0 3 * * 1") == [
        "Mon 2026-11-30 03:00",
        "Mon 2026-12-07 03:00",
        "Mon 2026-12-14 03:00",
    ]
    assert said("*/20 12 * * *", count=3)[-1] == "Mon 2026-11-30 12:00"
    assert said("30 1,13 * * *") == [
        "Sun 2026-11-29 13:30",
        "Mon 2026-11-30 01:30",
        "Mon 2026-11-30 13:30",
    ]
    assert said("0 0 29 feb *", count=1) == ["Tue 2028-02-29 00:00"]
    assert said("0 0 1-7 * mon", count=2) == ["Mon 2026-11-30 00:00", "Tue 2026-12-01 00:00"]
    assert said("0 0 */10 * mon", count=2) == ["Mon 2026-11-30 00:00", "Tue 2026-12-01 00:00"]
    assert said("0 9/6 * * mon-fri", count=3) == [
        "Mon 2026-11-30 09:00",
        "Mon 2026-11-30 15:00",
        "Mon 2026-11-30 21:00",
    ]
    assert said("@daily", count=1) == ["Mon 2026-11-30 00:00"]


def test_the_times_are_those_of_the_zone() -> None:
    assert said("0 3 * * 1", "Asia/Seoul", 1) == ["Sun 2026-11-29 18:00"]


def test_a_time_that_a_day_has_not_is_left_out() -> None:
    """In Berlin the clocks go from 02:00 to 03:00 on 2027-03-28."""
    times = next_times("30 2 * 3 *", "Europe/Berlin", datetime(2027, 3, 27, 0, 0, tzinfo=UTC), 2)
    assert [time.day for time in times] == [27, 29]


def test_a_time_that_a_day_has_twice_comes_twice() -> None:
    """In New York the clocks go from 02:00 to 01:00 on 2026-11-01."""
    times = next_times("30 1 * * *", "America/New_York", datetime(2026, 11, 1, tzinfo=UTC), 3)
    assert [f"{time:%d %H:%M}" for time in times] == ["01 05:30", "01 06:30", "02 06:30"]


@pytest.mark.parametrize(
    ("cron", "a_month"),
    [
        ("* * * * *", 1461 * 1440 / 48),
        ("0 3 * * 1", 208 / 48 + 1 / 48),
        ("0 3 1 * *", 1),
        ("0 0 29 2 *", 1 / 48),
        ("@hourly", 1461 * 24 / 48),
        ("0 0 30 2 *", 0),
    ],
)
def test_a_month_has_so_many_times_on_average(cron: str, a_month: float) -> None:
    assert times_of(cron).a_month == pytest.approx(a_month, abs=0.03)


@pytest.mark.parametrize(
    "cron",
    [
        "",
        "0 3 * *",
        "0 3 * * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * * 13 *",
        "* * * * 7",
    ]
    + [
        "a * * * *",
        "1-b * * * *",
        "5-1 * * * *",
        "*/0 * * * *",
        "@every 1h",
        "@never",
        "1,,2 * * * *",
    ],
)
def test_what_the_api_server_refuses_has_no_times(cron: str) -> None:
    with pytest.raises(NoTimes):
        times_of(cron)


def test_a_job_with_a_schedule_has_its_label_and_its_plan() -> None:
    job = environment_plan(nightly(labels={"who": "us"})).jobs["nightly"]
    assert job.labels == {"who": "us", SCHEDULE: "nightly"}
    assert job.schedule and job.schedule.cron == "0 3 * * 1" and not job.schedule.replaces
    assert job.schedule.runs_a_month == pytest.approx(4.35, abs=0.03)
    assert {"scheduled.py", "api_server.py"} <= {*job.schedule.files}


def test_a_job_without_one_is_as_before() -> None:
    before, after = environment_plan(), environment_plan(nightly())
    assert after.jobs["t5-large"] == before.jobs["t5-large"]
    assert before.jobs["t5-large"].schedule is None
