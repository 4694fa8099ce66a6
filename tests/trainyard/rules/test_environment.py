"""Every rule refuses what it is for, says where, and leaves sound stack files alone."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.support.cases import environment as environments
from tests.support.cases import jobs as described
from tests.support.cases.environment import JOB, TEAM_REFUSED
from tests.support.grammar import without_a_verb
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, errors, planned, values, without
from tests.support.sweep import lines_not_reached
from tests.support.tool import run_word
from trainyard import decide as plan
from trainyard.catalog import versions
from trainyard.decide import plan_stack
from trainyard.problems import REMOVE, InputError
from trainyard.rules import (
    blocks,
    checkpoints,
    cluster,
    endpoint,
    entries,
    environment,
    existing_cluster,
    gangs,
    images,
    instance_types,
    job_files,
    mounts,
    network,
    pods,
    pools,
    stores,
    together,
)
from trainyard.settings.reading.reader import read
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.stores import efs, lustre_efa, lustre_repositories, lustre_rules, s3

REFUSED, SOUND = environments.REFUSED | described.REFUSED, environments.SOUND | described.SOUND


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = REFUSED[case]
    said = errors(*edits)
    found = [f for f in said if f.startswith(f"environment.{path}: ")]
    assert found and says in " ".join(found) and without_a_verb(said) == [], said


def _errors_at(path: str, stack: str, settings: dict[str, Any]) -> list[InputError]:
    found = plan_stack(read(settings, stack=stack, project="trainyard"), CHECKOUT).errors
    return [error for error in found if error.path == path]


def _write(settings: Any, path: str, value: Any) -> None:
    """Set one value by an error's path, whose keys may contain dots; REMOVE deletes it."""
    if isinstance(settings, list):
        first, _, rest = path.partition(".")
        key: Any = int(first)
    else:
        known = [key for key in settings if path == key or path.startswith(f"{key}.")]
        key = max(known, key=len, default=path.partition(".")[0])
        rest = path[len(key) + 1 :]
    if rest:
        _write(settings[key], rest, value)
    elif value is REMOVE:
        del settings[key]
    else:
        settings[key] = value


def test_what_a_fix_says_to_write_is_in_its_text_and_ends_the_error() -> None:
    """Each literal fix of the tables is written where its error stands."""
    applied, wrong = 0, []
    tables = (REFUSED, "dev", "environment"), (TEAM_REFUSED, "team-vision", "team")
    for table, stack, root in tables:
        for case, (edits, below, _) in table.items():
            path = f"{root}.{below.removeprefix(f'{root}.')}"
            for error in _errors_at(path, stack, values(*edits, stack=stack)):
                if error.write is None:
                    continue
                applied += 1
                settings = values(*edits, stack=stack)
                roots = {key.removeprefix("trainyard:"): item for key, item in settings.items()}
                _write(roots, path, error.write)
                says = "delete" if error.write is REMOVE else as_yaml(error.write).strip("[]{}")
                left = [each.must for each in _errors_at(path, stack, settings)]
                if says not in error.fix or error.must in left:
                    wrong.append((case, str(error), left))
    assert wrong == []
    assert applied >= 80


def test_the_second_admin_with_a_role_is_the_one_to_delete() -> None:
    role = {"role_arn": "arn:aws:iam::111122223333:role/ops"}
    [error] = planned(at("cluster.admins", {"a": role, "b": role})).errors
    assert (error.path, error.write) == ("environment.cluster.admins.b", REMOVE)


def test_an_admin_is_no_viewer() -> None:
    role = {"role_arn": "arn:aws:iam::111122223333:role/ops"}
    [error] = planned(at("cluster.admins", {"a": role}), at("cluster.viewers", {"a": role})).errors
    assert (error.path, error.write) == ("environment.cluster.viewers.a", REMOVE)
    assert "another role than environment.cluster.admins.a" in error.must


def test_the_longest_name_and_the_largest_gang_give_pod_names_that_the_webhook_takes() -> None:
    longest = next(n for n in range(100, 0, -1) if not errors(_job_called("j" * n)))
    assert len("j" * longest + f"-node-0-{10**6}-abcde") <= 63


def _job_called(name: str) -> Edit:
    return lambda settings: settings.update(jobs={name: settings["jobs"]["t5-large"]})


def test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster() -> None:
    moved = values(at("zone", "mars-north-1a"))
    moved["aws:region"] = "mars-north-1"
    [error] = plan_stack(read(moved, stack="dev", project="trainyard")).errors
    assert error.path == "aws:region" and "trainyard/catalog/aws/zones.py" in error.fix


