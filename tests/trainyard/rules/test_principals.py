"""Roles that enter the cluster must exist before `pulumi up`: EKS refuses the others minutes later."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, planned, reading, values
from tests.support.tool import run_word
from tests.trainyard.live.test_preflight import SESSION, account
from trainyard.live.principals import principal_checks
from trainyard.problems import InputWarning
from trainyard.reports import check
from trainyard.rules.principals import (
    Principal,
    creation,
    creations_in,
    entering,
    foreign_warnings,
    principal_errors,
    unasked,
)
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.reader import read_file

HERE, THERE = "arn:aws:iam::123456789012:role/", "arn:aws:iam::999999999999:role/"
SSO = f"{HERE}aws-reserved/sso.amazonaws.com/AWSReservedSSO_vision_1"
TEAMS = {
    "vision": {"deployer": f"{HERE}vision-deployer", "members": [SSO, f"{THERE}guest"]},
    "nlp": {"deployer": f"{HERE}nlp", "viewers": [f"{HERE}auditors"]},
}


def wanted() -> EnvironmentConfig:
    config = reading(
        at("teams", TEAMS), at("cluster.admins", {"ops": {"role_arn": f"{HERE}ops"}})
    ).config
    assert config and config.environment
    return config.environment


def test_every_role_of_admins_and_teams_is_one_with_its_setting() -> None:
    assert [(each.path.removeprefix("environment."), each.name) for each in entering(wanted())] == [
        ("cluster.admins.ops.role_arn", "ops"),
        ("teams.vision.deployer", "vision-deployer"),
        ("teams.vision.members", "AWSReservedSSO_vision_1"),
        ("teams.vision.members", "guest"),
        ("teams.nlp.deployer", "nlp"),
        ("teams.nlp.viewers", "auditors"),
    ]


def test_the_account_is_asked_for_each_of_its_own_roles() -> None:
    told = account()
    arns = {each.name: each.arn for each in entering(wanted()) if each.name != "nlp"}
    told.role_arn.side_effect = lambda name: {**arns, "ops": f"{HERE}people/ops"}.get(name)
    asked = principal_checks(told, wanted(), SESSION)
    guest, path, error = (found for check in asked.values() for found in check())
    assert str(path) == (
        "environment.cluster.admins.ops.role_arn: must have the path of its role: EKS refuses the access entry"
        f" of an ARN that no role has; got {HERE}ops. Fix: write {HERE}people/ops"
    )
    assert [call.args[0] for call in told.role_arn.call_args_list] == [
        *("ops", "vision-deployer", "AWSReservedSSO_vision_1", "nlp", "auditors")
    ]
    assert str(guest).startswith(
        f"environment.teams.vision.members: {THERE}guest is a role of account"
    )
    said = str(error)
    assert said.startswith(
        "environment.teams.nlp.deployer: must be a role that exists: EKS refuses the access entry of"
        f" another one; got {HERE}nlp. Fix: run `aws iam create-role --role-name nlp"
    )
    words = shlex.split(said.split("`")[1])
    trust = json.loads(words[words.index("--assume-role-policy-document") + 1])
    assert trust["Statement"][0]["Principal"] == {"AWS": "arn:aws:iam::123456789012:root"}


def test_an_account_is_asked_whether_deployers_are_its_own() -> None:
    config = reading(at("teams", {"vision": {"deployer": f"{THERE}vision"}})).config
    assert config and config.environment
    asked = principal_checks(account(), config.environment, SESSION)
    [error] = [error for check in asked.values() for error in check()]
    assert "must be a role of the environment's account, 123456789012" in str(error)


def test_a_role_of_another_account_may_enter_and_is_named_with_what_it_needs() -> None:
    [warning] = foreign_warnings(wanted(), {"123456789012"})
    assert str(warning) == (
        f"environment.teams.vision.members: {THERE}guest is a role of account 999999999999 and not of the"
        " environment's, 123456789012: EKS admits it, but trainyard check --live cannot ask whether it exists,"
        " and its people need the kubeconfig from you, because `aws eks update-kubeconfig` looks for the"
        " cluster in their own account"
    )
    assert not [*foreign_warnings(wanted(), set())]
    found = planned(at("teams", TEAMS), at("cluster.deployer_role_arn", f"{HERE}platform"))
    assert warning in found.warnings and found.plan


def test_each_team_without_a_deployer_is_proposed_one_of_its_own_in_the_account(
    tmp_path: Path,
) -> None:
    """EKS has one access entry for a role, so that one role for two teams would be refused next."""
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    config = values(at("teams", {"vision": {}, "nlp": {"deployer": "nlp"}}))
    config["aws:allowedAccountIds"] = ["444455556666"]
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump({"config": config}))
    assert [str(each).partition("Fix: ")[2] for each in read_file("dev", tmp_path).errors] == [
        "write one such as arn:aws:iam::444455556666:role/nlp-deployer",
        "add deployer: arn:aws:iam::444455556666:role/vision-deployer",
    ]


def test_a_check_without_the_account_names_the_roles_once_where_they_stand() -> None:
    admins, teams = unasked(wanted())
    assert str(admins).startswith(
        "environment.cluster.admins: the IAM role ops must exist before `pulumi up`"
    )
    assert str(teams).startswith(
        "environment.teams: the IAM roles vision-deployer, AWSReservedSSO_vision_1, guest, nlp,"
        " auditors must exist before `pulumi up`"
    )
    config = reading().config
    assert config and config.environment and not [*unasked(config.environment)]


def test_check_names_them_and_check_with_an_account_asks_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    stack = {"config": values(at("teams", TEAMS))}
    (tmp_path / "Pulumi.dev.yaml").write_text(yaml.safe_dump(stack))
    monkeypatch.chdir(tmp_path)
    assert run_word("check", ["dev"]) == 0
    assert "must exist before `pulumi up`" in capsys.readouterr().out
    answers: list[InputWarning] = []
    monkeypatch.setattr(check, "_answers", lambda *_: answers)
    assert check._check("dev", 60) == 0
    assert "must exist before" not in capsys.readouterr().out


def test_a_role_of_identity_center_is_assigned_and_not_made_by_hand() -> None:
    """IAM refuses its name and its path to everybody else."""
    [error] = principal_errors(Principal(path="environment.teams.vision.members", arn=SSO), None)
    assert "assign the permission set to a group of this account" in error.fix
    assert "create-role" not in error.fix


def test_the_commands_that_make_roles_are_found_in_what_is_said_of_them() -> None:
    made = Principal(path="environment.teams.nlp.deployer", arn=f"{HERE}nlp")
    by_others = Principal(path="environment.teams.vision.members", arn=SSO)
    said = [str(error) for one in (made, by_others) for error in principal_errors(one, None)]
    assert creations_in("\n".join(said)) == [creation(made)]
    assert creations_in("connection reset") == []
