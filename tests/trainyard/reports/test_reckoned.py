"""Every figure of box, tables and JSON equals what a script reckons that imports nothing of the product:
the 13 environments of a review, and 11 more."""

from __future__ import annotations

import ast
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import price_arithmetic
from tests.support.price_arithmetic import Sum, reckoned
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word

BLOCK = {"id": "cr-0123456789abcdef0", "starts": "2098-12-01T11:30:00Z"}
DAYS_3 = BLOCK | {"ends": "2098-12-04T11:30:00Z"}
DAYS_14 = BLOCK | {"ends": "2098-12-15T11:30:00Z"}


def pool(kind: str, nodes: int, **more: Any) -> dict[str, Any]:
    return {"instance_types": [kind], "max_nodes": nodes, **more}


def lustre(capacity: int, tier: int, **more: Any) -> dict[str, Any]:
    speed = {"capacity_gib": capacity, "throughput_mbps_per_tib": tier}
    return {"lustre": speed | more, "data": "delete"}


SCRATCH = {"lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"}, "data": "delete"}
EFS = {"efs": {}, "data": "delete"}
FAST_EFS = {"efs": {"throughput": "provisioned", "throughput_mibps": 256}, "data": "delete"}

STACKS: dict[str, dict[str, Any]] = {
    "n1": {
        "region": "us-east-1",
        "pools": {"a": pool("p5.48xlarge", 16)},
        "storage": {"scratch": lustre(12000, 500), "home": EFS},
        "network": {"cidr": "10.0.0.0/16", "nat": "each_zone"},
        "jobs": {"j": ("a", 16, 336)},
    },
    "n2": {
        "region": "us-west-2",
        "pools": {"a": pool("g6e.12xlarge", 8, capacity="spot")},
        "storage": {"scratch": SCRATCH},
        "jobs": {"j": ("a", 8, 20)},
    },
    "n3": {
        "region": "ap-northeast-2",
        "pools": {
            "a": pool(
                "p5en.48xlarge",
                8,
                capacity="reservation",
                reservation={"id": BLOCK["id"], "instances": 8},
            )
        },
        "storage": {"scratch": lustre(9600, 1000, efa=True)},
        "jobs": {"j": ("a", 8, 430)},
    },
    "n4": {
        "region": "eu-west-1",
        "zone": "b",
        "pools": {"a": pool("p4d.24xlarge", 6)},
        "storage": {"scratch": lustre(2400, 250), "home": FAST_EFS},
        "jobs": {"j": ("a", 4, 72)},
    },
    "n5": {
        "region": "ap-northeast-1",
        "pools": {
            "a": pool("p5.48xlarge", 8, capacity="block", reservation=DAYS_3 | {"instances": 8})
        },
        "storage": {"scratch": lustre(4800, 1000)},
        "jobs": {"j": ("a", 8, 66)},
    },
    "n6": {
        "region": "us-east-1",
        "pools": {
            "a": pool("p5.48xlarge", 64, capacity="block", reservation=DAYS_14 | {"instances": 64})
        },
        "storage": {"scratch": lustre(38400, 1000, efa=True)},
        "jobs": {"j": ("a", 64, 300)},
    },
    "n7": {
        "region": "us-east-1",
        "pools": {"a": pool("p5.48xlarge", 64)},
        "storage": {"scratch": lustre(21600, 500)},
        "jobs": {"j": ("a", 64, 1000)},
    },
    "n8": {
        "region": "us-west-2",
        "pools": {"a": pool("p6-b200.48xlarge", 4, replicas=3, warm_spares=1)},
        "storage": {"scratch": lustre(9600, 500, efa=True)},
        "jobs": {"j": ("a", 3, 75)},
    },
    "n9": {
        "region": "us-east-1",
        "pools": {"a": pool("g6e.48xlarge", 8), "b": pool("p4de.24xlarge", 4, replicas=1)},
        "storage": {"home": EFS},
        "jobs": {},
    },
    "n10": {
        "region": "us-east-1",
        "pools": {"a": pool("g5.48xlarge", 3)},
        "storage": {"home": FAST_EFS},
        "network": {"cidr": "10.0.0.0/16", "endpoints": "private"},
        "jobs": {"j": ("a", 2, 10)},
    },
    "n11": {
        "region": "ap-northeast-1",
        "pools": {"a": pool("m7i.48xlarge", 4)},
        "storage": {"scratch": lustre(2400, 125)},
        "cluster": {"scaling_tier": "tier-xl"},
        "jobs": {"j": ("a", 4, 8)},
    },
    "n12": {
        "region": "eu-west-1",
        "zone": "b",
        "pools": {
            "a": {"instance_types": ["g5.48xlarge", "p4d.24xlarge"], "max_nodes": 2},
            "b": pool("g5.48xlarge", 4),
        },
        "storage": {"scratch": lustre(4800, 250)},
        "jobs": {"j": ("b", 4, 24), "one": ("a", 1, 6)},
    },
    "n13": {
        "region": "us-east-1",
        "pools": {"a": pool("p5.4xlarge", 4), "b": pool("p6-b300.48xlarge", 2)},
        "storage": {"home": EFS},
        "jobs": {"j": ("a", 1, 24)},
    },
    "two jobs share a pool": {
        "region": "us-west-2",
        "pools": {"a": pool("g6e.48xlarge", 6)},
        "storage": {"scratch": lustre(2400, 1000)},
        "jobs": {"j": ("a", 2, 12), "k": ("a", 3, 100)},
    },
    "jobs want more than the pool has": {
        "region": "ap-northeast-2",
        "pools": {"a": pool("g6e.48xlarge", 4)},
        "storage": {"scratch": lustre(1200, 125)},
        "jobs": {"j": ("a", 4, 12), "k": ("a", 3, 1.5)},
    },
    "Ohio, without most prices": {
        "region": "us-east-2",
        "pools": {"a": pool("p5.48xlarge", 2)},
        "storage": {"scratch": lustre(4800, 500), "home": FAST_EFS},
        "jobs": {"j": ("a", 2, 50)},
    },
    "Stockholm": {
        "region": "eu-north-1",
        "pools": {"a": pool("p5.48xlarge", 3, replicas=2)},
        "storage": {"scratch": lustre(7200, 250)},
        "jobs": {"j": ("a", 2, 18)},
    },
    "Frankfurt, with a larger system": {
        "region": "eu-central-1",
        "pools": {"a": pool("g6e.12xlarge", 5)},
        "storage": {"home": EFS},
        "system_nodes": {"nodes": 3, "instance_type": "m7i.2xlarge"},
        "jobs": {"j": ("a", 5, 40)},
    },
    "Mumbai": {
        "region": "ap-south-1",
        "pools": {"a": pool("p4d.24xlarge", 2)},
        "storage": {"scratch": SCRATCH},
        "jobs": {"j": ("a", 2, 9)},
    },
    "no job says its hours": {
        "region": "us-east-1",
        "pools": {"a": pool("g6.48xlarge", 2)},
        "storage": {"scratch": lustre(2400, 500)},
        "jobs": {"j": ("a", 2, None)},
    },
    "no store": {
        "region": "us-east-1",
        "pools": {"a": pool("g6e.48xlarge", 2)},
        "storage": {},
        "jobs": {"j": ("a", 1, 3)},
    },
    "a small image": {
        "region": "us-east-1",
        "pools": {"a": pool("g6e.48xlarge", 8)},
        "storage": {"home": EFS},
        "image_gb": 2.5,
        "jobs": {"j": ("a", 8, 3)},
    },
    "spot beside on demand": {
        "region": "us-east-1",
        "pools": {"a": pool("g6e.48xlarge", 2), "b": pool("p5.48xlarge", 2, capacity="spot")},
        "storage": {"scratch": lustre(2400, 125)},
        "jobs": {"j": ("a", 2, 30), "k": ("b", 2, 30)},
    },
    "own prices on demand and on spot": {
        "region": "us-east-1",
        "pools": {
            "a": pool("p5.48xlarge", 4),
            "b": pool("p5.48xlarge", 2, capacity="spot"),
            "c": pool("g6e.48xlarge", 2, replicas=1),
        },
        "storage": {"scratch": lustre(2400, 500), "home": FAST_EFS},
        "prices": {
            "discount_percent": 9.5,
            "savings_plan_percent": {"p5": 44, "m7i": 27.25},
            "support_percent": 3,
        },
        "jobs": {"j": ("a", 2, 30), "k": ("b", 2, 30)},
    },
    "own prices of a block, where prices are missing": {
        "region": "ap-northeast-1",
        "pools": {
            "a": pool("p5.48xlarge", 8, capacity="block", reservation=DAYS_3 | {"instances": 8})
        },
        "storage": {"scratch": lustre(4800, 1000)},
        "prices": {"discount_percent": 12},
        "jobs": {"j": ("a", 8, 66)},
    },
    "a Savings Plan of a reservation": {
        "region": "us-west-2",
        "pools": {
            "a": pool(
                "p5.48xlarge",
                2,
                capacity="reservation",
                reservation={"id": BLOCK["id"], "instances": 2},
            )
        },
        "storage": {"scratch": lustre(2400, 250)},
        "prices": {"savings_plan_percent": {"p5": 40.1}, "support_percent": 10},
        "jobs": {"j": ("a", 1, 100)},
    },
    "a small reservation": {
        "region": "us-west-2",
        "pools": {
            "a": pool(
                "p5.48xlarge",
                2,
                capacity="reservation",
                reservation={"id": BLOCK["id"], "instances": 2},
            )
        },
        "storage": {"scratch": lustre(2400, 250)},
        "jobs": {"j": ("a", 1, 100)},
    },
}


