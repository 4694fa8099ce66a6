"""What `trainyard drift` prints of a refresh that changes nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.tool import run_word
from trainyard.operations.reach.pulumi import PulumiError
from trainyard.operations.reach.updates import History, Update
from trainyard.operations.status import drift
from trainyard.operations.status.by_hand import CIPHER

POOL = "trainyard:nodes:GpuPool$kubernetes:karpenter.sh/v1:NodePool::g6e-pool"
VPC = "trainyard:network:Network$aws:ec2/vpc:Vpc::network"


def step(op: str, urn: str, was: Any = None, now: Any = None, *paths: str) -> dict[str, Any]:
    return {
        "op": op,
        "urn": f"urn:pulumi:dev::trainyard::{urn}",
        "oldState": {"outputs": was},
        "newState": None if op == "delete" else {"outputs": now},
        "detailedDiff": {path: {"kind": "update", "inputDiff": False} for path in paths},
    }


def answer(monkeypatch: pytest.MonkeyPatch, *steps: dict[str, Any]) -> list[tuple[str, ...]]:
    """Pulumi answers with these steps; returns what it is called with."""
    called: list[tuple[str, ...]] = []

    def pulumi(*words: str) -> str:
        called.append(words)
        return json.dumps({"steps": [step("refresh", VPC), *steps]})

    monkeypatch.setattr(drift, "pulumi", pulumi)
    monkeypatch.setattr(drift, "deployment", lambda _: {"deployment": {}})
    monkeypatch.setattr(drift, "history_of", lambda _: History(entries=()))
    return called


def test_a_stack_as_it_was_left_has_no_drift_and_nothing_is_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = answer(monkeypatch)
    assert run_word("drift", ["dev"]) == 0
    assert called == [("dev", "refresh", "--preview-only", "--json")]
    shown = capsys.readouterr()
    assert shown.out == "dev: every object is as the last update left it\n"
    assert shown.err.startswith("reads every object of dev in the account and in the cluster")


def test_a_stack_without_resources_has_no_drift(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pulumi's answer has no `steps` then (PreviewDigest, omitempty)."""
    answer(monkeypatch)
    monkeypatch.setattr(drift, "pulumi", lambda *_: '{"duration": 138889}')
    assert run_word("drift", ["dev"]) == 0


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_after_a_refresh_nobody_is_told_that_all_is_as_the_last_update_left_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    """The refresh had written what somebody changed into the state, and all was said to be well."""
    answer(monkeypatch)
    ended = datetime(2026, 11, 29, 12, 3, tzinfo=UTC)
    refresh = Update(kind="refresh", result="succeeded", ended=ended, registered={"update": 2})
    monkeypatch.setattr(drift, "history_of", lambda _: History(entries=(refresh,)))
    assert run_word("drift", ["dev", *words]) == 1
    shown = capsys.readouterr()
    said = shown.err if words else shown.out
    assert (
        "has written into the state of dev at 2026-11-29 12:03 UTC what somebody had changed"
        in said
    )
    assert "as the last update left it" not in shown.out


def test_each_object_is_named_with_its_changes_and_the_commands_that_mend_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(
        monkeypatch,
        step("delete", POOL),
        step(
            *("update", VPC, {"tags": {"a.b": "x", "c": "1"}}, {"tags": {"a.b": "y"}}),
            *('tags["a.b"]', "tags.c"),
        ),
    )
    assert run_word("drift", ["dev"]) == 1
    assert capsys.readouterr().out == (
        "dev: 2 objects are not as the last update left them\n"
        "  gone     g6e-pool  kubernetes:karpenter.sh/v1:NodePool\n"
        "  changed  network   aws:ec2/vpc:Vpc\n"
        '      tags["a.b"] is y and was x\n'
        "      tags.c is not there and was 1\n\n"
        "pulumi refresh --stack dev   # writes into the state what is there\n"
        "pulumi up --stack dev   # makes it as the stack file says\n"
    )


def test_fields_that_somebody_else_wrote_into_a_kubernetes_object_are_taken_back(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = {"spec": {"taints": [{"key": "a"}]}}, {"spec": {"taints": []}}
    answer(monkeypatch, step("update", POOL, *lists, "spec.taints[0].key"))
    assert run_word("drift", ["dev"]) == 1
    said = capsys.readouterr().out
    assert "1 object is not as the last update left it\n" in said
    assert "spec.taints[0].key is not there and was a" in said
    assert "PULUMI_K8S_ENABLE_PATCH_FORCE=true pulumi up --stack dev" in said


@pytest.mark.parametrize("hidden", [{CIPHER: "1b47", "ciphertext": "v1"}, "[secret]"])
def test_values_that_pulumi_hides_are_not_shown(
    hidden: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, step("update", VPC, {"password": hidden}, {"password": "x"}, "password"))
    assert run_word("drift", ["dev"]) == 1
    assert capsys.readouterr().out.splitlines()[2] == "      password"


def test_programs_get_json_and_an_object_that_cannot_be_read_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answer(monkeypatch, step("delete", POOL))
    assert run_word("drift", ["dev", "--json"]) == 1
    [found] = json.loads(capsys.readouterr().out)
    assert (found["name"], found["gone"], found["changed"]) == ("g6e-pool", True, [])

    def refuse(*_: str) -> str:
        raise PulumiError("pulumi refresh: no stack named dev")

    monkeypatch.setattr(drift, "pulumi", refuse)
    assert run_word("drift", ["dev"]) == 1
    assert "no stack named dev" in capsys.readouterr().err
