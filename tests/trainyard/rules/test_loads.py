"""Loads that are refused, each with what to write instead, and those that are not."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, team_plan, without
from trainyard.problems import Refused

JOB = "jobs.t5-large"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
CPU = {"instance_types": ["m7i.4xlarge"], "max_nodes": 1}
HUB = {"repository": "Qwen/Qwen3-8B", "revision": COMMIT}
LOAD: dict[str, Any] = {"from_huggingface": HUB, "store": "scratch", "directory": "models/q"}
ALSO_CPU = at("pools.cpu", CPU)
MOUNTED = at(f"{JOB}.storage", {"scratch": {"path": "/scratch"}, "home": {"path": "/home"}})


def weights(**changes: Any) -> list[Edit]:
    """The dev file with one load, some of whose settings are others; None: they are left out."""
    load = {name: value for name, value in {**LOAD, **changes}.items() if value is not None}
    return [ALSO_CPU, MOUNTED, at(f"{JOB}.weights", {"q": load})]


def hub(**changes: Any) -> list[Edit]:
    return weights(from_huggingface=HUB | changes)


def _second_job(**load: Any) -> Edit:
    """Another job that loads, too."""

    def edit(settings: dict[str, Any]) -> None:
        jobs = settings["jobs"]
        other = {**jobs["t5-large"], "weights": {"own": {**LOAD, **load}}}
        jobs["other"] = {**other, "checkpoints": {"store": "scratch", "directory": "other"}}

    return edit


REFUSED: dict[str, tuple[list[Edit], str, str]] = {
    "no source": (weights(from_huggingface=None), "weights.q", "got none. Fix: write from_s3"),
    "two sources": (
        weights(from_s3={"address": "s3://sets/a/"}),
        "weights.q",
        "got from_huggingface and from_s3",
    ),
    "a branch": (
        hub(revision="main"),
        "weights.q.from_huggingface.revision",
        "https://huggingface.co/Qwen/Qwen3-8B/commits/main",
    ),
    "a store that the job does not mount": (
        [*weights(), at(f"{JOB}.storage", {"home": {"path": "/home"}})],
        "weights.q.store",
        "got scratch. Fix: add storage: {scratch: {path: /scratch}} to the job",
    ),
    "a store that nobody has": (
        weights(store="nowhere"),
        "weights.q.store",
        "be a store of the environment",
    ),
    "a store that renames nothing": (
        [
            *weights(store="sets"),
            at("storage.sets", {"s3": {"writable": True}}),
            at(f"{JOB}.storage.sets", {"path": "/sets"}),
        ],
        "weights.q.store",
        "files can be renamed",
    ),
    "a directory that leaves its store": (
        weights(directory="a/../../b"),
        "weights.q.directory",
        "be a path from the root of its store",
    ),
    "no pool without GPUs": (
        [*weights(), without("pools.cpu")],
        "weights.q.pool",
        "and the environment has none; got nothing. Fix: add environment.pools.cpu",
    ),
    "two pools without GPUs": (
        [*weights(), at("pools.more", CPU)],
        "weights.q.pool",
        "got nothing. Fix: write one of cpu, more",
    ),
    "a pool with GPUs": (weights(pool="g6e"), "weights.q.pool", "whose idle time"),
    "an unknown pool": (weights(pool="nope"), "weights.q.pool", "be a pool of the environment"),
    "a bucket of another region": (
        weights(from_huggingface=None, from_s3={"address": "s3://sets/a/", "region": "us-east-1"}),
        "weights.q.from_s3.region",
        "be ap-northeast-2, the region of the stack",
    ),
    "a directory inside its own target": (
        weights(from_huggingface=None, from_store={"store": "scratch", "directory": "models"}),
        "weights.q.from_store.directory",
        "be apart from models/q",
    ),
    "an unknown store as the source": (
        weights(from_huggingface=None, from_store={"store": "nope", "directory": "a"}),
        "weights.q.from_store.store",
        "be a store of the environment",
    ),
    "a source outside its store": (
        weights(from_huggingface=None, from_store={"store": "home", "directory": "../a"}),
        "weights.q.from_store.directory",
        "be a path from the root of its store",
    ),
    "two sources in one place": (
        [*weights(), at(f"{JOB}.data", {"d": {**LOAD, "from_huggingface": HUB}})],
        "weights.q.directory",
        "t5-large.data.d loads into models/q",
    ),
    "a place inside another": (
        [*weights(), _second_job(directory="models/q/inside")],
        "jobs.other.weights.own.directory",
        "t5-large.weights.q loads into models/q",
    ),
    "another commit in the same place": (
        [*weights(), _second_job(from_huggingface=HUB | {"revision": "f" * 40})],
        "jobs.other.weights.own.directory",
        "be a directory of one source alone",
    ),
    "the directory of checkpoints": (
        weights(directory="t5-large/base"),
        "weights.q.directory",
        "t5-large.checkpoints writes to t5-large",
    ),
    "Hugging Face without a way to the internet": (
        [
            *weights(),
            at("network.internet", "none"),
            at("network.endpoints", "private"),
            at("artifacts.images", "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"),
        ],
        "weights.q.from_huggingface.endpoint",
        "be a server inside the VPC",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_is_refused_with_what_to_write(case: str) -> None:
    edits, path, words = REFUSED[case]
    with pytest.raises(Refused) as refused:
        environment_plan(*edits)
    said = [str(each) for each in refused.value.errors]
    place = path if path.startswith("jobs.") else f"{JOB}.{path}"
    assert [
        each for each in said if each.startswith(f"environment.{place} ") and words in each
    ] or [each for each in said if each.startswith(f"environment.{place}:") and words in each], said
    assert all(" Fix: " in each for each in said)


@pytest.mark.parametrize(
    "load",
    [
        {},
        {"pool": "cpu"},
        {"only": ["*.safetensors", "*.json"]},
        {"check": {"files": 5, "bytes": 7, "sha256": "a" * 64}},
        {"from_huggingface": None, "from_s3": {"address": "s3://sets/"}},
        {"from_huggingface": None, "from_store": {"store": "home", "directory": "models/q"}},
        {"from_huggingface": HUB | {"token": {"secrets_manager": "shared/hf"}}},
    ],
)
def test_it_is_not_refused(load: dict[str, Any]) -> None:
    assert len(environment_plan(*weights(**load)).jobs["t5-large"].loads) == 1


def test_jobs_that_name_the_same_share_it() -> None:
    plan = environment_plan(*weights(), _second_job())
    [one], [other] = (plan.jobs[name].loads for name in ("t5-large", "other"))
    assert one == other


@pytest.mark.parametrize("setting", ["data", "weights"])
def test_a_team_cannot_load(setting: str) -> None:
    edits = (at(f"jobs.{_team_job()}.{setting}", {"q": LOAD}),)
    with pytest.raises(Refused, match=f"{setting}: must not be set by a team"):
        team_plan(*edits)


def _team_job() -> str:
    return next(iter(team_plan().jobs))


def warned(*edits: Edit) -> list[str]:
    return [str(each) for each in planned(*edits).warnings if "FP8" in str(each)]


def test_weights_in_fp8_are_named_with_what_happens() -> None:
    [text] = warned(*hub(repository="Qwen/Qwen3-30B-A3B-Thinking-2507-FP8"))
    assert "weights.q.from_huggingface.repository" in text
    assert "transformers' Trainer ends with" in text and "dequantize=True" in text
    assert warned(*hub(repository="Qwen/Qwen3-8B")) == []


def test_a_script_that_trains_fp8_is_named_too() -> None:
    """Input e, in the words of an entry."""
    line = (
        "torchrun train.py --model_name Qwen/Qwen3-30B-A3B-Thinking-2507{}"
        " --per_device_train_batch_size 1 --bf16 True --fsdp full_shard"
    )
    [text] = warned(at(f"{JOB}.script", line.format("-FP8")))
    assert text.startswith(f"environment.{JOB}")
    assert "Qwen/Qwen3-30B-A3B-Thinking-2507-FP8 has weights in FP8" in text
    assert warned(at(f"{JOB}.script", line.format(""))) == []
    [stated] = warned(at(f"{JOB}.model", {"name": "Qwen/Qwen3-8B-FP8"}))
    assert stated.startswith(f"environment.{JOB}.model.name")
