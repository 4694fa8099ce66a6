"""People are told once what becomes of runs: by the program of `environment.told` in a world, through the
topic of the stack."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import processes
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.objects.programs.told import APP

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

PATIENCE = 300
SQS = 'aws sqs --endpoint-url "$AWS_ENDPOINT_URL"'
"""Version 1 of the AWS CLI does not read the variable for this service alone."""
WORDS = "the disk of rank 1 is full"
TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3sT5vW7yZ"
FAILS = f"""\
if test "$JOB_COMPLETION_INDEX" = 1; then
  sleep 5
  echo 'logging in with {TOKEN[:6]}''{TOKEN[6:]}'
  echo '{WORDS}'
  exit 3
fi
sleep 900
"""


def small(script: str, wait: str, **more: Any) -> Object:
    """A job on one GPU of each of its nodes."""
    return {
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "script": script,
        "wait": wait,
        "wait_minutes": 15,
        **more,
    }


JOBS = {
    "good": small("echo first", "complete", runtime="once"),
    "bad": small(FAILS, "none", runtime="once", nodes=2),
    "long": small("sleep 900", "running", runtime="once"),
    "legacy": small("echo first", "complete", pytorch_job={"clean_pods": "all"}),
}
STACK = with_l4(
    max_nodes=3,
    trainer={
        "version": "2.1.0",
        "runtimes": ["torch-distributed"],
        "own_runtimes": {"once": {"image": "trainer:1", "max_restarts": 0}},
    },
    training_operator={"version": "1.8.1"},
    told={"emails": ["gpu-oncall@example.com"]},
)


class Reader:
    """A queue that subscribes to the topic."""

    def __init__(self, harness: Harness) -> None:
        self.harness = harness
        [topic] = json.loads(harness.shell("aws sns list-topics"))["Topics"]
        made = json.loads(harness.shell(f"{SQS} create-queue --queue-name reader"))
        self.queue = made["QueueUrl"]
        asked = f"{SQS} get-queue-attributes --queue-url {self.queue} --attribute-names QueueArn"
        arn = json.loads(harness.shell(asked))["Attributes"]["QueueArn"]
        subscribe = f"aws sns subscribe --topic-arn {topic['TopicArn']} --protocol sqs"
        harness.shell(f"{subscribe} --notification-endpoint {arn}")
        self.read: dict[str, Object] = {}
        """By SNS's id of the message: a queue may give a message twice."""

    def subjects(self) -> list[str]:
        most = "--max-number-of-messages 10"
        said = self.harness.shell(f"{SQS} receive-message --queue-url {self.queue} {most}").strip()
        for one in json.loads(said or "{}").get("Messages", ()):
            message = json.loads(one["Body"])
            self.read[message["MessageId"]] = message
        return sorted(each["Subject"] for each in self.read.values())

    def about(self, job: str) -> str:
        [found] = [m["Message"] for m in self.read.values() if f"/{job} " in m["Subject"]]
        return found


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with rehearsing("told", {"Pulumi.told.yaml": yaml.safe_dump({"config": STACK})}) as made:
        assert made.do("up", "--stack", "told") == 0, made.log.read_text()
        found = Reader(made)
        environment = STACK["trainyard:environment"] | {"jobs": JOBS}
        config = {"config": STACK | {"trainyard:environment": environment}}
        (made.checkout / "Pulumi.told.yaml").write_text(yaml.safe_dump(config))
        made.do("up", "--stack", "told", "--wait", "5")  # one job fails, and one goes on
        yield found


ENDED = [
    "told: training/bad failed",
    "told: training/good is complete",
    "told: training/legacy is complete",
]
GONE = "told: training/long was deleted before it ended"


def _log(reader: Reader) -> str:
    return reader.harness.shell(f"kubectl logs -n {APP} deployment/{APP}", check=False)


def test_each_end_of_a_run_is_told_once_with_the_words_of_the_rank_that_failed(
    reader: Reader,
) -> None:
    assert processes.wait(lambda: len(reader.subjects()) >= 3, PATIENCE), _log(reader)
    assert reader.subjects() == ENDED
    text = reader.about("bad")
    assert "Node rank 1 ended first, with exit code 3" in text and f"    {WORDS}" in text, text
    assert TOKEN not in text and "hidden-secret" in text
    pods = reader.harness.get(
        "pods -n training -l jobset.sigs.k8s.io/jobset-name=bad,"
        "batch.kubernetes.io/job-completion-index=1"
    )["items"]
    assert all(f"on node {pod['spec']['nodeName']}" in text for pod in pods)
    assert "GPU-hours" in text and " USD, at the prices of " in text
    assert "trainyard again bad --stack told" in text
    assert "PyTorchJob legacy" in reader.about("legacy")


def test_nothing_is_told_again_by_the_pod_that_comes_after_one_that_was_killed(
    reader: Reader,
) -> None:
    harness = reader.harness
    selector = f"--namespace {APP} --selector {LABEL}={APP}"
    before = harness.get(f"pods {selector}")["items"]
    harness.shell(f"kubectl delete pods {selector} --grace-period=0 --force")
    harness.shell(f"kubectl rollout status deployment/{APP} -n {APP} --timeout=120s")
    after = harness.get(f"pods {selector}")["items"]
    assert before[0]["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in after}
    time.sleep(75)  # a claim that was left would be taken over by now
    assert reader.subjects() == ENDED, _log(reader)


def test_a_job_that_somebody_deletes_is_told_once(reader: Reader) -> None:
    reader.harness.shell("kubectl delete trainjob long --namespace training")
    assert processes.wait(lambda: GONE in reader.subjects(), PATIENCE), _log(reader)
    time.sleep(15)
    assert reader.subjects() == sorted([*ENDED, GONE])
    assert "pulumi up --stack told" in reader.about("long")


def test_the_program_and_its_topic_go_and_leave_nothing(reader: Reader) -> None:
    harness = reader.harness
    environment = dict(STACK["trainyard:environment"])
    del environment["told"]
    config = {"config": STACK | {"trainyard:environment": environment}}
    (harness.checkout / "Pulumi.told.yaml").write_text(yaml.safe_dump(config))
    assert harness.do("up", "--stack", "told") == 0, harness.log.read_text()
    assert APP not in harness.shell("kubectl get namespaces --output name")
    assert json.loads(harness.shell("aws sns list-topics"))["Topics"] == []