@pytest.mark.parametrize("region", ["ap-northest-2", "AP-northeast-2", "ap-northeast-2a"])
def test_a_region_that_is_misspelt_or_a_zone_is_refused_with_the_region(region: str) -> None:
    moved = {**values(), "aws:region": region}
    [error] = plan_stack(read(moved, stack="dev", project="trainyard")).errors
    assert (error.path, error.write) == ("aws:region", "ap-northeast-2")
    assert error.fix == "write ap-northeast-2"


def test_a_zone_id_that_is_a_name_is_one_error_and_none_of_the_pools() -> None:
    [error] = errors(at("zone_id", "ap-northeast-2a"))
    assert error.startswith("environment.zone_id: must be a zone id of ap-northeast-2")


def test_nodes_that_no_network_has_room_for_can_only_be_fewer() -> None:
    [error] = errors(at("pools.g6e.max_nodes", 500))
    assert error.endswith("Fix: write max_nodes: 386 under environment.pools.g6e")
    many = at("pools.more", {"instance_types": ["g6e.48xlarge"], "max_nodes": 500})
    [error] = errors(at("pools.g6e.max_nodes", 500), many)
    assert error.endswith("Fix: lower max_nodes of several pools")


def test_a_zone_without_a_control_plane_is_refused_in_its_region() -> None:
    made = values(at("zone", "us-east-1a"), at("zone_id", "use1-az3"))
    made["aws:region"] = "us-east-1"
    found = plan_stack(read(made, stack="dev", project="trainyard")).errors
    [error] = [each for each in found if each.path == "environment.zone_id"]
    assert error.must == "be the id of a zone in which EKS places control planes"


@pytest.mark.parametrize("stack", ["sg", "sg-prod"])
def test_a_stack_whose_security_groups_ec2_would_refuse_is_refused(stack: str) -> None:
    [error] = plan_stack(read(values(), stack=stack, project="trainyard")).errors
    assert error.path == "stack" and f"got {stack}. Fix: rename the stack" in str(error)
    assert not plan_stack(read(values(), stack="sgd", project="trainyard")).errors


@pytest.mark.parametrize("case", TEAM_REFUSED)
def test_what_a_team_cannot_have_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = TEAM_REFUSED[case]
    found = [f for f in errors(*edits, stack="team-vision") if f.startswith(f"{path}: ")]
    assert found and says in found[0], errors(*edits, stack="team-vision")


def test_a_team_in_another_region_than_its_environment_is_refused() -> None:
    moved = {**values(stack="team-vision"), "aws:region": "us-east-1"}
    found = plan_stack(read(moved, stack="team-vision", project="trainyard"), CHECKOUT).errors
    assert [str(f) for f in found] == [
        "aws:region: must be the environment's region; got us-east-1. Fix: write ap-northeast-2"
    ]


def test_a_broken_environment_is_its_own_business_and_one_line_of_the_teams(tmp_path: Path) -> None:
    for name in ("Pulumi.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    (tmp_path / "Pulumi.dev.yaml").write_text(
        (CHECKOUT / "Pulumi.dev.yaml")
        .read_text()
        .replace("zone: ap-northeast-2a", "zone: ap-northeast-2")
    )
    team = read(values(stack="team-vision"), stack="team-vision", project="trainyard")
    [error] = plan_stack(team, tmp_path).errors
    assert str(error) == (
        "team.environment: must be an environment whose stack file has no errors; got dev. Fix: run"
        " trainyard check dev, and correct what it names"
    )


@pytest.mark.parametrize("case", SOUND)
def test_what_works_is_not_refused(case: str) -> None:
    assert errors(*SOUND[case]) == []


@pytest.mark.parametrize(
    "edits", [[], [without("max_gpus")], [without("jobs")], [at("max_gpus", 8)]]
)
def test_a_sound_team_is_not_refused(edits: list[Edit]) -> None:
    assert errors(*edits, stack="team-vision") == []


def test_a_team_on_a_team_is_told_its_environment() -> None:
    [error] = planned(at("environment", "team-vision"), stack="team-vision").errors
    assert error.write == "dev"


def test_a_team_without_an_environment_in_the_checkout_is_told_to_write_one(tmp_path: Path) -> None:
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    [error] = planned(stack="team-vision", folder=tmp_path).errors
    assert error.fix == (
        "write the stack file of the environment first: Pulumi.dev.yaml; or name the file of its contract,"
        " which `trainyard contract` prints, in team.contract"
    )


