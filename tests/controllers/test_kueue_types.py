"""The table of what Kueue drops, against the Go types themselves."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal import paths
from tests.support.kueue_server import PROGRAM
from tests.support.kueue_types import FOLDERS, types_text, written_back
from tests.support.zero_values import find_zeros, zero_spec
from trainyard.catalog.kueue_types import TYPES_FILE, as_written_back
from trainyard.catalog.versions import TRAINER_RELEASES

pytestmark = pytest.mark.apart

RELEASE = "2.3.0"
FIELD, PROGRAM_OF = TRAINER_RELEASES[RELEASE].pod_changes, PROGRAM[RELEASE]


@pytest.fixture(autouse=True)
def modules() -> None:
    """They are there where the program was built."""
    if not (paths.BIN / PROGRAM_OF).exists():
        pytest.skip(f"needs {PROGRAM_OF}: `make worlds` builds it")


def lost(there: Any, comes: Any, path: str = "") -> list[str]:
    """Paths of what is there and does not come."""
    if isinstance(there, dict):
        return [
            gone
            for key, each in there.items()
            for gone in (
                lost(each, comes[key], f"{path}.{key}") if key in comes else [f"{path}.{key}"]
            )
        ]
    if isinstance(there, list):
        pairs = zip(there, comes, strict=True)
        return [gone for n, (a, b) in enumerate(pairs) for gone in lost(a, b, f"{path}[{n}]")]
    return [] if there == comes else [path]


def test_the_table_is_what_the_types_say() -> None:
    """A new release of Kueue: `python -m tests.support.kueue_types`."""
    assert [*FOLDERS.values()] == [PROGRAM_OF]
    assert TYPES_FILE.read_text() == types_text()


def test_what_is_sent_loses_nothing_when_the_types_write_it_back() -> None:
    written = zero_spec(RELEASE, FIELD, {})
    sent = as_written_back(written, RELEASE)
    assert lost(sent, written_back(sent, PROGRAM_OF)) == []
    gone = lost(written, written_back(written, PROGRAM_OF))
    assert sorted(gone) == sorted(lost(written, sent))
    assert len(gone) > 90 and ".trainer.env[0].value" in gone
    assert all(zero in ({}, []) for zero in find_zeros(sent))
