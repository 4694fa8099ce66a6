"""Which teams an environment cannot list, and what the stack of a listed team cannot say."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.stackfile import Edit, at
from tests.support.sweep import lines_not_reached
from tests.support.teams import DEPLOYER, ROLE, both, by_name, checkout, listed, planned
from trainyard.objects.teams.teams import ADVANCED_BYTES, REACHED_BYTES
from trainyard.rules import teams
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import read_file

JOB = "jobs.vit-base"
VIEWER = "arn:aws:iam::111122223333:role/auditors"
OPS = {"ops": {"role_arn": DEPLOYER}}


def nothing(settings: dict[str, Any]) -> None:
    """No edit."""


def many_pools(settings: dict[str, Any]) -> None:
    pool = {"instance_types": ["g6e.48xlarge"], "max_nodes": 1}
    settings["network"] = {"cidr": "10.0.0.0/16"}
    settings["pools"] |= {f"a-pool-with-a-long-name-{n}": pool for n in range(70)}


ENTRIES: dict[str, tuple[Edit, str, str]] = {
    "two teams in one namespace": (
        at("teams.nlp.namespace", "team-vision"),
        "teams.nlp.namespace",
        "must not be the namespace of team vision; got team-vision. Fix: write team-nlp",
    ),
    "a runtime that shows its pods all GPUs": (
        at(
            "trainer.own_runtimes.torch-distributed-resilient.env",
            {"NVIDIA_VISIBLE_DEVICES": "all"},
        ),
        "trainer.own_runtimes.torch-distributed-resilient.env.NVIDIA_VISIBLE_DEVICES",
        "must not be set where the environment lists teams: the cluster refuses it in their pods; got all. Fix: delete"
        " it",
    ),
    "the address of a registry with its scheme": (
        at("teams.nlp.image_prefixes", ["https://registry.example.com/nlp/"]),
        "teams.nlp.image_prefixes",
        "have no scheme; got https://registry.example.com/nlp/. Fix: write registry.example.com/nlp/",
    ),
    "the namespace of the environment's jobs": (
        at("teams.nlp.namespace", "training"),
        "teams.nlp.namespace",
        "must not be the namespace of the environment's jobs; got training",
    ),
    "a namespace of the system": (
        at("teams.nlp.namespace", "kubeflow-system"),
        "teams.nlp.namespace",
        "must not be the namespace of the system",
    ),
    "a namespace that Kubernetes keeps for itself": (
        at("teams.nlp.namespace", "kube-mine"),
        "teams.nlp.namespace",
        "got kube-mine. Fix: write team-nlp",
    ),
    "a default name that another team has taken": (
        both(at("teams.vision.namespace", "team-nlp")),
        "teams.nlp.namespace",
        "must not be the namespace of team vision; got team-nlp. Fix: write nlp-jobs",
    ),
    "one role for two teams": (
        at("teams.nlp.deployer", DEPLOYER),
        "teams.nlp.deployer",
        f"got {DEPLOYER}, which is environment.teams.vision.deployer already",
    ),
    "a deployer of another account": (
        both(
            at("cluster.deployer_role_arn", "arn:aws:iam::111122223333:role/platform"),
            at("teams.nlp.deployer", "arn:aws:iam::999999999999:role/nlp"),
        ),
        "teams.nlp.deployer",
        "must be a role of the environment's account, 111122223333: the deployer reads the team's contract in"
        " Parameter Store of its own account; got arn:aws:iam::999999999999:role/nlp. Fix: write"
        " arn:aws:iam::111122223333:role/nlp, and name arn:aws:iam::999999999999:role/nlp in the trust policy",
    ),
    "one role twice in a team": (
        at("teams.vision.members", [DEPLOYER]),
        "teams.vision.members",
        "must be roles with one use: EKS has one access entry for a role",
    ),
    "one viewer of two teams": (
        both(at("teams.vision.viewers", [VIEWER]), at("teams.nlp.viewers", [VIEWER])),
        "teams.nlp.viewers",
        "which is environment.teams.vision.viewers already. Fix: name another role, or make it one of"
        " environment.cluster.viewers, which read all namespaces",
    ),
    "an admin of the cluster": (
        at("cluster.admins", OPS),
        "teams.vision.deployer",
        "which is environment.cluster.admins.ops already",
    ),
    "the environment's own deployer": (
        at("cluster.deployer_role_arn", DEPLOYER),
        "teams.vision.deployer",
        "which is the role that creates the cluster already",
    ),
    "a store that the environment lacks": (
        at("teams.vision.stores", ["scratch", "data"]),
        "teams.vision.stores",
        "must be names from environment.storage; got data. Fix: write one of scratch, home",
    ),
    "a priority that the environment lacks": (
        at("teams.vision.allowed_priorities", ["low"]),
        "teams.vision.allowed_priorities",
        "must be names from environment.priorities; got low. Fix: write high",
    ),
    "an ARN of a session": (
        at("teams.vision.deployer", "arn:aws:sts::111122223333:assumed-role/vision/me"),
        "teams.vision.deployer",
        "must be the ARN of one IAM role",
    ),
    "a prefix that ends within a name": (
        at("teams.vision.image_prefixes", ["registry.example.com/vision"]),
        "teams.vision.image_prefixes.0",
        "must be the beginning of image names, up to a slash",
    ),
    "a part of a bucket without its slash": (
        at("teams.vision.s3_writes", ["s3://results/vision"]),
        "teams.vision.s3_writes.0",
        "must be a bucket or a part of it, up to a slash: s3://bucket/part/; got"
        ' "s3://results/vision". Fix: write s3://results/vision/',
    ),
    "objects that two teams can delete": (
        both(
            at("teams.vision.s3_writes", ["s3://results/", "s3://results/vision/"]),
            at("teams.nlp.s3_writes", ["s3://results/nlp/"]),
        ),
        "teams.nlp.s3_writes",
        "must not overlap with s3://results/, which team vision writes to; got s3://results/nlp/."
        " Fix: write a part of its own, such as s3://results/teams/nlp/",
    ),
    "a key for nothing": (
        at("teams.vision.kms_key_arns", ["arn:aws:kms:eu-west-1:111122223333:key/1"]),
        "teams.vision.kms_key_arns",
        "must not be set without s3_reads, s3_writes or secrets",
    ),
    "a key by its alias": (
        at("teams.vision.kms_key_arns", ["alias/data"]),
        "teams.vision.kms_key_arns.0",
        "must be the ARN of a KMS key",
    ),
    "a misspelt setting": (
        at("teams.vision.member", [DEPLOYER]),
        "teams.vision.member",
        "members",
    ),
    "a name that Kubernetes would refuse": (
        at("teams.Vision", {"deployer": f"{ROLE}/v"}),
        "teams.Vision",
        "must be a name of lower-case letters",
    ),
    "a contract that no parameter takes": (
        many_pools,
        "teams.vision",
        f"must have a contract of at most {ADVANCED_BYTES - REACHED_BYTES} bytes",
    ),
    "a tag of a team that IAM refuses": (
        at("teams.vision.tags", {"owner": "R&D"}),
        "teams.vision.tags.owner",
        "must have a value of letters, digits, spaces and _.:/=+-@",
    ),
    "a tag of a team that this program sets": (
        at("teams.vision.tags", {"trainyard:team": "nlp"}),
        "teams.vision.tags.trainyard:team",
        "must not have a key that AWS, Karpenter or this program sets",
    ),
    "more tags of a team and of all than AWS takes": (
        both(
            at("tags", {f"a{n}": "1" for n in range(30)}),
            at("teams.vision.tags", {f"b{n}": "1" for n in range(11)}),
        ),
        "teams.vision.tags",
        "must have at most 40 tags together with environment.tags and aws:defaultTags; got 41",
    ),
}
"""What is wrong → edit of the environment with two teams, path of the error, part of its text."""


@pytest.mark.parametrize("case", ENTRIES)
def test_a_team_that_cannot_work_is_refused_in_the_environment(case: str, tmp_path: Path) -> None:
    edit, path, says = ENTRIES[case]
    found = planned("dev", checkout(tmp_path, both(listed, edit), nothing)).errors
    errors = [str(error) for error in found if error.path == f"environment.{path}"]
    assert errors and says in errors[0], list(map(str, found))


def test_parts_of_a_bucket_may_lie_beside_each_other_and_in_a_part_of_the_same_team(
    tmp_path: Path,
) -> None:
    own = at("teams.vision.s3_writes", ["s3://results/vision/", "s3://results/vision/a/"])
    other = at("teams.nlp.s3_writes", ["s3://results/nlp/"])
    files = checkout(tmp_path, both(listed, both(own, other)), nothing)
    assert [e for e in planned("dev", files).errors if e.path.endswith("s3_writes")] == []


STACKS: dict[str, tuple[Edit, Edit, str, str]] = {
    "a team that the environment does not list": (
        listed,
        both(by_name, at("name", "audio")),
        "team.name",
        "must be a team that Pulumi.dev.yaml lists under environment.teams; got audio. Fix: write one of"
        " vision, nlp",
    ),
    "a list without teams": (
        nothing,
        by_name,
        "team.name",
        "Fix: add it under environment.teams in Pulumi.dev.yaml",
    ),
    "a namespace in both places": (
        listed,
        both(by_name, at("namespace", "team-vision")),
        "team.namespace",
        "must not be set beside team.name: environment.teams.vision has it; got team-vision."
        " Fix: delete it",
    ),
    "a share in both places": (
        listed,
        both(by_name, at("max_gpus", 8)),
        "team.max_gpus",
        "must not be set beside team.name",
    ),
    "the namespace of a listed team": (
        listed,
        nothing,
        "team.namespace",
        "must not be the namespace of team vision, which the environment lists; got team-vision."
        " Fix: delete it, and write name: vision",
    ),
    "neither name nor namespace": (
        listed,
        lambda settings: (settings.pop("namespace"), None)[1],
        "team",
        "must have a name that the environment lists, or a namespace; got neither. Fix: write name:"
        " vision",
    ),
    "more GPUs than the environment gives": (
        both(listed, at("teams.vision.max_gpus", 4)),
        by_name,
        f"team.{JOB}.nodes",
        "must need at most the 4 GPUs of environment.teams.vision.max_gpus; got 1, which need 8"
        " GPUs. Fix: raise environment.teams.vision.max_gpus to 8",
    ),
    "a store of the environment that is not the team's": (
        listed,
        both(by_name, at(f"{JOB}.storage.home", {"path": "/home/v"})),
        f"team.{JOB}",
        "must mount only stores that the environment's entry of the team lists; got home. Fix: write"
        " scratch",
    ),
    "a priority that is not the team's": (
        listed,
        both(by_name, at(f"{JOB}.runtime", "slow-start")),
        f"team.{JOB}",
        "must use only priorities that the environment's entry of the team allows; got high",
    ),
    "GPUs of other teams": (
        listed,
        both(by_name, at(f"{JOB}.env", {"NVIDIA_VISIBLE_DEVICES": "all"})),
        f"team.{JOB}",
        "must not set NVIDIA_VISIBLE_DEVICES in a team: the cluster refuses it, and a pod has the GPUs that it"
        " requests; got all. Fix: delete it",
    ),
    "an image of somebody else": (
        both(listed, at("teams.vision.image_prefixes", ["registry.example.com/vision/"])),
        by_name,
        f"team.{JOB}.image",
        "must begin with one of the image_prefixes in the environment's entry of the team",
    ),
    "a folder of the node": (
        listed,
        both(by_name, at(f"{JOB}.host_paths", {"d": {"host": "/d", "path": "/d"}})),
        f"team.{JOB}.host_paths",
        "must not be set by a team that the environment lists",
    ),
}
"""What is wrong → edits of the environment and of the team, path of the error, part of its text."""


def prioritized(settings: dict[str, Any]) -> None:
    """An own runtime with a priority, which its pods have whoever starts the job."""
    own = settings["trainer"]["own_runtimes"]["torch-distributed-resilient"]
    settings["trainer"]["own_runtimes"]["slow-start"] = own | {"priority": "high"}
    settings.setdefault("priorities", {"high": 1000})


@pytest.mark.parametrize("case", STACKS)
def test_a_stack_that_its_environment_contradicts_is_refused(case: str, tmp_path: Path) -> None:
    environment, team, path, says = STACKS[case]
    folder = checkout(tmp_path, both(environment, prioritized), team)
    found = planned("team-vision", folder).errors
    errors = [str(error) for error in found if error.path == path]
    assert errors and says in errors[0], list(map(str, found))


def test_a_way_out_in_the_file_of_the_environment_says_whose_file_it_is(tmp_path: Path) -> None:
    found = planned(
        "team-vision", checkout(tmp_path, listed, both(by_name, at("jobs.vit-base.nodes", 9)))
    ).errors
    fixes = [error.fix for error in found if error.path == "team.jobs.vit-base.nodes"]
    asks = "write 4, or raise pools.g6e.max_nodes to 9 (that is in the stack file of dev: ask whoever runs it)"
    assert asks in fixes


def test_two_stacks_of_one_team_are_refused(tmp_path: Path) -> None:
    folder = checkout(tmp_path, listed, by_name, team_two=both(by_name, at("jobs", {})))
    [error] = [e for e in planned("team-vision", folder).errors if e.path == "team.name"]
    assert "must not be the team of another stack, as of Pulumi.team-two.yaml" in str(error)


def test_a_listed_team_cannot_bring_an_object_of_the_whole_cluster(tmp_path: Path) -> None:
    runtime = (
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: ClusterTrainingRuntime\n"
        "metadata: {name: mine}\nspec: {}\n"
    )
    plan = planned("team-vision", checkout(tmp_path, listed, by_name)).accepted()
    environment = _environment(tmp_path)
    entry = environment.teams["vision"]
    share = teams.Share(namespace="n", max_gpus=None, limit="", entry=entry)
    job = dataclasses.replace(plan.jobs["vit-base"], objects=(yaml.safe_load(runtime),))
    [error] = teams.listed_plan_errors(share, {"vit-base": job}, {}, environment, tmp_path)
    assert "must contain no ClusterTrainingRuntime" in str(error)


HELD: dict[str, tuple[Any, str]] = {
    # case: (fields of the pods, what is said)
    "a grace period": (
        {"terminationGracePeriodSeconds": 3600},
        "end its pods within 600 seconds in a team",
    ),
    "a selector of namespaces": (
        {
            "affinity": {
                "podAntiAffinity": {"terms": [{"topologyKey": "a", "namespaceSelector": {}}]}
            }
        },
        "pods of its own namespace alone in a team: the cluster refuses it, and anti-affinity keeps the pods of"
        " others off nodes; got namespaceSelector",
    ),
    "another namespace": (
        {
            "affinity": {
                "podAffinity": {
                    "terms": [{"topologyKey": "a", "namespaces": ["team-nlp", "team-vision"]}]
                }
            }
        },
        "got team-nlp. Fix: delete namespaces and namespaceSelector",
    ),
}
NOT_HELD: tuple[Any, ...] = (
    {"terminationGracePeriodSeconds": "long", "topologyKey": "a", "namespaces": "team-nlp"},
    {"terminationGracePeriodSeconds": 600},
    {"affinity": {"podAffinity": {"terms": [{"topologyKey": "a", "namespaces": ["team-vision"]}]}}},
    {"affinity": {"podAntiAffinity": {"terms": [{"topologyKey": "a", "labelSelector": {}}]}}},
)


def held_by(folder: Path, pods: Any) -> list[str]:
    """Errors of a job of a listed team, whose pods have these fields."""
    plan = planned("team-vision", checkout(folder, listed, by_name)).accepted()
    environment = _environment(folder)
    share = teams.Share(namespace="n", max_gpus=None, limit="", entry=environment.teams["vision"])
    job = plan.jobs["vit-base"]
    made = dataclasses.replace(job, spec={**job.spec, "pods": pods})
    return [
        str(each)
        for each in teams.listed_plan_errors(share, {"vit-base": made}, {}, environment, folder)
    ]


@pytest.mark.parametrize("case", HELD)
def test_pods_that_hold_nodes_of_others_are_refused_before_the_cluster_does(
    tmp_path: Path, case: str
) -> None:
    pods, says = HELD[case]
    [error] = held_by(tmp_path, pods)
    assert error.startswith("team.jobs.vit-base: must ") and says in error
    assert not [each for sound in NOT_HELD for each in held_by(tmp_path, sound)]


def _environment(folder: Path) -> EnvironmentConfig:
    config = read_file("dev", folder).config
    assert config and config.environment
    return config.environment


@pytest.mark.parametrize(
    "edit",
    [
        nothing,
        at("teams", {}),
        at("teams.vision.stores", []),
        at("teams.vision.namespace", "vision"),
        at("teams.vision.max_jobs", 1),
        at("teams.vision.allowed_priorities", ["high"]),
    ],
)
def test_a_sound_list_of_teams_is_not_refused(edit: Edit, tmp_path: Path) -> None:
    assert planned("dev", checkout(tmp_path, both(listed, edit), nothing)).errors == ()


def test_a_sound_stack_of_a_listed_team_is_not_refused(tmp_path: Path) -> None:
    assert planned("team-vision", checkout(tmp_path, listed, by_name)).errors == ()


def test_shares_that_the_pools_cannot_give_together_are_a_warning(tmp_path: Path) -> None:
    over = both(listed, at("teams.nlp.max_gpus", 40))
    [warning] = [
        str(each)
        for each in planned("dev", checkout(tmp_path, over, nothing)).warnings
        if each.path == "environment.teams"
    ]
    assert (
        "may request 56 GPUs together (vision 16, nlp 40), and the pools have at most 48" in warning
    )
    fits = both(listed, at("teams.nlp.max_gpus", 32))
    assert not [
        each
        for each in planned("dev", checkout(tmp_path, fits, nothing)).warnings
        if each.path == "environment.teams"
    ]


def test_every_line_of_the_rules_is_reached_by_a_case_above(tmp_path: Path) -> None:
    def run() -> None:
        for edit, _, _ in ENTRIES.values():
            planned("dev", checkout(tmp_path, both(listed, edit), nothing))
        for environment, team, _, _ in STACKS.values():
            planned("team-vision", checkout(tmp_path, both(environment, prioritized), team))
        test_two_stacks_of_one_team_are_refused(tmp_path)
        (tmp_path / "Pulumi.team-two.yaml").unlink()
        test_a_listed_team_cannot_bring_an_object_of_the_whole_cluster(tmp_path)
        test_shares_that_the_pools_cannot_give_together_are_a_warning(tmp_path)
        for pods, _ in HELD.values():
            held_by(tmp_path, pods)

    assert lines_not_reached((teams,), run) == []
