"""Errors and warnings about schedules: no times, settings that go with no schedule, runs that save in one place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from trainyard.catalog.versions import TRAINERS
from trainyard.derive.schedule import NoTimes, known_zone, next_times, repeated_time, times_of
from trainyard.objects.jobs.pod_template import LABEL_CHARACTERS
from trainyard.objects.jobs.trainer import pod_name_end
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import RUN_NUMBER, AnyJob, JobConfig
from trainyard.settings.job import SCHEDULED_TIME as TIME
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.settings.training.schedule import ScheduleConfig

_RUN = "-20261130-0300"
"""End of the name of a run: its time."""
_LONGEST_ROLE = {
    "torchtune": "dataset-initializer",
    **dict.fromkeys(("mpi", "deepspeed", "mlx"), "launcher"),
}
"""Kind of a runtime → the longest name of a replicated job of its JobSet, where that is longer than node."""
_LOOK = 12
"""Times that are looked at for the shortest time between two."""


def schedule_problems(path: str, jobs: Mapping[str, AnyJob]) -> Iterator[InputError | InputWarning]:
    """Every error and warning of schedules. `path`: that holds the jobs."""
    found = _with_schedule(jobs)
    for name, (job, schedule) in found.items():
        at = f"{path}.{name}"
        yield from _time_errors(f"{at}.schedule", schedule)
        yield from _beside_errors(at, job)
        yield from _directory_problems(at, job)
        yield from _long_runs(at, job, schedule)
        yield from _repeated(at, schedule)
    for name, job in jobs.items():
        for each in (each for each in job.after if each in found):
            yield At(f"{path}.{name}.after").must(
                "name jobs that have no schedule, whose runs have no one end",
                got=each,
                fix=f"delete {each} from `after`, or schedule of {each}",
            )


def run_name_errors(
    path: str, jobs: Mapping[str, AnyJob], environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Entries whose runs, which have their time in their names, would have pods with names that are too long. JobSet
    refuses such a run, its TrainJob never fails, and the schedule waits for it (Trainer v2.3.0,
    trainjob_controller.go)."""
    release = environment.trainer.version
    runtimes = upstream_runtimes(release) if release in TRAINERS else {}
    for name, (job, _) in _with_schedule(jobs).items():
        own = environment.own_runtime(job)
        kind = own.kind if own else runtimes.get(job.runtime or "", ("", {}))[0]
        end = f"{_RUN}{pod_name_end(('node', _LONGEST_ROLE.get(kind, 'node')), job.nodes)}"
        most = LABEL_CHARACTERS - len(end)
        if len(name) > most:
            yield At(f"{path}.{name}").must(
                f"have at most {most} characters in its name beside schedule: a pod is called"
                f" {name}{end}, which must be at most {LABEL_CHARACTERS}",
                got=len(name),
                fix=f"rename it {name[:most].rstrip('-')}",
            )


def team_schedule_errors(
    path: str, jobs: Mapping[str, AnyJob], environment: EnvironmentConfig, namespace: str
) -> Iterator[InputError]:
    """Schedules of a team whose entry in the environment allows none: nobody of it may make a CronJob."""
    teams = {entry.namespace_of(name): name for name, entry in environment.teams.items()}
    team = teams.get(namespace)
    if path != "team.jobs" or team is None or environment.teams[team].schedules:
        return
    for name in _with_schedule(jobs):
        yield At(f"{path}.{name}.schedule").must(
            "be of a team whose entry in the environment has schedules: true",
            got=f"an entry of {team} without it",
            fix=f"ask whoever runs the environment to write schedules: true in environment.teams.{team}"
            " and to run `pulumi up`; or delete the schedule",
            write=REMOVE,
        )


def kept_run_warnings(
    entry: TeamEntryConfig | None, jobs: Mapping[str, AnyJob]
) -> Iterator[InputWarning]:
    """Schedules of a team that keep more runs than its quota has room for: it counts those that have ended, too.
    `entry`: the team's in the environment; None where it has none."""
    kept = sum(2 * schedule.keep_runs + 1 for _, schedule in _with_schedule(jobs).values())
    if entry and kept > entry.max_jobs:
        yield At("team.jobs").warning(
            f"the schedules keep up to {kept} runs (of each keep_runs complete and as many failed ones, beside the one"
            f" that goes on), and the team may have {entry.max_jobs} jobs, ended ones too (max_jobs): a run for which"
            " there is no room is left out. Write smaller keep_runs"
        )


def _with_schedule(jobs: Mapping[str, AnyJob]) -> dict[str, tuple[JobConfig, ScheduleConfig]]:
    return {
        name: (job, job.schedule)
        for name, job in jobs.items()
        if isinstance(job, JobConfig) and job.schedule
    }


