"""A preview as the caller takes no role and no profile of the stack file; an update always does."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from stacks import caller
from stacks.caller import AS_CALLER, ROLE, shown_to_caller
from tests.graph.test_team import REFERENCE
from tests.support.recording import Changes, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, TEAM

DEPLOYER = "arn:aws:iam::123456789012:role/deployer"
KUBECONFIG = json.dumps(
    {
        "users": [
            {"user": {"exec": {"args": ["eks", "get-token", ROLE, DEPLOYER, "--profile", "p"]}}}
        ]
    }
)


def _deployed_by_a_role(values: dict[str, Any]) -> None:
    values[ENVIRONMENT]["cluster"]["deployer_role_arn"] = DEPLOYER
    values[ENVIRONMENT]["jobs"] = {}


def _team_by_a_role(values: dict[str, Any]) -> None:
    assert TEAM in values
    values["aws:assumeRoles"] = [{"roleArn": DEPLOYER}]


def _roles(graph: Graph) -> list[str]:
    """Inputs in which the role of the deployer stands."""
    return [
        f"{node} {name}"
        for node in graph.nodes.values()
        for name, value in node.inputs.items()
        if DEPLOYER in json.dumps(value)
    ]


@pytest.mark.parametrize(
    ("stack", "edit"), [("dev", _deployed_by_a_role), ("team-vision", _team_by_a_role)]
)
def test_only_a_preview_that_is_asked_to_takes_no_role(
    stack: str, edit: Changes, contract: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    deployed = {REFERENCE: {"contract": contract}}

    def roles(*, preview: bool) -> list[str]:
        return _roles(deploy(stack, edit, references=deployed, preview=preview))

    assert roles(preview=True)
    monkeypatch.setenv(AS_CALLER, "true")
    assert roles(preview=True) == []
    assert roles(preview=False)


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_only_a_preview_that_is_asked_to_takes_no_profile(
    stack: str, contract: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runner of CI has the keys of its role, and no profile: AWS knows none of that name there."""
    deployed = {REFERENCE: {"contract": contract}}

    def has_profile(*, preview: bool) -> bool:
        def edit(values: dict[str, Any]) -> None:
            values["aws:profile"] = "research-admin"

        return (
            "research-admin" in deploy(stack, edit, references=deployed, preview=preview).golden()
        )

    assert has_profile(preview=True)
    monkeypatch.setenv(AS_CALLER, "true")
    assert not has_profile(preview=True)
    assert has_profile(preview=False)


@pytest.mark.parametrize("asked", [True, False])
def test_the_cluster_is_asked_as_the_caller_too(
    asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def shown(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
        seen.append(kubeconfig)
        return ()

    monkeypatch.setattr(caller, "shown", shown)
    monkeypatch.setattr(caller.pulumi.runtime, "is_dry_run", lambda: True)
    if asked:
        monkeypatch.setenv(AS_CALLER, "true")
    shown_to_caller(KUBECONFIG, "trainjob", None)
    assert (DEPLOYER in seen[0]) is not asked
    assert ("--profile" in seen[0]) is not asked and "get-token" in seen[0]