def test_a_kubernetes_that_karpenter_does_not_run_on_is_refused() -> None:
    with pytest.MonkeyPatch.context() as patch:
        minor = versions.KARPENTER.rpartition(".")[0]
        patch.setitem(versions.KARPENTER_KUBERNETES, minor, ("1.26", "1.33"))
        [error] = errors()
        only = versions.DEFAULT_KUBERNETES
        patch.setitem(versions.KARPENTER_KUBERNETES, minor, (only, only))
        assert errors() == []
    assert error.startswith(
        f"environment.cluster.version: must be a Kubernetes version that Karpenter {minor}"
        f' supports; got {versions.DEFAULT_KUBERNETES}. Fix: write "1.26" to "1.33"'
    )


def _one_namespace_of_two_teams(folder: Path) -> None:
    """What tests/trainyard/rules/test_together.py asserts."""
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (folder / name).write_text((CHECKOUT / name).read_text())
    text = (CHECKOUT / "Pulumi.team-vision.yaml").read_text()
    (folder / "Pulumi.team-two.yaml").write_text(text)
    assert planned(stack="team-vision", folder=folder).errors


def test_every_refusal_in_the_rules_is_caused_by_a_test_above(tmp_path: Path) -> None:
    """Counted by line: a new rule without a case fails here."""
    modules = (
        *(
            environment,
            cluster,
            endpoint,
            network,
            pools,
            blocks,
            existing_cluster,
            instance_types,
            entries,
            gangs,
            pods,
            stores,
            checkpoints,
            images,
            mounts,
        ),
        *(efs, s3, lustre_rules, lustre_repositories, lustre_efa, job_files, plan, together),
    )

    def run() -> None:
        for edits, _, _ in REFUSED.values():
            planned(*edits)
        for edits, _, _ in TEAM_REFUSED.values():
            planned(*edits, stack="team-vision")
        for edits, _ in WARNINGS.values():
            planned(*edits)
        test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster()
        test_a_zone_without_a_control_plane_is_refused_in_its_region()
        test_a_team_in_another_region_than_its_environment_is_refused()
        test_a_stack_whose_security_groups_ec2_would_refuse_is_refused("sg")
        test_a_broken_environment_is_its_own_business_and_one_line_of_the_teams(tmp_path)
        test_a_kubernetes_that_karpenter_does_not_run_on_is_refused()
        _one_namespace_of_two_teams(tmp_path)
        (tmp_path / "a").mkdir()
        for name in ("a/big.py", "big.py"):
            (tmp_path / name).write_text("#" * (1 << 20))
        (tmp_path / "binary").write_bytes(b"\0")
        (tmp_path / "my run.sh").write_bytes(b"cd /\r\n")
        (tmp_path / "login.py").write_text("hf_" + "QwErTyUiOpAsDfGhJkLzXcVbNm12345678")
        sources = ["a/big.py", "big.py", "binary", "nowhere.py", "my run.sh", "login.py"]
        planned(at(f"{JOB}.files.sources", sources), folder=tmp_path)

    assert lines_not_reached(modules, run) == [], "lines that no case reaches"


def test_the_planted_errors_are_reported_together_and_nothing_else_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """An unknown key, a region for a zone, nine GPUs on a node of eight and a type that the region
    does not sell."""
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text()
    for line, planted in (
        ("    zone: ap-northeast-2a ", "    placement: cluster\n    zone: ap-northeast-2 "),
        ("        nodes: 2\n", "        nodes: 2\n        gpus_per_node: 9\n"),
        ("[p5.48xlarge]", "[p5e.48xlarge]"),
    ):
        assert line in text
        text = text.replace(line, planted)
    (tmp_path / "Pulumi.planted.yaml").write_text(text)
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert run_word("check", ["planted"]) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  error")]
    paths = [
        "environment.placement",
        "environment.zone",
        "environment.pools.h100.instance_types",
        "environment.jobs.t5-large.gpus_per_node",
    ]
    assert [line.split()[1].rstrip(":") for line in said] == paths


def test_check_says_what_a_sound_stack_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert run_word("check", ["dev"]) == run_word("check", ["team-vision"]) == 0
    said = capsys.readouterr().out
    assert re.search(
        r"^dev: no errors, \d+ warnings; zone ap-northeast-2a, pools g6e 4 x g6e", said, re.M
    )
    assert "no errors, 2 warnings; namespace team-vision on dev, 1 job\n" in said


