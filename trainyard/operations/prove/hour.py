"""The hour of `trainyard prove` while it goes on: its file, its programs, and the limit that ends them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TextIO

from trainyard.operations.prove.limit import seconds_left, spent, usd_of
from trainyard.operations.prove.record import LOCAL, Done, Proof, iso, make_local, save
from trainyard.operations.prove.seen import Object, events_of
from trainyard.operations.prove.steps import STEPS, Step

LOOK_SECONDS = 0.5
PATIENCE_SECONDS = 900
"""Seconds in which a program that is asked to stop may end what it has begun."""
SHOWN_LINES = 40
"""Lines of the end of a program's errors that count as a refusal."""
AROUND = ("stack ", "next: ", "reads jobs in ")
"""Beginnings of the lines that a word prints beside what it has to say."""
BUILDERS = tuple(step.name for step in STEPS if step.builds)
"""Names of the steps that make resources."""
CHILD = LOCAL / "child"
"""File with the process id of the program that runs."""


class Failed(RuntimeError):
    """A step failed; the message says why, word for word."""


class NothingMade(Failed):
    """A step failed before the stack had a resource: nothing costs money, and it can be begun again."""


class LimitReached(RuntimeError):
    """A step was stopped, because it would have cost more than the limit leaves."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """The end of a program."""

    code: int
    out: str
    err: str

    @property
    def why(self) -> str:
        """The end of what it printed as errors, else of what it printed, without the lines that each word
        begins and ends with."""
        printed = (self.err or self.out).strip().splitlines()
        said = [line for line in printed if not line.startswith(AROUND)]
        return "\n".join(said[-SHOWN_LINES:])


@dataclass(kw_only=True)
class Hour:
    """A proof and what its steps work with."""

    stack: str
    live: bool
    image: str
    """Image of the pods."""
    wait_minutes: float
    """Minutes after the end of destroying until somebody looks for what is left."""
    limit: Decimal
    proof: Proof
    own: frozenset[str] = frozenset()
    """Texts that are redacted wherever they stand."""
    step: Step = field(default_factory=lambda: STEPS[0])
    """The step that goes on."""

    @property
    def file(self) -> Path:
        """The stack file."""
        return Path(f"Pulumi.{self.stack}.yaml")

    @property
    def done(self) -> Done:
        """The record of the step that goes on."""
        found = self.proof.step(self.step.name)
        assert found is not None  # begin() has made it
        return found

    @property
    def built(self) -> bool:
        """True where a step has begun to make resources, and has not failed before the first one."""
        return any(
            step.name in BUILDERS and (step.state != "failed" or step.usd_per_hour_after)
            for step in self.proof.steps
        )

    @property
    def updated(self) -> bool:
        """True where an update of the stack has begun."""
        begun = [file for name in BUILDERS for file in LOCAL.glob(f"events-{name}-*.json")]
        return bool(begun or self.proof.seen)

    def spent(self) -> Decimal:
        """USD until now."""
        return spent(self.proof.steps, time.time())

    def save(self) -> None:
        """Write the file."""
        now = time.time()
        for name, usd in usd_of(self.proof.steps, now).items():
            if step := self.proof.step(name):
                step.usd = str(usd)
        self.proof.usd = str(self.spent())
        save(self.proof, self.own)

    def begin(self, step: Step, usd_per_hour: Decimal, most_usd: Decimal) -> None:
        """Write that a step begins, before anything of it is done."""
        self.step = step
        self.proof.steps.append(
            Done(
                name=step.name,
                state="running",
                start=iso(time.time()),
                usd_per_hour=str(usd_per_hour),
                most_usd=str(most_usd),
            )
        )
        self.save()

    def check_limit(self) -> None:
        """LimitReached where the step must stop now. What cleans is never stopped."""
        left = seconds_left(self.limit, self.spent(), Decimal(self.done.usd_per_hour))
        if left is not None and left <= 0 and not self.step.cleans:
            raise LimitReached(
                f"{self.step.name} would have cost more than the limit of {self.limit} USD leaves, with what"
                " destroying it costs"
            )

    # ---- programs

    def tool(self, *words: str) -> Output:
        """A word of this tool about the stack, where this word acts."""
        place = ["--live"] if self.live else []
        command = [sys.executable, "-m", "trainyard", words[0], "--stack", self.stack]
        return self._program([*command, *words[1:], *place])

    def engine(self, *words: str) -> Output:
        """An update of the stack. Its events are kept."""
        number = len(self.event_files())
        make_local()
        events = (LOCAL / f"events-{self.step.name}-{number}.json").absolute()
        events.touch()
        return self._program(
            [
                *("pulumi", *words, "--stack", self.stack, "--yes", "--skip-preview"),
                *("--suppress-outputs", "--non-interactive", "--color", "never"),
                *("--event-log", str(events)),
            ]
        )

    def pulumi_version(self) -> str:
        """Version of the engine; empty where it does not say."""
        try:
            done = subprocess.run(["pulumi", "version"], capture_output=True, text=True)
        except FileNotFoundError:
            return ""
        return done.stdout.strip()

    def event_files(self) -> list[Path]:
        """Logs of the engine's events in this step, also of an earlier call that was killed."""
        return sorted(LOCAL.glob(f"events-{self.step.name}-*.json"))

    def events(self) -> list[Object]:
        """The engine's events in this step."""
        return [each for file in self.event_files() for each in events_of(file.read_text())]

    def _program(self, command: Sequence[str]) -> Output:
        """Run a program to its end, and print what it prints. LimitReached where it had to stop.

        It writes to files: with a pipe it would end half-way where this program is killed."""
        make_local()
        out, err = LOCAL / f"{self.step.name}.out", LOCAL / f"{self.step.name}.err"
        print(f"{self.step.name}: {' '.join(_shown(command))}", flush=True)
        with out.open("w") as to_out, err.open("w") as to_err, out.open() as a, err.open() as b:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=to_out,
                stderr=to_err,
                text=True,
                env=os.environ | {"PULUMI_DEBUG_COMMANDS": "true"},
            )
            CHILD.write_text(str(child.pid))
            stopped = _followed(child, (a, b), self)
        CHILD.unlink(missing_ok=True)
        if stopped:
            raise stopped
        return Output(code=child.returncode, out=out.read_text(), err=err.read_text())


