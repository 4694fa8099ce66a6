"""What ranks have printed about checkpoints, read with two calls for each job."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.trainyard.operations.finished import cluster, pod, train_job
from trainyard.operations.runs.rank_lines import Printed, printed

UID = "uid-of-training-t5"
HEAD = "2026-11-21T12:06:00Z hello\n2026-11-21T12:06:01Z resumed from step-00000012.pt\n"
TAIL = (
    "2026-11-21T12:20:00Z saved step-00000016.pt\n"
    "2026-11-21T12:30:00.5Z saved step-00000020.pt\n"
    "2026-11-21T12:31:00Z step 21 loss 0.2\n"
)


def test_the_head_says_what_it_resumed_from_and_the_tail_what_it_saved_last() -> None:
    calls: list[tuple[str, ...]] = []

    def kubectl(*arguments: str) -> str:
        calls.append(arguments)
        return HEAD if any("--limit-bytes" in each for each in arguments) else TAIL

    pods = [pod(1), pod(0)]
    for number, each in zip((1, 0), pods, strict=True):
        each["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"] = str(number)
    said = printed(kubectl, cluster(pods=pods))
    assert said == {
        UID: Printed(
            resumed_from="step-00000012.pt",
            saved="step-00000020.pt",
            saved_at=datetime(2026, 11, 21, 12, 30, 0, 500000, tzinfo=UTC),
        )
    }
    assert {call[1] for call in calls} == {"t5-node-0-0-x7k2p"} and len(calls) == 2


def test_a_pod_without_a_log_and_a_job_without_pods_say_nothing() -> None:
    def kubectl(*arguments: str) -> str:
        raise RuntimeError("container is waiting to start")

    jobs = [train_job(), train_job("gone")]
    assert printed(kubectl, cluster(trainjobs=jobs)) == {UID: Printed()}
