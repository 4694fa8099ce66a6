"""The pieces that `make soak` consists of: files of tests that are marked `apart` or `soak`, kills by
enumeration, parts left out, kills at random moments, and one-line faults for the fast tests.

It needs the standard library only: .ci/run chooses its shard before anything is installed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
MARKED = re.compile(r"\bmark\.(apart|soak)\b")
KUEUE = ("kueue", "kueue-0.19")


def _control_plane(*releases: str) -> tuple[str, ...]:
    """Programs of the control plane of these releases of Kubernetes."""
    parts = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    return tuple(f"{part}-{release}" for release in releases for part in parts)


ALSO = {
    "tests/controllers/test_dispatch.py": KUEUE,
    "tests/controllers/test_gangs.py": KUEUE,
    "tests/controllers/test_kueue.py": KUEUE,
    "tests/controllers/test_kueue_types.py": KUEUE,
    "tests/controllers/test_prometheus.py": ("prometheus",),
    "tests/controllers/test_topology.py": KUEUE,
    "tests/worlds/test_releases_world.py": _control_plane("1.34"),
    "tests/worlds/test_upgrade_world.py": _control_plane("1.34", "1.36"),
}
"""Piece → programs that it needs. A world builds its own, for `up` does; a world is here where its test
waits for an `up` that would build for longer than the test waits."""
ELSEWHERE = ("tests/worlds/test_training_world.py",)
"""Worlds that are no pieces: `make train-real` runs them, with torch."""
FAULT_SEED, FAULTS, FAULT_PARTS = 20261126, 200, 4
KILL_SEED = 20261126
"""The same kills each time: a shard that fails can be run again."""


@dataclass(frozen=True, kw_only=True)
class Piece:
    """One command of the soak."""

    name: str
    """Path of a file of tests; of another piece its words."""

    @property
    def is_tests(self) -> bool:
        return self.name.endswith(".py")

    @property
    def words(self) -> tuple[str, ...]:
        """What follows `python -m`."""
        if not self.is_tests:
            return tuple(self.name.split())
        return ("pytest", "-m", "apart or soak", self.name)

    @property
    def also(self) -> tuple[str, ...]:
        return ALSO.get(self.name, ())


def _files() -> Iterator[str]:
    for folder in ("tests", "rehearsal/tests"):
        for file in sorted((CHECKOUT / folder).rglob("test_*.py")):
            if MARKED.search(file.read_text()):
                yield str(file.relative_to(CHECKOUT))


def _commands() -> Iterator[str]:
    for word in ("up", "down"):
        for when in ("before", "after"):
            yield f"tests.worlds.crawl --alone --word {word} --when {when}"
    yield "tests.worlds.crawl --alone --every 3"
    for part in range(1, 5):
        yield f"tests.worlds.soak --kills 0 --part {part}/4"
    for number in range(2):
        yield f"tests.worlds.soak --no-leave-outs --kills 10 --seed {KILL_SEED + number}"
    yield f"tests.worlds.soak --no-leave-outs --kills 4 --busy 6 --seed {KILL_SEED}"
    for part in range(1, FAULT_PARTS + 1):
        yield f"benchmarks.mutants --seed {FAULT_SEED} --count {FAULTS} --part {part}/{FAULT_PARTS}"


PIECES = tuple(Piece(name=name) for name in (*_files(), *_commands()))
WORLDS = (*(piece.name for piece in PIECES), *ELSEWHERE)
"""Names that tests/proofs.txt knows."""
