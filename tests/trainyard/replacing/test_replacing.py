"""What an update would replace, and which entry of the stack file allows it."""

from __future__ import annotations

import functools
from typing import Any

import pulumi
import pytest

from rehearsal.providers.aws.provider import KINDS as AWS
from tests.support.deployed import deployed
from tests.support.existing_cluster import IN_CLUSTER, ExistingCluster
from tests.support.existing_stores import EFS
from tests.support.existing_vpc import EXISTING_VPC, NETWORK, SUBNETS, ExistingVpc
from tests.support.recording import Graph, deploy
from tests.support.stackfile import (
    ENVIRONMENT,
    Edit,
    at,
    environment_plan,
    planned,
    values,
    without,
)
from tests.support.stacks import BOUNDARY, KEY, STACKS, recorded
from trainyard.plan import EnvironmentPlan
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.leaving import leaving_warnings
from trainyard.replacing.replacing import (
    STORES,
    changes,
    growing_warnings,
    replacing_errors,
    replacing_warnings,
)

RUNTIME = "torch-distributed-resilient"
OWN = f"trainer.own_runtimes.{RUNTIME}"
LUSTRE = "storage.scratch.lustre"
PERSISTENT = {"capacity_gib": 9600, "throughput_mbps_per_tib": 500}
KEEP = at("storage.scratch.data", "keep")
BUCKET = at("storage.sets", {"s3": {}, "data": "delete"})
ALONE = at("jobs", {})
BARE = (ALONE, at("storage", {}))
HISTORY = {"managed_prometheus": {"data": "delete"}}


def renamed(path: str, old: str, new: str) -> Edit:
    """An edit that gives an entry of a map another name."""

    def edit(settings: dict[str, Any]) -> None:
        for step in path.split("."):
            settings = settings[step]
        settings[new] = settings.pop(old)

    return edit


@functools.cache
def graph_of(*edits: Edit) -> Graph:
    def changed(values: dict[str, Any]) -> None:
        for edit in edits:
            edit(values[ENVIRONMENT])

    return deploy("dev", changed, vpc=_answers(edits))


def _answers(edits: tuple[Edit, ...]) -> ExistingVpc | None:
    if edits[: len(IN_CLUSTER)] == IN_CLUSTER:
        return ExistingCluster()
    return ExistingVpc() if EXISTING_VPC in edits else None


