"""Every rule refuses what it is for, says where, and leaves sound stack files alone."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from stacks.plan import plan_stack
from stacks.reports import check
from stacks.rules import (
    environment,
    jobs,
    lustre_repositories,
    network,
    pods,
    pools,
    stores,
)
from stacks.settings.reader import read
from tests.support.cases import environment as environments
from tests.support.cases import jobs as described
from tests.support.cases.environment import JOB, TEAM_REFUSED
from tests.support.recording import CHECKOUT
from tests.support.stackfile import Edit, at, errors, planned, values, without

REFUSED, SOUND = environments.REFUSED | described.REFUSED, environments.SOUND | described.SOUND


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_work_is_refused_where_it_stands(case: str) -> None:
    edits, path, says = REFUSED[case]
    found = [f for f in errors(*edits) if f.startswith(f"environment.{path}: ")]
    assert found and says in " ".join(found), errors(*edits)


def test_a_token_is_not_repeated_by_the_refusal() -> None:
    for case in ("token in the environment", "token in the script"):
        assert not pods.TOKEN.search(" ".join(errors(*REFUSED[case][0])))


@pytest.mark.parametrize(
    "token", ["hf_" + "b" * 34, "AKIA" + "B" * 16, "sk-lf-" + "0a" * 12, "nvapi-" + "c" * 24]
)
def test_tokens_of_the_usual_services_are_recognised(token: str) -> None:
    assert pods.TOKEN.search(f"export X={token}")


def test_the_longest_name_and_the_largest_gang_give_pod_names_that_the_webhook_takes() -> None:
    longest = next(n for n in range(100, 0, -1) if not errors(_job_called("j" * n)))
    assert len("j" * longest + f"-node-0-{10**6}-abcde") <= 63


def _job_called(name: str) -> Edit:
    return lambda settings: settings["jobs"].update({name: settings["jobs"]["t5-large"]})


def test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster() -> None:
    moved = values(at("zone", "mars-north-1a"))
    moved["aws:region"] = "mars-north-1"
    [error] = plan_stack(read(moved, stack="dev", project="trainyard")).errors
    assert error.path == "aws:region" and "catalog/zones.py" in error.fix


@pytest.mark.parametrize("stack", ["sg", "sg-prod"])
def test_a_stack_whose_security_groups_ec2_would_refuse_is_refused(stack: str) -> None:
    [error] = plan_stack(read(values(), stack=stack, project="trainyard")).errors
    assert error.path == "stack" and f"got {stack}; rename the stack" in str(error)
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
        "aws:region: is the environment's region, got us-east-1; use ap-northeast-2"
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
    assert (
        str(error)
        == "team.environment: needs an environment without errors, got dev; make check STACK=dev"
    )


@pytest.mark.parametrize("case", SOUND)
def test_what_works_is_not_refused(case: str) -> None:
    assert errors(*SOUND[case]) == []


@pytest.mark.parametrize(
    "edits", [[], [without("max_gpus")], [without("jobs")], [at("max_gpus", 8)]]
)
def test_a_sound_team_is_not_refused(edits: list[Edit]) -> None:
    assert errors(*edits, stack="team-vision") == []


def test_every_refusal_in_the_rules_is_caused_by_a_test_above() -> None:
    """Counted by line: a new rule without a case fails here."""
    offered = {
        (module.__file__, number)
        for module in (
            environment,
            network,
            pools,
            jobs,
            pods,
            stores,
            lustre_repositories,
        )
        for number, line in enumerate(inspect.getsource(module).splitlines(), start=1)
        if "yield InputError(" in line
    }
    files = {file for file, _ in offered}
    seen: set[tuple[str | None, int]] = set()

    def watch(frame: Any, event: str, _: Any) -> Any:
        if frame.f_code.co_filename in files:
            if event == "line":
                seen.add((frame.f_code.co_filename, frame.f_lineno))
            return watch
        return None if event == "call" else watch

    before = sys.gettrace()
    sys.settrace(watch)
    try:
        for edits, _, _ in REFUSED.values():
            planned(*edits)
        for edits, _, _ in TEAM_REFUSED.values():
            planned(*edits, stack="team-vision")
        test_a_region_without_known_zones_is_refused_because_one_zone_makes_no_cluster()
        test_a_team_in_another_region_than_its_environment_is_refused()
        test_a_stack_whose_security_groups_ec2_would_refuse_is_refused("sg")
    finally:
        sys.settrace(before)
    assert sorted(offered - seen) == [], "lines that no case reaches"


def test_the_planted_faults_are_reported_together_and_nothing_else_is(
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
    assert check.main(["planted"]) == 1
    said = [line for line in capsys.readouterr().out.splitlines() if line.startswith("  error")]
    paths = [
        "environment.placement",
        "environment.zone",
        "environment.pools.h100.instance_types",
        "environment.jobs.t5-large.gpus_per_node",
    ]
    assert [line.split()[1].rstrip(":") for line in said] == paths


def test_check_says_what_a_sound_stack_is_and_what_comes_next(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert check.main(["dev", "team-vision"]) == 0
    said = capsys.readouterr().out
    assert (
        re.search(
            r"^dev: no errors, \d+ warnings; zone ap-northeast-2a, pools g6e 4 x g6e", said, re.M
        )
        and "make preview STACK=dev" in said
    )
    assert "no errors, 2 warnings; namespace team-vision on dev, 1 job\n" in said


def test_check_of_a_stack_without_a_file_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert check.main(["nowhere"]) == 2
    assert "no stack file (Pulumi.nowhere.yaml)" in capsys.readouterr().out


# What works but should be known.

NOTICES: dict[str, tuple[list[Edit], str]] = {
    "endpoint for the whole internet": ([], "answers the whole internet"),
    "no zone id": ([], "unset, so what the zone sells is only checked by region"),
    "many nodes without GPUDirect": ([], "g6e has no GPUDirect RDMA"),
    "image by tag": ([], "a digest (@sha256:…) is what was tested"),
    "latest": (
        [at(f"{JOB}.image", "image:latest")],
        "latest is another image tomorrow: take a version",
    ),
    "a clone of whatever is newest": ([], "clones whatever is newest: git checkout a commit"),
    "packages at every start": ([], "installs packages at every start"),
    "folders of nodes": (
        [at(f"{JOB}.host_paths", {"data": {"host": "/data", "path": "/data"}})],
        "must exist on every node",
    ),
    "a role of the account that spot needs": (
        [at("pools.h100.capacity", "spot")],
        "must have the role AWSServiceRoleForEC2Spot for spot pools (h100): make check LIVE=1 looks"
        " for it, and `aws iam create-service-linked-role --aws-service-name spot.amazonaws.com`",
    ),
    "local files without NVMe": (
        [
            at(f"{JOB}.local_scratch", "/local"),
            at("pools.cpu", {"instance_types": ["m7i.48xlarge"], "max_nodes": 2}),
            at(f"{JOB}.pool", "cpu"),
            at(f"{JOB}.processes_per_node", 2),
        ],
        "has no NVMe: it lies on the root volume",
    ),
}


@pytest.mark.parametrize("case", NOTICES)
def test_what_should_be_known_is_said(case: str) -> None:
    edits, says = NOTICES[case]
    assert [n for n in planned(*edits).warnings if says in n.text]


def test_only_stores_that_stay_in_one_zone_are_far_from_a_job_in_another() -> None:
    def said(*edits: Edit) -> list[str]:
        away = at("pools.g6e.fallback_zones", ["ap-northeast-2b"])
        found = planned(away, at(f"{JOB}.nodes", 1), *edits).warnings
        return [str(n) for n in found if "another zone" in n.text]

    on_efs = at(f"{JOB}.checkpoints.store", "home")
    assert said() == [
        "environment.jobs.t5-large.pool: may run in another zone than scratch, which stays in"
        " ap-northeast-2a: slower, and $0.01 a GB each way"
    ]
    assert said(on_efs) == []


def test_a_stack_without_such_a_thing_has_nothing_to_be_told() -> None:
    quiet = planned(
        at("cluster.public_access_cidrs", ["203.0.113.7/32"]),
        at("zone_id", "apne2-az1"),
        at(f"{JOB}.pool", "h100"),
        at(f"{JOB}.image", "registry/image@sha256:" + "0" * 64),
        at(f"{JOB}.script", "torchrun train.py"),
    )
    assert [str(n) for n in quiet.warnings] == []
