"""What the engine says is deployed: resources of the whole stack, or of one component of a program."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from pulumi.runtime import rpc, settings
from pulumi.runtime.sync_await import _sync_await

from package.schema import ENVIRONMENT, TEAM
from stacks.engine import read_deployed

LUSTRE = "aws:fsx/lustreFileSystem:LustreFileSystem"
ABOVE = (
    ENVIRONMENT,
    f"my:index:Platform${ENVIRONMENT}",
    f"my:index:Platform${ENVIRONMENT}$trainyard:stores:Scratch",
)
BESIDE = ("", "my:index:Platform", TEAM, f"{ENVIRONMENT}s", f"my{ENVIRONMENT}")


def holds(monkeypatch: pytest.MonkeyPatch, parents: Iterable[str]) -> None:
    """An engine whose stack has one file system below these components, called as they are."""
    urns = {
        f"urn:pulumi:dev::shop::{'$'.join(filter(None, [each, LUSTRE]))}::{each}": {
            "type": LUSTRE,
            "outputs": {},
        }
        for each in parents
    }
    answer = _sync_await(rpc.serialize_properties({"outputs": urns}, {}))
    told = SimpleNamespace(**{"return": answer})
    monitor: Any = SimpleNamespace(Invoke=lambda request: told)
    monkeypatch.setattr(settings, "get_monitor", lambda: monitor)


@pytest.mark.parametrize("parents", ABOVE)
def test_a_component_below_another_one_has_what_is_in_it(
    parents: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holds(monkeypatch, [parents, *BESIDE])
    assert read_deployed({LUSTRE}, within=ENVIRONMENT).names(LUSTRE) == {parents}


def test_a_stack_file_has_the_whole_stack(monkeypatch: pytest.MonkeyPatch) -> None:
    holds(monkeypatch, [*ABOVE, *BESIDE])
    assert read_deployed({LUSTRE}).names(LUSTRE) == {*ABOVE, *BESIDE}