def test_check_of_a_stack_without_a_file_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert run_word("check", ["nowhere"]) == 2
    assert "no stack file (Pulumi.nowhere.yaml)" in capsys.readouterr().out


# What works but should be known.


def _kept_block() -> Edit:
    pool = {"instance_types": ["p5.48xlarge"], "max_nodes": 2, "replicas": 2}
    return at("pools.h100", pool | {"capacity": "block", "reservation": environments.BLOCK})


WARNINGS: dict[str, tuple[list[Edit], str]] = {
    "a family that EC2 does not have yet": (
        [at("system_nodes.instance_type", "m9z.xlarge")],
        "m9z.xlarge is not among the instance types that EC2 had in",
    ),
    "a reservation that ends before the job": (
        [
            at("pools.h100.capacity", "reservation"),
            at(
                "pools.h100.reservation",
                {
                    "id": "cr-0123456789abcdef0",
                    "instances": 2,
                    "starts": "2098-12-01T00:00:00Z",
                    "ends": "2098-12-02T00:00:00Z",
                },
            ),
            at(f"{JOB}.pool", "h100"),
            at(f"{JOB}.expected_hours", 30),
        ],
        "the job takes 30 h, and cr-0123456789abcdef0 ends after 24.0 h: its nodes go on at the price on demand",
    ),
    "endpoint for the whole internet": (
        [at("cluster.public_access_cidrs", ["0.0.0.0/0"])],
        "everybody on the internet can reach the API server",
    ),
    "endpoint for the whole internet in two halves": (
        [at("cluster.public_access_cidrs", ["0.0.0.0/1", "128.0.0.0/1"])],
        "everybody on the internet can reach the API server",
    ),
    "endpoint for a part of the internet": (
        [at("cluster.public_access_cidrs", ["64.0.0.0/4", "81.2.69.142/32"])],
        "everybody on the internet with an address in 64.0.0.0/4 can reach the API server",
    ),
    "endpoint for the address of an example": (
        [],
        "203.0.113.7/32 is an address of examples, which nobody has",
    ),
    "private from the first update": (
        [
            at("cluster.endpoint", "private"),
            without("cluster.public_access_cidrs"),
            at("cluster.tunnel_port", 8443),
        ],
        "the first `pulumi up` of an environment cannot reach a private endpoint",
    ),
    "no zone id": ([], "instance types are checked against the region and not against the zone"),
    "many nodes without GPUDirect": ([], "g6e has no GPUDirect RDMA"),
    "image by tag": ([], "a digest (@sha256:…) names the image that was tested"),
    "latest": (
        [at(f"{JOB}.image", "image:latest")],
        "the job uses the tag latest, which is another image tomorrow: take a version",
    ),
    "a clone of whatever is newest": ([], "a clone of whatever is newest: check out a commit"),
    "packages at every start": (
        [],
        "at every start of every pod, whose packages may be others tomorrow: bake the packages",
    ),
    "folders of nodes": (
        [at(f"{JOB}.host_paths", {"data": {"host": "/data", "path": "/data"}})],
        "must exist on every node",
    ),
    "a pool that waits for its reservation": (
        [_kept_block()],
        "its replicas start only when something changes the pool (karpenter-provider-aws#9001)",
    ),
    "a pool that is switched off": (
        [at("pools.g6e.replicas", 0)],
        "the nodes of pool g6e are switched off (replicas: 0), so the job waits until you write more",
    ),
    "a block that ends at an hour that EC2 does not sell": (
        [
            at(
                "pools.h100",
                {
                    "instance_types": ["p5.48xlarge"],
                    "max_nodes": 2,
                    "capacity": "block",
                    "reservation": {**environments.BLOCK, "ends": "2098-12-03T09:00:00+09:00"},
                },
            )
        ],
        "Capacity Blocks end at 11:30 UTC, and this one at 00:00: compare it with `aws ec2",
    ),
    "a reservation that no update asks about": (
        [
            at("pools.h100.capacity", "reservation"),
            at("pools.h100.reservation", {"id": "cr-0123456789abcdef0", "instances": 2}),
        ],
        "no preview and no update asks EC2 about cr-0123456789abcdef0: trainyard check --live does",
    ),
    "Lustre on Bottlerocket": (
        [at("pools.h100.ami_family", "Bottlerocket")],
        "Bottlerocket mounts Lustre (scratch) without its tuning and without lctl and lfs",
    ),
    "a placement group": (
        [at("pools.h100.placement", "cluster")],
        "launches in a placement group fail for lack of capacity more often",
    ),
    "a role of the account that spot needs": (
        [at("pools.h100.capacity", "spot")],
        "the account must have the role AWSServiceRoleForEC2Spot for spot pools (h100): trainyard check --live looks"
        " for it, and `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`",
    ),
    "a run that finds the checkpoint of the run before it": (
        [at(f"{JOB}.run", 2)],
        "run 2 resumes from the checkpoint that the run before it left in scratch/t5-large",
    ),
    "local files without NVMe": (
        [
            at(f"{JOB}.local_scratch", "/local"),
            at("pools.cpu", {"instance_types": ["m7i.48xlarge"], "max_nodes": 2}),
            at(f"{JOB}.pool", "cpu"),
            at(f"{JOB}.processes_per_node", 2),
        ],
        "has no NVMe: the folder lies on the root volume of the node; set root_volume_gib of pool",
    ),
}


