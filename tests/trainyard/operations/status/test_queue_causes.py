"""Why a job waits in its queue, in one sentence."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from trainyard.objects.programs.gangs import AGAIN, TRIES
from trainyard.operations.reach.snapshot import KINDS, Snapshot
from trainyard.operations.status.diagnosis import diagnose

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
Object = dict[str, Any]
LACKS = (
    "couldn't assign flavors to pod set node: insufficient unused quota for nvidia.com/gpu in flavor"
    " h100, 16 more needed"
)
NEVER = (
    "couldn't assign flavors to pod set node: insufficient quota for nvidia.com/gpu in flavor h100,"
    " previously considered podsets requests (0) + current podset request (64) > maximum capacity (32)"
)


def before(minutes: float) -> str:
    return (NOW - timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(name: str, status: str, minutes: float, **more: str) -> Object:
    return {"type": name, "status": status, "lastTransitionTime": before(minutes), **more}


def workload(
    job: str, team: str, *conditions: Object, minutes: float = 30, gpus: int = 0
) -> Object:
    """`gpus`: what it holds of h100."""
    given = {"name": "node", "flavors": {"nvidia.com/gpu": "h100"}}
    admission = {"podSetAssignments": [given | {"resourceUsage": {"nvidia.com/gpu": str(gpus)}}]}
    return {
        "kind": "Workload",
        "metadata": {
            "name": f"trainjob-{job}-1",
            "namespace": f"team-{team}",
            "creationTimestamp": before(minutes),
            "ownerReferences": [{"kind": "TrainJob", "name": job}],
        },
        "spec": {"queueName": team},
        "status": {"conditions": [*conditions], **({"admission": admission} if gpus else {})},
    }


HOLDER = workload("bert", "nlp", condition("QuotaReserved", "True", 20), gpus=24)


def job(name: str, namespace: str, **spec: Any) -> Object:
    return {
        "kind": "TrainJob",
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": before(1)},
        "spec": {"runtimeRef": {"name": "torch"}, **spec},
        "status": {},
    }


def said(
    *workloads: Object, jobs: tuple[Object, ...] = (), unseen: frozenset[str] = frozenset()
) -> list[str]:
    objects = {"trainjobs": [job("a", "n"), *jobs], "workloads": [*workloads]}
    found = diagnose(Snapshot(objects=objects, taken_at=NOW, unseen=unseen))
    return [str(each) for each in found if "queue of team" in each.what]


def waiting(*more: Object, message: str = LACKS, minutes: float = 30) -> Object:
    reserved = condition("QuotaReserved", "False", minutes, reason="Pending", message=message)
    return workload("vit", "vision", reserved, *more, minutes=minutes)


def test_kueue_is_read_with_the_rest_of_the_cluster() -> None:
    assert "workloads.kueue.x-k8s.io" in KINDS


def test_a_waiting_job_says_what_it_lacks_who_has_it_and_since_when() -> None:
    [found] = said(waiting(), HOLDER)
    assert found.splitlines()[:2] == [
        "TrainJob vit waits in the queue of team vision since 11:30:00 (1800 s)",
        "    pool h100 has 16 GPUs too few for it: TrainJob bert of team nlp has 24 since 11:40:00",
    ]


def test_a_job_that_no_quota_admits_is_said_to_wait_for_ever() -> None:
    [found] = said(waiting(message=NEVER))
    assert "it never starts: the team can have at most 32 GPUs of pool h100" in found


OVER_G6E = NEVER.replace("flavor h100", "flavor g6e").replace("(32)", "(16)")


def test_a_job_that_fits_another_pool_is_not_said_to_wait_for_ever() -> None:
    """Kueue names every pool that a job without one could have, in the order of the alphabet."""
    several = f"{OVER_G6E}, {LACKS.partition('node: ')[2]}"
    [found] = said(waiting(message=several), HOLDER)
    assert "never starts" not in found and "pool h100 has 16 GPUs too few for it" in found


def test_a_job_that_no_pool_admits_names_the_pool_that_gives_it_most() -> None:
    [found] = said(waiting(message=f"{OVER_G6E}, {NEVER.partition('node: ')[2]}"))
    assert "it never starts: the team can have at most 32 GPUs of pool h100" in found


def test_a_job_of_which_no_pool_admits_one_group_of_pods_is_said_to_wait_for_ever() -> None:
    launcher = LACKS.replace("node:", "launcher:")
    [found] = said(waiting(message=f"{launcher}; {NEVER}"))
    assert "it never starts: the team can have at most 32 GPUs of pool h100" in found


def test_a_stopped_job_says_that_it_was_stopped_and_waits_since_then() -> None:
    stopped = condition("Evicted", "True", 5, reason="Preempted")
    [found] = said(waiting(stopped), HOLDER)
    assert "since 11:55:00 (300 s)" in found and "it was stopped for a job with the right" in found
    late = condition("Evicted", "True", 5, reason="PodsReadyTimeout")
    assert "it did not get all its pods in time" in said(waiting(late, message=""))[0]


def test_half_a_gang_says_that_it_gave_its_nodes_back_and_when_it_is_tried_again() -> None:
    stopped = condition("Evicted", "True", 5, reason="Deactivated")
    half = waiting(stopped, message="The workload is deactivated")
    half["metadata"]["annotations"] = {TRIES: "2", AGAIN: "2026-11-22T12:03:00Z"}
    half["spec"]["active"] = False
    [found] = said(half, HOLDER)
    assert found.splitlines() == [
        "TrainJob vit waits in the queue of team vision since 11:55:00 (300 s)",
        "    a part of its pods ran without the others, and it gave its nodes back (try 2)",
        "    → its next try begins by itself at 12:03:00",
    ]
    tried = waiting(stopped)
    tried["metadata"]["annotations"] = {TRIES: "2"}
    assert "gave its nodes back; pool h100 has 16 GPUs too few" in said(tried, HOLDER)[0]


def test_a_job_that_a_person_deactivated_says_who_can_activate_it() -> None:
    stopped = waiting(condition("Evicted", "True", 5, reason="Deactivated"))
    stopped["spec"]["active"] = False
    [found] = said(stopped, HOLDER)
    assert "somebody has deactivated its Workload" in found
    assert "-n team-vision patch workload trainjob-vit-1 --type=merge -p" in found


def test_a_job_that_runs_has_ended_or_came_just_now_does_not_wait() -> None:
    ended = workload("done", "nlp", condition("Finished", "True", 5))
    assert said(HOLDER, ended, waiting(minutes=0.1)) == []


def test_a_job_that_no_worker_has_taken_says_where_to_look() -> None:
    handed = workload("vit", "vision", condition("QuotaReserved", "True", 20), gpus=8)
    for state, expected in (("Pending", 1), ("Ready", 0)):
        handed["status"]["admissionChecks"] = [{"name": "workers", "state": state}]
        found = [each for each in said(handed) if "for a worker with all its nodes free" in each]
        assert len(found) == expected, said(handed)


def test_urgency_is_named_where_another_job_of_the_team_waits_too() -> None:
    """A job that waited alone for another team's nodes was told to be urgent, which the team may not be."""
    lacks = waiting()["status"]["conditions"]
    rival = workload("late", "vision", *lacks, gpus=8)
    other = workload("late", "nlp", *lacks, gpus=8)
    assert "urgency: high puts it before others of its team" in said(waiting(), HOLDER, rival)[0]
    assert "urgency" not in said(waiting(), HOLDER, other)[0]


