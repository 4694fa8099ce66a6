"""What is refused of a schedule, where, and with which way out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.grammar import without_a_verb
from tests.support.stackfile import Edit, at, planned
from tests.support.sweep import lines_not_reached
from tests.support.teams import both, by_name, checkout, listed
from tests.support.teams import planned as planned_of
from tests.trainyard.derive.test_schedule import NIGHTLY, nightly
from trainyard.catalog.versions import TRAINERS
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.problems import InputError
from trainyard.rules import schedule

SAVED = {"store": "scratch", "directory": "nightly"}
CASES: dict[str, tuple[list[Edit], str, str]] = {
    "four fields": (
        [nightly(schedule={"cron": "0 3 * *"})],
        "schedule.cron",
        "got 0 3 * *, which has 4 of 5 fields",
    ),
    "an hour that no day has": (
        [nightly(schedule={"cron": "0 24 * * *"})],
        "schedule.cron",
        "got 24 as the hour, which is a number from 0 to 23",
    ),
    "a day that no month has": (
        [nightly(schedule={"cron": "0 0 30 2 *"})],
        "schedule.cron",
        "have a time",
    ),
    "no zone": (
        [nightly(schedule={"cron": "0 3 * * *", "time_zone": "Seoul"})],
        "schedule.time_zone",
        "tz database; got Seoul. Fix: write one such as Asia/Seoul",
    ),
    "after": ([nightly(after=["t5-large"])], "after", "beside schedule: the time starts a run"),
    "wait": ([nightly(wait="running")], "wait", "no run that it could wait for"),
    "a sweep": (
        [nightly(sweep={"over": {"x": [1, 2]}}, env={"X": "{x}"})],
        "sweep",
        "start all its runs at once",
    ),
    "data": (
        [
            at("pools.cpu", {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}),
            nightly(
                data={"sets": {"from_s3": "s3://b/c/", "store": "scratch", "directory": "sets"}}
            ),
        ],
        "",
        "no data and no weights beside schedule",
    ),
    "a number of the run": ([nightly(run=2)], "run", "each time is a run of its own; got 2"),
    "the place of the number": (
        [nightly(checkpoints={**SAVED, "directory": "a/{run}"})],
        "checkpoints.directory",
        "got a/{run}. Fix: write a/{scheduled_time}",
    ),
    "one directory": (
        [nightly(checkpoints=SAVED)],
        "checkpoints.directory",
        "got nightly. Fix: write nightly/{scheduled_time}",
    ),
    "afresh": (
        [
            nightly(
                checkpoints={
                    "store": "scratch",
                    "directory": "a/{scheduled_time}",
                    "when_changed": "afresh",
                }
            )
        ],
        "checkpoints.when_changed",
        "each run begin afresh",
    ),
}


def problems(*edits: Edit) -> list[InputError]:
    return [*planned(*edits).errors]


@pytest.mark.parametrize("case", CASES)
def test_what_cannot_be_is_refused_once_with_a_way_out(case: str) -> None:
    edits, path, text = CASES[case]
    found = [error for error in problems(*edits) if text in str(error)]
    assert [error.path for error in found] == [f"environment.{NIGHTLY}" + (path and f".{path}")], [
        str(error) for error in problems(*edits)
    ]
    assert found[0].fix and not without_a_verb([str(found[0])])


def test_a_sound_schedule_is_not_refused() -> None:
    assert problems(nightly()) == []
    assert problems(nightly(checkpoints={**SAVED, "when_changed": "resume"})) == []


def test_what_comes_after_a_schedule_is_refused_at_its_own_place() -> None:
    def last(settings: dict[str, Any]) -> None:
        place = {"store": "scratch", "directory": "last"}
        job = {**settings["jobs"]["t5-large"], "checkpoints": place, "after": ["nightly"]}
        settings["jobs"]["last"] = job

    [error] = problems(nightly(), last)
    assert error.path == "environment.jobs.last.after" and "no one end" in str(error)


def scheduled(settings: dict[str, Any]) -> None:
    [name] = settings["jobs"]
    job = settings["jobs"].pop(name)
    settings["jobs"]["nightly"] = {**job, "schedule": {"cron": "@daily"}}
    if "checkpoints" in job:
        job["checkpoints"]["directory"] += "/{scheduled_time}"


def with_schedules(settings: dict[str, Any]) -> None:
    settings["teams"]["vision"]["schedules"] = True


def test_a_listed_team_has_schedules_where_its_entry_says_so(tmp_path: Path) -> None:
    folder = checkout(tmp_path, listed, both(by_name, scheduled))
    [error] = planned_of("team-vision", folder).errors
    assert error.path == "team.jobs.nightly.schedule"
    assert "schedules: true in environment.teams.vision" in error.fix
    checkout(tmp_path, both(listed, with_schedules), both(by_name, scheduled))
    assert planned_of("team-vision", folder).errors == ()


def test_more_kept_runs_than_the_quota_of_the_team_has_room_for_are_warned_about(
    tmp_path: Path,
) -> None:
    def few_jobs(settings: dict[str, Any]) -> None:
        settings["teams"]["vision"]["max_jobs"] = 6

    folder = checkout(
        tmp_path, both(listed, both(with_schedules, few_jobs)), both(by_name, scheduled)
    )
    [text] = [
        each.text for each in planned_of("team-vision", folder).warnings if "keep" in each.text
    ]
    assert "keep up to 7 runs" in text and "may have 6 jobs" in text
    checkout(tmp_path, both(listed, with_schedules), both(by_name, scheduled))
    assert not [each for each in planned_of("team-vision", folder).warnings if "keep" in each.text]


def named(name: str, **more: Any) -> Edit:
    """The nightly job under another name."""

    def edit(settings: dict[str, Any]) -> None:
        nightly(**more)(settings)
        settings["jobs"][name] = settings["jobs"].pop("nightly")

    return edit


@pytest.mark.parametrize(
    ("runtime", "most"), [("torchtune-llama3.2-1b", 19), ("deepspeed-distributed", 30)]
)
def test_a_name_with_which_no_run_would_begin_is_refused(runtime: str, most: int) -> None:
    """63 characters for <name>-20261130-0300-<role>-0-1-abcde."""

    def said(name: str) -> list[str]:
        found = map(str, problems(named(name, runtime=runtime)))
        return [each for each in found if "in its name beside schedule" in each]

    assert said("n" * most) == []
    [error] = said("n" * (most + 1))
    assert f"at most {most} characters" in error and error.endswith(f"rename it {'n' * most}")


def test_the_longest_role_of_each_runtime_is_known() -> None:
    """Upstream's: the runtimes of an environment have the roles of one of them."""
    for version in TRAINERS:
        for framework, spec in upstream_runtimes(version).values():
            jobs = [each["name"] for each in spec["template"]["spec"]["replicatedJobs"]]
            longest = max(jobs, key=len)
            assert longest == schedule._LONGEST_ROLE.get(framework, "node"), framework


