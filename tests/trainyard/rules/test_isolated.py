"""What is said of a network without a way to the internet, where it works."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.cases.environment import ISOLATED, JOB, ODCR, SCRIPT
from tests.support.stackfile import Edit, at, environment, planned
from trainyard.rules.isolated import DOWNLOADS, isolation_errors, isolation_warnings

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


G7, P5E = ({"instance_types": [one], "max_nodes": 2} for one in ("g7.48xlarge", "p5e.48xlarge"))
BOTH = {"instance_types": ["g7.48xlarge", "g6.48xlarge"], "max_nodes": 2}
NEWER = at("karpenter.version", "1.15.2")


def _unpriced(pool: dict[str, Any], *edits: Edit) -> list[str]:
    """Errors about a network without the internet, in a region that sells what it sells."""
    wanted = environment(at("pools.new", pool), *edits)
    return [*map(str, isolation_errors("ap-northeast-2", wanted))]


def test_a_type_without_a_price_is_refused_where_karpenter_cannot_ask() -> None:
    [g7], [p5e] = _unpriced(G7, *ISOLATED), _unpriced(P5E, *ISOLATED, NEWER)
    assert "Fix: write karpenter.version: 1.15.2; or write capacity: spot" in g7
    assert "Karpenter 1.15.2 has a price" in p5e and "Fix: write capacity: spot" in p5e
    [kept] = _unpriced({**P5E, "replicas": 1}, *ISOLATED)
    assert "Fix: name a reservation" in kept


@pytest.mark.parametrize(
    ("pool", "edits"),
    [
        (G7, ()),
        (G7, (*ISOLATED, NEWER)),
        ({**G7, "capacity": "spot"}, ISOLATED),
        ({**P5E, "max_nodes": 1, "capacity": "reservation", "reservation": ODCR}, ISOLATED),
        (BOTH, ISOLATED),
    ],
    ids=["internet", "newer", "spot", "reservation", "one of two"],
)
def test_a_pool_that_gets_nodes_is_not(pool: dict[str, Any], edits: Sequence[Edit]) -> None:
    assert _unpriced(pool, *edits) == []


def test_a_type_of_several_that_has_no_price_is_a_warning() -> None:
    wanted = environment(at("pools.new", BOTH), *ISOLATED)
    said = [str(one) for one in isolation_warnings(wanted) if "pools.new" in one.path]
    assert said == [
        "environment.pools.new.instance_types: Karpenter 1.14.1 has no price of g7.48xlarge, and with internet: none"
        " it learns none: it launches the other types only"
    ]


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