def when(*workloads: Object, jobs: tuple[Object, ...] = ()) -> str:
    """What the first of them is told of its start."""
    [found, *_] = said(*workloads, jobs=jobs)
    return found.splitlines()[-1].split("when they are free, ")[1].split("; urgency")[0]


def test_a_waiting_job_says_when_it_starts_at_the_latest() -> None:
    """Kueue started bert at 11:40 and a second job at 11:50; both have a limit, and the later end counts,
    whichever of them is first."""
    other = workload("gpt", "nlp", condition("QuotaReserved", "True", 10), gpus=8)
    limits = (
        job("bert", "team-nlp", activeDeadlineSeconds=3600),
        job("gpt", "team-nlp", activeDeadlineSeconds=1800),
    )
    for held in ((HOLDER, other), (other, HOLDER)):
        assert when(waiting(), *held, jobs=limits) == (
            "at 12:40:00 at the latest, when the time limit of TrainJob bert is over, if no other job"
            " comes first"
        )


def test_a_time_of_another_day_has_its_day() -> None:
    """The run holds its nodes for days yet, and the waiting one came the day before."""
    limits = (job("bert", "team-nlp", activeDeadlineSeconds=72 * 3600),)
    assert when(waiting(), HOLDER, jobs=limits).startswith("at 2026-11-25 11:40:00 at the latest")
    early = workload("bert", "nlp", condition("QuotaReserved", "True", 24 * 60), gpus=24)
    [found] = said(waiting(minutes=25 * 60), early)
    assert "in the queue of team vision since 2026-11-21 11:00:00 (90000 s)" in found
    assert "bert of team nlp has 24 since 2026-11-21 12:00:00" in found


