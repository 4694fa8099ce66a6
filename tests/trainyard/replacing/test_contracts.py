"""A change of an environment stops the teams whose jobs it concerns, and no other.

Each row below is a change, with what a person says of it: it concerns team vision, or not. The program
knows no such list.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

from tests.support.contracts import alone, contract_of, mutated
from tests.support.stackfile import Edit, at, without
from tests.support.stacks import KEY, MIRROR
from tests.support.teams import ROLE, both, by_name, checkout, listed, team_of, with_queues
from trainyard.catalog.versions import TRAINYARD
from trainyard.plan import TeamPlan
from trainyard.replacing.contracts import Comparison, compare
from trainyard.settings.reading.reader import read_file

OWN = "trainer.own_runtimes.torch-distributed-resilient"
IMAGE = "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"
VISION, SCRATCH = "teams.vision", "storage.scratch.lustre"
CLUSTER = {
    "name": "dev",
    "arn": "arn:aws:eks:ap-northeast-2:111122223333:cluster/dev",
    "endpoint": "https://cluster",
    "certificate_authority": "Y2E=",
}
RESERVED = {
    "capacity": "reservation",
    "reservation": {"id": "cr-0123456789abcdef0", "instances": 4},
}
FAST = {"lustre": {"capacity_gib": 2400, "deployment": "SCRATCH_2"}}
ALONE = at("jobs", {})
"""The environment's own job goes, which would be refused otherwise."""
PRIVATE = (at("cluster.endpoint", "private"), at("cluster.public_access_cidrs", []))


def _many(settings: dict[str, Any]) -> None:
    """The environment of the rows: two stores that the team sees, and one own runtime more."""
    listed(settings)
    settings["teams"]["vision"]["stores"] = ["scratch", "home"]
    settings["trainer"]["own_runtimes"]["spare"] = {"image": IMAGE}


