"""Runs that are replaced, stopped, changed, resumed and finished, in the orders in which people do that: of each
job no step is lost, no run silently does nothing, and no pod of an old run is beside a new one.

The Trainer can make the JobSet of a TrainJob again that is just deleted (docs/limits.md): its pods are deleted
at once, and can make a step before that. Two such pods at a time have been seen.

All sequences go on side by side, one `up` for each of their turns. Every run is a script of its own here, which
counts steps on the store and writes down with which argument it made each: what a sequence must leave behind
stands in its row, and nothing of the product computes it. Kinds that change are in test_ghosts_world.py, jobs
that come after others in test_after_world.py.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.census import Census, counted
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

STACK = "turns"
KINDS: dict[str, Object] = {"t": {"runtime": "once"}, "p": {"pytorch_job": {}}}
"""First letter of a job's name → what makes it a TrainJob or a PyTorchJob."""
SCRIPT = """\
trap 'over=1' TERM
mkdir -p "$CHECKPOINT_DIR"
cd "$CHECKPOINT_DIR"
[ -e made ] || date +%s%N > made
n=$(cat step 2> /dev/null || echo 0)
[ "$n" = 0 ] || echo "resumed from step-$n"
most() { cat "/home/most/$NAME" 2> /dev/null || echo 100000; }
while [ -z "${over:-}" ] && [ "$n" -lt "$(most)" ]; do
  sleep 1 & wait $! || continue
  n=$((n + 1))
  echo "$LETTER $n" >> steps
  echo $n > step.new
  mv step.new step
  echo "step $n"
  echo "saved step-$n"
done
[ -z "${over:-}" ] || exit 143
"""
"""The store is mounted whole. `most` is its end, which the test writes there: no argument of the job says it.
A step that a signal interrupts is not made."""
SETTING = "when_changed"


@dataclass(frozen=True, kw_only=True)
class Sequence:
    """What a person does with a job in each turn, and what it leaves behind."""

    turns: tuple[str, ...]
    """For each turn some of: a letter, the job's argument from now on; `stop`, by the word; `delete`, by hand;
    `done`, its run is complete before the turn; `run`, its number is increased; `resume` or `afresh`, the
    setting; `in:<directory>`; `asked`, what is refused before it is answered; `idle`, its run must end at
    once and say so."""
    leaves: tuple[str, ...]
    """For each directory, in the order of their making, the arguments of its steps, one letter for steps of one
    argument in a row."""
    runs: int
    directory: str = "{name}"
    first: str = ""
    """The setting at the beginning."""


SEQUENCES = {
    "changed": Sequence(turns=("b", ""), leaves=("ab",), runs=2),
    "twice": Sequence(turns=("b", "c"), leaves=("abc",), runs=3),
    "gone-on": Sequence(turns=("stop run", ""), leaves=("a",), runs=2),
    "stopped-changed": Sequence(turns=("stop b", ""), leaves=("ab",), runs=2),
    "deleted": Sequence(turns=("delete", "b"), leaves=("ab",), runs=3),
    "finished-more": Sequence(turns=("done asked b resume", ""), leaves=("ab",), runs=2),
    "finished-afresh": Sequence(turns=("done asked b afresh", ""), leaves=("a", "b"), runs=2),
    "finished-again": Sequence(turns=("done run idle", "asked b resume"), leaves=("ab",), runs=3),
    "afresh": Sequence(turns=("b", ""), leaves=("a", "b"), runs=2, first="afresh"),
    "afresh-back": Sequence(turns=("b", "a"), leaves=("a", "b"), runs=3, first="afresh"),
    "afresh-gone-on": Sequence(turns=("stop run", "b"), leaves=("a", "b"), runs=3, first="afresh"),
    "answered-late": Sequence(turns=("afresh", "b"), leaves=("a", "b"), runs=2),
    "numbered": Sequence(
        turns=("stop run", "b"), leaves=("a", "ab"), runs=3, directory="{name}-{{run}}"
    ),
    "numbered-gone-on": Sequence(
        turns=("stop run in:{name}-1", "b"), leaves=("ab",), runs=3, directory="{name}-{{run}}"
    ),
}


@dataclass
class Job:
    """One sequence of one kind, as far as it is."""

    name: str
    sequence: Sequence
    entry: Object
    begun: int = 1
    """Runs until now."""
    before: int = 0
    """Steps that all its directories had when the newest run began."""
    finished: bool = False
    words: list[str] = field(default_factory=list[str])
    """What is done in this turn."""

    @property
    def resource(self) -> str:
        """The job as kubectl is asked for it."""
        return f"{'trainjob' if self.name.startswith('t-') else 'pytorchjob'}/{self.name}"

    def edit(self, word: str) -> None:
        """Write what a word says into the entry."""
        if len(word) == 1:
            self.entry["env"]["LETTER"] = word
        elif word == "run":
            self.entry["run"] += 1
        elif word in ("resume", "afresh"):
            self.entry["checkpoints"][SETTING] = word
        elif word.startswith("in:"):
            self.entry["checkpoints"]["directory"] = word[3:].format(name=self.name)

    @property
    def begins(self) -> bool:
        """True where another run of it begins in this turn."""
        return any(len(word) == 1 or word in ("run", "delete") for word in self.words)


