"""The run and the rank of a node follow from the name of its pod."""

from __future__ import annotations

import re

import pytest

from trainyard.objects.metrics.metrics import POD_NAMES


@pytest.mark.parametrize(
    ("pod", "run", "rank"),
    [
        ("t5-large-node-0-3-x7k2p", "t5-large", "node-3"),
        ("qwen-launcher-0-0-abcde", "qwen", "launcher-0"),
        ("bert-master-0", "bert", "master-0"),
        ("bert-worker-12", "bert", "worker-12"),
        ("resnet-chief-0", "resnet", "chief-0"),
        ("resnet-ps-1", "resnet", "ps-1"),
        ("my-worker-0-worker-1", "my-worker-0", "worker-1"),
    ],
)
def test_each_kind_of_job_has_its_run_and_its_rank(pod: str, run: str, rank: str) -> None:
    [(match, (of_run, of_rank))] = [
        (found, labels) for name, labels in POD_NAMES.items() if (found := re.fullmatch(name, pod))
    ]
    told = [match.expand(each.replace("$", "\\")) for each in (of_run, of_rank)]
    assert told == [run, rank]


@pytest.mark.parametrize("pod", ["coredns-5d78c9869d-x7k2p", "aws-node-x7k2p", "pi-launcher"])
def test_other_pods_have_none(pod: str) -> None:
    assert not any(re.fullmatch(name, pod) for name in POD_NAMES)
