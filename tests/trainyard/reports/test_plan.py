"""What `trainyard plan` prints."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any

import pytest

from tests.support.cases.jobs import pytorch_job
from tests.support.recording import CHECKOUT
from tests.support.stackfile import (
    ENVIRONMENT,
    Edit,
    at,
    environment_plan,
    team_plan,
    values,
)
from tests.support.tool import run_word
from trainyard.decide import plan_stack
from trainyard.parts.parts import PARTS
from trainyard.reports import plan, stack_file
from trainyard.reports.costs import cost
from trainyard.reports.minutes.timeline import schedule
from trainyard.settings.reading.reader import read

G6E = {"instance_types": ["g6e.48xlarge"], "max_nodes": 4}


def test_a_person_reads_capacity_jobs_minutes_and_money(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_word("plan", ["dev"]) == 0
    text = capsys.readouterr().out
    assert [part.split()[0].rstrip(":") for part in text.split("\n\n")] == [
        "dev",
        "summary",
        "capacity",
        "storage",
        "versions",
        "jobs",
        "time",
        "money",
    ]
    for said in (
        "matching releases: Kueue 0.16.9, SDK kubeflow 0.3.1",
        "g6e.48xlarge  on demand  0 to 4",
        "L-DB2E81BA Running On-Demand G and VT instances  768    g6e",
        "L-1216C47A Running On-Demand Standard instances  32     system nodes and 1 more",
        "usd a month idle                  between 1,959.43 and 3,653.73 with guessed prices; without",
        "older than 180 days",
        "prices missing                    Lustre scratch, PERSISTENT_2-500; disks of",
        "74.0894",
        "while all pools are full, in addition\n    4 x g6e.48xlarge in g6e  ",
        "4  37.04468  148.1787",
        "2 x p5.48xlarge in h100                       2   75.9552  151.9104",
        "time: 16.2 min to the first step of t5-large, one in ten 20.0 (2,000 draws)",
        "first node: 2 logs of g6, none of g6e",
        "no price",
    ):
        assert said in text
    assert max(map(len, text.splitlines())) <= 100


def test_every_job_has_the_minutes_to_its_first_step() -> None:
    alone = plan.text(environment_plan())
    assert "first steps of other jobs" not in alone
    job = values()[ENVIRONMENT]["jobs"]["t5-large"]
    mine = job | {"pool": "h100", "checkpoints": job["checkpoints"] | {"directory": "mine"}}
    two = environment_plan(at("jobs.mine", mine))
    first = schedule(two)
    assert first.first_steps.keys() == {"t5-large", "mine"}
    assert first.first_steps[first.job or ""] == first.seconds == min(first.first_steps.values())
    (other,) = first.first_steps.keys() - {first.job}
    assert f"{other} {first.first_steps[other] / 60:.1f} min" in plan.text(two)
    assert json.loads(plan.as_json(plan.data(two)))["time"]["first_steps"].keys() == {
        "mine",
        "t5-large",
    }


def test_a_team_sees_its_jobs_only() -> None:
    text = plan.text(team_plan())
    assert (
        "capacity" not in text
        and "money: jobs only" in text
        and "namespace team-vision on dev" in text
    )


def test_a_team_reads_what_its_jobs_cost_and_no_zeros_for_what_the_environment_pays() -> None:
    figures = plan.summary(team_plan())
    assert figures["usd_per_hour_at_work"] == "at least 37.0447, oldest price 2026-01-22"
    assert not figures.keys() & {
        "usd_a_month_idle",
        "usd_a_month_all_pools_full",
        "quota_vcpus",
    }
    money = json.loads(plan.as_json(plan.data(team_plan())))["money"]
    assert money.keys() == {"at_work", "jobs"}
    assert money["at_work"]["usd_per_hour"] == money["jobs"][0]["at_least_usd_per_hour"]


def test_the_row_of_a_job_says_what_each_pod_requests_of_its_node() -> None:
    def row(*edits: Edit) -> str:
        return " ".join(plan.jobs(environment_plan(*edits))[2].split())

    whole = "t5-large g6e 2 8 GPUs, 4 EFA devices, 171 CPUs, 1272Gi memory 2 scratch/t5-large"
    assert row() == row(*pytorch_job()) == whole
    part = at("jobs.t5-large.cpus_per_node", 85), at("jobs.t5-large.memory_gib", 100)
    assert "8 GPUs, 4 EFA devices, 85 CPUs, 100Gi memory" in row(*part)


def test_a_job_whose_runtime_says_its_resources_has_none_in_its_row() -> None:
    assert plan.requested({"trainer": {"numNodes": 2}}) == "what its runtime says"


def test_a_team_runs_at_once_what_its_quota_of_gpus_allows() -> None:
    """16 GPUs are two nodes of 8, though the pool has four; with 8 it is one."""
    assert team_plan().at_once == {"vit-base": 2}
    assert team_plan(at("max_gpus", 8)).at_once == {"vit-base": 1}
    assert team_plan(at("max_gpus", None)).at_once == {"vit-base": 4}


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


def test_full_pools_that_are_the_nodes_of_the_jobs_have_no_lines_twice() -> None:
    one = at("pools", {"g6e": {"instance_types": ["g6e.48xlarge"], "max_nodes": 2}})
    assert "in addition" in plan.text(environment_plan(one))
    assert "while all pools are full, in addition" not in plan.text(environment_plan(one))


def test_a_program_reads_the_same_in_a_stable_order_and_money_as_text(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_word("plan", ["dev", "--json"]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["plan"]["pools"]["g6e"]["max_nodes"] == 4
    assert text == plan.as_json(plan.data(environment_plan())) + "\n"
    # A program reads an optional part as any other field of the plan.
    assert {part.name for part in PARTS} < json.loads(text)["plan"].keys()
    assert "parts" not in json.loads(text)["plan"]
    priced = json.loads(plan.as_json(plan.data(_large(1, 1))))["money"]["work"][0]
    assert priced["what"] == "2 x p5.48xlarge in p0" and priced["usd_per_hour"] == "110.080000"


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_refused_stack_names_its_errors(
    options: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refused = read(values(at("pools.g6e.max_nodes", 1)), stack="dev", project="trainyard")
    monkeypatch.setattr(stack_file, "read_file", lambda stack: refused)
    assert run_word("plan", ["dev", *options]) == 1
    assert "environment.jobs.t5-large.nodes" in capsys.readouterr().out


def test_the_picture_in_the_documents_is_of_the_checkouts_stack() -> None:
    """Regenerate as its last line says."""
    assert (CHECKOUT / "docs" / "critical-path.md").read_text() == plan.picture(
        environment_plan()
    ) + "\n"


def test_a_sum_with_a_missing_price_never_looks_final() -> None:
    plan_of_seoul = environment_plan()
    idle = str(plan.summary(plan_of_seoul)["usd_a_month_idle"])
    assert idle.startswith("between ") and "without them at least " in idle
    sums = [line for line in plan.text(plan_of_seoul).splitlines() if line.startswith("    while ")]
    assert len(sums) == 3 and all("at least" in line for line in sums)
    whole = plan.text(_large(1, 1))
    assert "at least" not in whole and re.search(r"while nothing runs +2\.7998", whole)
    assert str(plan.summary(_large(1, 1))["usd_a_month_idle"])[0].isdigit()


def test_us_east_1_has_a_price_for_every_dollar_of_idle_and_work() -> None:
    costs = plan.estimate(_large(2, 2))
    assert costs.at_work and not costs.at_work.missing
    assert not costs.idle.missing and not costs.all_full.missing
    assert all(part.as_of for line in (*costs.fixed, *costs.work) for part in line.parts)


def test_a_capacity_block_shows_what_is_paid_in_advance_and_when_it_starts() -> None:
    reservation = {
        "id": "cr-0123456789abcdef0",
        "instances": 4,
        "starts": "2100-12-01T11:30:00Z",
        "ends": "2100-12-03T11:30:00Z",
    }
    text = plan.text(
        environment_plan(
            at("pools.g6e.instance_types", ["p5.48xlarge"]),
            at("pools.g6e.capacity", "block"),
            at("pools.g6e.reservation", reservation),
        )
    )
    assert "once, not by the hour" in text and "48 hours, paid in advance" in text
    assert "paid in advance with a Capacity Block: t5-large" in text
    assert "the block of g6e starts at 2100-12-01 11:30 UTC: its jobs wait until then" in text


def _blocks(zone: str, *instances: int) -> Any:
    """The dev stack with a Capacity Block of 14 days in each of its pools, in a zone."""
    name = ("g6e", "second", "third")
    times = {"starts": "2100-12-01T11:30:00Z", "ends": "2100-12-15T11:30:00Z"}
    pools = {
        name: {
            "instance_types": ["p5.48xlarge"],
            "max_nodes": count,
            "capacity": "block",
            "reservation": {"id": f"cr-0123456789abcdef{number}", "instances": count, **times},
        }
        for number, (name, count) in enumerate(zip(name, instances, strict=False))
    }
    found = values(at("zone", zone), at("pools", pools))
    found["aws:region"] = zone[:-1]
    return plan_stack(read(found, stack="dev", project="trainyard"), CHECKOUT).accepted()


def _summary(found: Any) -> str:
    """The section on top, its lines joined."""
    return " ".join(" ".join(plan.text(found).split("\n\n")[1].splitlines()).split())


def test_the_summary_begins_with_what_is_paid_once() -> None:
    """64 p5 for 14 days: 64 x 336 hours at 34.608."""
    paid = _blocks("us-east-1a", 64)
    text = _summary(paid)
    assert text.partition("in no sum ")[2].startswith("usd once 744,210.43, oldest price 2026-")
    assert "usd a month idle " in text and "prices missing" not in text
    assert plan.summary(paid)["usd_once"].startswith("744,210.43, oldest price 2026-")
    assert [*plan.summary(paid)].index("usd_once") < [*plan.summary(paid)].index("usd_a_month_idle")
    said = json.loads(plan.as_json(plan.data(paid)))["money"]["paid_once"]
    assert said["usd_once"] == "744210.43" and said["missing"] == [] and said["as_of"]
    two = _blocks("us-east-1a", 64, 32)
    assert plan.summary(two)["usd_once"].startswith("1,116,315.65, ")


def test_a_capacity_block_without_a_price_is_the_first_price_that_is_missing() -> None:
    unpriced = _blocks("ap-northeast-1a", 8)
    said = plan.summary(unpriced)
    assert next(iter(said)) == "prices_missing"
    assert said["prices_missing"].startswith("block of g6e, 8 x p5.48xlarge; ")
    once = str(said["usd_once"])
    assert once.startswith("between ") and once.endswith(
        " with guessed prices; without them no price"
    )
    assert _summary(unpriced).partition("in no sum ")[2].startswith("prices missing block of g6e, ")


def test_a_sum_of_blocks_of_which_one_has_no_price_says_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = _blocks("us-east-1a", 64, 32)
    costs = plan.estimate(found)
    half = dataclasses.replace(costs.once[1], usd_once=None)
    monkeypatch.setattr(cost, "_once", lambda _: (costs.once[0], half))
    said = plan.summary(found)
    assert said["usd_once"].startswith("at least 744,210.43, oldest price ")
    assert said["prices_missing"].startswith("block of second, 32 x p5.48xlarge")


def test_a_stack_without_a_capacity_block_has_nothing_that_is_paid_once() -> None:
    assert "usd_once" not in plan.summary(environment_plan())
    assert "usd once" not in plan.text(environment_plan())
    assert plan.estimate(environment_plan()).paid_once is None


def test_the_summary_fits_a_terminal_with_the_largest_block() -> None:
    lines = plan.text(_blocks("us-east-1a", 64, 64, 64)).splitlines()
    assert max(map(len, lines)) <= 100
    assert any("2,232,631.29" in line for line in lines)


def test_every_line_fits_a_terminal_of_100_columns() -> None:
    names = [f"a-pool-with-a-rather-long-name-{number}" for number in range(9)]
    pool = {"instance_types": ["p5.48xlarge"], "max_nodes": 4}
    text = plan.text(
        environment_plan(at("pools", {"g6e": G6E, **dict.fromkeys(names, pool)}), at("jobs", {}))
    )
    assert max(map(len, text.splitlines())) <= 100
    assert "pools" in text


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