def _job(row: dict[str, Any], name: str) -> dict[str, Any]:
    """A job as its pool wants it: on spot it resumes, on CPUs it has one process."""
    where, nodes, hours = row["jobs"][name]
    spot = row["pools"][where].get("capacity") == "spot"
    job: dict[str, Any] = {
        "runtime": f"torch-distributed{'-resilient' if spot else ''}",
        "pool": where,
        "nodes": nodes,
        "image": "docker.io/pytorch/pytorch:2.8.0",
        "command": ["true"],
    }
    if spot:
        job["checkpoints"] = {"store": "scratch", "directory": name}
    else:
        job["allow_no_checkpoint"] = True
    if row["pools"][where]["instance_types"][0].startswith("m7i"):
        job["processes_per_node"] = 1
    if hours is not None:
        job["expected_hours"] = hours
    return job | ({"image_gb": row["image_gb"]} if "image_gb" in row else {})


def config(name: str) -> dict[str, Any]:
    """The stack file of a row, in the words of Pulumi.dev.yaml."""
    row = STACKS[name]
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text().replace("ap-northeast-2", row["region"])
    found: dict[str, Any] = yaml.safe_load(text)["config"]
    env = found["trainyard:environment"]
    env |= {"pools": row["pools"], "storage": row["storage"]}
    env["zone"] = row["region"] + row.get("zone", "a")
    env["network"] = row.get("network", env["network"])
    env["cluster"] |= row.get("cluster", {})
    env |= {key: row[key] for key in ("system_nodes", "prices") if key in row}
    env["jobs"] = {name: _job(row, name) for name in row["jobs"]}
    return found


