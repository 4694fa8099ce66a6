"""What a killed replacement leaves in a state, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.operations.recovery import replacements

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


SPACE = "urn:pulumi:dev::trainyard::trainyard:teams:Team$kubernetes:core/v1:Namespace::team-vision"


def space(name: str, **more: Any) -> dict[str, Any]:
    kind = "kubernetes:core/v1:Namespace"
    named = {"metadata": {"name": name}}
    return {"urn": SPACE, "type": kind, "custom": True, "id": name, "inputs": named, **more}


def test_the_old_object_that_the_stack_file_wants_again_is_kept_and_the_new_one_deleted() -> None:
    """The API server refuses a second one of its name for as long as the old one waits for its
    deletion, and that is the end of the update which would make it."""
    old, new, pod = space("vision", delete=True), space("seers"), {"urn": "p", "type": "x"}
    made = {"deployment": {"resources": [new, pod, old]}}
    ids = replacements.wanted_again(made, {SPACE: space("vision")}, ())
    assert ids == {SPACE: "vision"}
    assert replacements.wanted_again(made, {SPACE: space("others")}, ()) == {}
    assert replacements.wanted_again(made, {}, ()) == {}, "the new one is what it wants"
    replacements.put_back(made, ids)
    assert made["deployment"]["resources"] == [
        space("vision"),
        pod,
        space("seers", delete=True),
    ]


def test_a_killed_replacement_that_is_taken_back_keeps_the_old_object() -> None:
    """Where the state has the old one only, a preview sees nothing to do."""
    killed = {"type": "creating", "resource": space("seers")}
    made = {"deployment": {"resources": [space("vision")], "pending_operations": [killed]}}
    assert replacements.wanted_again(made, {SPACE: space("seers")}, [SPACE]) == {}
    assert replacements.wanted_again(made, {}, []) == {}, "the new one was never made"
    ids = replacements.wanted_again(made, {}, [SPACE])
    replacements.take(made, {SPACE: "seers"})
    replacements.put_back(made, ids)
    back, leaving = made["deployment"]["resources"]
    assert (back["id"], leaving["id"], leaving["delete"]) == ("vision", "seers", True)
    assert "delete" not in back


def test_of_aws_and_of_what_is_gone_nothing_is_wanted_again() -> None:
    assert replacements.wanted_again(state(delete=True), {URN: NEW | {"id": "fs-1"}}, ()) == {}
    gone = {"deployment": {"resources": [space("vision", pendingReplacement=True)]}}
    assert replacements.wanted_again(gone, {}, [SPACE]) == {}
