"""What a stack costs: to the cent where prices are known, and no guess where they are not."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given

from stacks.outputs import prices_of_runs
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, sound_stacks, team_plan
from trainyard.catalog.aws import own_prices
from trainyard.catalog.aws.prices import CEILINGS, Price
from trainyard.catalog.aws.quotes import Quote
from trainyard.decide import plan_stack
from trainyard.reports.costs.amounts import Estimate, Line, Total
from trainyard.reports.costs.cost import estimate
from trainyard.settings.reading.reader import read

PRICES = {
    ("eks", "cluster"): ("0.10", "hour"),
    ("nat", "hour"): ("0.045", "hour"),
    ("nat", "gb"): ("0.045", "GB"),
    ("ec2", "m7i.xlarge"): ("0.2016", "hour"),
    ("ec2", "g6e.48xlarge"): ("30.13118", "hour"),
    ("ec2-spot", "g6e.48xlarge"): ("9", "hour"),
    ("ec2-block", "p5.48xlarge"): ("34.608", "hour"),
    ("ebs", "gp3"): ("0.08", "GB-month"),
    ("ebs", "gp3-iops"): ("0.005", "IOPS-month"),
    ("ebs", "gp3-mbps"): ("0.04", "MB/s-month"),
    ("vpc", "public-ipv4"): ("0.005", "hour"),
    ("transfer", "between-zones"): ("0.01", "GB"),
    ("efs", "standard"): ("0.30", "GB-month"),
    ("efs", "read"): ("0.03", "GB"),
    ("efs", "write"): ("0.06", "GB"),
    ("fsx-lustre", "PERSISTENT_2-500"): ("0.34", "GB-month"),
}
G6E = {"instance_types": ["g6e.48xlarge"], "max_nodes": 4}
RESERVATION = {"id": "cr-0123456789abcdef0", "instances": 6}
BLOCK = {
    **RESERVATION,
    "instances": 8,
    "starts": "2100-12-01T11:30:00Z",
    "ends": "2100-12-08T11:30:00Z",
}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Prices that do not change with the catalogue; gives the regions that were asked for."""
    regions: set[str] = set()

    def price(service: str, sku: str, region: str) -> Price | None:
        regions.add(region)
        usd, unit = PRICES.get((service, sku), (None, ""))
        as_of = "2026-07-20" if service == "ec2" else "2026-11-20"
        return Price(usd=Decimal(usd), unit=unit, kind="", as_of=as_of, source="") if usd else None

    def quote(service: str, sku: str, region: str) -> Quote:
        found, limit = price(service, sku, region), CEILINGS.get(service)
        return Quote(
            price=found, ceiling=price(limit, sku, region) if limit and not found else None
        )

    monkeypatch.setattr(own_prices, "quote", quote)
    return regions


def _at_work(found: Estimate) -> Total:
    assert found.at_work is not None
    return found.at_work


def _hours(lines: tuple[Line, ...]) -> dict[str, str]:
    return {line.what: str(line.usd_per_hour) for line in lines}


def test_each_nat_gateway_and_its_address_is_paid(asked: set[str]) -> None:
    found = _hours(estimate(environment_plan(at("network.nat", "each_zone"))).fixed)
    assert found["3 NAT gateways"] == "0.135000"
    assert found["public addresses of the NAT gateways"] == "0.015000"


PRIVATE = at("network.endpoints", "private")
ISOLATED = (
    PRIVATE,
    at("network.internet", "none"),
    at("artifacts.images", "111122223333.dkr.ecr.ap-northeast-2.amazonaws.com/mirror"),
)


def test_each_endpoint_is_paid_in_each_zone_and_its_data_by_use() -> None:
    """Eight APIs, three zones, Seoul's price of 0.013 (AWS's price list of AmazonVPC, 2026-09-17)."""
    found = estimate(environment_plan(PRIVATE))
    assert _hours(found.fixed)["8 interface endpoints x 3 zones"] == "0.312000"
    assert "data of interface endpoints" in {line.what for line in found.usage}
    [line] = [line for line in found.fixed if "endpoints" in line.what]
    assert line.as_of == "2026-09-17"


def test_without_the_internet_no_gateway_is_paid_and_no_image_comes_through_one() -> None:
    found = estimate(environment_plan(*ISOLATED))
    every = {line.what for line in (*found.fixed, *found.usage)}
    assert not [what for what in every if "NAT" in what]
    assert [job.image_usd for job in found.jobs] == [Decimal()]