@pytest.mark.parametrize("case", WARNINGS)
def test_what_should_be_known_is_said(case: str) -> None:
    edits, says = WARNINGS[case]
    assert [n for n in planned(*edits).warnings if says in n.text]


@pytest.mark.parametrize(
    ("field", "value"), [("directory", "t5-large/{run}"), ("when_changed", "afresh")]
)
def test_a_run_with_a_directory_of_its_own_is_no_warning(field: str, value: str) -> None:
    edits = at(f"{JOB}.run", 2), at(f"{JOB}.checkpoints.{field}", value)
    assert not [n for n in planned(*edits).warnings if "resumes" in n.text]


def test_a_pair_of_versions_that_nobody_tested_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(versions, "KNOWN_GOOD", versions.KNOWN_GOOD[1:])
    [warning] = [one for one in planned().warnings if "never tested" in one.text]
    assert warning.text == (
        "Trainer 2.1.0 was never tested with Kubernetes 1.35; tested: 2.3.0 with 1.34 and 1.35 and"
        " 1.36"
    )


def test_a_karpenter_that_nobody_tested_with_the_rest_is_a_warning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tested = [
        replace(one, karpenter={versions.KARPENTER: one.karpenter[versions.KARPENTER]})
        for one in versions.KNOWN_GOOD
    ]
    monkeypatch.setattr(versions, "KNOWN_GOOD", tested)
    newer = at("karpenter.version", versions.NEWEST_KARPENTER)
    [warning] = [one for one in planned(newer).warnings if "never tested" in one.text]
    assert (warning.path, warning.text) == (
        "environment.karpenter.version",
        "Karpenter 1.15.2 was never tested with Kubernetes 1.35 and Trainer 2.1.0; tested with both:"
        " Karpenter 1.14.1",
    )


def test_only_stores_that_stay_in_one_zone_are_far_from_a_job_in_another() -> None:
    def said(*edits: Edit) -> list[str]:
        away = at("pools.g6e.fallback_zones", ["ap-northeast-2b"])
        found = planned(away, at(f"{JOB}.nodes", 1), *edits).warnings
        return [str(n) for n in found if "another zone" in n.text]

    on_efs = at(f"{JOB}.checkpoints.store", "home")
    assert said() == [
        "environment.jobs.t5-large.pool: the job may run in another zone than scratch in"
        " ap-northeast-2a, also while that zone has capacity: slower, and $0.01 a GB each way"
    ]
    assert said(on_efs) == []


def test_a_stack_without_such_a_thing_has_nothing_to_be_told() -> None:
    quiet = planned(
        at("cluster.public_access_cidrs", ["81.2.69.142/32"]),
        at("zone_id", "apne2-az1"),
        at(f"{JOB}.pool", "h100"),
        at(f"{JOB}.image", "registry/image@sha256:" + "0" * 64),
        at(f"{JOB}.script", "torchrun train.py"),
    )
    assert [str(n) for n in quiet.warnings] == []


def test_a_store_that_may_be_replaced_and_is_not_there_is_a_warning() -> None:
    """It can be a deployed one that has another name now."""
    said = [
        str(each)
        for each in planned(at("allow_replace", ["storage.old", "storage.scratch"])).warnings
        if each.path == "environment.allow_replace"
    ]
    assert len(said) == 1 and "storage.old is not in the stack file" in said[0]
