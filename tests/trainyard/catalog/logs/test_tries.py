"""What `up` says of a gang that failed and begins again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trainyard.catalog.logs.cause import Cause, Watched
from trainyard.catalog.logs.tries import UNSEEN, Tries

NO_SPACE = "step 3\nOSError: [Errno 28] No space left on device\n"
CAUSE = "ended first, with exit code 1: OSError: [Errno 28] No space left on device (a file system is full)"


class World:
    """Answers of an API server, by resource, and how often it was asked."""

    def __init__(self, **objects: Any) -> None:
        self.objects: dict[str, Any] = objects
        self.asked = 0

    def ask(self, resource: str, fields: str) -> list[Any] | None:
        self.asked += 1
        return self.objects.get(resource.partition(".")[0], [])


def _job_set(restarts: int, counted: int | None = None) -> list[Any]:
    status: dict[str, Any] = {"restarts": restarts}
    if counted is not None:
        status["restartsCountTowardsMax"] = counted
    return [{"spec": {"failurePolicy": {"maxRestarts": 3}}, "status": status}]


def _pod(uid: str, made: str, *, ended: str = "", restarts: int = 0) -> dict[str, Any]:
    end = {"terminated": {"exitCode": 1, "finishedAt": f"2026-11-28T01:{ended}Z"}}
    field = "lastState" if restarts else "state"
    status = {"name": "node", "restartCount": restarts, **({field: end} if ended else {})}
    return {
        "metadata": {"name": uid, "uid": uid, "creationTimestamp": f"2026-11-28T01:{made}Z"},
        "spec": {"nodeName": "n1", "containers": [{"name": "node"}]},
        "status": {"phase": "Running", "containerStatuses": [status]},
    }


def _looked(
    tries: Tries, watched: Watched, pods: Sequence[Mapping[str, Any]], log: str = NO_SPACE
) -> list[str]:
    every = [dict(pod) for pod in pods]
    watched.look(every, lambda end: log)
    return tries.look(every, watched)


def test_a_gang_that_begins_again_is_said_with_the_rank_that_failed_and_the_number_of_the_try():
    world, watched = World(jobsets=_job_set(0)), Watched()
    tries = Tries("TrainJob", "training", "mine", world.ask)
    assert _looked(tries, watched, [_pod("a", "10:00")]) == []
    assert _looked(tries, watched, [_pod("a", "10:00", ended="10:30")]) == []
    world.objects["jobsets"] = _job_set(1, 1)
    said = _looked(tries, watched, [_pod("b", "10:33")])
    assert said[0] == (
        f"training/mine has failed and begins again, try 2 of 4: node rank 0 on n1 {CAUSE}"
    )
    assert said[1].startswith("    Fix: delete old checkpoints")
    assert _looked(tries, watched, [_pod("b", "10:33")]) == [], "once"


def test_the_reason_of_one_try_is_not_said_of_the_next_one():
    world, watched = World(jobsets=_job_set(0)), Watched()
    tries = Tries("TrainJob", "training", "mine", world.ask)
    _looked(tries, watched, [_pod("a", "10:00", ended="10:30")])
    world.objects["jobsets"] = _job_set(1, 1)
    # The old pods leave one after the other, and the failed one is the last to go.
    assert _looked(tries, watched, [_pod("a", "10:00", ended="10:30"), _pod("z", "10:00")])
    assert _looked(tries, watched, [_pod("a", "10:00", ended="10:30")]) == []
    assert _looked(tries, watched, [_pod("b", "10:33")]) == []
    world.objects["jobsets"] = _job_set(2, 2)
    assert _looked(tries, watched, [_pod("c", "10:50")]) == [
        f"training/mine has failed and begins again, try 3 of 4: {UNSEEN}"
    ]


def test_a_try_whose_pods_were_gone_is_said_by_what_they_wrote_and_no_more_often_than_once():
    wrote = [Cause("node rank 1 on n1 ended: ValueError", "correct it"), None]
    world, watched = World(jobsets=_job_set(0)), Watched()
    tries = Tries("TrainJob", "training", "mine", world.ask, lambda: wrote.pop(0))
    _looked(tries, watched, [_pod("a", "10:00")])
    world.objects["jobsets"] = _job_set(1, 1)
    assert _looked(tries, watched, [_pod("b", "10:33")]) == [
        "training/mine has failed and begins again, try 2 of 4: node rank 1 on n1 ended: ValueError",
        "    Fix: correct it",
        "    `trainyard stop mine` ends the tries that are left, and what they cost",
    ]
    assert tries.why and tries.why.do == "correct it"
    world.objects["jobsets"] = _job_set(2, 2)
    assert UNSEEN in _looked(tries, watched, [_pod("c", "10:50")])[0]


def test_a_restart_that_jobset_does_not_count_gives_one_more_try():
    tries = Tries("TrainJob", "training", "mine", World(jobsets=_job_set(2, 1)).ask)
    assert "try 3 of 5" in _looked(tries, Watched(), [_pod("b", "10:33")])[0]


def test_the_api_server_is_asked_when_the_pods_are_others_and_again_where_it_did_not_answer():
    world, watched = World(jobsets=None), Watched()
    tries = Tries("TrainJob", "training", "mine", world.ask)
    for _ in range(2):
        assert _looked(tries, watched, [_pod("b", "10:33")]) == []
    assert world.asked == 2
    world.objects["jobsets"] = _job_set(1, 1)
    assert _looked(tries, watched, [_pod("b", "10:33")])
    _looked(tries, watched, [_pod("b", "10:33")])
    assert world.asked == 3


def test_containers_of_a_pytorchjob_that_restart_in_their_pods_are_its_tries():
    job = {"metadata": {"uid": "1"}, "spec": {"runPolicy": {"backoffLimit": 5}}}
    world, watched = World(pytorchjobs=[job]), Watched()
    tries = Tries("PyTorchJob", "training", "mine", world.ask)
    assert _looked(tries, watched, [_pod("a", "10:00"), _pod("b", "10:00")]) == []
    first = [_pod("a", "10:00", ended="10:30", restarts=1), _pod("b", "10:00")]
    [said, *_] = _looked(tries, watched, first)
    assert said == (
        "training/mine has failed and begins again, try 2 (1 restart of containers; the job fails at 5):"
        f" node rank 0 on n1 {CAUSE}"
    )
    both = [first[0], _pod("b", "10:00", ended="10:33", restarts=1)]
    assert _looked(tries, watched, both) == [], "the other rank ended because of it"
    again = [_pod("a", "10:00", ended="10:50", restarts=2), both[1]]
    assert "try 3 (3 restarts" in _looked(tries, watched, again)[0]


def test_a_pod_that_the_training_operator_has_made_again_is_a_try_and_one_of_an_older_job_is_not():
    events = [{"count": 2, "involvedObject": {"uid": "old"}}]
    job = {"metadata": {"uid": "1"}, "spec": {}}
    world, watched = World(pytorchjobs=[job], events=events), Watched()
    tries = Tries("PyTorchJob", "training", "mine", world.ask)
    assert _looked(tries, watched, [_pod("a", "10:00", ended="10:30")]) == []
    events.append({"involvedObject": {"uid": "1"}})
    [said, *_] = _looked(tries, watched, [_pod("b", "10:33")])
    assert said == f"training/mine has failed and begins again, try 2: node rank 0 on n1 {CAUSE}"


def test_a_log_that_was_not_read_yet_brings_no_advice_about_logs() -> None:
    world, watched = World(jobsets=_job_set(0)), Watched()
    tries = Tries("TrainJob", "training", "mine", world.ask)
    _looked(tries, watched, [_pod("a", "10:00", ended="10:30")], log="")
    world.objects["jobsets"] = _job_set(1, 1)
    [said] = _looked(tries, watched, [_pod("b", "10:33")], log="")
    assert "begins again, try 2 of 4" in said and "no log tells why" in said
