"""What `make plan` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stacks.plan import plan_stack
from stacks.reports import plan
from stacks.settings.reader import read
from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, environment_plan, team_plan, values


def test_a_person_reads_capacity_jobs_minutes_money_and_what_to_do_next(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan.main(["dev"]) == 0
    text = capsys.readouterr().out
    assert [part.split()[0].rstrip(":") for part in text.split("\n\n")] == [
        "dev",
        "capacity",
        "storage",
        "jobs",
        "time",
        "money",
        "next",
    ]
    for said in (
        "made for them: Kueue 0.16.1, SDK kubeflow 0.3.1",
        "g6e.48xlarge  on demand  0 to 4",
        "L-DB2E81BA: 768 vCPUs for g6e",
        "8 vCPUs for system nodes",
        "5 of 7 lines have a dated price of this region",
        "74.0894",
        "minutes to the first step of t5-large",
        "no price",
        "t5-large, nodes: 2",
        "make preview STACK=dev",
    ):
        assert said in text
    assert max(map(len, text.splitlines())) <= 120


def test_a_team_sees_its_jobs_only() -> None:
    text = plan.text(team_plan())
    assert (
        "capacity" not in text
        and "money: jobs only" in text
        and "namespace team-vision on dev" in text
    )


def test_a_file_system_is_shown_with_the_buckets_it_is_linked_to() -> None:
    links = {
        "sets": {"s3": "s3://sets/images/", "path": "/images"},
        "out": {
            "s3": "s3://out",
            "path": "/out",
            "auto_import": [],
            "auto_export": ["NEW", "CHANGED"],
        },
    }
    text = plan.text(environment_plan(at("storage.scratch.lustre.repositories", links)))
    assert (
        "  scratch /images shows s3://sets/images/: imports what is new, changed, deleted, exports"
        " nothing by itself\n  scratch /out shows s3://out: imports nothing by itself, exports what"
        " is new, changed\n" in text
    )


def test_a_program_reads_the_same_in_a_stable_order_and_money_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert plan.main(["dev", "--json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["plan"]["pools"]["g6e"]["max_nodes"] == 4
    assert text == plan.as_json(plan.data(environment_plan())) + "\n"
    priced = json.loads(plan.as_json(plan.data(_large(1, 1))))["money"]["work"][0]
    assert priced["what"] == "2 x p5.48xlarge in p0" and priced["usd_per_hour"] == "110.080000"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_refused_stack_names_its_errors(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = read(values(at("pools.g6e.max_nodes", 1)), stack="dev", project="trainyard")
    monkeypatch.setattr(plan, "read_file", lambda stack: refused)
    assert plan.main(["dev", *options]) == 1
    assert "environment.jobs.t5-large.nodes" in capsys.readouterr().out


def test_the_picture_in_the_documents_is_of_the_checkouts_stack() -> None:
    """Regenerate as its last line says."""
    assert (CHECKOUT / "docs" / "critical-path.md").read_text() == plan.picture(
        environment_plan()
    ) + "\n"


def _large(pools: int, jobs: int) -> Any:
    """A stack where prices are known."""
    job = {"runtime": "torch-distributed", "nodes": 2, "image": "image:1", "command": ["true"]}
    found = values(
        at("zone", "us-east-1a"),
        at(
            "pools",
            {f"p{i}": {"instance_types": ["p5.48xlarge"], "max_nodes": 4} for i in range(pools)},
        ),
        at("jobs", {f"j{i}": {**job, "pool": f"p{i % pools}"} for i in range(jobs)}),
    )
    return plan_stack(
        read({**found, "aws:region": "us-east-1"}, stack="dev", project="trainyard")
    ).accepted()
