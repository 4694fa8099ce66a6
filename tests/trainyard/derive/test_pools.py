"""What follows from a pool: nodes, places, limits, quota, and which jobs run at once; true of every
accepted stack."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cases.environment import BLOCK, CPU, JOB, ODCR, _h100, _job_on
from tests.support.recording import CHECKOUT
from tests.support.stackfile import (
    ENVIRONMENT,
    Edit,
    at,
    environment_plan,
    own_network,
    sound_stacks,
)
from tests.trainyard.catalog.aws.test_instances import EC2
from tests.trainyard.manifests.test_admission import JOB as MANIFEST
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES, STANDARD
from trainyard.catalog.aws.storage import LUSTRE_TIERS
from trainyard.decide import plan_stack
from trainyard.derive.pools import (
    TYPES,
    addresses,
    quota_needed,
    quota_takers,
    system_quota,
)
from trainyard.plan import EnvironmentPlan, Planned
from trainyard.plans.stores import LustrePlan
from trainyard.settings.pools import PoolConfig
from trainyard.settings.reading.reader import read

KINDS = [
    "g6e.48xlarge",
    "g6e.12xlarge",
    "g6.48xlarge",
    "p5.48xlarge",
    "p4d.24xlarge",
    "m7i.48xlarge",
]


def _seldom(draw: st.DrawFn, one_in: int = 6) -> bool:
    return draw(st.integers(1, one_in)) == one_in


@st.composite
def pools(draw: st.DrawFn) -> dict[str, Any]:
    """Pools as people may write them, sound or not."""
    capacity = draw(st.sampled_from(["on_demand", "on_demand", "spot", "reservation", "block"]))
    kinds = (
        st.just("p5.48xlarge")
        if capacity == "block" and not _seldom(draw)
        else st.sampled_from(KINDS)
    )
    pool: dict[str, Any] = {
        "instance_types": [draw(kinds)],
        "max_nodes": draw(st.integers(2, 6)),
        "capacity": capacity,
    }
    if capacity in ("reservation", "block"):
        pool["reservation"] = {
            **(ODCR if capacity == "reservation" else BLOCK),
            "instances": draw(st.sampled_from([4, 8])),
            "id": f"cr-{draw(st.integers(10**7, 10**8 - 1)):08d}",
        }
        if draw(st.booleans()):
            pool["reservation"]["placement_group"] = "theirs"
    if _seldom(draw):
        pool["instance_types"].append(draw(kinds))
    for key, value in (
        ("replicas", st.integers(1, 3)),
        ("placement", st.just("cluster")),
        ("fallback_zones", st.just(["ap-northeast-2c"])),
    ):
        if _seldom(draw):
            pool[key] = draw(value)
    if "replicas" in pool and draw(st.booleans()):
        pool["warm_spares"] = 1
    return pool


@st.composite
def any_stacks(draw: st.DrawFn) -> dict[str, Any]:
    """The dev stack with other pools, a job on one of them, and another store: about half are
    refused."""
    found = draw(sound_stacks())
    found["aws:region"], settings = "ap-northeast-2", found[ENVIRONMENT]
    named = {f"p{n}": draw(pools()) for n in range(draw(st.integers(1, 2)))}
    cidr = "10.4.0.0/20" if _seldom(draw) else "10.0.0.0/16"
    store = (
        {"capacity_gib": 3000, "throughput_mbps_per_tib": 5}
        if _seldom(draw, 10)
        else draw(
            st.sampled_from(
                [
                    {"capacity_gib": 4800, "throughput_mbps_per_tib": 500},
                    {"capacity_gib": 2400, "deployment": "SCRATCH_2"},
                    {"for_model": {"parameters_billion": 30, "nodes": 8}},
                ]
            )
        )
    )
    job = {
        "runtime": "torch-distributed-resilient",
        "nodes": draw(st.integers(1, 3)),
        "image": "image:1",
        "pool": draw(st.sampled_from(list(named))),
        "command": ["train"],
        "shared_memory_gib": 8,
        "processes_per_node": 1,
        "checkpoints": {"store": "scratch", "directory": "a"},
    }
    settings |= {
        "zone": "ap-northeast-2a",
        "pools": named,
        "network": {"cidr": cidr},
        "storage": {"scratch": {"lustre": store}},
        "jobs": {"job": job},
    }
    return found


def _planned(stack: dict[str, Any]) -> Planned:
    return plan_stack(read(stack, stack="dev", project="trainyard"))


@given(stack=any_stacks())
def test_every_accepted_stack_has_one_zone_for_gangs_room_for_them_and_what_is_sold(
    stack: dict[str, Any],
) -> None:
    planned = _planned(stack)
    if not isinstance(planned.plan, EnvironmentPlan):
        assert planned.errors
        return
    plan, settings = planned.plan, stack[ENVIRONMENT]
    for name, pool in plan.pools.items():
        given_pool = settings["pools"][name]
        reserved = given_pool["capacity"] in ("reservation", "block")
        for kind in pool.types:
            fabric = [i for i in kind.interfaces if i.kind == "efa-only"]
            assert (
                len(fabric)
                == kind.efa
                == TYPES[kind.instance_type].efa
                <= TYPES[kind.instance_type].cards
            )
            assert len({(i.card, i.device) for i in kind.interfaces}) == len(kind.interfaces)
        assert (pool.capacity_type == "reserved") == reserved == (pool.reservation_id is not None)
        assert not (pool.reservation_id and pool.own_placement_group), (
            "a reservation is not in a group made later"
        )
        assert (
            pool.placement_group is None
            or pool.own_placement_group
            or pool.placement_group == "theirs"
        )
        assert pool.replicas is None or pool.replicas <= pool.max_nodes
        assert not reserved or pool.max_nodes <= given_pool["reservation"]["instances"]
    for name, job in plan.jobs.items():
        pool, nodes = plan.pools[job.pool], job.nodes
        assert nodes <= pool.max_nodes and plan.capacity[job.pool].at_once[name] >= 1
        assert nodes == 1 or (len(pool.types) == 1 and pool.zones == (plan.zone,)), (
            "ranks are alike and in one zone"
        )
        assert pool.replicas is None or nodes <= pool.replicas
    network = own_network(plan)
    vpc = ipaddress.ip_network(network.cidr)
    ranges = [
        ipaddress.ip_network(c) for z in network.zones for c in (z.public_cidr, z.private_cidr)
    ]
    assert all(r.subnet_of(vpc) for r in ranges)  # type: ignore[arg-type]
    assert not any(a.overlaps(b) for i, a in enumerate(ranges) for b in ranges[i + 1 :])
    assert sum(use.addresses for use in plan.capacity.values()) <= ranges[1].num_addresses - 5
    for store in plan.stores.values():
        assert isinstance(store, LustrePlan)
        assert store.capacity_gib == 1200 or store.capacity_gib % 2400 == 0
        assert (store.throughput_mbps_per_tib in LUSTRE_TIERS) == (
            store.deployment == "PERSISTENT_2"
        )


WRONG: list[tuple[str, Any]] = [
    ("zone", "ap-northeast-2"),
    ("zone", "mars-north-1a"),
    ("zone_id", "mars1-az1"),
    ("network.cidr", "8.8.0.0/16"),
    ("network.cidr", "10.0.0.0/24"),
    ("cluster.version", "1.19"),
    ("system_nodes.instance_type", "m7g.large"),
    ("namespace", "kube-system"),
    ("pools.pool-0.instance_types", ["p9.48xlarge"]),
    ("pools.pool-0.max_nodes", 0),
    ("pools.pool-0.capacity", "block"),
    ("pools.pool-0.reservation", ODCR),
    ("pools.pool-0.warm_spares", 1),
    ("pools.pool-0.replicas", 99),
    ("pools.pool-0.fallback_zones", ["mars-north-1a"]),
    ("pools.pool-0.capcity", "spot"),
    ("pools.pool-0.root_volume_gib", 10),
    ("jobs.job-0.nodes", 99),
    ("jobs.job-0.gpus_per_node", 99),
    ("jobs.job-0.pool", "nowhere"),
    ("jobs.job-0.runtime", "jax"),
    ("jobs.job-0.image", ""),
    ("jobs.job-0.nodes", "2"),
    ("jobs.job-0.shared_memory_gib", 9999),
    ("jobs.job-0.env", {"PET_NNODES": "1"}),
    ("jobs.job-0.storage", {"nowhere": {"path": "/x"}}),
    ("trainer.version", "9.9.9"),
    ("tags", {"aws:x": "1"}),
    ("trainer.runtimes", ["jax"]),
    ("storage.more", {"efs": {}, "lustre": {"capacity_gib": 1200}}),
    ("storage.more", {"lustre": {"capacity_gib": 1000, "throughput_mbps_per_tib": 500}}),
]


@given(stack=sound_stacks(), change=st.sampled_from(WRONG))
def test_one_change_that_breaks_a_sound_stack_is_answered_with_its_own_name(
    stack: dict[str, Any], change: tuple[str, Any]
) -> None:
    path, value = change
    if path.startswith("jobs.") and "job-0" not in stack[ENVIRONMENT]["jobs"]:
        return
    assert not _planned(stack).errors
    at(path, value)(stack[ENVIRONMENT])
    found = _planned(stack).errors
    assert found and any(path in f.path or path.rpartition(".")[2] in str(f) for f in found), [
        str(f) for f in found
    ]


# What the plan says of the dev stack's pools.


def test_jobs_run_at_once_as_often_as_their_nodes_fit() -> None:
    plan = environment_plan(at("pools.g6e.max_nodes", 5), _job_on("g6e", nodes=1, gpus_per_node=4))
    assert plan.capacity["g6e"].at_once == {"t5-large": 2, "other": 10}
    assert plan.capacity["h100"].at_once == {
        "t5-large": 1,
        "other": 4,
    }, "pools that could take them say so too"


def test_the_quota_that_full_pools_need_is_counted_by_family() -> None:
    plan = environment_plan(CPU)
    assert quota_needed(plan.capacity, plan.system_nodes) == {
        "L-1216C47A": 2 * 192 + (2 + 2 * 3) * 4,
        "L-417A185B": 2 * 192,
        "L-DB2E81BA": 4 * 192,
    }
    spot = environment_plan(at("pools.g6e.capacity", "spot"))
    assert spot.capacity["g6e"].quota == {"L-3819A6DF": 4 * 192}
    block = environment_plan(_h100(capacity="block", reservation=BLOCK))
    assert block.capacity["h100"].quota == {}, "Capacity Blocks have no vCPU quota"


@pytest.mark.parametrize(
    ("kind", "nodes", "quota"),
    [
        ("m7i.xlarge", 2, {"L-1216C47A": 8}),
        ("t3.large", 3, {"L-1216C47A": 6}),
        ("m7i.4xlarge", 2, {"L-1216C47A": 32}),
        ("x2iedn.xlarge", 2, {}),
        ("m7i.metal-24xl", 2, {}),
    ],
)
def test_system_nodes_count_against_the_standard_quota_and_never_by_a_guess(
    kind: str, nodes: int, quota: dict[str, int]
) -> None:
    plan = environment_plan(at("system_nodes", {"instance_type": kind, "nodes": nodes}))
    assert system_quota(plan.system_nodes) == quota
    takers = quota_takers(plan.capacity, plan.system_nodes)
    own = quota.get("L-1216C47A", 0)
    updates = {"updates of system nodes": own // nodes * 2 * 3}
    assert takers.get("L-1216C47A", {}) == ({"system nodes": own, **updates} if quota else {})
    assert takers["L-DB2E81BA"] == {"g6e": 4 * 192}


def test_the_vcpus_of_a_standard_type_follow_from_its_size() -> None:
    known = {name: facts["VCpuInfo"]["DefaultVCpus"] for name, facts in EC2.items()}
    named = {name: found for name in known if (found := STANDARD.fullmatch(name))}
    wrong = {
        name
        for name, found in named.items()
        if known[name] != (2 if found[1] is None else 4 * int(found[1] or 1))
    }
    assert wrong == {"c4.8xlarge"} and len(named) > 900 and not named.keys() & GPU_TYPES.keys()
    assert CPU_TYPES.keys() <= named.keys()


def test_spares_are_kept_beside_the_replicas() -> None:
    plan = environment_plan(_h100(max_nodes=4, replicas=2, warm_spares=1))
    assert plan.pools["h100"].replicas == plan.capacity["h100"].kept_nodes == 3
    assert plan.karpenter.static_capacity and not environment_plan().karpenter.static_capacity


def test_a_static_pool_that_is_switched_off_has_no_nodes_and_no_spares_and_stays_static() -> None:
    plan = environment_plan(_h100(max_nodes=4, replicas=0, warm_spares=1))
    assert plan.pools["h100"].replicas == plan.capacity["h100"].kept_nodes == 0
    assert plan.karpenter.static_capacity


def _awaited(*edits: Edit, folder: Path = CHECKOUT) -> set[str]:
    pools = environment_plan(*edits, folder=folder).pools
    return {name for name, pool in pools.items() if pool.awaited}


def test_up_waits_for_pools_with_jobs_and_for_kept_nodes_and_for_no_idle_pool() -> None:
    assert _awaited() == {"g6e"} and _awaited(at("jobs", {})) == set()
    assert _awaited(at("jobs", {}), _h100(replicas=2)) == {"h100"}
    assert _awaited(_job_on("h100")) == {"g6e", "h100"}


def test_up_waits_for_the_pool_of_a_job_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(MANIFEST.replace("numNodes: 2", "numNodes: 1"))
    job = {"manifest": "job.yaml", "pool": "h100"}
    assert _awaited(at("jobs", {"theirs": job}), folder=tmp_path) == {"h100"}


def test_a_full_pool_takes_few_addresses_a_node_whatever_its_efa() -> None:
    assert addresses(PoolConfig(instance_types=("p5.48xlarge",), max_nodes=10)) == 210


def test_a_block_gives_its_nodes_ten_minutes_to_drain_and_nothing_else_does() -> None:
    plan = environment_plan(_h100(capacity="block", reservation=BLOCK))
    assert (plan.pools["h100"].drain_minutes, plan.pools["g6e"].drain_minutes) == (10, None)


def test_a_reservation_brings_the_group_it_was_made_in() -> None:
    pool = environment_plan(
        _h100(capacity="reservation", reservation={**ODCR, "placement_group": "theirs"})
    ).pools["h100"]
    assert (pool.placement_group, pool.own_placement_group, pool.reservation_id) == (
        "theirs",
        False,
        ODCR["id"],
    )


def test_a_placement_group_of_ours_has_another_name_in_another_zone() -> None:
    """It must be made anew there, beside the old one."""
    names = {
        environment_plan(_h100(placement="cluster"), at("zone", f"ap-northeast-2{z}"))
        .pools["h100"]
        .placement_group
        for z in "ab"
    }
    assert len(names) == 2


def test_a_cpu_job_asks_for_cpus_and_for_no_device() -> None:
    plan = environment_plan(CPU, _job_on("cpu", processes_per_node=2))
    limits = plan.jobs["other"].spec["trainer"]["resourcesPerNode"]["limits"]
    assert limits == {"cpu": "191", "memory": "630Gi"}


def test_a_pod_has_a_rank_for_each_gpu_or_for_each_cpu_that_it_requests() -> None:
    on_cpus = environment_plan(CPU, _job_on("cpu", processes_per_node="cpu")).jobs["other"]
    assert on_cpus.spec["trainer"]["numProcPerNode"] == 191
    fewer = _job_on("cpu", processes_per_node="cpu", cpus_per_node=4)
    assert environment_plan(CPU, fewer).jobs["other"].spec["trainer"]["numProcPerNode"] == 4
    asked, unasked = (
        environment_plan(*edits).jobs["t5-large"]
        for edits in ([at(f"{JOB}.processes_per_node", "gpu")], [])
    )
    assert (asked.spec, asked.run) == (unasked.spec, unasked.run)


def test_a_job_on_several_types_is_held_to_the_pool_and_to_no_type() -> None:
    plan = environment_plan(
        at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"]), at(f"{JOB}.nodes", 1)
    )
    selector = plan.jobs["t5-large"].spec["podTemplateOverrides"][0]["spec"]["nodeSelector"]
    assert selector == {
        "trainyard.io/pool": "g6e",
        "topology.kubernetes.io/zone": "ap-northeast-2a",
    }
    assert [(t.name, t.weight) for t in plan.pools["g6e"].types] == [("g6e", 100), ("g6e-2", 99)]


def test_a_job_with_fallback_zones_is_held_to_no_zone() -> None:
    plan = environment_plan(
        at("pools.g6e.fallback_zones", ["ap-northeast-2c"]), at(f"{JOB}.nodes", 1)
    )
    selector = plan.jobs["t5-large"].spec["podTemplateOverrides"][0]["spec"]["nodeSelector"]
    assert "topology.kubernetes.io/zone" not in selector
    assert plan.pools["g6e"].zones == ("ap-northeast-2a", "ap-northeast-2c")


@pytest.mark.parametrize("kind", [*GPU_TYPES, *CPU_TYPES])
def test_a_node_holds_no_more_pods_than_its_interfaces_have_addresses_for(kind: str) -> None:
    assert 0 < min(64, TYPES[kind].max_pods) <= 64


# What nodes pull while they start.


def _prefetched(*edits: Edit) -> dict[str, tuple[str, ...]]:
    return {name: pool.images for name, pool in environment_plan(*edits).pools.items()}


def test_nodes_pull_the_image_of_their_jobs_while_they_start_if_they_have_one_in_common() -> None:
    usual = _prefetched()
    assert usual["h100"] == () and len(usual["g6e"]) == 1
    assert _prefetched(_second_job())["g6e"] == usual["g6e"]
    assert _prefetched(_second_job(image="other:1"))["g6e"] == ()


def test_an_image_that_needs_a_secret_is_left_to_the_job_that_has_it() -> None:
    assert _prefetched(at("jobs.t5-large.pull_secrets", ["registry"]))["g6e"] == ()
    assert _prefetched(_second_job(pull_secrets=["registry"]))["g6e"] == ()


def test_a_pool_that_names_images_pulls_each_of_them_once_and_no_others() -> None:
    assert _prefetched(at("pools.g6e.prefetch", []))["g6e"] == ()
    assert _prefetched(_h100(prefetch=["a:1", "b:2"]))["h100"] == ("a:1", "b:2")


def _second_job(**more: Any) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        first = settings["jobs"]["t5-large"]
        saved = {**first["checkpoints"], "directory": "second"}
        settings["jobs"]["second"] = {**first, "checkpoints": saved, **more}

    return edit
