"""Which file system follows from a model, how fast its nodes reach it, and what is said about it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from tests.support.cases.environment import JOB
from tests.support.stackfile import at, environment_plan, errors, lustre, planned
from trainyard.catalog.versions import KUBERNETES
from trainyard.plan import EnvironmentPlan

LUSTRE = "storage.scratch.lustre"


def warnings(*edits) -> str:
    return "\n".join(str(n) for n in planned(*edits).warnings)


@pytest.mark.parametrize(
    "file_system",
    [
        {"capacity_gib": 4800, "throughput_mbps_per_tib": 500},
        {"file_system_id": "fs-0123456789abcdef0"},
    ],
)
def test_lustre_on_a_kernel_that_is_not_known_to_have_its_client_is_a_warning(
    file_system: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pods would stay in ContainerCreating while every GPU of the gang is paid for."""
    said = "environment.storage.scratch.lustre: nodes of Kubernetes 1.36 have kernel 7.0,"
    on_lustre = at(LUSTRE, file_system)
    assert not any(
        "have kernel" in warnings(on_lustre, at("cluster.version", v)) for v in KUBERNETES
    )
    monkeypatch.setitem(KUBERNETES, "1.36", replace(KUBERNETES["1.36"], kernel="7.0"))
    assert said in warnings(on_lustre, at("cluster.version", "1.36"))
    assert "have kernel" not in warnings(on_lustre, at("cluster.version", "1.35"))
    on_efs = at("storage.scratch", {"efs": {}})
    assert "have kernel" not in warnings(on_efs, at("cluster.version", "1.36"))


def test_lustre_beyond_the_quota_of_a_new_account_is_a_warning_with_the_command_that_raises_it() -> (
    None
):
    """FSx refuses the file system that exceeds it, after the cluster is there."""
    half = {"capacity_gib": 60000, "throughput_mbps_per_tib": 125}
    [said] = [
        line
        for line in warnings(
            at("storage.scratch", {"lustre": half}), at("storage.other", {"lustre": half})
        ).splitlines()
        if "quota" in line
    ]
    assert said.startswith(
        "environment.storage: scratch, other take 120000 GiB of PERSISTENT_2, and "
    )
    assert "--service-code fsx --quota-code L-8F1B9C74 --desired-value 120000 --region ap-" in said
    temporary = {"capacity_gib": 60000, "deployment": "SCRATCH_2"}
    apart = [at("storage.scratch", {"lustre": half}), at("storage.other", {"lustre": temporary})]
    assert "quota" not in warnings(*apart)
    largest = at("storage.scratch", {"lustre": temporary | {"capacity_gib": 103200}})
    assert "quota L-AD2FC696 is 100800 GiB" in warnings(largest)
    model = {"for_model": {"parameters_billion": 8000, "nodes": 16, "goodput_percent": 50}}
    assert "quota L-8F1B9C74" in warnings(at(LUSTRE, model))


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


def test_backups_are_of_the_file_system() -> None:
    plan = environment_plan(at(f"{LUSTRE}.backup_days", 7))
    assert isinstance(plan, EnvironmentPlan) and lustre(plan).backup_days == 7


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
