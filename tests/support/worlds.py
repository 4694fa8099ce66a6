"""The mark of tests that need a world: they are skipped on a machine that can hold none."""

from __future__ import annotations

import pytest

from rehearsal import world

NO_WORLD = world.obstacle()
"""Reason why this machine can hold none; None where it can. To find out starts a process: it is asked once for all
files of tests."""
NEEDS_A_WORLD = pytest.mark.skipif(NO_WORLD is not None, reason=str(NO_WORLD))
