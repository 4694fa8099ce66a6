"""Which file system follows from a model, what its checkpoints take there, and what is said about
it."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from tests.support.cases.environment import JOB, MODEL
from tests.support.stackfile import at, environment_plan, errors, lustre, planned, team_plan
from trainyard.plan import EnvironmentPlan, TeamPlan

LUSTRE = "storage.scratch.lustre"
HARDWARE = at(f"{JOB}.other_stops_per_day", 0)
"""Goodput that counts the failures of nodes alone."""


def warnings(*edits) -> str:
    return "\n".join(str(n) for n in planned(*edits).warnings)


@pytest.mark.parametrize(
    "file_system",
    [
        {"capacity_gib": 4800, "throughput_mbps_per_tib": 500},
        {"file_system_id": "fs-0123456789abcdef0"},
    ],
)
def test_lustre_on_a_kernel_that_nobody_mounted_it_on_is_a_warning(
    file_system: dict[str, Any],
) -> None:
    """Its pods would stay in ContainerCreating while every GPU of the gang is paid for."""
    said = "environment.storage.scratch.lustre: nodes of Kubernetes 1.36 have kernel 6.18,"
    on_lustre = at(LUSTRE, file_system)
    assert said in warnings(on_lustre, at("cluster.version", "1.36"))
    assert "have kernel" not in warnings(on_lustre, at("cluster.version", "1.35"))
    on_efs = at("storage.scratch", {"efs": {}})
    assert "have kernel" not in warnings(on_efs, at("cluster.version", "1.36"))


def test_a_store_by_model_is_the_cheapest_that_keeps_its_goodput() -> None:
    """70B on 16 nodes: 840 GB, a failure every 231 h. To 4800 GiB at 250 MB/s per TiB a save takes
    717 s, W* is √(2·717·830769) = 34510 s, and 1 − 717/34510 − (17255 + 180 + 717)/830769 = 95.7 %.
    2400 GiB at 500 are as fast for less (816 against 1008 USD a month in us-east-1), but files fill
    94 % of them, which two checkpoints of three fit."""
    plan = environment_plan(at(LUSTRE, {"for_model": {"parameters_billion": 70, "nodes": 16}}))
    found = lustre(plan)
    assert (found.capacity_gib, found.throughput_mbps_per_tib, found.deployment) == (
        4800,
        250,
        "PERSISTENT_2",
    )


def test_more_goodput_is_a_faster_store() -> None:
    def size(goodput: float) -> float:
        model = {"parameters_billion": 70, "nodes": 16, "goodput_percent": goodput}
        store = lustre(environment_plan(at(LUSTRE, {"for_model": model})))
        return store.capacity_gib * (store.throughput_mbps_per_tib or 0)

    assert size(90) < size(95) < size(98)


def test_the_claim_has_the_size_that_was_chosen() -> None:
    plan = environment_plan(at(LUSTRE, {"for_model": {"parameters_billion": 70, "nodes": 16}}))
    [claim] = [c for c in plan.workspace.claims if c.store == "scratch"]
    assert claim.capacity == f"{lustre(plan).capacity_gib}Gi"


def test_a_plan_has_the_verdict_of_each_job_that_says_how_large_its_model_is() -> None:
    """70B to 9600 GiB at 500 MB/s per TiB over TCP from 2 nodes: 4.69 GB/s, 179 s."""
    assert environment_plan().checkpoints == {}
    found = environment_plan(
        *MODEL, HARDWARE, at(f"{JOB}.checkpoints.interval_minutes", 30)
    ).checkpoints["t5-large"]
    assert found.bytes == 840e9 and found.write_seconds == pytest.approx(179.2, abs=0.1)
    assert found.interval_seconds == 1800
    assert found.goodput == pytest.approx(1 - 179.2 / 1800 - 1200 / 6646154, abs=1e-4)


def test_a_team_has_verdicts_on_its_environments_stores() -> None:
    plan = team_plan(at("jobs.vit-base.parameters_billion", 0.086))
    assert isinstance(plan, TeamPlan) and set(plan.checkpoints) == {"vit-base"}


def test_a_store_that_leaves_little_time_is_said_with_what_would_be_better() -> None:
    """At 125 MB/s per TiB and 4800 GiB, 1434 s every half hour is 44 % of the time. On 2 nodes a longer
    interval is enough; 256 nodes fail every 14 hours and need a faster store too."""
    slow = (
        HARDWARE,
        at(f"{JOB}.parameters_billion", 70),
        at(f"{JOB}.checkpoints.interval_minutes", 30),
        at(f"{LUSTRE}.throughput_mbps_per_tib", 125),
    )
    said = warnings(*slow)
    assert "a save takes 24 minutes, which leaves 20% of the time" in said
    assert "to train; interval_minutes: 2301 keeps 97.9%" in said
    said = warnings(*slow, at(f"{JOB}.nodes", 256), at("pools.g6e.max_nodes", 256))
    assert "which leaves 16% of the time" in said and "lustre: {capacity_gib: " in said


def test_checkpoints_on_scratch_are_said() -> None:
    assert "the checkpoints on it are lost" in warnings(
        at(LUSTRE, {"capacity_gib": 2400, "deployment": "SCRATCH_2"})
    )


def test_an_asynchronous_save_stalls_training_for_a_moment_only() -> None:
    every = at(f"{JOB}.checkpoints.interval_minutes", 30)
    blocking = environment_plan(*MODEL, every).checkpoints["t5-large"]
    late = environment_plan(*MODEL, every, at(f"{JOB}.checkpoints.asynchronous", True)).checkpoints[
        "t5-large"
    ]
    assert late.stall_seconds < 1 and late.goodput > blocking.goodput + 0.05


EFA = at(LUSTRE, {"capacity_gib": 9600, "throughput_mbps_per_tib": 1000, "efa": True})
P5 = at(f"{JOB}.pool", "h100")


def test_efa_counts_where_the_jobs_nodes_mount_over_it() -> None:
    """840 GB from 2 nodes: 15.9 GB/s each over EFA are more than the disks' 9.375; over TCP 2.48
    each are less."""
    over_efa = environment_plan(EFA, P5, at(f"{JOB}.parameters_billion", 70)).checkpoints[
        "t5-large"
    ]
    over_tcp = environment_plan(EFA, at(f"{JOB}.parameters_billion", 70)).checkpoints["t5-large"]
    without_efa = environment_plan(
        EFA, P5, at(f"{JOB}.parameters_billion", 70), at(f"{LUSTRE}.efa", False)
    )
    assert over_efa.write_seconds == pytest.approx(840 / 9.375)
    assert (
        over_tcp.write_seconds
        == without_efa.checkpoints["t5-large"].write_seconds
        == pytest.approx(840 / 4.96)
    )


def test_efa_counts_in_no_other_zone() -> None:
    away = at("pools.h100.fallback_zones", ["ap-northeast-2b"])
    more = at("pools.more", {"instance_types": ["p5.48xlarge"], "max_nodes": 1})
    found = environment_plan(
        EFA, P5, away, more, at(f"{JOB}.nodes", 1), at(f"{JOB}.parameters_billion", 70)
    )
    assert found.checkpoints["t5-large"].write_seconds == pytest.approx(840 / 2.48)


def test_a_store_for_a_model_is_of_a_size_that_is_sold_with_efa() -> None:
    model = at(LUSTRE, {"efa": True, "for_model": {"parameters_billion": 70, "nodes": 16}})
    for edits in ([], [at("pools.h100", {"instance_types": ["p5en.48xlarge"], "max_nodes": 2})]):
        found = lustre(environment_plan(model, *edits))
        assert (
            found.capacity_gib * (found.throughput_mbps_per_tib or 0) % 4_800_000 == 0 and found.efa
        )


@pytest.mark.parametrize(
    ("size", "sold"), [(5000, 9600), (4800, 9600), (1200, 9600), (16000, 19200)]
)
def test_a_size_that_is_not_sold_is_answered_with_one_that_is_sold_with_efa(
    size: int, sold: int
) -> None:
    store = {"capacity_gib": size, "throughput_mbps_per_tib": 500, "efa": True}
    [said] = [line for line in errors(at(LUSTRE, store)) if "capacity_gib" in line]
    assert f"multiple of 9600 with efa: true and throughput_mbps_per_tib: 500; got {size}." in said
    faster = ", or write throughput_mbps_per_tib: 1000" if size == 4800 else ""
    assert said.endswith(f"Fix: write {sold}{faster}, or delete efa")


def test_a_job_whose_nodes_mount_over_tcp_all_the_same_is_told_so() -> None:
    assert (
        "environment.jobs.t5-large.pool: g6e.48xlarge mounts scratch over TCP, because it loses"
        in warnings(EFA)
    )
    assert "over TCP" not in warnings(EFA, P5)


def test_more_devices_than_fsx_connects_are_said() -> None:
    assert "open 1032 EFA connections to it, and FSx allows 1024" in warnings(
        EFA, at("pools.h100.max_nodes", 129)
    )
    assert "FSx allows 1024" not in warnings(EFA, at("pools.h100.max_nodes", 128))


def test_what_fsx_makes_anew_is_claimed_under_another_name() -> None:
    def claim(*edits) -> str:
        return next(
            c.name for c in environment_plan(*edits).workspace.claims if c.store == "scratch"
        )

    names = {claim(), claim(EFA), claim(EFA, at(f"{LUSTRE}.throughput_mbps_per_tib", 500))}
    assert len(names) == 3 and claim() == claim(EFA, at(f"{LUSTRE}.efa", False))


def test_a_goodput_that_cannot_be_kept_is_refused_with_the_store_that_would() -> None:
    [error] = errors(
        HARDWARE,
        at(f"{JOB}.parameters_billion", 70),
        at(f"{LUSTRE}", {"capacity_gib": 4800, "throughput_mbps_per_tib": 125}),
        at(f"{JOB}.goodput_percent", 99),
    )
    assert re.search(r"throughput_mbps_per_tib: \d+} keeps 99", error)


def test_backups_are_of_the_file_system() -> None:
    plan = environment_plan(at(f"{LUSTRE}.backup_days", 7))
    assert isinstance(plan, EnvironmentPlan) and lustre(plan).backup_days == 7


def test_the_script_is_told_how_many_checkpoints_stay_and_a_stack_that_does_not_say_changes_nothing() -> (
    None
):
    keeps = environment_plan(at(f"{JOB}.checkpoints.keep", 4)).jobs["t5-large"]
    before = environment_plan().jobs["t5-large"]
    assert {"name": "CHECKPOINT_KEEP", "value": "4"} in keeps.spec["trainer"]["env"]
    assert "CHECKPOINT_KEEP" not in str(before.spec) and keeps.run != before.run


@pytest.mark.parametrize(
    "link", [{"path": 5, "s3": True}, {"s3": "x"}, {"path": "/a", "s3": "s3://bucket/a"}]
)
def test_thousands_of_repositories_take_a_second_and_are_compared_as_far_as_fsx_allows(
    link: dict[str, Any],
) -> None:
    """400 took 11 s and 259 MiB, because each was compared with each."""
    links = {f"link-{number}": link for number in range(2000)}
    before = time.process_time()
    found = errors(at(f"{LUSTRE}.repositories", links))
    assert time.process_time() - before < 10
    assert any("must have at most 8 repositories, as FSx allows" in error for error in found)
    overlaps = [error for error in found if "must not overlap" in error]
    assert len(found) <= 2 * 2000 + 60 and len(overlaps) <= 2 * 28
