"""An `up` that replaces a Lustre store by one from its backup loses all its processes while FSx restores.

The next `up` goes on with the file system that FSx has made by then: a second one would be paid for by
nobody's knowledge, and would hold its subnet when the stack is destroyed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, Object, rehearsing, with_l4
from tests.worlds.soak import made_twice, unrepaired

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]
STACK, FILE = "restored", "Pulumi.restored.yaml"
KILLED = ("engine", "aws plugin", "eks plugin", "kubernetes plugin")


def _stack(lustre: Object, **more: Any) -> str:
    persistent = {"capacity_gib": 1200, "throughput_mbps_per_tib": 125, **lustre}
    config = with_l4(storage={"scratch": {"lustre": persistent, "data": "delete"}}, **more)
    return yaml.safe_dump({"config": config})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing(STACK, {FILE: _stack({})}) as made:
        assert made.do("up", "--stack", STACK) == 0, made.log.read_text()
        yield made


def _fsx(harness: Harness, words: str) -> Object:
    return json.loads(harness.shell(f"aws fsx {words} --output json"))


def _file_systems(harness: Harness) -> dict[str, str]:
    """Id → its lifecycle."""
    said = _fsx(harness, "describe-file-systems")["FileSystems"]
    return {each["FileSystemId"]: each["Lifecycle"] for each in said}


def test_the_next_up_goes_on_with_the_file_system_that_was_being_restored(harness: Harness) -> None:
    [old] = _file_systems(harness)
    backup = _fsx(harness, f"create-backup --file-system-id {old}")["Backup"]["BackupId"]
    listed = f"describe-backups --backup-ids {backup}"
    assert until(lambda: _fsx(harness, listed)["Backups"][0]["Lifecycle"] == "AVAILABLE")
    wanted = _stack({"restore_from": backup}, allow_replace=["storage.scratch"])
    (harness.checkout / FILE).write_text(wanted)
    command = harness.start("up", "--stack", STACK)
    assert until(lambda: "CREATING" in _file_systems(harness).values(), every=0.2)
    assert harness.kill(*(part for who in KILLED for part in VICTIMS[who])) >= len(KILLED)
    assert command.wait() != 0
    [new] = [id_ for id_ in _file_systems(harness) if id_ != old]

    assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
    assert _file_systems(harness) == {new: "AVAILABLE"}
    volumes = harness.get("persistentvolumes")["items"]
    assert {each["spec"]["csi"]["volumeHandle"] for each in volumes} == {new}
    harness.shell(f"pulumi up --stack {STACK} --yes --skip-preview --expect-no-changes")
    assert made_twice(harness.inventory()) is None
    assert unrepaired(harness) == []
    _fsx(harness, f"delete-backup --backup-id {backup}")


def test_down_leaves_nothing(harness: Harness) -> None:
    assert harness.do("down") == 0, harness.log.read_text()