REPLACED: dict[str, tuple[tuple[Edit, ...], tuple[Edit, ...], dict[str, set[str]]]] = {
    "another training zone": (
        (),
        (at("zone", "ap-northeast-2b"),),
        {"environment.zone": {"storage.scratch"}},
    ),
    "another subnet of an existing VPC": (
        (EXISTING_VPC,),
        (
            at(
                "network",
                {
                    **NETWORK,
                    "private_subnets": SUBNETS | {"ap-northeast-2a": "subnet-0123456789abcdef0"},
                },
            ),
        ),
        {"environment.network.private_subnets.ap-northeast-2a": {"storage.scratch"}},
    ),
    "a key of the company that comes late, for the history of metrics": (
        (*BARE, at("metrics", HISTORY)),
        (*BARE, at("metrics", HISTORY), at("kms_key_arn", KEY)),
        {"environment.kms_key_arn": {"metrics.managed_prometheus"}},
    ),
    "a key that comes late": (
        (),
        (at("kms_key_arn", KEY),),
        {"environment.kms_key_arn": {"storage.scratch", "storage.home"}},
    ),
    "another deployment type": (
        (),
        (at(LUSTRE, {"capacity_gib": 4800, "deployment": "SCRATCH_2"}),),
        {f"environment.{LUSTRE}.deployment": {"storage.scratch"}},
    ),
    "a smaller file system": (
        (),
        (at(f"{LUSTRE}.capacity_gib", 2400),),
        {f"environment.{LUSTRE}.capacity_gib": {"storage.scratch"}},
    ),
    "a backup to begin with": (
        (),
        (at(f"{LUSTRE}.restore_from", "backup-0123456789abcdef0"),),
        {f"environment.{LUSTRE}.restore_from": {"storage.scratch"}},
    ),
    "a backup that is taken out of the file": (
        (at(f"{LUSTRE}.restore_from", "backup-0123456789abcdef0"),),
        (),
        {f"environment.{LUSTRE}.restore_from": {"storage.scratch"}},
    ),
    "a file system for EFA": (
        (at(LUSTRE, PERSISTENT),),
        (at(LUSTRE, PERSISTENT | {"efa": True}),),
        {f"environment.{LUSTRE}.efa": {"storage.scratch"}},
    ),
    "another speed of a file system for EFA": (
        (at(LUSTRE, PERSISTENT | {"efa": True}),),
        (at(LUSTRE, PERSISTENT | {"efa": True, "throughput_mbps_per_tib": 1000}),),
        {f"environment.{LUSTRE}.throughput_mbps_per_tib": {"storage.scratch"}},
    ),
    "another kind of store": (
        (ALONE,),
        (ALONE, without(LUSTRE), at("storage.scratch.efs", {})),
        {"environment.storage.scratch": {"storage.scratch"}},
    ),
    "a bucket that exists instead of the stack's": (
        (BUCKET,),
        (at("storage.sets", {"s3": {"bucket": "theirs"}, "data": "keep"}),),
        {"environment.storage.sets": {"storage.sets"}},
    ),
    "a store with another name": (
        (ALONE,),
        (ALONE, renamed("storage", "home", "homes")),
        {"environment.storage": {"storage.home"}},
    ),
    "a pool with another name": (
        (),
        (renamed("pools", "h100", "p5"),),
        {"environment.pools": {"pools.h100"}},
    ),
    "a runtime with another name": (
        (ALONE,),
        (ALONE, renamed("trainer.own_runtimes", RUNTIME, "resilient")),
        {"environment.trainer.own_runtimes": {f"runtimes.{RUNTIME}"}},
    ),
    "other restarts of a runtime": (
        (),
        (at(f"{OWN}.max_restarts", 7),),
        {f"environment.{OWN}.max_restarts": {f"runtimes.{RUNTIME}"}},
    ),
}
"""What changes → (what is deployed, what is wanted, path of the setting → entries that allow it)."""

IN_PLACE: dict[str, tuple[tuple[Edit, ...], tuple[Edit, ...]]] = {
    "a larger file system": ((), (at(f"{LUSTRE}.capacity_gib", 7200),)),
    "a faster file system": ((), (at(f"{LUSTRE}.throughput_mbps_per_tib", 1000),)),
    "another instance type": ((), (at("pools.h100.instance_types", ["p5en.48xlarge"]),)),
    "another image of a runtime": ((), (at(f"{OWN}.image", "image:2"),)),
    "another Kubernetes version": ((), (at("cluster.version", "1.36"),)),
    "a private endpoint": (
        (),
        (
            at("cluster.endpoint", "private"),
            at("cluster.inside_vpc", True),
            without("cluster.public_access_cidrs"),
        ),
    ),
    "a pool more": ((), (at("pools.more", {"instance_types": ["p5.48xlarge"], "max_nodes": 1}),)),
    "a pool less": ((), (without("pools.h100"),)),
    "a store more": ((), (at("storage.more", {"efs": {}}),)),
    "a store less": ((), (without("storage.home"),)),
    "a store less and a bucket that exists": (
        (),
        (without("storage.home"), at("storage.sets", {"s3": {"bucket": "theirs"}})),
    ),
    "another list of upstream's runtimes": (
        (at("trainer.runtimes", ["torch-distributed", "mlx-distributed"]),),
        (at("trainer.runtimes", ["torch-distributed", "deepspeed-distributed"]),),
    ),
    "a store that is kept from now on": ((), (KEEP,)),
}
"""What changes → (what is deployed, what is wanted)."""


def errors_of(plan: EnvironmentPlan, found: Deployed) -> list[str]:
    return [str(error) for error in replacing_errors(plan, found)]


