"""Rights of the programs that run in the cluster."""

from __future__ import annotations

from types import ModuleType

import pytest

from trainyard.objects.programs import gangs, history, repair, told


@pytest.mark.parametrize("program", [gangs, history, repair, told])
def test_a_program_may_watch_each_list_that_it_may_read(program: ModuleType) -> None:
    listed = [(group, kind) for group, kind, verbs in program.MAY if "list" in verbs]
    watched = [(group, kind) for group, kind, verbs in program.MAY if "watch" in verbs]
    assert listed == watched != []