STOPS: dict[str, tuple[Edit, ...]] = {
    # The pool of its job, g6e, of which the job takes one node.
    "its pool is gone": (ALONE, without("pools.g6e")),
    "its pool has another type": (at("pools.g6e.instance_types", ["p4d.24xlarge"]),),
    "its pool has a type of the same size": (at("pools.g6e.instance_types", ["g6.48xlarge"]),),
    "its pool has a second type": (
        ALONE,
        at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"]),
    ),
    # Its store.
    "its store is gone": (ALONE, without("storage.scratch"), at(f"{VISION}.stores", ["home"])),
    "its store is not its own any more": (at(f"{VISION}.stores", ["home"]),),
    "its store is for reading only": (ALONE, at("storage.scratch.teams", "read_only")),
    "its store keeps teams apart": (at("storage.scratch.teams", "apart"),),
    "its store is of another kind": (at("storage.scratch", {"efs": {}, "data": "delete"}),),
    "its store is deployed anew": (
        at(f"{SCRATCH}.deployment", "SCRATCH_2"),
        without(f"{SCRATCH}.throughput_mbps_per_tib"),
    ),
    "its store has another key": (at("kms_key_arn", KEY),),
    # Place and name.
    "another zone": (at("zone", "ap-northeast-2c"),),
    "another namespace": (at(f"{VISION}.namespace", "seers"),),
    "it is not listed any more": (without(VISION),),
    "another deployer": (at(f"{VISION}.deployer", f"{ROLE}/other"),),
    "a private endpoint by a tunnel": (*PRIVATE, at("cluster.tunnel_port", 8443)),
    "a proxy in front of the endpoint": (
        *PRIVATE,
        at("cluster.proxy_url", "http://proxy.example.com:3128"),
    ),
    # Its share.
    "fewer GPUs than its job": (at(f"{VISION}.max_gpus", 4),),
    "images of another registry only": (
        at(f"{VISION}.image_prefixes", ["registry.example.com/vision/"]),
    ),
    "queues": (at("queues", {}), ALONE, without(f"{VISION}.max_gpus")),
    # Its runtime.
    "its runtime is gone": (ALONE, without(OWN)),
    "its runtime is for mpirun": (ALONE, at(f"{OWN}.kind", "mpi")),
    "its runtime has a priority that the team lacks": (at(f"{OWN}.priority", "high"),),
    "another Trainer": (at("trainer.version", "2.3.0"),),
    "images from a mirror": (at("artifacts", {"images": MIRROR}),),
    "rules of production": (ALONE, at("production", True)),
}
"""Changes that concern a team with one job of one node on g6e, which saves on scratch."""
FREE: dict[str, tuple[Edit, ...]] = {
    # Other pools.
    "another pool grows": (at("pools.h100.max_nodes", 3),),
    "another pool shrinks": (at("pools.h100.max_nodes", 1),),
    "another pool is gone": (without("pools.h100"),),
    "another pool has another type": (at("pools.h100.instance_types", ["p5en.48xlarge"]),),
    "another pool is spot": (at("pools.h100.capacity", "spot"),),
    "another pool is reserved": tuple(at(f"pools.h100.{k}", v) for k, v in RESERVED.items()),
    "another pool keeps nodes": (at("pools.h100.replicas", 1),),
    "another pool keeps spares": (at("pools.h100.replicas", 1), at("pools.h100.warm_spares", 1)),
    "another pool has a placement group": (at("pools.h100.placement", "cluster"),),
    "another pool has larger disks": (at("pools.h100.root_volume_gib", 400),),
    "another pool fetches images": (at("pools.h100.prefetch", ["registry.example.com/a:1"]),),
    "another pool has a second type": (
        at("pools.h100.instance_types", ["p5.48xlarge", "p5en.48xlarge"]),
    ),
    "a pool more": (at("pools.a100", {"instance_types": ["p4d.24xlarge"], "max_nodes": 2}),),
    "a pool without GPUs": (at("pools.cpu", {"instance_types": ["c7i.48xlarge"], "max_nodes": 1}),),
    # Its own pool, in what its job does not ask for.
    "its pool grows": (at("pools.g6e.max_nodes", 8),),
    "its pool shrinks to what its job needs": (ALONE, at("pools.g6e.max_nodes", 1)),
    "its pool shrinks and keeps enough": (at("pools.g6e.max_nodes", 3),),
    "its pool is spot": (at("pools.g6e.capacity", "spot"),),
    "its pool is reserved": tuple(at(f"pools.g6e.{k}", v) for k, v in RESERVED.items()),
    "its pool keeps nodes": (at("pools.g6e.replicas", 2),),
    "its pool has larger disks": (at("pools.g6e.root_volume_gib", 400),),
    "its pool has a placement group": (at("pools.g6e.placement", "cluster"),),
    "its pool fetches no images": (at("pools.g6e.prefetch", []),),
    # Stores.
    "its store grows": (at(f"{SCRATCH}.capacity_gib", 9600),),
    "its store is faster": (at(f"{SCRATCH}.throughput_mbps_per_tib", 1000),),
    "its store has backups": (at(f"{SCRATCH}.backup_days", 7),),
    "its store stays at destroy": (at("storage.scratch.data", "keep"),),
    "its store has a link to S3": (
        at(f"{SCRATCH}.repositories", {"sets": {"s3": "s3://my-sets/a/", "path": "/a"}}),
    ),
    "its store has a window": (at(f"{SCRATCH}.maintenance_window", "sunday 16:30"),),
    "another store is gone": (without("storage.home"), at(f"{VISION}.stores", ["scratch"])),
    "another store keeps teams apart": (at("storage.home.teams", "apart"),),
    "another store is for reading only": (at("storage.home.teams", "read_only"),),
    "another store is provisioned": (
        at("storage.home.efs", {"throughput": "provisioned", "throughput_mibps": 100}),
    ),
    "another store stays at destroy": (at("storage.home.data", "keep"),),
    "another store has backups": (at("storage.home.efs.backup_days", 7),),
    "another store has a lifecycle": (
        at("storage.home.efs.lifecycle", {"infrequent_after_days": 30}),
    ),
    "another store is not its own any more": (at(f"{VISION}.stores", ["scratch"]),),
    "a store more": (at("storage.fast", FAST),),
    "a store more that it sees": (
        at("storage.fast", FAST),
        at(f"{VISION}.stores", ["scratch", "home", "fast"]),
    ),
    "a bucket": (at("storage.corpus", {"s3": {"bucket": "our-corpus"}}),),
    # Its share.
    "more GPUs": (at(f"{VISION}.max_gpus", 32),),
    "fewer GPUs, and enough": (at(f"{VISION}.max_gpus", 8),),
    "GPUs without a limit": (without(f"{VISION}.max_gpus"),),
    "more jobs": (at(f"{VISION}.max_jobs", 200),),
    "fewer jobs": (at(f"{VISION}.max_jobs", 50),),
    "more pods": (at(f"{VISION}.max_pods", 900),),
    "a person more": (at(f"{VISION}.members", [f"{ROLE}/vision", f"{ROLE}/new"]),),
    "nobody looks on": (at(f"{VISION}.viewers", []),),
    "a tag of the team": (at(f"{VISION}.tags", {"cost-center": "4711"}),),
    "a priority that it may use": (at(f"{VISION}.allowed_priorities", ["high"]),),
    "another value of a priority": (at("priorities.high", 2000),),
    "a priority more": (at("priorities.low", -10),),
    "a registry more for its images": (
        at(
            f"{VISION}.image_prefixes",
            ["public.ecr.aws/deep-learning-containers/", "registry.example.com/vision/"],
        ),
    ),
    "images of any registry": (at(f"{VISION}.image_prefixes", []),),
    "parts of buckets": (at(f"{VISION}.s3_writes", ["s3://results/vision/"]),),
    "secrets": (at(f"{VISION}.secrets", ["vision/"]),),
    # Other teams.
    "a team more": (at("teams.audio", {"deployer": f"{ROLE}/audio"}),),
    "a team less": (without("teams.nlp"),),
    "another team has a limit": (at("teams.nlp.max_gpus", 8),),
    "another team has another deployer": (at("teams.nlp.deployer", f"{ROLE}/others"),),
    "another team has another namespace": (at("teams.nlp.namespace", "words"),),
    "another team has fewer stores": (at("teams.nlp.stores", ["home"]),),
    # Runtimes.
    "its runtime restarts once": (at(f"{OWN}.max_restarts", 1),),
    "its runtime has another image": (at(f"{OWN}.image", f"{IMAGE}-2"),),
    "its runtime has a variable": (at(f"{OWN}.env", {"NCCL_DEBUG": "INFO"}),),
    "another own runtime": (at("trainer.own_runtimes.other", {"image": IMAGE, "kind": "cpu"}),),
    "another own runtime is gone": (without("trainer.own_runtimes.spare"),),
    "one upstream runtime": (at("trainer.runtimes", ["torch-distributed"]),),
    "fewer upstream runtimes": (
        at("trainer.runtimes", ["torch-distributed", "deepspeed-distributed"]),
    ),
    "the training-operator": (at("training_operator", {"version": "1.8.1"}),),
    # Parts.
    "metrics": (at("metrics", {}),),
    "a Pushgateway": (at("metrics", {"push_gateway": True}),),
    "a Grafana": (at("metrics", {"grafana": True}),),
    "a history": (at("history", {}),),
    "a history with progress": (at("history", {"progress": True}),),
    "logs of pods": (at("logs", {}),),
    "repair": (at("repair", {}),),
    "messages": (at("told", {"emails": ["gpu-oncall@example.com"]}),),
    "own prices": (at("prices", {"discount_percent": 12, "support_percent": 3}),),
    "a budget": (at("budget", {"dollars_a_month": 90000, "emails": ["money@example.com"]}),),
    # Cluster, network, account.
    "another Kubernetes": (at("cluster.version", "1.36"),),
    "other addresses reach the endpoint": (at("cluster.public_access_cidrs", ["198.51.100.0/24"]),),
    "an admin more": (at("cluster.admins", {"ops": {"role_arn": f"{ROLE}/ops"}}),),
    "logs of the control plane": (at("cluster.log_retention_days", 30),),
    "protection": (at("cluster.deletion_protection", True),),
    "another tier": (at("cluster.scaling_tier", "tier-xl"),),
    "a tunnel prepared": (at("cluster.tunnel_port", 8443),),
    "another role that deploys": (at("cluster.deployer_role_arn", f"{ROLE}/deployer"),),
    "another range": (at("network.cidr", "10.8.0.0/16"),),
    "a NAT gateway in each zone": (at("network.nat", "each_zone"),),
    "flow logs": (at("network.flow_logs", {"days": 7}),),
    "private endpoints": (at("network.endpoints", "private"),),
    "tags": (at("tags", {"cost-center": "17"}),),
    "a boundary": (at("permissions_boundary", "arn:aws:iam::123456789012:policy/boundary"),),
    "more system nodes": (at("system_nodes.nodes", 3),),
    "Karpenter does not ask first": (at("karpenter.dry_run", False),),
    "a registry": (at("registries", {"images": {}}),),
    "charts of a registry": (at("artifacts", {"charts": "oci://registry.example.com/charts"}),),
    "replacements allowed": (at("allow_replace", ["pools.h100"]),),
    "no jobs of its own": (ALONE,),
    "another namespace of its own jobs": (at("namespace", "research"),),
}
"""Changes that do not concern it."""
CHANGES = [(name, edits, True) for name, edits in STOPS.items()]
CHANGES += [(name, edits, False) for name, edits in FREE.items()]