def plan_of(name: str, folder: Path, capsys: pytest.CaptureFixture[str], *options: str) -> str:
    """What `trainyard plan` prints of a row."""
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    (folder / "Pulumi.priced.yaml").write_text(yaml.safe_dump({"config": config(name)}))
    code = run_word("plan", ["priced", *options])
    said = capsys.readouterr()
    assert code == 0, said
    return said.out


def near(found: Any, wanted: Decimal | None, what: str, unit: str = "0.02") -> None:
    """Equal but for the rounding of each line to a millionth an hour, or to a cent a month."""
    if wanted is None:
        assert found is None, what
        return
    assert found is not None and abs(Decimal(found) - wanted) <= Decimal(unit), (
        what,
        found,
        wanted,
    )


def same(found: dict[str, Any] | None, wanted: Sum | None, what: str) -> None:
    """An amount of the box, and the words of it."""
    if wanted is None:
        assert found is None, what
        return
    assert found is not None
    near(found["usd"] or 0, wanted.least, what)
    near(found["most_usd"], wanted.most, what)
    whole = wanted.most is not None
    guess = found["guess"] or {"usd": None, "most_usd": None}
    near(guess["usd"], None if whole or wanted.guess_most is None else wanted.guess_least, what)
    near(guess["most_usd"], None if whole else wanted.guess_most, what)
    figures = [found[key] for key in ("usd", "most_usd")] + [guess["usd"], guess["most_usd"]]
    said = {f"{Decimal(each):,.2f}" for each in figures if each and Decimal(each)}
    assert said <= set(re.findall(r"[\d,]+\.\d\d", found["said"])) or not whole, found


