"""How the state takes an object that exists already."""

from __future__ import annotations

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.killed_update import COMPONENT, ENTRY, URN, Stack
from tests.trainyard.operations.terminal import Terminal
from trainyard.operations.reach.lookup import ExistingObject
from trainyard.operations.recovery import repair


def test_an_object_that_a_killed_engine_forgot_is_imported_under_its_component(
    monkeypatch: pytest.MonkeyPatch,
):
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"))
    Terminal(monkeypatch, "y")
    assert run_word("repair", ["dev"]) == 0
    assert [words[:2] for words in stack.commands[1:]] == [
        ("stack", "import"),
        ("import", "--file"),
        ("stack", "import"),
    ]
    assert stack.imported["resources"] == [COMPONENT, ENTRY | {"id": "vpc-1"}]


def test_what_is_imported_needs_in_the_state_what_the_program_says_it_needs(
    monkeypatch: pytest.MonkeyPatch,
):
    """A destroy deletes what nothing needs first. Rules of a security group would come last."""
    component, group, rule = (URN.replace("network", name) for name in ("parts", "group", "rule"))
    kept = [{"urn": component, "type": "x"}, {"urn": "lost", "type": "x", "custom": True}]
    imported = [{"urn": urn, "type": "x", "custom": True} for urn in (rule, group, URN)]
    stack = Stack(monkeypatch, found=ExistingObject(id="vpc-1"), resources=(*kept, *imported))
    for urn, needed in ((rule, [group, URN, "gone"]), (group, [URN]), (component, [])):
        step = {"op": "create", "urn": urn, "newState": {"dependencies": needed}}
        stack.steps.append(step)
    assert repair.repair("dev", yes=True) == 0
    assert [each["urn"] for each in stack.written] == [component, "lost", URN, group, rule]
    assert [each.get("dependencies") for each in stack.written] == [
        *(None, None),
        *([], [URN], [group, URN]),
    ]


def test_the_backup_that_an_imported_file_system_was_made_of_is_kept_in_the_state(
    monkeypatch: pytest.MonkeyPatch,
):
    """FSx does not tell it, and with another one the next update would replace the file system."""
    lustre = {"urn": URN, "type": "aws:fsx/lustreFileSystem:LustreFileSystem", "custom": True}
    stack = Stack(
        monkeypatch,
        found=ExistingObject(id="fs-1"),
        resources=({**lustre, "inputs": {}, "outputs": {"backupId": ""}},),
    )
    for backup in ("backup-1", None):
        inputs = {"backupId": backup} if backup else {}
        stack.steps = [{"op": "create", "urn": URN, "newState": {"inputs": inputs}}]
        assert repair.repair("dev", yes=True) == 0
        [written] = stack.written
        assert written["inputs"] == inputs
        assert written["outputs"] == {"backupId": backup or ""}


CLAIM = "kubernetes:core/v1:PersistentVolumeClaim"
LIVE = {
    "metadata": {"name": "data", "uid": "1"},
    "spec": {"volumeName": "data-1", "accessModes": ["ReadWriteMany"], "volumeMode": "Filesystem"},
}
"""What the API server has: the program's claim, and what it adds."""


@pytest.mark.parametrize(
    ("spec", "kept"),
    [
        ({"volumeName": "data-1", "accessModes": ["ReadWriteMany"]}, True),
        ({"volumeName": "data-2"}, False),
        ({"accessModes": ["ReadWriteMany", "ReadOnlyMany"]}, False),
        ({"volumeName": "[secret]"}, False),
        ({"selector": {"matchLabels": {"a": "b"}}}, False),
    ],
)
def test_an_imported_object_of_the_cluster_was_asked_for_as_the_program_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, object], kept: bool
):
    """pulumi-kubernetes imports what the API server has added, too, or metadata alone. Each would be a
    change, and where it replaces a claim, its volume waits for the old one. An object that is not as
    the program wants it stays as it was imported, so that the next update changes it."""
    urn = URN.replace(ENTRY["type"], CLAIM)
    asked = {"metadata": {"name": "data"}, "spec": spec}
    imported = {"metadata": {"name": "data"}}
    resource = {
        "urn": urn,
        "type": CLAIM,
        "custom": True,
        "inputs": imported,
        "outputs": {**LIVE, "__inputs": imported},
    }
    stack = Stack(monkeypatch, found=ExistingObject(id="data"), resources=(resource,))
    stack.steps = [{"op": "create", "urn": urn, "newState": {"inputs": asked}}]
    assert repair.repair("dev", yes=True) == 0
    [written] = stack.written
    assert written["inputs"] == (asked if kept else imported)
    assert written["outputs"]["__inputs"] == (asked if kept else imported)


def test_an_imported_object_without_inputs_among_its_outputs_gets_none_there(
    monkeypatch: pytest.MonkeyPatch,
):
    urn = URN.replace(ENTRY["type"], CLAIM)
    asked = {"metadata": {"name": "data"}}
    resource = {"urn": urn, "type": CLAIM, "custom": True, "inputs": {}, "outputs": LIVE}
    stack = Stack(monkeypatch, found=ExistingObject(id="data"), resources=(resource,))
    stack.steps = [{"op": "create", "urn": urn, "newState": {"inputs": asked}}]
    assert repair.repair("dev", yes=True) == 0
    assert stack.written[0]["inputs"] == asked and stack.written[0]["outputs"] == LIVE