def test_an_idle_stack_costs_what_its_parts_cost_by_hand(asked: set[str]) -> None:
    found = estimate(environment_plan())
    assert _hours(found.fixed) == {
        "control plane": "0.100000",
        "NAT gateway": "0.045000",
        "public address of the NAT gateway": "0.005000",
        "2 system nodes m7i.xlarge": "0.403200",
        "disks of system nodes": "0.010959",
    }
    assert [(line.what, str(line.usd_per_month)) for line in found.storage] == [
        ("Lustre scratch, PERSISTENT_2-500", "1632.00")
    ]
    assert (
        found.idle.usd_per_month
        == Decimal("73.00") + Decimal("32.85") + Decimal("3.65") + Decimal("294.34") + 8 + 1632
    )
    assert (found.idle.priced, found.idle.lines, found.idle.as_of) == (6, 6, "2026-07-20")


def test_work_costs_the_nodes_of_all_jobs_and_their_disks(asked: set[str]) -> None:
    found = estimate(environment_plan())
    disks = f"{2 * (200 * 0.08 + 1000 * 0.005 + 875 * 0.04) / 730:.6f}"
    assert _hours(found.work) == {
        "2 x g6e.48xlarge in g6e": "60.262360",
        "disks of 2 nodes in g6e": disks,
    }
    assert _at_work(found).usd_per_hour == found.idle.usd_per_hour + sum(
        line.usd_per_hour or 0 for line in found.work
    )


def test_a_job_says_what_an_hour_and_what_its_cold_start_cost(asked: set[str]) -> None:
    (job,) = estimate(environment_plan()).jobs
    assert (job.nodes, job.usd_per_hour, job.cold_start_seconds) == (2, Decimal("60.415785"), 181)
    assert job.cold_start_usd == Decimal("3.04")


def test_pools_do_not_grow_beyond_their_limit_however_many_jobs_wait(asked: set[str]) -> None:
    job = {
        "runtime": "torch-distributed",
        "nodes": 2,
        "pool": "g6e",
        "image": "image:1",
        "command": ["true"],
    }
    found = estimate(environment_plan(at("jobs", {f"j{i}": job for i in range(9)})))
    assert "4 x g6e.48xlarge in g6e" in _hours(found.work) and len(found.jobs) == 9


# Kinds of capacity.