@pytest.mark.parametrize("name", STACKS)
def test_every_figure_is_that_of_the_script(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    found = json.loads(plan_of(name, tmp_path, capsys, "--json"))
    box, money = found["box"], found["money"]
    starts = {job["job"]: job["cold_start_seconds"] for job in money["jobs"]}
    endpoints = [each for each in money["fixed"] if "interface endpoints" in each["what"]]
    count = endpoints[0]["parts"][0]["quantity"] if endpoints else 0
    wanted = reckoned(config(name), starts, count)
    for key, total in (
        ("idle", wanted.idle),
        ("at_work", wanted.at_work),
        ("all_full", wanted.full),
    ):
        if key == "at_work" and not STACKS[name]["jobs"]:
            assert money[key] is None
            continue
        near(money[key]["usd_per_hour"], total.least, key, "0.0001")
        near(money[key]["most_usd_per_hour"], total.most, key, "0.0001")
    same(box["usd_a_month_idle"], wanted.idle.times(Decimal(730)), "idle")
    same(box["usd_a_month_all_pools_full"], wanted.full.times(Decimal(730)), "most")
    same(box["usd_once"], wanted.once, "once")
    for job in money["jobs"]:
        same(job["all_in"], wanted.runs.get(job["job"]), job["job"])
    dearest = max(
        wanted.runs.values(),
        key=lambda run: run.least if run.most is None else run.most,
        default=None,
    )
    same(box["usd_a_run_all_in"], dearest, "run")


@pytest.mark.parametrize("name", [name for name, row in STACKS.items() if "prices" in row])
def test_list_prices_and_support_beside_own_prices_are_those_of_the_script(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    found = json.loads(plan_of(name, tmp_path, capsys, "--json"))
    box, starts = (
        found["box"],
        {job["job"]: job["cold_start_seconds"] for job in found["money"]["jobs"]},
    )
    own = config(name)
    prices = own["trainyard:environment"].pop("prices")
    listed, month = reckoned(own, starts), Decimal(730)
    beside = box["at_list"]
    same(beside["usd_a_month_idle"], listed.idle.times(month), "idle")
    same(beside["usd_a_month_all_pools_full"], listed.full.times(month), "most")
    same(beside["usd_a_run_all_in"], listed.runs[box["dearest_run"]], "run")
    same(beside.get("usd_once"), listed.once, "once")
    near(found["money_at_list"]["idle"]["usd_per_hour"], listed.idle.least, "hour", "0.0001")
    percent = Decimal(str(prices.get("support_percent", 0)))
    if not percent:
        assert box["support"] is None
        return
    months = reckoned(config(name), starts)
    with_it = month * (1 + percent / 100)
    same(box["support"]["usd_a_month_idle"], months.idle.times(with_it), "support of idle")
    same(
        box["support"]["usd_a_month_all_pools_full"], months.full.times(with_it), "support of most"
    )


@pytest.mark.parametrize("name", ["n1", "n5", "Ohio, without most prices"])
def test_box_and_table_print_the_figures_of_the_json(
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    found = json.loads(plan_of(name, tmp_path, capsys, "--json"))
    text = " ".join(plan_of(name, tmp_path, capsys).split())
    amounts = [each for each in found["box"].values() if isinstance(each, dict) and "said" in each]
    assert len(amounts) >= 3
    assert [each["said"] for each in amounts if each["said"] not in text] == []
    for line in (*found["money"]["fixed"], *found["money"]["storage"], *found["money"]["work"]):
        for part in line["parts"]:
            if part["usd_per_hour"] is not None:
                assert f"{Decimal(part['usd_per_hour']):,.4f}" in text, line["what"]


def test_the_script_imports_nothing_of_the_product() -> None:
    tree = ast.parse(Path(price_arithmetic.__file__).read_text())
    named = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    named += [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    assert not [name for name in named if name.split(".")[0] in {"trainyard", "stacks", "tests"}]


def test_there_are_thirteen_stacks_of_the_review_and_ten_more() -> None:
    assert len([name for name in STACKS if re.fullmatch(r"n\d+", name)]) == 13
    assert len(STACKS) >= 23
