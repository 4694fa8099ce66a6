"""`make soak`: all pieces of the soak, or with SHARD=n/N those of one of N shards, two at a time.

Shards take about as long as each other, by the seconds of tests/proofs.txt. `--of <commit>` prints the
shard that CI runs for a commit: another one for each, and always the same for one.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.support.parts import part
from tests.worlds import proofs
from tests.worlds.pieces import CHECKOUT, PIECES, Piece
from trainyard import command_line

SHARDS = 32
"""Shards of the nightly workflow, and those that CI chooses from."""
AT_A_TIME = 2
CI_SECONDS = 600
"""CI chooses from shards that take no longer: the whole of .ci/run ends in 35 minutes."""
GUESS_SECONDS = 300
"""Of a piece that is in no line of the table."""
Shard = list[Piece]


def durations() -> dict[Piece, int]:
    """Seconds of each piece."""
    table = proofs.read(proofs.TABLE.read_text())
    return {
        piece: sum(each.seconds for each in proofs.of_piece(table, piece.name)) or GUESS_SECONDS
        for piece in PIECES
    }


def split(seconds: Mapping[Piece, int], count: int) -> list[Shard]:
    """So many shards: the longest piece first, each into the shard that has the least."""
    shards: list[Shard] = [[] for _ in range(count)]
    for piece in sorted(seconds, key=lambda piece: (-seconds[piece], piece.name)):
        min(shards, key=lambda shard: sum(seconds[each] for each in shard)).append(piece)
    return shards


def lasts(shard: Shard, seconds: Mapping[Piece, int]) -> int:
    """Seconds until the last piece of a shard ends."""
    ends = [0] * AT_A_TIME
    for piece in shard:
        ends[ends.index(min(ends))] += seconds[piece]
    return max(ends)


def of_commit(commit: str, seconds: Mapping[Piece, int]) -> int:
    """Number of the shard that CI runs for a commit, from 1."""
    shards = split(seconds, SHARDS)
    short = [n for n, shard in enumerate(shards, 1) if lasts(shard, seconds) <= CI_SECONDS]
    return short[int(commit, 16) % len(short)]


def _run(piece: Piece, reports: Path) -> bool:
    """Run a piece, print its output when it ends, and leave a junit file. Whether it passed."""
    file = reports / f"{re.sub(r'[^a-z0-9.]+', '-', piece.name.lower())}.xml"
    options = [f"--junitxml={file}"] if piece.is_tests else []
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", *piece.words, *options],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    took = time.monotonic() - began
    end = "passed" if done.returncode == 0 else f"FAILED with {done.returncode}"
    print(f"== {piece.name}\n{done.stdout.rstrip()}\n== {end} in {took:.0f} s", flush=True)
    if not piece.is_tests and done.returncode == 0:
        suite = ElementTree.Element("testsuite")
        ElementTree.SubElement(suite, "testcase", name=piece.name, time=f"{took:.0f}")
        ElementTree.ElementTree(suite).write(file)
    return done.returncode == 0


def run_all(pieces: Sequence[Piece], run: Callable[[Piece], bool]) -> list[Piece]:
    """Run them, AT_A_TIME beside each other; those that failed."""
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        return [
            piece for piece, held in zip(pieces, pool.map(run, pieces), strict=True) if not held
        ]


def main(arguments: list[str]) -> int:
    """0 where every piece held."""
    parser = command_line.parser("tests.worlds.shards", "Run the soak, or one shard of it.")
    parser.add_argument("shard", nargs="?", type=part, help="n/N; 1/1 is everything")
    parser.add_argument("--of", metavar="COMMIT", help="print the shard that CI runs for a commit")
    parser.add_argument("--list", action="store_true", help="print all shards, and run nothing")
    options = parser.parse_args(arguments)
    seconds = durations()
    if options.of:
        print(f"{of_commit(options.of, seconds)}/{SHARDS}")
        return 0
    if options.list:
        for each, shard in enumerate(split(seconds, SHARDS), 1):
            print(f"{each}/{SHARDS}: {_minutes(shard, seconds)}")
            print("\n".join(command_line.table([(f"{seconds[p]} s", p.name) for p in shard])))
        return 0
    if not options.shard:
        parser.error("name a shard, as 3/32; 1/1 runs everything, which takes hours")
    number, count = options.shard.number, options.shard.count
    shard = split(seconds, count)[number - 1]
    print(
        f"shard {number} of {count}, {_minutes(shard, seconds)}: make soak SHARD={number}/{count}"
    )
    print("\n".join(command_line.table([(f"{seconds[piece]} s", piece.name) for piece in shard])))
    return _ran(shard)


def _ran(shard: Shard) -> int:
    """0 where every piece of the shard held."""
    build({name for piece in shard for name in piece.also})
    reports = Path(tempfile.mkdtemp(prefix="soak-"))
    failed = run_all(shard, lambda piece: _run(piece, reports))
    print(f"what passed: python -m tests.worlds.proofs --record {reports}/*.xml")
    print("\n".join([f"FAILED {piece.name}" for piece in failed] or ["everything held"]))
    return int(bool(failed))


def build(programs: Collection[str]) -> None:
    """Have what every world needs, and these programs."""
    also = [word for name in sorted(programs) for word in ("--also", name)]
    subprocess.run([sys.executable, "-m", "rehearsal", "build", *also], cwd=CHECKOUT, check=True)


def _minutes(shard: Shard, seconds: Mapping[Piece, int]) -> str:
    return f"about {lasts(shard, seconds) / 60:.0f} minutes"


if __name__ == "__main__":
    command_line.run(main)