def _time_errors(path: str, schedule: ScheduleConfig) -> Iterator[InputError]:
    """A text that the API server does not take, or that has no times."""
    try:
        if not times_of(schedule.cron).a_month:
            yield At(f"{path}.cron").must(
                "have a time",
                got=f"{schedule.cron}, a day that no month has",
                fix="write another day",
            )
    except NoTimes as error:
        yield At(f"{path}.cron").must(
            "be minute, hour, day of the month, month and day of the week",
            got=error,
            fix='write them as "0 3 * * 1", Monday at 03:00, or a word such as @daily',
        )
    if not known_zone(schedule.time_zone):
        yield At(f"{path}.time_zone").must(
            "be a name of the tz database",
            got=schedule.time_zone,
            fix="write one such as Asia/Seoul",
        )


def _beside_errors(path: str, job: JobConfig) -> Iterator[InputError]:
    """Settings of a job that begins with an update."""
    if job.after:
        yield At(f"{path}.after").not_set(
            "beside schedule: the time starts a run",
            got=", ".join(job.after),
            instead="delete schedule",
        )
    if job.wait != "none":
        yield At(f"{path}.wait").not_set(
            "beside schedule: `up` starts no run that it could wait for", got=job.wait
        )
    if job.sweep:
        yield At(f"{path}.sweep").not_set(
            "beside schedule: the next time would start all its runs at once",
            got="a sweep",
            instead="delete schedule",
        )
    if job.loads:
        yield At(path).must(
            "have no data and no weights beside schedule: `up` loads them, once, and waits with the job",
            got=", ".join(job.loads),
            fix="write a job without schedule that loads them, and mount their store here",
        )
    if job.run > 1:
        yield At(f"{path}.run").not_set(
            "beside schedule: each time is a run of its own", got=job.run
        )


def _directory_problems(path: str, job: JobConfig) -> Iterator[InputError | InputWarning]:
    """Runs that would save into one directory: the second one would find the work done, and end at once."""
    saved, drawn = job.checkpoints, job.tensorboard
    if saved and RUN_NUMBER in saved.directory:
        yield At(f"{path}.checkpoints.directory").must(
            f"have {TIME} in the place of {RUN_NUMBER}, which is the same for all runs of a schedule",
            got=saved.directory,
            write=saved.directory.replace(RUN_NUMBER, TIME),
        )
    elif saved and TIME not in saved.directory and saved.when_changed != "resume":
        yield At(f"{path}.checkpoints.directory").must(
            "be another one for each run of the schedule, which would go on from the run before it and end"
            " at once; or checkpoints.when_changed must be resume",
            got=saved.directory,
            write=f"{saved.directory}/{TIME}",
        )
    if saved and saved.when_changed == "afresh":
        yield At(f"{path}.checkpoints.when_changed").not_set(
            f"to afresh beside schedule: {TIME} in the directory makes each run begin afresh",
            got=saved.when_changed,
        )
    if drawn and TIME not in drawn.directory:
        own = f"{drawn.directory.replace(f'/{RUN_NUMBER}', '')}/{TIME}"
        yield At(f"{path}.tensorboard.directory").warning(
            "all runs of the schedule write their events here, and TensorBoard draws them as one run:"
            f" write {own}"
        )


def _repeated(path: str, schedule: ScheduleConfig) -> Iterator[InputWarning]:
    """A time that comes twice as the clocks go back: two runs are paid for. A time that is left out as they go
    forward costs nothing."""
    try:
        found = repeated_time(schedule.cron, schedule.time_zone, datetime.now(UTC))
    except NoTimes:
        return
    if found:
        yield At(f"{path}.schedule.cron").warning(
            f"on {found:%Y-%m-%d} the clocks of {schedule.time_zone} go back, {found:%H:%M} comes twice, and so does"
            " the run: write an hour that no clock repeats, such as 4"
        )


def _long_runs(path: str, job: JobConfig, schedule: ScheduleConfig) -> Iterator[InputWarning]:
    """A run that is longer than the time to the next one."""
    if job.expected_hours is None:
        return
    try:
        times = next_times(schedule.cron, schedule.time_zone, datetime.now(UTC), _LOOK)
    except NoTimes:
        return
    between = min((later - sooner for sooner, later in pairwise(times)), default=None)
    if between is not None and timedelta(hours=job.expected_hours) > between:
        ends = (
            "is deleted before its end"
            if schedule.concurrency_policy == "replace"
            else "holds up those after it, of which some are left out"
        )
        yield At(f"{path}.schedule.cron").warning(
            f"a run has expected_hours: {job.expected_hours:g}, and the next one comes after"
            f" {between.total_seconds() / 3600:g} h: a run that still goes on {ends}"
        )
