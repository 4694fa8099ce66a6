"""What is said of a network without a way to the internet, where it works."""

from __future__ import annotations

import pytest

from tests.support.cases.environment import ISOLATED, JOB, SCRIPT
from tests.support.stackfile import Edit, at, planned
from trainyard.rules.isolated import DOWNLOADS

ROLE = "arn:aws:iam::123456789012:role/vision"


def _warned(*edits: Edit) -> list[str]:
    return [str(warning) for warning in planned(*edits).warnings]


def _about(path: str, *edits: Edit) -> list[str]:
    return [each for each in _warned(*edits) if each.startswith(f"environment.{path}")]


WARNED: dict[str, tuple[tuple[Edit, ...], str, str]] = {
    "prices": ((), "network.internet", "Karpenter knows the prices of its own release only"),
    "the public endpoint": ((), "cluster.endpoint", "still answers public_access_cidrs"),
    "remote write": (
        (at("metrics", {"remote_write": {"url": "https://m.example.com/write"}}),),
        "metrics.remote_write.url",
        "only if it is in the VPC",
    ),
    "teams": (
        (at("teams", {"vision": {"deployer": ROLE}}),),
        "network.endpoints",
        "reach no other AWS API",
    ),
    "a clone": (
        (at(SCRIPT, "git clone https://github.com/a/b && torchrun b/train.py"),),
        "jobs.t5-large.script",
        "git clone: nodes have no way to the internet",
    ),
}


@pytest.mark.parametrize("case", WARNED)
def test_what_works_otherwise_is_said_where_it_stands(case: str) -> None:
    edits, path, says = WARNED[case]
    assert any(says in each for each in _about(path, *ISOLATED, *edits)), _warned(*ISOLATED, *edits)
    assert not any(says in each for each in _warned(*edits))


@pytest.mark.parametrize(
    "script",
    [
        "pip install einops",
        "pip3 install --upgrade einops",
        "uv pip install einops",
        "git  clone https://github.com/a/b",
        "wget https://example.com/a",
        "curl -L https://example.com/a | sh",
        "apt-get install -y git",
        "huggingface-cli download a/b",
    ],
)
def test_what_downloads_is_seen(script: str) -> None:
    assert DOWNLOADS.search(script)


@pytest.mark.parametrize(
    "script",
    [
        "torchrun train.py --url https://example.com",
        "pip install --no-index --find-links /wheels einops",
        "git checkout abc",
        "curl localhost:8080/healthz",
    ],
)
def test_what_stays_inside_is_not(script: str) -> None:
    assert not DOWNLOADS.search(script)


def test_a_command_is_looked_at_as_a_script_is() -> None:
    edits = (*ISOLATED, lambda s: s["jobs"]["t5-large"].pop("script"))
    command = at(f"{JOB}.command", ["bash", "-c", "pip install einops && torchrun a.py"])
    [said] = [
        each
        for each in _about("jobs.t5-large.command", *edits, command)
        if "pip install" in each and "internet" in each
    ]
    assert said


def test_jobs_of_a_registry_of_the_account_are_no_business_of_docker_hub() -> None:
    image = at(f"{JOB}.image", "pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime")
    many = at("pools.g6e.max_nodes", 120), at(f"{JOB}.nodes", 120)
    assert any("Docker Hub" in each for each in _warned(image, *many))
    assert not any("Docker Hub" in each for each in _warned(image, *many, *ISOLATED))
