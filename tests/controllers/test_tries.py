"""What `up` says of a gang that begins again, with the Trainer and JobSet of each release at a real API server."""

from __future__ import annotations

from development.causes import Causes, Run, pods_of
from rehearsal.kube import Object
from tests.support.cases.trainer import JOB, train_job
from tests.support.patience import until
from tests.support.trainer_server import TrainerServer, runtimes
from trainyard.objects.jobs.trainer import pod_jobs, train_job_spec

ENDED = {"exitCode": 1, "reason": "Error", "finishedAt": "2126-11-28T01:00:00Z"}
PATCH = "application/merge-patch+json"


def _fail(trainer: TrainerServer, pod: Object) -> None:
    """As the kubelet does, of which there is none."""
    container = pod["spec"]["containers"][0]["name"]
    status = {
        "name": container,
        "image": "trainer:1",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": ENDED},
    }
    path = f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}/status"
    change = {"status": {"phase": "Failed", "containerStatuses": [status]}}
    trainer.api.request("PATCH", path, change, content_type=PATCH)


def test_a_gang_that_jobset_starts_anew_is_said_with_its_rank_and_the_tries_that_its_runtime_has(
    trainer: TrainerServer,
) -> None:
    jobs = pod_jobs(runtimes(trainer.release)["own-torch"][1])
    made = train_job("again", train_job_spec(trainer.release, "own-torch", JOB, jobs=jobs))
    trainer.create(made | {"metadata": made["metadata"] | {"namespace": "default"}})
    run = Run(entry="again", kind="TrainJob", namespace="default", name="again")
    causes, said = Causes(trainer.api), list[str]()
    first, second = trainer.pods("again", 2)
    assert causes.look({run: pods_of(trainer.api, run)}, []) == []
    _fail(trainer, second)

    def looked() -> bool:
        said.extend(causes.look({run: pods_of(trainer.api, run)}, []))
        return bool(said)

    assert until(looked)
    tries = runtimes(trainer.release)["own-torch"][1]["template"]["spec"]["failurePolicy"]
    assert f"has failed and begins again, try 2 of {tries['maxRestarts'] + 1}: " in said[0]
    # JobSet can be faster than a look: then nothing is said of a rank.
    ended = "node rank 1 ended first, with exit code 1"
    assert ended in said[0] or "its pods were gone" in said[0]
    assert until(lambda: len({*_uids(trainer, run)} - {*map(_uid, (first, second))}) == 2)


def _uids(trainer: TrainerServer, run: Run) -> list[str]:
    return [_uid(pod) for pod in pods_of(trainer.api, run)]


def _uid(pod: Object) -> str:
    return pod["metadata"]["uid"]