def _deployed(environment: Edit, *edits: Edit) -> dict[str, Any]:
    """The contract that an environment publishes; nothing where the team is gone."""
    try:
        return {**contract_of(environment, *edits), "cluster": CLUSTER}
    except KeyError:
        return {}


def _compared(folder: Path, plan: TeamPlan, deployed: dict[str, Any]) -> Comparison:
    return compare(read_file("team-vision", folder), plan, deployed, folder)


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TeamPlan]:
    """The team's stack file beside the environment's."""
    folder = checkout(tmp_path_factory.mktemp("beside"), _many, by_name)
    return folder, team_of(folder)


@pytest.fixture(scope="module")
def by_contract(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, TeamPlan]:
    """The team's stack file beside the contract alone."""
    folder = alone(tmp_path_factory.mktemp("alone"), contract_of(_many))
    return folder, team_of(folder)


def test_there_are_more_than_a_hundred_changes_of_both_kinds() -> None:
    assert len(CHANGES) >= 120 and len(STOPS) >= 25


@pytest.mark.parametrize(("name", "edits", "concerns"), CHANGES, ids=[row[0] for row in CHANGES])
def test_a_change_stops_the_team_that_it_concerns_and_no_other(
    name: str,
    edits: tuple[Edit, ...],
    concerns: bool,
    beside: tuple[Path, TeamPlan],
    by_contract: tuple[Path, TeamPlan],
) -> None:
    """Also by a contract of version 1, as far as that spoke."""
    deployed = _deployed(_many, *edits)
    for folder, plan in (beside, by_contract):
        found = _compared(folder, plan, deployed)
        assert bool(found.refusal) == concerns, found
        assert not (found.refusal and found.note) and "\n" not in found.refusal
        if concerns:
            assert found.refusal.startswith("environment dev ") and "Fix: " in found.refusal
    if deployed and name not in UNSAID:
        found = _compared(*by_contract, _version_1(deployed))
        assert bool(found.refusal) == concerns, found


