"""Roles that enter the cluster are looked up before anything is made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pulumi
import pytest

from tests.support.recording import BUCKET, Graph, deploy
from tests.support.stackfile import ENVIRONMENT
from tests.support.teams import DEPLOYER, listed

ACCOUNT = "111122223333"
ABSENT = {}, [("", "couldn't find resource")]
COMMAND = "aws iam create-role --role-name vision-deployer --assume-role-policy-document"


@dataclass
class Account:
    """Answers to the look-ups of a program, in an account where one role is missing."""

    number: str = ACCOUNT
    entered: bool = False
    """The access entry of the missing role is there."""
    refused: bool = False
    """The caller may not ask for roles."""
    asked: list[str] = field(default_factory=list)

    def __call__(self, token: str, arguments: dict[str, Any]) -> Any:
        self.asked.append(token)
        if token == BUCKET:
            return {**arguments, "bucketRegion": "ap-northeast-2"}
        if "getCallerIdentity" in token:
            if not self.number:
                return {}, [("", "configuring: AWS account ID not allowed: 444455556666")]
            return {"accountId": self.number}
        if "getRole" in token:
            if self.refused:
                return {}, [("", "AccessDenied: not authorized to perform iam:GetRole")]
            return ABSENT if arguments["name"] == "vision-deployer" else {"arn": ""}
        assert "getAccessEntry" in token and arguments["principalArn"] == DEPLOYER
        return {"clusterName": ""} if self.entered else ABSENT


def environment(account: Account, *, preview: bool = False) -> Graph:
    return deploy("dev", lambda values: listed(values[ENVIRONMENT]), vpc=account, preview=preview)


@pytest.mark.parametrize("preview", [True, False])
def test_credentials_of_an_account_that_is_not_listed_are_one_error(preview: bool) -> None:
    with pytest.raises(pulumi.RunError) as refused:
        environment(Account(number=""), preview=preview)
    said = str(refused.value)
    assert said.startswith("aws:allowedAccountIds: must list the account of the credentials")
    assert "got 444455556666. Fix: take the credentials of another account" in said


def test_an_update_with_a_role_that_is_missing_ends_with_the_command_that_makes_it() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        environment(Account())
    said = str(refused.value)
    assert said.startswith(
        "roles are missing; nothing was changed\nenvironment.teams.vision.deployer: "
    )
    assert COMMAND in said and said.count("create-role") == 1


def test_a_preview_warns_of_the_role_and_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(pulumi, "warn", warned.append)
    assert environment(Account(), preview=True).of("AccessEntry")
    assert len([each for each in warned if COMMAND in each]) == 1


@pytest.mark.parametrize(
    "account", [Account(entered=True), Account(refused=True), Account(number="210987654321")]
)
def test_a_role_that_entered_before_or_cannot_be_asked_for_is_left_to_eks(account: Account) -> None:
    assert environment(account).of("AccessEntry")


def test_without_roles_that_enter_nothing_is_asked() -> None:
    account = Account()
    deploy("dev", vpc=account)
    assert {*account.asked} <= {BUCKET}