def _entry(name: str, kind: Object, sequence: Sequence) -> Object:
    saved = {"store": "home", "directory": sequence.directory.format(name=name)}
    return {
        "nodes": 1,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "storage": {"home": {"path": "/home"}},
        "checkpoints": saved | ({SETTING: sequence.first} if sequence.first else {}),
        "script": SCRIPT,
        "env": {"NAME": name, "LETTER": "a"},
        "run": 1,
        **kind,
    }


def _jobs() -> list[Job]:
    named = [
        (f"{letter}-{name}", kind, sequence)
        for letter, kind in KINDS.items()
        for name, sequence in SEQUENCES.items()
    ]
    return [
        Job(name=name, sequence=sequence, entry=_entry(name, kind, sequence))
        for name, kind, sequence in named
    ]


class Turns:
    """The jobs in a world, turn by turn."""

    def __init__(self, harness: Harness, jobs: list[Job]) -> None:
        self.harness, self.jobs = harness, jobs

    @property
    def store(self) -> Path:
        [store] = self.harness.state.glob("file-systems/*")
        return store

    def up(self) -> str:
        """Plain pulumi with the entries as they are: what it says, at last FAILED where it fails."""
        _write(self.harness.checkout, self.jobs)
        return self.harness.shell(
            f"pulumi up --stack {STACK} --yes --skip-preview --non-interactive 2>&1 || echo FAILED"
        )

    def directories(self, job: Job) -> list[Path]:
        """Directories in which the job has made steps, the oldest first."""
        files = [
            *self.store.glob(f"{job.name}/**/steps"),
            *self.store.glob(f"{job.name}-[0-9]/steps"),
        ]
        return sorted((file.parent for file in files), key=_birth)

    def steps(self, job: Job) -> list[list[str]]:
        """Of each directory the steps, as `letter number`."""
        return [(where / "steps").read_text().splitlines() for where in self.directories(job)]

    def made(self, job: Job) -> int:
        return sum(map(len, self.steps(job)))

    def let_end(self, job: Job, more: int = 2) -> None:
        """Runs of the job, now and later, are complete when the directory of the newest has more steps."""
        steps = [where / "steps" for where in self.directories(job)]
        newest = max(steps, key=lambda file: file.stat().st_mtime)
        (self.store / "most").mkdir(exist_ok=True)
        made = len(newest.read_text().splitlines())
        (self.store / "most" / job.name).write_text(str(made + more))

    def is_complete(self, job: Job) -> bool:
        found = self.harness.get(f"{job.resource} --namespace training")
        conditions = found.get("status", {}).get("conditions", [])
        return any(
            each["type"] in ("Complete", "Succeeded") and each["status"] == "True"
            for each in conditions
        )

    def wait_for(self, jobs: list[Job]) -> None:
        """Wait until the runs of these are complete."""
        until(
            lambda: all(map(self.is_complete, jobs)),
            lambda: str([job.name for job in jobs if not self.is_complete(job)]),
        )

    def train(self) -> None:
        """Wait until each run that is to train has made steps."""
        late = [job for job in self.jobs if not job.finished]
        until(
            lambda: all(self.made(job) >= job.before + 2 for job in late),
            lambda: str({job.name: (job.before, self.made(job)) for job in late}),
        )

    def finish(self) -> None:
        """Let runs come to their end."""
        ending = [job for job in self.jobs if "done" in job.words]
        for job in ending:
            self.let_end(job)
        self.wait_for(ending)

    def end(self) -> None:
        """End runs, as people do."""
        for job in self.jobs:
            if "stop" in job.words:
                said = self.harness.shell(
                    f"{sys.executable} -m trainyard stop --stack {STACK} --job {job.name} --yes",
                    check=False,
                )
                assert "stopped;" in said, said
            if "delete" in job.words:
                self.harness.shell(f"kubectl delete {job.resource} --namespace training")
        if any("delete" in job.words for job in self.jobs):
            self.harness.shell(f"pulumi refresh --stack {STACK} --yes --skip-preview 2>&1")

    def ask(self) -> None:
        """What is changed without an answer is refused, by name, and nothing is ended."""
        asked = [job for job in self.jobs if "asked" in job.words]
        if not asked:
            return
        kept = {job.name: copy.deepcopy(job.entry) for job in self.jobs}
        for job in asked:
            for word in job.words:
                if len(word) == 1:
                    job.edit(word)
        before = self.uids()
        said = self.up()
        assert said.rstrip().endswith("FAILED"), said
        refused = re.findall(
            rf"environment\.jobs\.(\S+)\.checkpoints\.{SETTING} .*must be set", said
        )
        assert {*refused} == {job.name for job in asked}, said
        assert self.uids() == before
        for job in self.jobs:
            job.entry = kept[job.name]

    def made_again(self) -> set[str]:
        """TrainJobs that had more gangs than runs. The API server keeps the events of an hour: the look of a census
        can miss a gang that lives for a tenth of a second."""
        made = {
            (each["involvedObject"]["name"], each["involvedObject"]["uid"])
            for each in self.harness.get("events --namespace training")["items"]
            if each["involvedObject"]["kind"] == "Job" and each["reason"] == "SuccessfulCreate"
        }
        gangs = Counter(name for name, _ in made)
        trainjobs = [job for job in self.jobs if job.name.startswith("t-")]
        assert all(gangs[f"{job.name}-node-0"] >= job.begun for job in trainjobs), gangs
        return {job.name for job in trainjobs if gangs[f"{job.name}-node-0"] > job.begun}

    def uids(self) -> set[str]:
        items = self.harness.get("trainjobs,pytorchjobs --namespace training")["items"]
        return {each["metadata"]["uid"] for each in items}

    def take(self, turn: int) -> None:
        """One turn of every sequence."""
        for job in self.jobs:
            job.words = job.sequence.turns[turn].split()
        self.finish()
        self.ask()
        self.end()
        for job in self.jobs:
            job.before = self.made(job) if job.begins else job.before
            job.begun += job.begins
            job.finished = "idle" in job.words
            for word in job.words:
                job.edit(word)
            if job.begins and not job.finished:
                (self.store / "most" / job.name).unlink(missing_ok=True)
        said = self.up()
        assert "FAILED" not in said, said
        self.train()
        self.see_idle()

    def see_idle(self) -> None:
        """A run that had nothing to do is complete, and says so."""
        idle = [job for job in self.jobs if job.finished]
        self.wait_for(idle)
        said = self.harness.shell(f"{sys.executable} -m trainyard runs {STACK} --json")
        outcomes = {run["job"]: run["outcome"] for run in json.loads(said)["runs"]}
        assert {outcomes[job.name] for job in idle} <= {"NothingToDo"}, outcomes


