"""A piece of `make soak`: what is killed comes back, and what is left out is named.

First the leave-outs, one at a time in one world: the job must not complete, and `trainyard status` must
name the cause. Then kills at random moments of `up` and `down`: the next `up` must end Complete
with nothing made twice, the next `down` with an empty account. The seed is printed; --seed repeats
a soak. With --busy other programs take the machine's time meanwhile: whoever waits for something by
the clock fails then.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from development.steps import UNREPAIRED
from rehearsal import processes
from tests.support.parts import Part, part
from tests.worlds.harness import VICTIMS, Harness, Object
from tests.worlds.left_out import chosen, leave_outs
from trainyard import command_line

GPU_NODE = "a GPU node"


def kill_round(harness: Harness, chance: random.Random, word: str) -> str | None:
    """Kill one of VICTIMS somewhere in `up` or `down`, or as soon after as it lives; then say the
    word again.

    Returns what is wrong, or None.
    """
    victim, moment = (
        chance.choice([*sorted(VICTIMS), GPU_NODE]),
        chance.uniform(2, 60 if word == "up" else 30),
    )
    find = (
        harness.gpu_instances if victim == GPU_NODE else lambda: harness.processes(*VICTIMS[victim])
    )
    command = harness.start(word)
    time.sleep(moment)
    processes.wait(lambda: find() or command.poll() is not None, 60, 0.2)
    still, killed = command.poll() is None, _kill(harness, victim)
    first = command.wait()
    again = harness.do(word) if first or word == "up" else 0
    print(
        f"  {word:4} {victim:27} at {moment:4.1f} s  killed"
        f" {killed}{'' if still else ' (after the end)'}  ended {first}, then {again}",
        flush=True,
    )
    if again:
        return f"{word} after killing {victim} at {moment:.1f} s ended with {again}"
    return made_twice(harness.inventory()) if word == "up" else None


def _kill(harness: Harness, victim: str) -> int:
    """SIGKILL to a program, or the end of one GPU instance as if its hardware had died; how many
    there were."""
    if victim != GPU_NODE:
        return harness.kill(*VICTIMS[victim])
    found = harness.gpu_instances()[:1]
    return len([i for i in found if harness.do("fault", "vanish", "--instance", i) == 0])


MANY = (
    *("volume", "instance", "network-interface", "launch-template"),
    *("recovery-point", "backup-job"),
)
"""Types of which there are several under one name: nodes with what they have, and the daily backups that AWS makes
of a store."""


def made_twice(things: list[Object]) -> str | None:
    """Objects of the stack that exist more than once under one logical name. `things`: all that
    the account has."""
    logical = [
        (t["type"], t["tags"]["trainyard:name"])
        for t in things
        if "trainyard:name" in t["tags"]
        and "karpenter.sh/nodepool" not in t["tags"]
        and t["type"] not in MANY
    ]
    doubled = sorted({entry for entry in logical if logical.count(entry) > 1})
    return f"made twice: {doubled}" if doubled else None


def unrepaired(harness: Harness) -> list[str]:
    """Whether a repair before an `up` or a `down` failed. Both go on without it and often succeed; on
    AWS `trainyard repair` would have ended with an error."""
    return ["a repair failed"] if UNREPAIRED in harness.log.read_text() else []


@contextmanager
def a_world() -> Iterator[Harness]:
    """A rehearsal in a folder of its own, ended whatever happens."""
    folder = Path(tempfile.mkdtemp(prefix="trainyard-", dir="/tmp"))
    harness = Harness(state=folder / "s", log=folder / "log")
    try:
        yield harness
    finally:
        harness.do("down", "--force")
        print(f"  everything that was said: {harness.log}")
        shutil.rmtree(harness.state, ignore_errors=True)


@contextmanager
def busy(programs: int) -> Iterator[None]:
    """So many programs that compute all the time."""
    running = [
        subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(programs)
    ]
    try:
        yield
    finally:
        for each in running:
            each.kill()
            each.wait()


def main(arguments: list[str]) -> int:
    """Soak; 0 when everything held."""
    parser = command_line.parser(
        "tests.worlds.soak",
        "Leave parts out of a world and kill its programs, and see that each is named or comes"
        " back.",
    )
    parser.add_argument(
        "--kills",
        type=int,
        default=20,
        metavar="N",
        help="kill so many programs (%(default)s by default)",
    )
    parser.add_argument(
        "--seed",
        type=int,
        metavar="N",
        default=random.SystemRandom().randrange(10**6),
        help="repeat the kills of an earlier soak, which printed this number",
    )
    parser.add_argument(
        "--no-leave-outs", action="store_true", help="kill only: leave no part out first"
    )
    parser.add_argument(
        "--only",
        default="",
        metavar="WORDS",
        help="leave out only what is called so; several are separated by commas",
    )
    parser.add_argument(
        "--part",
        type=part,
        default=Part(1, 1),
        metavar="n/N",
        help="leave out only the n-th of N parts of what there is",
    )
    parser.add_argument(
        "--busy",
        type=int,
        default=0,
        metavar="N",
        help="let N programs compute beside it all the time (none by default)",
    )
    options = parser.parse_args(arguments)
    chance, wrong = random.Random(options.seed), []
    print(f"seed {options.seed}, {options.kills} kills")
    with busy(options.busy), a_world() as harness:
        if not options.no_leave_outs:
            wrong += [] if harness.do("up") == 0 else ["the first up failed"]
            wrong += leave_outs(harness, options.part.of(chosen(options.only.split(","))))
            # What came back is not what the state names: a destroy would leave it, on AWS too.
            harness.do("down", "--force")
        for number in range(options.kills):
            problem = kill_round(harness, chance, ("up", "down")[number % 2])
            wrong += [problem] if problem else []
        if options.kills and harness.do("down"):
            wrong.append("the last down failed")
        wrong += unrepaired(harness)
    print("\n".join(["everything held"] if not wrong else [f"WRONG {line}" for line in wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    command_line.run(main)