def test_a_time_that_the_clocks_repeat_is_warned_about() -> None:
    twice = {"cron": "30 1 * * *", "time_zone": "America/New_York"}
    [text] = warned(nightly(schedule=twice))
    assert "01:30 comes twice, and so does the run" in text
    assert warned(nightly(schedule={**twice, "cron": "30 4 * * *"})) == []
    assert warned(nightly(schedule={**twice, "cron": "30 */2 * * *"})) == []


def warned(*edits: Edit) -> list[str]:
    return [
        f"{each.path}: {each.text}"
        for each in planned(*edits).warnings
        if each.path.startswith(f"environment.{NIGHTLY}")
        and "schedule" in f"{each.path}{each.text}"
    ]


def test_runs_that_write_events_into_one_directory_are_warned_about() -> None:
    drawn = {"store": "scratch", "directory": "events"}
    [text] = warned(nightly(tensorboard=drawn))
    assert text.endswith("write events/{scheduled_time}")
    assert warned(nightly(tensorboard={**drawn, "directory": "e/{scheduled_time}"})) == []


def test_a_run_that_is_longer_than_the_time_between_is_warned_about() -> None:
    assert warned(nightly(expected_hours=100)) == []
    [late] = warned(nightly(expected_hours=30, schedule={"cron": "@daily"}))
    assert "holds up those after it" in late and "comes after 24" in late
    policy = {"cron": "@daily", "concurrency_policy": "replace"}
    [ended] = warned(nightly(expected_hours=30, schedule=policy))
    assert "is deleted before its end" in ended


def test_each_error_of_the_module_has_a_case(tmp_path: Path) -> None:
    def run() -> None:
        for edits, _, _ in CASES.values():
            problems(*edits)
        test_what_comes_after_a_schedule_is_refused_at_its_own_place()
        test_a_listed_team_has_schedules_where_its_entry_says_so(tmp_path)
        test_a_name_with_which_no_run_would_begin_is_refused("deepspeed-distributed", 30)

    assert lines_not_reached([schedule], run) == []