def test_a_pytorchjob_has_its_time_limit_elsewhere() -> None:
    legacy = {**job("bert", "team-nlp"), "kind": "PyTorchJob"}
    legacy["spec"] = {"runPolicy": {"activeDeadlineSeconds": 3600}, "pytorchReplicaSpecs": {}}
    holder = workload("bert", "nlp", condition("QuotaReserved", "True", 20), gpus=24)
    holder["metadata"]["ownerReferences"][0]["kind"] = "PyTorchJob"
    objects = {"pytorchjobs": [legacy], "workloads": [waiting(), holder]}
    [found] = [
        str(each)
        for each in diagnose(Snapshot(objects=objects, taken_at=NOW))
        if "queue of team" in each.what
    ]
    assert "at 12:40:00 at the latest, when the time limit of PyTorchJob bert is over" in found


def test_no_time_is_promised_that_nobody_knows() -> None:
    endless = job("bert", "team-nlp")
    namesake = job("bert", "team-vision", activeDeadlineSeconds=60)
    for jobs in ((endless, namesake), (namesake,)):
        assert when(waiting(), HOLDER, jobs=jobs) == (
            "and no time is known: time_limit_minutes is not set for TrainJob bert"
        )
    assert "nobody can be seen who holds them" in when(waiting())


def test_jobs_that_wait_for_the_same_gpus_are_named_and_promise_no_time() -> None:
    limited = (job("bert", "team-nlp", activeDeadlineSeconds=3600),)
    reserved = condition("QuotaReserved", "False", 10, reason="Pending", message=LACKS)
    later = workload("later", "vision", reserved, minutes=10)
    assert "at 12:40:00 at the latest" in when(waiting(), later, HOLDER, jobs=limited)
    urgent = workload("urgent", "vision", reserved, minutes=10)
    urgent["spec"]["priority"] = 900
    foreign = workload("gpt", "nlp", reserved, minutes=10)
    elsewhere = workload("small", "nlp", {**reserved, "message": LACKS.replace("h100", "g6e")})
    assert when(waiting(), urgent, foreign, elsewhere, HOLDER, jobs=limited) == (
        "and no time is known: TrainJob urgent goes first, TrainJob gpt of team nlp waits for them, too"
    )


def test_a_smaller_job_of_the_team_can_pass_a_larger_one() -> None:
    """Kueue starts whatever fits (BestEffortFIFO): jobs of one node kept a gang of four waiting, which was promised a
    time."""
    limited = (job("bert", "team-nlp", activeDeadlineSeconds=3600),)
    small = condition("QuotaReserved", "False", 10, message=LACKS.replace("16 more", "8 more"))
    later = workload("later", "vision", small, minutes=10)
    assert when(waiting(), later, HOLDER, jobs=limited) == (
        "and no time is known: TrainJob later needs fewer and can pass it"
    )


def test_a_team_that_sees_its_own_jobs_only_is_told_so() -> None:
    """Others may hold the rest, so no time follows from the limits of its own."""
    own = workload("bert", "vision", condition("QuotaReserved", "True", 20), gpus=8)
    limited = (job("bert", "team-vision", activeDeadlineSeconds=3600),)
    [found] = said(waiting(), own, jobs=limited, unseen=frozenset({"nodes", "deployments"}))
    assert "TrainJob bert of team vision has 8 since 11:40:00; jobs of other teams are not" in found
    assert "when they are free, and no time is known: jobs of other teams are not shown" in found