def _birth(directory: Path) -> int:
    return int((directory / "made").read_text())


def _write(checkout: Path, jobs: list[Job]) -> None:
    settings = with_l4(
        max_nodes=8,
        storage={"home": {"efs": {}, "data": "delete"}},
        training_operator={"version": "1.8.1"},
        jobs={job.name: job.entry for job in jobs},
    )
    trainer = settings["trainyard:environment"]["trainer"]
    trainer["own_runtimes"] = {"once": {"image": "trainer:1", "max_restarts": 0}}
    text = yaml.safe_dump({"config": json.loads(json.dumps(settings))})
    (checkout / f"Pulumi.{STACK}.yaml").write_text(text)


@pytest.fixture(scope="module")
def walked() -> Iterator[tuple[Turns, Census]]:
    """Every sequence was walked to its end."""
    jobs = _jobs()
    with rehearsing(STACK) as harness:
        _write(harness.checkout, [])
        assert harness.do("up", "--stack", STACK) == 0, harness.log.read_text()
        turns = Turns(harness, jobs)
        with counted(harness) as seen:
            said = turns.up()
            assert "FAILED" not in said, said
            turns.train()
            for turn in range(2):
                turns.take(turn)
            for job in jobs:
                turns.let_end(job)
            turns.wait_for(jobs)
        yield turns, seen


def test_no_step_is_lost_and_only_a_deleted_pod_makes_one_twice(
    walked: tuple[Turns, Census],
) -> None:
    turns, _ = walked
    again = turns.made_again()
    for job in turns.jobs:
        for steps in turns.steps(job):
            numbers = [int(step.split()[1]) for step in steps]
            once = [each for each, _ in groupby(numbers)]
            assert once == [*range(1, len(once) + 1)], (job.name, steps)
            assert numbers == once or job.name in again, (job.name, steps)


def test_each_argument_trains_where_its_owner_wanted_it(walked: tuple[Turns, Census]) -> None:
    turns, _ = walked
    found = {
        job.name: tuple(
            "".join(letter for letter, _ in groupby(step.split()[0] for step in steps))
            for steps in turns.steps(job)
        )
        for job in turns.jobs
    }
    assert found == {job.name: job.sequence.leaves for job in turns.jobs}


def test_no_run_is_beside_another_of_its_job(walked: tuple[Turns, Census]) -> None:
    turns, seen = walked
    assert seen.looks > 20 and seen.overlaps == []
    begun = {name: len(runs) for name, runs in seen.runs.items()}
    for job in turns.jobs:
        assert job.begun == job.sequence.runs, job.name
        made_again = job.name.startswith("t-") and begun[job.name] > job.begun
        assert begun[job.name] == job.begun or made_again, (job.name, begun[job.name])