def _shown(command: Sequence[str]) -> Iterator[str]:
    """A command as somebody would type it."""
    words = [*command]
    if words[:2] == [sys.executable, "-m"]:
        words = words[2:]
    return (word if len(word) < 60 and "\n" not in word else "…" for word in words)


def _followed(
    child: subprocess.Popen[str], streams: Sequence[TextIO], hour: Hour
) -> LimitReached | None:
    """Print what a program writes until it ends; the reason where it was stopped. After ctrl-C, which a
    program of this terminal gets as well, wait for its end."""
    stopped = None
    try:
        while child.poll() is None:
            _echo(streams)
            time.sleep(LOOK_SECONDS)
            try:
                hour.check_limit()
            except LimitReached as reached:
                stopped = reached
                print(f"stops: {reached}", flush=True)
                child.send_signal(signal.SIGINT)
                break
        child.wait(PATIENCE_SECONDS if stopped else None)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    except KeyboardInterrupt:
        child.wait()
        raise
    finally:
        _echo(streams)
    return stopped


def _echo(streams: Sequence[TextIO]) -> None:
    for stream in streams:
        if text := stream.read():
            print(text, end="", flush=True)


def wait_for_child() -> None:
    """Wait for the engine of an earlier call that was killed: it ends what it has begun."""
    if not CHILD.exists():
        return
    said = False
    while _is_engine(CHILD.read_text().strip()):
        if not said:
            print(
                "waits for pulumi, which an earlier call has started and which still runs",
                flush=True,
            )
        said = True
        time.sleep(1)
    CHILD.unlink()


def _is_engine(pid: str) -> bool:
    done = subprocess.run(["ps", "-o", "comm=", "-p", pid], capture_output=True, text=True)
    return "pulumi" in done.stdout