GANG: dict[str, tuple[bool, tuple[Edit, ...]]] = {
    "fewer nodes than its job": (True, (ALONE, at("pools.g6e.max_nodes", 1))),
    "fewer nodes, and enough": (False, (at("pools.g6e.max_nodes", 2),)),
    "fewer nodes that are kept": (True, (ALONE, at("pools.g6e.replicas", 1))),
    "a second type, which gangs must not mix": (
        True,
        (ALONE, at("pools.g6e.instance_types", ["g6e.48xlarge", "g6.48xlarge"])),
    ),
}
"""Change → whether it concerns a team whose job takes two nodes."""
_gang = at("jobs.vit-base.nodes", 2)


@pytest.mark.parametrize(("concerns", "edits"), GANG.values(), ids=GANG)
def test_a_gang_is_stopped_where_its_nodes_are_too_few(
    concerns: bool, edits: tuple[Edit, ...], tmp_path: Path
) -> None:
    folder = alone(tmp_path, contract_of(listed), _gang)
    found = _compared(folder, team_of(folder), _deployed(listed, *edits))
    assert bool(found.refusal) == concerns, found


def test_a_refusal_names_the_other_type_that_a_job_would_run_on(tmp_path: Path) -> None:
    folder = alone(tmp_path, contract_of(listed), at("jobs.vit-base.pool", "h100"))
    other = _deployed(listed, at("pools.h100.instance_types", ["p5en.48xlarge"]))
    found = _compared(folder, team_of(folder), other)
    assert "(vit-base would run on p5en.48xlarge)" in found.refusal


