"""The acceptance job is an entry like any other, and its promise is the plan's."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest

from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, environment_plan, planned, reading, without
from trainyard.derive.acceptance import (
    SCRIPT,
    acceptance_entry,
    is_acceptance,
    measured_stores,
    promise,
)
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig

REGION = "ap-northeast-2"
IMAGE = "registry.example.com/torch:1"
S3 = at("storage.results", {"s3": {"bucket": "a-bucket"}})
CPU = at("pools.cpu", {"instance_types": ["m7i.4xlarge"], "max_nodes": 4})


def _environment(*edits: Edit) -> EnvironmentConfig:
    config = reading(*edits).config
    assert config and config.environment
    return config.environment


def _entry(pool: str, *edits: Edit) -> dict[str, Any]:
    return acceptance_entry(
        _environment(*edits), pool=pool, nodes=2, image=IMAGE, runtime="torch-distributed"
    )


def _job(pool: str, *edits: Edit) -> JobConfig:
    return pydantic.TypeAdapter(JobConfig).validate_python(_entry(pool, *edits))


@pytest.mark.parametrize(("pool", "edits"), [("g6e", ()), ("h100", (S3,)), ("cpu", (CPU,))])
def test_the_entry_is_accepted_as_it_is(pool: str, edits: tuple[Edit, ...]) -> None:
    found = planned(*edits, at("jobs.accept", _entry(pool, *edits)), without("jobs.t5-large"))
    assert found.errors == () and found.plan
    said = [text for one in found.warnings if ".jobs." in (text := str(one))]
    assert not [text for text in said if not ("a tag can change" in text or "GPUDirect" in text)]


def test_the_pods_run_the_script_with_the_stores_and_a_folder_of_the_run() -> None:
    plan = environment_plan(at("jobs.accept", _entry("h100")))
    job = plan.jobs["accept"]
    assert job.files and [*job.files.data] == ["measure.py"]
    assert job.checkpoints == "scratch/accept-h100/1"
    command = job.spec["trainer"]["command"]
    assert command[-3:] == [
        "/workspace/measure.py",
        "--store=scratch=/stores/scratch",
        "--store=home=/stores/home",
    ]
    assert "--max_restarts=3" in command and (CHECKOUT / SCRIPT).is_file()
    variables = {each["name"]: each["value"] for each in job.spec["trainer"]["env"]}
    assert variables["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] == "1", "or restarted ranks never meet"
    resources = job.spec["trainer"]["resourcesPerNode"]["limits"]
    assert resources["vpc.amazonaws.com/efa"] == "32"


def test_a_node_without_gpus_has_one_rank() -> None:
    assert _entry("cpu", CPU)["processes_per_node"] == 1
    assert "processes_per_node" not in _entry("g6e")


def test_only_stores_whose_files_can_be_written_are_measured() -> None:
    assert measured_stores(_environment(S3)) == ["scratch", "home"]


@pytest.mark.parametrize(
    ("team", "stores"),
    [
        (None, ["scratch", "home"]),
        ("seen", ["home"]),
        ("all", ["home"]),
        ("unlisted", ["scratch", "home"]),
    ],
)
def test_a_team_measures_the_stores_that_it_can_write_to(
    team: str | None, stores: list[str]
) -> None:
    role = "arn:aws:iam::123456789012:role/someone"
    teams = {"seen": {"deployer": role, "stores": ["home"]}, "all": {"deployer": role}}
    environment = _environment(at("storage.scratch.teams", "read_only"), at("teams", teams))
    assert measured_stores(environment, team) == stores
    narrow = _environment(at("teams", {"seen": {"deployer": role, "stores": ["home"]}}))
    assert measured_stores(narrow, "seen") == ["home"]


def test_an_acceptance_job_is_known_by_its_script() -> None:
    mine = _environment().jobs["t5-large"]
    assert isinstance(mine, JobConfig) and not is_acceptance(mine)
    assert is_acceptance(_job("g6e"))


def test_the_promise_is_what_the_plan_gives_the_pods() -> None:
    found = promise(_job("h100"), _environment(), REGION)
    assert (found.instance_type, found.nodes, found.gpus, found.efa) == ("p5.48xlarge", 2, 8, 32)
    # 4800 GiB at 500 MB/s per TiB; two nodes over TCP would reach more.
    assert found.stores["scratch"].write == pytest.approx(4800 / 1024 * 500e6)
    # Two clients; the file system would take more.
    assert found.stores["home"].read == pytest.approx(2 * 1500 * 2**20)
    assert found.stores["home"].write == pytest.approx(2 * 1500 * 2**20)


def test_nodes_without_devices_are_promised_none() -> None:
    found = promise(_job("cpu", CPU), _environment(CPU), REGION)
    assert (found.gpus, found.efa) == (0, 0)
