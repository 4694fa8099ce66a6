"""What a killed replacement leaves in a state, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from operations import replacements

KIND = "aws:fsx/lustreFileSystem:LustreFileSystem"
OWNER = "urn:pulumi:dev::trainyard::trainyard:storage:Lustre::scratch"
URN = f"urn:pulumi:dev::trainyard::trainyard:storage:Lustre${KIND}::scratch"
ACCOUNT = "urn:pulumi:dev::trainyard::pulumi:providers:aws::account"
NEW = {
    "urn": URN,
    "type": KIND,
    "custom": True,
    "parent": OWNER,
    "provider": f"{ACCOUNT}::0b1c",
    "inputs": {"backupId": "backup-1"},
}
CREATING = {"type": "creating", "resource": NEW}


def state(**old: Any) -> dict[str, Any]:
    held = {"urn": URN, "type": KIND, "id": "fs-1", **old}
    return {"deployment": {"resources": [held], "pending_operations": [CREATING]}}


def test_what_was_created_in_the_place_of_another_object_is_a_replacement() -> None:
    assert replacements.begun(state()) == {URN: NEW}
    assert replacements.begun(state(urn="another")) == {}, "the preview shows it as a create"
    assert replacements.begun(state(delete=True)) == {}
    updating = state()
    updating["deployment"]["pending_operations"] = [CREATING | {"type": "updating"}]
    assert replacements.begun(updating) == {}
    assert replacements.begun({"deployment": {}}) == {}


@pytest.mark.parametrize("verb", ["updating", "deleting"])
def test_what_was_updated_in_aws_or_deleted_anywhere_is_read(verb: str) -> None:
    """Kubernetes takes the same update twice. Helm does not take the same deletion twice."""
    made = state()
    assert replacements.changing(made) == [], "it is being created"
    other = URN.replace(KIND, "kubernetes:helm.sh/v3:Release")
    provider, component = f"{ACCOUNT}::0b1c", OWNER
    made["deployment"]["pending_operations"] = [
        {"type": verb, "resource": {"urn": urn}} for urn in (URN, other, provider, component)
    ]
    assert replacements.changing(made) == [URN, other][: 1 + (verb == "deleting")]
    assert replacements.changing({"deployment": {}}) == []


def test_only_objects_that_still_exist_are_held() -> None:
    assert replacements.held_ids(state()) == {KIND: {"fs-1"}}
    assert replacements.held_ids(state(delete=True)) == {KIND: {"fs-1"}}
    assert replacements.held_ids(state(pendingReplacement=True)) == {}


def test_the_new_object_is_looked_for_with_the_inputs_that_it_was_made_with() -> None:
    [(entry, inputs)] = replacements.candidates({URN: NEW})
    assert entry == {"name": replacements.new_name(URN), "type": KIND}
    assert inputs == NEW["inputs"]


@pytest.mark.parametrize("gone", [False, True])
def test_the_new_object_takes_the_place_of_the_old_one_which_is_deleted_later(gone: bool) -> None:
    """Volumes that need the file system stand behind it in the state, as the engine demands. One that
    is gone is not deleted: where both have one name, that would hit the new one."""
    made = state(**({"pendingReplacement": True} if gone else {}))
    resources = made["deployment"]["resources"]
    volume = {"urn": "volume", "type": "x", "dependencies": [URN]}
    resources.append(volume)
    old = resources[0]
    replacements.take(made, {URN: "fs-2"})
    assert resources[1:] == [volume, *([] if gone else [old | {"delete": True}])]
    expected = NEW | {"id": "fs-2", "outputs": {"backupId": "backup-1", "id": "fs-2"}}
    assert expected.items() <= resources[0].items()
    assert resources[0]["created"] > "2026-11-23", "the pending operation has the old one's time"


def test_what_was_never_made_stays_as_it_was() -> None:
    made = state()
    replacements.take(made, {})
    assert made == state()