_lent = both(with_queues, without("teams.nlp.max_nodes"))
_nothing = without(f"{VISION}.guaranteed_nodes")


def _kept(nodes: int) -> tuple[Edit, ...]:
    """Nodes that another team keeps."""
    return (at("teams.nlp.guaranteed_nodes", {"g6e": nodes}), at("teams.nlp.lends_nodes", False))


QUEUED: dict[str, tuple[bool, tuple[Edit, ...]]] = {
    "nodes that another team is guaranteed": (False, _kept(1)[:1]),
    "nodes that another team keeps, and enough": (False, _kept(1)),
    "nodes that another team keeps, and too few": (True, (_nothing, *_kept(3))),
    "all nodes are those of another team": (True, (_nothing, *_kept(4))),
    "fewer nodes of the team": (True, (_nothing, at(f"{VISION}.max_nodes", {"g6e": 1}))),
    "less urgency, and its job has none": (False, (at(f"{VISION}.max_urgency", "normal"),)),
    "no queues any more": (True, (without("queues"), _nothing)),
    "another preemption": (False, (at("queues.preemption", "never"),)),
}
"""Change → whether it concerns a team in a queue whose job takes two nodes."""


@pytest.mark.parametrize(("concerns", "edits"), QUEUED.values(), ids=QUEUED)
def test_a_team_in_a_queue_is_stopped_where_its_share_is_too_small(
    concerns: bool, edits: tuple[Edit, ...], tmp_path: Path
) -> None:
    folder = alone(tmp_path, contract_of(_lent), _gang)
    found = _compared(folder, team_of(folder), _deployed(_lent, *edits))
    assert bool(found.refusal) == concerns, found


def test_a_refusal_names_what_the_team_uses_from_what_to_what_and_the_way_out(
    beside: tuple[Path, TeamPlan], by_contract: tuple[Path, TeamPlan]
) -> None:
    """And not the change beside it."""
    deployed = _deployed(_many, at(f"{VISION}.max_gpus", 4), at("pools.h100.max_nodes", 3))
    said = (
        ", and this stack uses what differs: environment.teams.vision.max_gpus is 16 here and 4 there"
        " (team.jobs.vit-base.nodes: must need at most the 4 GPUs of environment.teams.vision.max_gpus;"
        " got 1, which need 8 GPUs). Fix: "
    )
    assert _compared(*beside, deployed).refusal == (
        f"environment dev is deployed from another stack file than the one in this checkout{said}run"
        " `pulumi up -s dev` first, or check out the commit it was made from"
    )
    assert _compared(*by_contract, deployed).refusal == (
        f"environment dev is deployed with another contract than contract.yaml{said}ask for `trainyard"
        " contract --stack dev --team vision`, write it to contract.yaml, and run `trainyard check"
        " team-vision`"
    )