@pytest.mark.parametrize("case", REPLACED)
def test_a_replacement_is_refused_with_its_setting_until_its_entries_allow_it(case: str) -> None:
    before, after, expected = REPLACED[case]
    found = deployed(graph_of(*before))
    entries = sorted({entry for each in expected.values() for entry in each})
    refused = [*replacing_errors(environment_plan(*after), found)]
    by_path = {path: {e.fix for e in refused if e.path == path} for path in expected}
    assert {error.path for error in refused} == set(expected)
    for path, allowing in expected.items():
        assert {fix.rpartition("[")[2].partition("]")[0] for fix in by_path[path]} == allowing
    allowed = environment_plan(*after, at("allow_replace", entries))
    assert (errors_of(allowed, found), [*replacing_warnings(allowed, found)]) == ([], [])


@pytest.mark.parametrize("case", IN_PLACE)
def test_what_is_changed_added_or_removed_without_a_replacement_is_not_refused(case: str) -> None:
    before, after = IN_PLACE[case]
    assert errors_of(environment_plan(*after), deployed(graph_of(*before))) == []


@pytest.mark.parametrize(
    ("before", "after", "got"),
    [
        (
            (),
            (at("network.zones", ["ap-northeast-2a", "ap-northeast-2b"]),),
            "network: must have the zones that dev-cluster-",
        ),
        ((), (EXISTING_VPC,), "network.vpc_id: must stay 10.0.0.0/16, or the cluster is replaced"),
        ((EXISTING_VPC,), (), f"network.cidr: must stay {NETWORK['vpc_id']}, or the cluster"),
        (
            (),
            (at("permissions_boundary", BOUNDARY),),
            "permissions_boundary: must not be set later, or the cluster is replaced",
        ),
        (
            (at("permissions_boundary", BOUNDARY),),
            (),
            "permissions_boundary: must stay, as the control plane's role has one, or the cluster",
        ),
        (
            (),
            (at("cluster.service_cidr", "192.168.0.0/20"),),
            "cluster.service_cidr: must stay 172.20.0.0/16, or the cluster is replaced, and every node"
            " and job in it ends; got 192.168.0.0/20. Fix: write 172.20.0.0/16 again",
        ),
        (
            (at("cluster.service_cidr", "192.168.0.0/20"),),
            (),
            "cluster.service_cidr: must stay 192.168.0.0/20, or the cluster is replaced",
        ),
        (
            (EXISTING_VPC, at("cluster.service_cidr", "192.168.0.0/20")),
            (EXISTING_VPC,),
            "cluster.service_cidr: must stay 192.168.0.0/20, or the cluster is replaced",
        ),
        (
            (EXISTING_VPC,),
            IN_CLUSTER,
            "cluster.name: must not be set later, or the cluster is replaced",
        ),
        (
            IN_CLUSTER,
            (EXISTING_VPC,),
            "cluster.name: must stay research, or the cluster is replaced",
        ),
        (
            IN_CLUSTER,
            (*IN_CLUSTER, at("cluster.name", "other")),
            "cluster.name: must stay research, or the cluster is replaced, and every node and job in"
            " it ends; got other. Fix: write name: research again; otherwise run pulumi destroy first",
        ),
    ],
)
def test_no_entry_lets_a_stack_move_to_another_cluster(
    before: tuple[Edit, ...], after: tuple[Edit, ...], got: str
) -> None:
    plan = environment_plan(*after, at("allow_replace", ["storage.scratch"]))
    [error] = errors_of(plan, deployed(graph_of(*before)))
    assert error.startswith(f"environment.{got}")
    assert "run pulumi destroy first" in error


def test_an_update_that_grows_a_file_system_says_what_that_means() -> None:
    plan = environment_plan(at(f"{LUSTRE}.capacity_gib", 7200))
    [warning] = growing_warnings(plan, deployed(graph_of()))
    assert warning.path == f"environment.{LUSTRE}.capacity_gib"
    assert "grows scratch from 4800 to 7200" in warning.text and "after 6 hours" in warning.text
    assert [*growing_warnings(environment_plan(), deployed(graph_of()))] == []
    assert [*growing_warnings(plan, Deployed())] == []


