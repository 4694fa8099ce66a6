"""tests/proofs.txt: which piece of the soak passed last, at which commit, on which day and in how many
seconds.

Without an option this lists what is not proved any more: tests that never passed in a recorded run, and
tests since whose commit more than 20 commits have changed what they prove. --record reads the junit
files that `make soak` leaves, and writes the table. It needs the standard library only.
"""

from __future__ import annotations

import functools
import subprocess
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from tests.worlds.pieces import CHECKOUT, WORLDS
from trainyard import command_line

TABLE = CHECKOUT / "tests" / "proofs.txt"
NEVER = "-"
OLD_COMMITS = 20
HEAD = """\
# The last commit at which each test of a world, and each other piece of the soak, passed; the day; seconds.
# `-` in place of a commit: it passed in no recorded run, and its seconds are a guess.
# Written by `.venv/bin/python -m tests.worlds.proofs --record <junit.xml>`.
"""
EVERYTHING = ("__main__.py", "components", "stacks", "trainyard", "rehearsal")
"""Paths that a piece proves which is in no row of SUBJECTS."""
SUBJECTS: dict[str, tuple[str, ...]] = {
    "tests/controllers/test_dispatch.py": ("dispatch", "queues"),
    "tests/controllers/test_gangs.py": ("gangs", "queues"),
    "tests/controllers/test_kueue": ("queues",),
    "tests/controllers/test_prometheus.py": ("metrics", "queries", "dashboards"),
    "tests/controllers/test_silent_kubelets.py": ("repair",),
    "tests/controllers/test_topology.py": ("queues", "gpu_pool", "pools"),
    "tests/rehearsal/providers/": ("providers",),
    "tests/trainyard/settings/reading/": ("settings", "manifests", "rules"),
    "tests/worlds/test_existing_": ("existing", "network", "cluster", "stores"),
    "tests/worlds/test_after_world.py": ("after", "order", "jobs"),
    "tests/worlds/test_calm_world.py": ("metrics", "alerts"),
    "tests/worlds/test_capacity_world.py": ("pools", "gpu_pool", "capacity", "nodes"),
    "tests/worlds/test_charts_world.py": ("chart", "trainer", "karpenter", "queues", "repair"),
    "tests/worlds/test_diagnosis_world.py": ("status",),
    "tests/worlds/test_ghosts_world.py": ("jobs",),
    "tests/worlds/test_image_world.py": ("images", "image", "registry"),
    "tests/worlds/test_interrupted.py": ("repair", "recovery", "pulumi"),
    "tests/worlds/test_isolated_world.py": ("network", "endpoints"),
    "tests/worlds/test_jobs_world.py": ("jobs", "manifests", "trainer"),
    "tests/worlds/test_key_world.py": ("encryption", "iam", "cluster"),
    "tests/worlds/test_late_": ("jobs", "queues", "gangs"),
    "tests/worlds/test_loads_world.py": ("loads", "load", "loader", "jobs"),
    "tests/worlds/test_metrics_world.py": ("metrics", "alerts", "dashboards"),
    "tests/worlds/test_queue_world.py": ("queues", "gangs", "teams"),
    "tests/worlds/test_reach_world.py": ("reach", "endpoint", "cluster"),
    "tests/worlds/test_repair_world.py": ("repair",),
    "tests/worlds/test_runs_world.py": ("history", "runs", "progress", "nodes", "while_watched"),
    "tests/worlds/test_secrets_world.py": ("secrets", "teams"),
    "tests/worlds/test_sequences_world.py": ("jobs", "new_runs", "shown", "next_run"),
    "tests/worlds/test_sweep_world.py": ("sweep", "order", "jobs"),
    "tests/worlds/test_schedule_world.py": (
        "schedule",
        "scheduled",
        "sweep",
        "order",
        "queues",
        "jobs",
    ),
    "tests/worlds/test_team_stores_world.py": ("stores", "teams"),
    "tests/worlds/test_upgrade_world.py": ("cluster", "versions"),
}
"""Beginning of a piece → the nouns that it proves. A noun is the name of files and of folders in each
room of the product, so that a subject need not list its files."""


@dataclass(frozen=True, kw_only=True, order=True)
class Proof:
    """One line of the table."""

    name: str
    """Id of a test, or the module and options of a command."""
    commit: str = NEVER
    day: str = NEVER
    seconds: int = 0
    """Duration of the run, or a guess where there was none."""

    @property
    def line(self) -> str:
        return f"{self.commit:10}  {self.day:10}  {self.seconds:5}  {self.name}"


def read(text: str) -> dict[str, Proof]:
    """Name → its line."""
    rows = [line.split(maxsplit=3) for line in text.splitlines() if not line.startswith("#")]
    return {
        name: Proof(name=name, commit=commit, day=day, seconds=int(seconds))
        for commit, day, seconds, name in rows
    }


def written(proofs: Iterable[Proof]) -> str:
    """The text of the table."""
    return HEAD + "".join(f"{proof.line}\n" for proof in sorted(proofs))