def test_what_does_not_concern_a_team_is_a_note(by_contract: tuple[Path, TeamPlan]) -> None:
    found = _compared(*by_contract, _deployed(_many, at("pools.h100.max_nodes", 3)))
    assert found.note == (
        "environment dev differs in what this stack does not use: environment.pools.h100.max_nodes is 2"
        " here and 3 there"
    )
    assert _compared(*by_contract, _deployed(_many)) == Comparison()


def test_numbers_of_the_engine_are_the_same_numbers(by_contract: tuple[Path, TeamPlan]) -> None:
    def pointed(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: pointed(each) for key, each in value.items()}
        if isinstance(value, list):
            return [pointed(each) for each in value]
        return float(value) if type(value) is int else value

    assert _compared(*by_contract, pointed(_deployed(_many))) == Comparison()


# Contracts of other releases.


def _version_1(contract: dict[str, Any]) -> dict[str, Any]:
    """The contract as release 0.1.0 published it."""
    environment, name = contract["environment"], contract["team"]["name"]
    entry, trainer = environment["teams"][name], environment["trainer"]
    secrets = {"secrets": entry["secrets"]} if "secrets" in entry else {}
    return {
        "version": 1,
        "region": contract["region"],
        "zone": environment["zone"],
        "trainer": trainer["version"],
        "pools": {
            name: {
                "instance_types": pool["instance_types"],
                "max_nodes": pool["max_nodes"],
                "capacity": pool.get("capacity", "on_demand"),
            }
            for name, pool in environment["pools"].items()
        },
        "storage": {
            name: next(kind for kind in ("lustre", "efs", "s3") if kind in store)
            for name, store in environment["storage"].items()
        },
        "runtimes": [*trainer["runtimes"], *trainer.get("own_runtimes", {})],
        "team": contract["team"] | {"max_gpus": entry.get("max_gpus")} | secrets,
        "digest": "0" * 64,
        "cluster": CLUSTER,
    }


UNSAID = {
    "its store is deployed anew",
    "its store has another key",
    "another deployer",
    "a private endpoint by a tunnel",
    "a proxy in front of the endpoint",
    "images of another registry only",
    "its runtime is for mpirun",
    "its runtime has a priority that the team lacks",
    "images from a mirror",
    "rules of production",
}
"""Changes that a contract of version 1 did not tell."""


def test_a_newer_contract_is_refused_in_one_sentence(by_contract: tuple[Path, TeamPlan]) -> None:
    newer = {**_deployed(_many), "version": 3, "release": "0.9.0"}
    assert _compared(*by_contract, newer).refusal == (
        "environment dev has a contract that cannot be read: version must be 1 or 2, which Trainyard"
        f" {TRAINYARD} reads; got 3. Fix: install Trainyard 0.9.0"
    )


def test_settings_of_a_newer_release_stop_a_team_only_where_its_jobs_use_them(
    by_contract: tuple[Path, TeamPlan],
) -> None:
    """A pool, a store or a runtime more can be of a kind that only the newer release knows."""
    newer = copy.deepcopy({**_deployed(_many), "release": "0.9.0"})
    environment = newer["environment"]
    environment["pools"]["p9"] = {"instance_types": ["p9.48xlarge"], "max_nodes": 1, "cooling": 1}
    environment["storage"]["new"] = {"tape": {}}
    environment["trainer"]["runtimes"].append("jax-distributed")
    environment["told"] = {"telegraph": True}
    assert not _compared(*by_contract, newer).refusal
    environment["pools"]["g6e"]["cooling"] = 1
    assert "install Trainyard 0.9.0" in _compared(*by_contract, newer).refusal


@pytest.mark.parametrize("first", range(0, 300, 30))
def test_a_deployed_contract_of_any_shape_is_refused_or_compared(
    first: int, by_contract: tuple[Path, TeamPlan]
) -> None:
    """Never a traceback."""
    sound = _deployed(_many)
    for seed in range(first, first + 30):
        start = _version_1(sound) if seed % 3 == 0 else sound
        found = _compared(*by_contract, mutated(start, seed))
        assert "\n" not in found.refusal and (not found.refusal or "Fix: " in found.refusal)