@pytest.mark.parametrize(
    ("after", "path"),
    [
        (at("pools.h100.placement", "anywhere"), "environment.pools.h100.placement"),
        (at("zone", "ap-northeast-2c"), "environment.zone"),
    ],
)
def test_a_placement_group_goes_after_its_nodes(after: Edit, path: str) -> None:
    near = at("pools.h100.placement", "cluster")
    graph = graph_of(near)
    [warning] = leaving_warnings(environment_plan(near, after), deployed(graph))
    assert warning.path == path
    group = graph["PlacementGroup h100-nodes"].inputs["name"]
    assert group in warning.text and "pool h100" in warning.text
    assert [*leaving_warnings(environment_plan(near), deployed(graph))] == []
    assert [*leaving_warnings(environment_plan(without("pools.h100")), deployed(graph))] == []
    assert [*leaving_warnings(environment_plan(near), Deployed())] == []


def test_a_file_system_that_is_read_is_no_store_of_the_stack() -> None:
    read = Deployed(resources={("aws:fsx/lustreFileSystem:LustreFileSystem", "theirs.brought"): {}})
    assert [*changes(environment_plan(), read)] == []


def test_a_store_of_the_stack_does_not_become_an_existing_one() -> None:
    plan = environment_plan(EXISTING_VPC, at("storage.home", {"efs": {"file_system_id": EFS}}))
    found = deployed(graph_of(EXISTING_VPC))
    [error] = replacing_errors(plan, found)
    assert error.path == "environment.storage.home"
    assert error.got == "one of efs that it did not make"


@pytest.mark.parametrize("stack", STACKS)
def test_what_is_deployed_and_not_changed_is_not_replaced(stack: str) -> None:
    found = deployed(recorded(stack))
    assert [*changes(environment_plan(*STACKS[stack]), found)] == []
    assert found.names(*STORES) or stack == "no store"


AWS_STORES = {token: AWS[token].replaces for token in STORES}
"""Type → inputs that the rehearsal's plugin, which was compared with the genuine one, replaces for."""


@pytest.mark.parametrize(
    "case",
    [
        "another training zone",
        "another deployment type",
        "a file system for EFA",
        "another speed of a file system for EFA",
        "another kind of store",
    ],
)
def test_the_plugin_replaces_the_stores_that_the_rule_names_and_no_others(case: str) -> None:
    before, after, expected = REPLACED[case]
    was, now = graph_of(*before), graph_of(*after)
    told = {
        entry.partition(".")[2]
        for each in expected.values()
        for entry in each
        if entry.startswith("storage.")
    }
    replaced = {
        node.name
        for token, inputs in AWS_STORES.items()
        for node in was.of(token)
        if (same := {n.name: n for n in now.of(token)}.get(node.name)) is None
        or any(node.inputs.get(key) != same.inputs.get(key) for key in inputs)
        or (
            "perUnitStorageThroughput" in same.options.replaceOnChanges
            and node.inputs["perUnitStorageThroughput"] != same.inputs["perUnitStorageThroughput"]
        )
    }
    assert replaced == told


def test_another_range_of_the_own_vpc_is_refused_whatever_is_allowed() -> None:
    """Tried with the engine: EC2 refuses to move the gateways."""
    other, entries = at("network.cidr", "172.20.0.0/16"), ["storage.scratch"]
    found = deployed(graph_of())
    for edits in ((other,), (other, at("allow_replace", entries))):
        refused = [*replacing_errors(environment_plan(*edits), found)]
        assert {error.path for error in refused} == {"environment.network.cidr"}
        assert len(refused) == 2 and all(
            error.fix.endswith("run pulumi destroy first, or write another stack file")
            for error in refused
        )


@pytest.mark.parametrize("after", [(), (at("kms_key_arn", f"{KEY[:-1]}1"),)])
def test_a_cluster_keeps_the_key_that_it_got_whatever_is_allowed(after: tuple[Edit, ...]) -> None:
    """The provider has no call for another key, and would report an update that changes nothing."""
    entries = at("allow_replace", ["storage.scratch", "storage.home"])
    found = deployed(graph_of(at("kms_key_arn", KEY)))
    refused = [*replacing_errors(environment_plan(*after, entries), found)]
    assert [error.path for error in refused] == ["environment.kms_key_arn"]
    assert f"must stay {KEY}, or the cluster is replaced" in str(refused[0])
    assert "run pulumi destroy first" in refused[0].fix