def of_piece(proofs: Mapping[str, Proof], piece: str) -> list[Proof]:
    """Lines of a piece: its own, or those of its tests."""
    return [
        each for each in proofs.values() if each.name == piece or each.name.startswith(f"{piece}::")
    ]


def passed(report: str, slower: float = 1) -> dict[str, int]:
    """Name → seconds of all that passed in a junit file of a machine that was so much slower."""
    cases = ElementTree.fromstring(report).iter("testcase")
    return {
        _name(case.get("classname", ""), case.get("name", "")): round(
            float(case.get("time", 0)) / slower
        )
        for case in cases
        if not any(case.find(word) is not None for word in ("failure", "error", "skipped"))
    }


def _name(module: str, test: str) -> str:
    return f"{module.replace('.', '/')}.py::{test}" if module else test


def recorded(
    proofs: Mapping[str, Proof], found: Mapping[str, int], pieces: Iterable[str], commit: str
) -> dict[str, Proof]:
    """The table after a run. A test that did not pass keeps its line; a line of a whole piece, which was a
    guess, goes when its tests are known."""
    day, names = datetime.now(UTC).date().isoformat(), [*pieces]
    fresh = {
        name: Proof(name=name, commit=commit, day=day, seconds=seconds)
        for name, seconds in found.items()
        if name.partition("::")[0] in names
    }
    known = {name.partition("::")[0] for name in fresh if "::" in name}
    return {name: each for name, each in proofs.items() if name not in known} | fresh


def subjects(name: str) -> tuple[str, ...]:
    """Patterns of git for what a piece proves."""
    nouns = next((nouns for start, nouns in SUBJECTS.items() if name.startswith(start)), ())
    return patterns(*nouns) if nouns else EVERYTHING


def patterns(*nouns: str) -> tuple[str, ...]:
    """Patterns of git for files and folders of these names, wherever they are but in tests/."""
    of_nouns = (f":(glob)**/{noun}{end}" for noun in nouns for end in (".py", "/**"))
    return (*of_nouns, ":(exclude)tests")


def commits_since(commit: str, patterns: tuple[str, ...]) -> int | None:
    """Commits after one that change files of these patterns; None where it is not in this history."""
    done = _git("rev-list", "--count", "--no-merges", f"{commit}..HEAD", "--", *patterns)
    return int(done.stdout) if done.returncode == 0 else None


def old(proofs: Mapping[str, Proof], pieces: Iterable[str]) -> list[str]:
    """One line for each proof that is missing or too old."""
    missing = [piece for piece in pieces if not of_piece(proofs, piece)]
    listed = sorted([*proofs.values(), *(Proof(name=piece) for piece in missing)])
    since = functools.cache(commits_since)
    found: list[str] = []
    for proof in listed:
        if proof.commit == NEVER:
            found.append(f"never passed in a recorded run: {proof.name}")
        elif (count := since(proof.commit, subjects(proof.name))) is None:
            found.append(f"{proof.commit} is no commit of this history: {proof.name}")
        elif count > OLD_COMMITS:
            found.append(f"{count} commits since {proof.commit}, {proof.day}: {proof.name}")
    return found


def exists(name: str) -> bool:
    """Whether a name of the table is still that of a test or of a command."""
    file, _, test = name.partition("::")
    if file.endswith(".py"):
        path = CHECKOUT / file
        return path.exists() and f"def {test.partition('[')[0]}" in path.read_text()
    return name in WORLDS


def _git(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True)


def main(arguments: list[str]) -> int:
    """0 where all is proved and nothing is old."""
    parser = command_line.parser(
        "tests.worlds.proofs", "List what no run has proved lately, or record runs that have."
    )
    parser.add_argument(
        "--record", nargs="+", default=[], metavar="JUNIT", help="write what passed in these files"
    )
    parser.add_argument(
        "--commit", default="HEAD", help="commit that the files are of (%(default)s by default)"
    )
    parser.add_argument(
        "--slower",
        type=float,
        default=1,
        metavar="FACTOR",
        help="so much longer did the runs take than on a quiet machine of two cores (1 by default)",
    )
    options = parser.parse_args(arguments)
    proofs = read(TABLE.read_text())
    if not options.record:
        lines = old(proofs, WORLDS)
        print("\n".join(lines or [f"{len(proofs)} proofs, none is old"]))
        return int(bool(lines))
    commit = _git("rev-parse", "--verify", "--short=10", f"{options.commit}^{{commit}}")
    if commit.returncode:
        parser.error(f"--commit: must be a commit of this checkout; got {options.commit}")
    found: dict[str, int] = {}
    for file in options.record:
        found |= passed(Path(file).read_text(), options.slower)
    proofs = {name: proof for name, proof in proofs.items() if exists(name)}
    TABLE.write_text(written(recorded(proofs, found, WORLDS, commit.stdout.strip()).values()))
    print(f"{len(found)} passed at {commit.stdout.strip()}")
    return 0


if __name__ == "__main__":
    command_line.run(main)
