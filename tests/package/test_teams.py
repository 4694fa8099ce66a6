"""Components of a team and of one job of it: the graph of the team's stack file, by the contract that the
environment's component hands over."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError
from pulumi.output import UNKNOWN

from package.schema import ENVIRONMENT, TEAM, TRAINING_JOB
from stacks.caller import AS_CALLER
from tests.support.package import inside, made, tops
from tests.support.recording import stack_values
from tests.support.stackfile import TEAM as SETTINGS
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.settings.reading.reader import read

DEV: dict[str, Any] = stack_values("dev")["trainyard:environment"]
LISTED = {**DEV, "teams": {"vision": {"deployer": "arn:aws:iam::111122223333:role/vision"}}}
VISION: dict[str, Any] = stack_values("team-vision")[SETTINGS]
JOB = VISION["jobs"]["vit-base"]
ACCESS = {
    "cluster": {
        "name": "dev",
        "arn": "arn:aws:eks:ap-northeast-2:111122223333:cluster/dev",
        "endpoint": "https://cluster",
        "certificate_authority": "Y2E=",
        "deployer_role_arn": None,
    },
    "volumes": {
        "scratch": {"handle": "fs-1", "attributes": {"dnsname": "scratch.fsx", "mountname": "mnt"}},
        "home": {"handle": "fs-2", "attributes": {}},
    },
}


def contract(settings: dict[str, Any] = DEV, team: str | None = None) -> dict[str, Any]:
    given = {"aws:region": "ap-northeast-2", "trainyard:environment": settings}
    plan = plan_stack(read(given, stack="dev", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return json.loads(json.dumps(plan.teams[team].contract if team else plan.contract))


BY_MAP = {**VISION, "contract": contract(), "access": ACCESS}


def kinds(found: list[dict[str, Any]]) -> list[str]:
    return [each["type"] for each in found]


def refused(folder: Path, arguments: Any, kind: str = TEAM, **engine: Any) -> str:
    with pytest.raises(InputPropertiesError) as error:
        made(kind, arguments, folder, name="vit-base", **engine)
    return error.value.message


def test_a_team_makes_what_its_stack_file_makes(tmp_path: Path, team: Any) -> None:
    graph, state = made(TEAM, BY_MAP, tmp_path, name="vision", stack="research")
    assert tops(graph) == [TEAM]
    # The program of the stack file reads the contract from the environment's stack.
    stack = [each for each in json.loads(team.golden()) if "StackReference" not in each["type"]]
    mine = inside(graph, TEAM, "vision")
    assert kinds(mine) == kinds(stack)
    [job] = [each for each in mine if each["type"].endswith(":TrainJob")]
    [theirs] = [each for each in stack if each["type"].endswith(":TrainJob")]
    assert job["name"] == "vision-vit-base" and job["inputs"] == theirs["inputs"]
    assert {*state} == {"kubeconfig", "namespace", "jobs", "plan"}


def test_a_job_makes_what_a_team_of_one_job_makes(tmp_path: Path) -> None:
    arguments = {key: value for key, value in BY_MAP.items() if key != "jobs"} | {"job": JOB}
    graph, _ = made(TRAINING_JOB, arguments, tmp_path, name="vit-base", stack="research")
    whole, _ = made(TEAM, BY_MAP, tmp_path, name="vit-base", stack="research")
    text = json.dumps(inside(whole, TEAM, "vit-base"))
    assert json.dumps(inside(graph, TRAINING_JOB, "vit-base")) == text


def test_two_teams_are_in_one_program(tmp_path: Path) -> None:
    """Nothing of one has the name of something of the other."""
    both = {}
    for name in ("vision", "speech"):
        graph, _ = made(TEAM, {**BY_MAP, "namespace": f"team-{name}"}, tmp_path, name=name)
        both[name] = {each for each in graph.nodes if f"::{TEAM}::" not in each}
    assert not both["vision"] & both["speech"]


def test_the_contract_of_a_listed_team_makes_no_namespace(tmp_path: Path) -> None:
    arguments = {
        "environment": "dev",
        "name": "vision",
        "contract": contract(LISTED, "vision"),
        "access": ACCESS,
        "jobs": VISION["jobs"],
    }
    graph, _ = made(TEAM, arguments, tmp_path, name="vision", stack="research")
    assert not [each for each in graph.nodes.values() if each.kind.endswith(":Namespace")]


def test_the_access_need_not_be_known_in_a_preview(tmp_path: Path) -> None:
    graph, _ = made(TEAM, {**BY_MAP, "access": UNKNOWN}, tmp_path, name="vision", preview=True)
    assert graph.one("TrainJob", "vision-vit-base").inputs["spec"]


def test_only_a_preview_that_is_asked_to_takes_no_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    role = "arn:aws:iam::111122223333:role/vision"
    config = {"aws:region": "ap-northeast-2", "aws:assumeRoles": json.dumps([{"roleArn": role}])}

    def has_role(*, preview: bool) -> bool:
        made_here = made(TEAM, BY_MAP, tmp_path, name="vision", config=config, preview=preview)
        return role in made_here[0].golden()

    assert has_role(preview=True)
    monkeypatch.setenv(AS_CALLER, "true")
    assert not has_role(preview=True)
    assert has_role(preview=False)


def test_the_environment_hands_over_what_a_team_takes(tmp_path: Path) -> None:
    _, state = made(ENVIRONMENT, LISTED, tmp_path)
    assert json.loads(json.dumps(state["contract"])) == contract(LISTED)
    assert json.loads(json.dumps(state["team_contracts"]["vision"])) == contract(LISTED, "vision")
    assert isinstance(state["access"], pulumi.Output)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"max_gpus": 0}, "max_gpus: must"),
        ({"access": None}, "access: must be set with a contract that is no file"),
        ({"contract": None}, "access: must not be set without a contract that is no file"),
        ({"contract": {"version": 9}}, "contract.version: must be 1 or 2"),
        ({"jobs": {"vit-base": {**JOB, "pool": "a100"}}}, "jobs.vit-base.pool: must"),
    ],
    ids=["setting", "no access", "access alone", "contract", "rule"],
)
def test_faults_have_the_path_of_the_argument(
    tmp_path: Path, change: dict[str, Any], sentence: str
) -> None:
    assert sentence in refused(tmp_path, {**BY_MAP, **change}, preview=True)


def test_a_fault_of_a_job_has_its_path(tmp_path: Path) -> None:
    arguments = {key: value for key, value in BY_MAP.items() if key != "jobs"}
    said = refused(tmp_path, {**arguments, "job": {**JOB, "pool": "a100"}}, TRAINING_JOB)
    assert "  error    job.pool: must" in said