def test_a_claim_has_another_name_where_the_key_makes_another_store() -> None:
    before, after = (
        {claim.store: claim.name for claim in environment_plan(*edits).workspace.claims}
        for edits in ((BUCKET,), (BUCKET, at("kms_key_arn", KEY)))
    )
    assert {name for name in before if before[name] != after[name]} == {"scratch", "home"}


def test_another_region_replaces_the_cluster_and_every_store() -> None:
    elsewhere = values(at("zone", "us-east-2a"))
    elsewhere["aws:region"] = "us-east-2"
    plan = _plan_of(elsewhere)
    refused = [*replacing_errors(plan, deployed(graph_of(BUCKET)))]
    assert {error.path for error in refused} == {"aws:region"}
    assert len(refused) == 3, "cluster, scratch, home; sets is removed"
    assert "must stay ap-northeast-2, or the cluster is replaced" in str(refused[0])


def _plan_of(configuration: dict[str, Any]) -> EnvironmentPlan:
    from trainyard.decide import plan_stack
    from trainyard.settings.reading.reader import read

    plan = plan_stack(read(configuration, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


def test_an_entry_does_not_allow_to_lose_data_that_is_kept() -> None:
    """Engine: what is not protected any more can be replaced in the same update."""
    found = deployed(graph_of())
    other_zone = at("zone", "ap-northeast-2b"), at("allow_replace", ["storage.scratch"])
    [error] = errors_of(environment_plan(KEEP, *other_zone), found)
    assert error == (
        "environment.zone: must stay ap-northeast-2a, or store scratch is replaced, and the data in"
        " it is lost; got ap-northeast-2b. Fix: write ap-northeast-2a again; if you want the"
        " replacement, write data: delete under environment.storage.scratch and allow_replace:"
        " [storage.scratch] under environment"
    )
    assert errors_of(environment_plan(*other_zone), found) == []


def test_nothing_is_refused_before_the_first_up_and_no_entry_is_called_idle() -> None:
    plan = environment_plan(at("allow_replace", ["storage.scratch"]))
    assert [*replacing_errors(plan, Deployed()), *replacing_warnings(plan, Deployed())] == []


def test_an_entry_that_allows_nothing_is_said() -> None:
    plan = environment_plan(at("allow_replace", ["storage.scratch", "pools.none"]))
    said = [str(warning) for warning in replacing_warnings(plan, deployed(graph_of()))]
    assert (
        len(said) == 2
        and "this update does not replace storage.scratch. Delete the entry" in said[0]
    )


def test_an_entry_that_is_no_noun_is_refused_when_the_file_is_read() -> None:
    [cluster] = planned(at("allow_replace", ["cluster"])).errors
    assert cluster.path == "environment.allow_replace.0"
    [error] = planned(at("allow_replace", ["scratch"])).errors
    assert "must be a section, a dot and a name" in str(error)
    [path] = planned(at("allow_replace", ["environment.storage.scratch"])).errors
    assert path.fix == "write storage.scratch"


def test_a_preview_says_every_replacement_at_once_and_registers_nothing() -> None:
    """Through __main__.py, with the line of the stack file."""

    def changed(values: dict[str, Any]) -> None:
        at("network.cidr", "10.1.0.0/16")(values[ENVIRONMENT])
        at(f"{OWN}.max_restarts", 7)(values[ENVIRONMENT])

    with pytest.raises(pulumi.RunError) as refused:
        deploy("dev", changed, preview=True, deployed=deployed(graph_of()))
    said = str(refused.value)
    assert said.startswith("3 errors in the stack file")
    assert "environment.network.cidr [Pulumi.dev.yaml:7]: must stay 10.0.0.0/16" in said
    assert f"{OWN}.max_restarts [Pulumi.dev.yaml:" in said


def test_an_allowed_replacement_is_the_graph_of_a_fresh_stack() -> None:
    edit = at(f"{OWN}.max_restarts", 7)

    def changed(values: dict[str, Any]) -> None:
        edit(values[ENVIRONMENT])
        at("allow_replace", [f"runtimes.{RUNTIME}"])(values[ENVIRONMENT])

    found = deploy("dev", changed, deployed=deployed(graph_of()))
    assert found.golden() == graph_of(edit).golden()