KINDS: dict[str, tuple[list[Edit], dict[str, str], dict[str, str]]] = {
    "spot": ([at("pools.g6e.capacity", "spot")], {}, {"2 x g6e.48xlarge in g6e": "18.000000"}),
    "kept": (
        [at("pools.g6e.replicas", 2)],
        {"2 x g6e.48xlarge in g6e": "60.262360", "disks of 2 nodes in g6e": "0.153425"},
        {},
    ),
    "reservation": (
        [at("pools.g6e.capacity", "reservation"), at("pools.g6e.reservation", RESERVATION)],
        {"6 x g6e.48xlarge in g6e": "180.787080"},
        {"disks of 2 nodes in g6e": "0.153425"},
    ),
    "reservation, some kept": (
        [
            at("pools.g6e.capacity", "reservation"),
            at("pools.g6e.reservation", RESERVATION),
            at("pools.g6e.replicas", 2),
        ],
        {"6 x g6e.48xlarge in g6e": "180.787080", "disks of 2 nodes in g6e": "0.153425"},
        {},
    ),
    "block": (
        [
            at("pools.g6e.instance_types", ["p5.48xlarge"]),
            at("pools.g6e.capacity", "block"),
            at("pools.g6e.reservation", BLOCK),
        ],
        {},
        {"disks of 2 nodes in g6e": "0.153425"},
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_paid_while_no_job_runs_follows_from_the_kind_of_capacity(
    kind: str, asked: set[str]
) -> None:
    edits, idle, work = KINDS[kind]
    found = estimate(environment_plan(*edits))
    assert {what: usd for what, usd in _hours(found.fixed).items() if "g6e" in what} == idle
    assert (
        _hours(found.work).items() >= work.items() and not _hours(found.work).keys() & idle.keys()
    )


def test_a_reservation_costs_all_of_its_instances_however_few_nodes_the_pool_takes(
    asked: set[str],
) -> None:
    """6 x 30.13118 an hour, 730 hours, whether max_nodes is 4 or 6 and with no job at all."""
    edits = [at("pools.g6e.capacity", "reservation"), at("pools.g6e.reservation", RESERVATION)]
    for more in ([], [at("pools.g6e.max_nodes", 6)], [at("jobs", {})]):
        line = next(
            line for line in estimate(environment_plan(*edits, *more)).fixed if "g6e" in line.what
        )
        assert (str(line.usd_per_month), line.assumption) == (
            "131974.57",
            "all of it, used or not",
        )


# What is not known.


SPOT = at("pools.g6e.capacity", "spot")


@pytest.fixture
def no_spot_price(asked: set[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(PRICES, ("ec2-spot", "g6e.48xlarge"))


def test_spot_without_a_price_costs_at_most_what_on_demand_costs(no_spot_price: None) -> None:
    """2 x 30.13118 = 60.26236 an hour on demand, and 0.153425 for the disks of two nodes."""
    found = estimate(environment_plan(SPOT))
    [nodes] = [line for line in found.work if "g6e.48xlarge" in line.what]
    assert (nodes.usd_per_hour, nodes.most_usd_per_hour) == (None, Decimal("60.262360"))
    assert nodes.as_of == "2026-07-20" and not nodes.missing
    low, high = _at_work(found).usd_per_hour, _at_work(found).most_usd_per_hour
    assert low == found.idle.usd_per_hour + Decimal("0.153425")
    assert high == found.idle.usd_per_hour + Decimal("0.153425") + Decimal("60.262360")
    assert not _at_work(found).missing and found.idle.most_usd_per_hour == found.idle.usd_per_hour


def test_a_job_on_spot_has_the_amounts_of_on_demand_as_its_ceilings(no_spot_price: None) -> None:
    """60.415785 an hour: an idle minute 1.01, 10 h and 181 s 607.20, two images 0.84."""
    (job,) = estimate(environment_plan(SPOT, at("jobs.t5-large.expected_hours", 10))).jobs
    assert job.at_most and (job.usd_per_hour, job.missing) == (None, ())
    assert job.most_usd_per_hour == Decimal("60.415785")
    assert job.usd_per_idle_minute == Decimal("1.01")
    assert job.most_usd == Decimal("607.20") + Decimal("0.84")
    assert job.usd == Decimal("1.54") + Decimal("0.84"), "0.153425 x 10 h 181 s: its disks"


def test_a_ceiling_needs_the_price_of_everything_else(
    no_spot_price: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(PRICES, ("ebs", "gp3-mbps"))
    found = estimate(environment_plan(SPOT))
    assert _at_work(found).most_usd_per_hour is None
    assert _at_work(found).missing == ("disks of 2 nodes in g6e",)
    assert not found.jobs[0].at_most


def test_only_the_regions_own_prices_are_asked_for(asked: set[str]) -> None:
    assert _at_work(estimate(environment_plan())).priced == 8 and asked == {"ap-northeast-2"}


def test_one_unknown_price_leaves_its_line_open_and_the_sum_a_lower_bound(
    asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(PRICES, ("ebs", "gp3-iops"))
    found = estimate(environment_plan())
    assert _hours(found.work)["disks of 2 nodes in g6e"] == "None"
    assert (_at_work(found).priced, _at_work(found).lines) == (7, 8)
    assert _at_work(found).missing == ("disks of 2 nodes in g6e",) and not found.idle.missing
    job = found.jobs[0]
    assert job.usd_per_hour is None and job.missing == ("disks of 2 nodes in g6e",)
    rest = Decimal("60.262360") + 2 * (200 * Decimal("0.08") + 875 * Decimal("0.04")) / 730
    assert job.at_least_usd_per_hour == pytest.approx(rest)
    assert _at_work(found).usd_per_hour == pytest.approx(found.idle.usd_per_hour + rest)


def test_what_grows_with_use_has_a_rate_and_is_in_no_sum(asked: set[str]) -> None:
    found = estimate(environment_plan())
    assert {line.what: line.assumption for line in found.usage} == {
        "NAT gateway data": (
            "0.045 USD a GB; 56 GB, 2.52 USD whenever all 6 nodes pull an image, by use"
        ),
        "logs of the control plane": "no price; 91 units a month of a busy cluster, by use",
        "data between zones, each way": "0.01 USD a GB, by use",
        "EFS home": "0.30 USD a GB-month, by use",
        "EFS home, read": "0.03 USD a GB, by use",
        "EFS home, written": "0.06 USD a GB, by use",
    }
    assert all(line.usd_per_hour is None and line.usd_per_month is None for line in found.usage)


def test_a_quantity_that_is_known_has_its_dollars(
    asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """3 GB a day are 91 GB in 730 hours, at 0.5 45.50 USD; without logs there is no line."""
    monkeypatch.setitem(PRICES, ("logs", "ingested"), ("0.5", "GB"))
    said = {line.what: line.assumption for line in estimate(environment_plan()).usage}
    assert said["logs of the control plane"] == (
        "0.5 USD a GB; 91 GB, 45.50 USD a month of a busy cluster, by use"
    )
    off = estimate(environment_plan(at("cluster.logs", []), at("cluster.log_retention_days", None)))
    assert "logs of the control plane" not in {line.what for line in off.usage}


ON_EFS = (
    at("jobs.t5-large.checkpoints", {"store": "home", "directory": "t5", "interval_minutes": 60}),
    at("jobs.t5-large.parameters_billion", 7),
    at("jobs.t5-large.expected_hours", 10),
)


def test_checkpoints_on_efs_cost_their_writes_in_the_run(
    asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """7 billion parameters at 12 bytes are 84 GB: 10 hourly saves at 0.06 are 50.40 USD. 607.20 of nodes
    and 0.84 of images beside them."""
    (job,) = estimate(environment_plan(*ON_EFS)).jobs
    assert job.saves_usd == Decimal("50.40") and not job.missing
    assert job.usd == Decimal("607.20") + Decimal("0.84") + Decimal("50.40") == job.most_usd
    monkeypatch.delitem(PRICES, ("efs", "write"))
    (job,) = estimate(environment_plan(*ON_EFS)).jobs
    assert (job.saves_usd, job.missing) == (None, ("EFS home, written",))
    assert job.usd == Decimal("608.04") and job.most_usd is None


def test_checkpoints_on_lustre_cost_nothing_a_save(asked: set[str]) -> None:
    edits = at("jobs.t5-large.parameters_billion", 7), at("jobs.t5-large.expected_hours", 10)
    (job,) = estimate(environment_plan(*edits)).jobs
    assert job.saves_usd == 0 and job.usd == Decimal("608.04")


def test_a_team_pays_for_its_jobs_only(asked: set[str]) -> None:
    found = estimate(team_plan())
    assert found.at_work.usd_per_hour == sum(
        job.at_least_usd_per_hour or Decimal() for job in found.jobs
    )
    assert found.at_work.missing == ("disks of its nodes, which the environment pays",)
    assert found.jobs[0].at_least_usd_per_hour == Decimal("30.131180")
    assert found.jobs[0].missing == ("disks of its nodes, which the environment pays",)


def test_a_team_pays_for_no_more_nodes_than_its_pools_have(asked: set[str]) -> None:
    def many(settings: dict[str, Any]) -> None:
        [job] = settings["jobs"].values()
        settings["jobs"] = {
            f"job-{number}": job
            | {"checkpoints": job["checkpoints"] | {"directory": f"job-{number}"}}
            for number in range(9)
        }

    plan = team_plan(many)
    [pool] = {job.pool for job in plan.jobs.values()}
    found = estimate(plan)
    [first, *_] = found.jobs
    each = (first.at_least_usd_per_hour or Decimal()) / first.nodes
    assert found.at_work.usd_per_hour == plan.capacity[pool].max_nodes * each


def test_a_job_that_says_its_hours_has_a_price_with_its_cold_start(asked: set[str]) -> None:
    """2 nodes at 60.415785 an hour, 10 h and 181 s, and 2 images of 9.35 GB through the NAT
    gateway."""
    found = estimate(environment_plan(at("jobs.t5-large.expected_hours", 10))).jobs[0]
    assert found.image_usd == Decimal("0.84")
    assert (
        found.usd == Decimal("607.20") + Decimal("0.84")
        and estimate(environment_plan()).jobs[0].usd is None
    )


def _estimate(stack: dict[str, Any]) -> Estimate:
    found = estimate(plan_stack(read(stack, stack="dev", project="trainyard")).accepted())
    assert isinstance(found, Estimate)
    return found


@given(stack=sound_stacks())
def test_months_add_up_and_work_is_never_cheaper_than_idle(stack: dict[str, Any]) -> None:
    found = _estimate(stack)
    idle = (*found.fixed, *found.storage)
    whole = [line for line in idle if not line.missing]
    if not found.idle.missing:
        assert found.idle.usd_per_month == sum(line.usd_per_month or 0 for line in whole)
    assert (found.at_work is None) == (not found.jobs)
    if found.at_work:
        assert found.at_work.usd_per_hour >= found.idle.usd_per_hour
    assert found.all_full.usd_per_hour >= found.idle.usd_per_hour
    assert all(line.usd_per_month is not None for line in whole)
    assert all(line.usd_per_month is None for line in (*found.work, *found.full, *found.once))


@given(stack=sound_stacks())
def test_a_line_is_the_sum_of_its_quantities_times_their_unit_prices(
    stack: dict[str, Any],
) -> None:
    found = _estimate(stack)
    lines = (*found.fixed, *found.storage, *found.work, *found.full)
    assert lines
    for line in lines:
        assert line.missing == (line.most_usd_per_hour is None)
        for part in line.parts:
            hours = 730 if "month" in part.unit else 1
            by_hand = (part.usd_each or Decimal()) * part.quantity / hours
            assert (part.usd_per_hour or Decimal()) == pytest.approx(by_hand, abs=Decimal("1e-6"))
        known = sum((part.usd_per_hour or Decimal() for part in line.parts), Decimal())
        if line.usd_per_hour is not None:
            assert line.usd_per_hour == pytest.approx(known, abs=Decimal("1e-5"))


# What is paid once, at most, and for nothing.


def test_a_capacity_block_is_paid_once_and_is_in_no_hour(asked: set[str]) -> None:
    """6 nodes for 7 days at 34.608 an hour."""
    found = estimate(environment_plan(*KINDS["block"][0]))
    (line,) = found.once
    assert (line.what, str(line.usd_once)) == ("block of g6e, 8 x p5.48xlarge", "46513.15")
    assert line.usd_per_hour is None and line.assumption == "168 hours, paid in advance"
    assert found.idle.usd_per_hour == estimate(environment_plan()).idle.usd_per_hour
    assert found.jobs[0].prepaid and not estimate(environment_plan()).jobs[0].prepaid


def test_full_pools_cost_every_node_that_they_may_have(asked: set[str]) -> None:
    found = estimate(environment_plan(at("pools", {"g6e": {**G6E, "max_nodes": 9}})))
    assert _hours(found.full)["9 x g6e.48xlarge in g6e"] == "271.180620"
    assert found.all_full.usd_per_hour > _at_work(found).usd_per_hour


def test_a_full_pool_of_two_types_has_its_limit_of_each(
    asked: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PRICES, ("ec2", "p5.48xlarge"), ("55.04", "hour"))
    two = {**G6E, "instance_types": ["g6e.48xlarge", "p5.48xlarge"], "max_nodes": 3}
    full = _hours(estimate(environment_plan(at("pools", {"g6e": two}), at("jobs", {}))).full)
    assert full["3 x g6e.48xlarge in g6e"] == "90.393540"
    assert full["3 x p5.48xlarge in g6e"] == "165.120000"


def test_a_failure_costs_half_an_interval_and_the_restart_and_an_idle_minute_a_sixtieth(
    asked: set[str],
) -> None:
    plan = environment_plan(at("jobs.t5-large.parameters_billion", 11))
    job, saved = estimate(plan).jobs[0], plan.checkpoints["t5-large"]
    assert job.at_least_usd_per_hour is not None and job.failure_usd is not None
    lost = saved.interval_seconds / 2 + 300
    assert float(job.failure_usd) == pytest.approx(
        float(job.at_least_usd_per_hour) * lost / 3600, abs=0.01
    )
    assert job.usd_per_idle_minute == Decimal("1.01")
    assert estimate(environment_plan()).jobs[0].failure_usd is None


def test_disks_are_priced_as_the_components_make_them(dev: Graph) -> None:
    plan = environment_plan()
    [system] = dev["LaunchTemplate system"].inputs["blockDeviceMappings"]
    assert system["ebs"]["volumeSize"] == plan.system_nodes.disk_gib
    disk = dev["EC2NodeClass g6e-class"].inputs["spec"]["blockDeviceMappings"][0]["ebs"]
    pool = plan.pools["g6e"]
    assert disk["volumeSize"] == f"{pool.root_volume_gib}Gi"
    assert (disk["iops"], disk["throughput"]) == (pool.root_volume_iops, pool.root_volume_mbps)


def test_the_cost_of_a_job_of_a_file_is_called_as_its_entry() -> None:
    """The line about what an update starts left it out: it was looked for by the name in the file."""
    file = {"manifest": "tests/workloads/valid/trainjob-clone-pinned.yaml", "pool": "g6e"}
    found = environment_plan(at("jobs.mine", {**file, "claims": {"data": "scratch"}}))
    assert found.jobs["mine"].name != "mine"
    assert [cost.job for cost in estimate(found).jobs] == [*found.jobs]
    [*_, line, _] = prices_of_runs(found, ["t5-large", "mine"])
    assert line.startswith("this update starts a run of mine: ")
