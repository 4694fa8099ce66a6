"""Kills by enumeration: `up`, or `down`, is killed at the boundary of every resource operation, before
and after its answer, and said again each time from where it was.

In a world all operations are hit. With --alone only those of AWS are, in an account without a cluster:
that takes a tenth of the time.

An operation is hit once. Operations that run beside each other are hit together, up to --together of
them. The end must be what it is without kills: the job Complete, nothing made twice, the account
empty. --every destroys what each killed `up` left.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rehearsal import paths
from tests.support.alone import Alone, alone
from tests.worlds.harness import Harness
from tests.worlds.soak import a_world, made_twice, unrepaired
from trainyard import command_line

KILLER = paths.HOME / "tests" / "support" / "killer"
JOB, STACK = "t5-large", "dev"
Place = Harness | Alone


@dataclass(frozen=True, kw_only=True)
class Crawl:
    """What the killer is told, and what it says."""

    folder: Path

    def aim(self, when: str, first: int, together: int) -> None:
        """Kill from the operation of that number on."""
        (self.folder / "aim").write_text(f"{when} {first} {together}\n")

    def rest(self) -> None:
        """Kill no more."""
        self._take_away("aim")

    def hits(self) -> list[str]:
        """Operations at whose boundary the last run was killed; from now on they are hit."""
        held = self.folder / "held"
        found = held.read_text().splitlines() if held.exists() else []
        self._take_away("held", "released")
        with (self.folder / "hit").open("a") as file:
            file.writelines(f"{line}\n" for line in found)
        return found

    def forget(self) -> None:
        """Begin anew, in another world."""
        self._take_away("aim", "held", "released", "hit", "done")

    def _take_away(self, *names: str) -> None:
        for name in names:
            (self.folder / name).unlink(missing_ok=True)


@contextmanager
def crawling() -> Iterator[Crawl]:
    """A folder that plugins of every engine look into."""
    folder = Path(tempfile.mkdtemp(prefix="crawl-", dir="/tmp"))
    os.environ |= {"PYTHONPATH": str(KILLER), "TRAINYARD_CRAWL": str(folder)}
    try:
        yield Crawl(folder=folder)
    finally:
        shutil.rmtree(folder)


def names(points: list[str]) -> str:
    """What was hit, as a person reads it."""
    return ", ".join(
        f"{point.partition(' ')[0].lower()} {point.split('::')[-2].rpartition(':')[2]}"
        f" {point.rpartition('::')[2]}"
        for point in points
    )


@dataclass(frozen=True, kw_only=True)
class Range:
    """Which operations of a word are hit, and where."""

    word: str
    when: str
    first: int
    last: int
    together: int


def hit_all(place: Place, crawl: Crawl, wanted: Range) -> int:
    """Say the word until nothing of it is left to hit; how many operations were hit, or -1 where it
    did not get to its end."""
    hit, word = 0, wanted.word
    crawl.aim(wanted.when, wanted.first, wanted.together)
    while wanted.first + hit < wanted.last:
        began, status = time.monotonic(), place.do(word)
        killed = crawl.hits()
        hit += len(killed)
        print(
            f"  {word:4} {wanted.when:6} {time.monotonic() - began:4.0f} s, {hit:3} hit:"
            f" {names(killed) or 'not killed'}, ended {status}",
            flush=True,
        )
        if not killed:
            return hit if status == 0 else -1
    crawl.rest()
    return hit if place.do(word) == 0 else -1


def whole(wanted: Range, *, without_cluster: bool) -> list[str]:
    """One account, and one crawl in it; what is wrong."""
    with crawling() as crawl, _account(without_cluster) as place:
        if wanted.word == "down" and place.do("up"):
            return ["the first up failed"]
        hit = hit_all(place, crawl, wanted)
        crawl.rest()
        print(f"{hit} operations of {wanted.word} hit {wanted.when} their answers", flush=True)
        if hit < 0:
            return [f"{wanted.word} did not get to its end: {place.log.read_text()[-4000:]}"]
        wrong = _wrong_after_up(place) if wanted.word == "up" else []
        return wrong + (unrepaired(place) if isinstance(place, Harness) else [])


def _account(without_cluster: bool) -> AbstractContextManager[Place]:
    return alone(STACK) if without_cluster else a_world()


def _wrong_after_up(place: Place) -> list[str]:
    wrong: list[str] = []
    if isinstance(place, Harness) and (ended := place.condition(JOB)) != "Complete":
        wrong.append(f"the job is {ended or 'not finished'}")
    twice = made_twice(place.inventory())
    wrong += [twice] if twice else []
    return wrong + ([] if place.do("down") == 0 else ["the account is not empty"])


def partial(wanted: Range, every: int, *, without_cluster: bool) -> list[str]:
    """`up` is killed at every so many operations, and `down` must leave an empty account, in which the
    next one begins."""
    with crawling() as crawl, _account(without_cluster) as place:
        for number in range(wanted.first, wanted.last, every):
            began = time.monotonic()
            crawl.forget()
            crawl.aim(wanted.when, number, wanted.together)
            status, killed = place.do("up"), crawl.hits()
            crawl.rest()
            half, left = time.monotonic(), place.do("down")
            print(
                f"  {number:3} {names(killed) or 'not killed'}, up ended {status} after"
                f" {half - began:.0f} s, then down {left} after {time.monotonic() - half:.0f} s",
                flush=True,
            )
            if left:
                return [f"down after {number} ended {left}:\n{place.log.read_text()[-3000:]}"]
            if not killed:
                break
    return []


def main(arguments: list[str]) -> int:
    """Crawl; 0 when everything held."""
    parser = command_line.parser(
        "tests.worlds.crawl", "Kill at every resource operation, and see that it goes on."
    )
    parser.add_argument("--word", choices=("up", "down"), default="up", help="what is killed")
    parser.add_argument(
        "--when",
        choices=("before", "after"),
        default="before",
        help="kill before the answer of an operation, or right after it",
    )
    parser.add_argument(
        "--from", dest="first", type=int, default=0, metavar="N", help="leave out N operations"
    )
    parser.add_argument(
        "--to", dest="last", type=int, default=1000, metavar="N", help="end before operation N"
    )
    parser.add_argument(
        "--together",
        type=int,
        default=8,
        metavar="N",
        help="hit at most N operations by one kill (%(default)s by default)",
    )
    parser.add_argument(
        "--every",
        type=int,
        metavar="K",
        help="kill an up at every Kth operation instead, and say down after each",
    )
    parser.add_argument(
        "--alone", action="store_true", help="hit operations of AWS only, without a world"
    )
    options = parser.parse_args(arguments)
    wanted = Range(
        word=options.word,
        when=options.when,
        first=options.first,
        last=options.last,
        together=options.together,
    )
    if options.every:
        wrong = partial(wanted, options.every, without_cluster=options.alone)
    else:
        wrong = whole(wanted, without_cluster=options.alone)
    print("\n".join(["everything held"] if not wrong else [f"WRONG {line}" for line in wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)
