"""Output of a rehearsal: lines while it works, tables at its end.

A stage is a group of component types, which COMPONENTS lists. Nothing here starts or changes
anything.
"""

from __future__ import annotations

import re
import textwrap
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from rehearsal.processes import HEARTBEAT_SECONDS, heartbeat
from trainyard.catalog.aws.latencies import STAGES, TYPICAL
from trainyard.command_line import table
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.urn import name_of, title_of

COMPONENTS = {
    "network": ("network:",),
    "storage": ("storage:",),
    "cluster": ("cluster:",),
    "system nodes": ("nodes:SystemNodes",),
    "karpenter": ("nodes:Karpenter",),
    "pools": (
        *("nodes:GpuNodes", "nodes:GpuPool", "nodes:Prefetch", "nodes:DevicePlugins"),
        "nodes:Repair",
    ),
    "metrics": ("metrics:",),
    "runtimes": ("trainer:Runtimes",),
    "trainer": ("trainer:",),
    "queues": ("queues:", "jobs:Priority"),
    "teams": ("teams:",),
    "history": ("jobs:History",),
    "messages": ("jobs:Program",),
    "logs": ("logs:",),
    "budget": ("money:",),
    "jobs": ("jobs:Workspace", "jobs:Loads", "jobs:Jobs", "jobs:Schedule"),
}
"""Stage → what the types of its components begin with. A component that is not listed is a stage of its own."""
SIMULATED = (
    "AWS: one embedded account; its durations are typical durations of AWS divided by {speed:g}",
    "GPUs, EFA and NCCL: devices are only counted; no program computes on them",
    (
        "nodes: they boot from the NodeConfig of their user data; its scripts, such as the one for"
        " Lustre over EFA, do not run"
    ),
    "Lustre, EFS and S3 volumes: folders under {state}; links to S3 copy no data",
    "Grafana: a stand-in reads its files and asks Prometheus; exporters of GPUs and nodes count nothing",
    (
        "images: no container runtime; controllers and jobs run as processes, and other pods only"
        " have the phase Running"
    ),
)
NOT_RUN = (
    (
        "scripts under torchrun: they are read for syntax and not executed, so arguments, imports and errors"
        " are not tried, and steps are those of a stand-in. Only those of images named trainyard/… really run,"
        " after `make torch` (docs/jobs.md)"
    ),
    (
        "files of an image: no image is pulled, so a job that starts a file of its image fails here:"
        " bring the file with `files`"
    ),
)
"""Notes about what of a job the rehearsal does not try, whatever its state says."""
JOB = (
    "CONDITION:.status.conditions[*].type,STATUS:.status.conditions[*].status,"
    "REASON:.status.conditions[*].reason,MESSAGE:.status.conditions[*].message"
)
PODS = (
    r"POD:.metadata.name,PHASE:.status.phase,RANK:.metadata.labels.batch\.kubernetes\.io/job-completion-index,"
    "NODE:.spec.nodeName"
)
"""Columns of `kubectl get`."""
SETTLED_SECONDS = 3
"""A stage without a change for so long is reported as done."""
RELEASE_SECONDS = TYPICAL["helm.controller"]
"""A Helm release that takes longer is explained by its pods."""
SILENT = ("stack", "providers")
"""Stages of resources without a component; they are not reported."""
MESSAGE_LINES = 5
"""Lines of a plugin's error that are printed; the log contains the whole error."""
PROGRAM_LINES = 60
"""Lines of an error of the program that are printed, such as the last words of ranks."""
WARNING_CHARACTERS = 200
"""Characters of a warning that the list at the end of a command has."""
BEGINS = re.compile(r"(\S+) (begins (?:when|after) [^\n]+)")
"""Message of the program about a run that waits for others: components/jobs/order.py."""
SAID_CHARACTERS = 80
"""Characters of a message that the program repeats while it says nothing else."""
TRACEBACK = "Program failed with an unhandled exception"
ENDED = (
    "BAIL: run bailed",
    "an unhandled error occurred: Program exited with non-zero exit code: 1",
)
"""Messages of the engine about a program that has printed its error itself."""

Event = dict[str, Any]


def clock(seconds: float) -> str:
    """1:05"""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def suggestions(commands: Iterable[tuple[str, str]]) -> list[str]:
    """Commands to paste, with their purpose as a comment."""
    return [f"  {command}  # {purpose}" for command, purpose in commands]


def _print(line: str) -> None:
    print(line, flush=True)


class Display:
    """Lines with the time since the start and the stage they belong to."""

    def __init__(
        self, write: Callable[[str], None] = _print, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.write, self.now = write, now
        self.started = self.last = now()

    def line(self, stage: str, text: str) -> None:
        self.last = self.now()
        self.write(f"{clock(self.last - self.started):>6}  {stage:<13} {text}")

    def reporter(self, stage: str) -> Callable[[str], None]:
        """A function that prints lines of one stage."""
        return lambda text: self.line(stage, text)

    def silent_too_long(self) -> bool:
        return self.now() - self.last >= HEARTBEAT_SECONDS

    def waiting(self, stage: str, text: str) -> AbstractContextManager[None]:
        """Print a line from time to time while the block runs."""
        return heartbeat(lambda seconds: self.line(stage, f"{text}, for {clock(seconds)}"))

    def section(self, title: str, lines: Iterable[str]) -> None:
        self.write("\n".join(["", title, *lines]))


@dataclass(kw_only=True)
class Stage:
    """Changes of the resources of one stage."""

    pending: dict[str, float] = field(default_factory=dict)
    """URN of a resource that is being changed → since when."""
    counts: Counter[str] = field(default_factory=Counter)
    busy: float = 0
    """Seconds in which a resource was being changed."""
    changed: float = 0
    told: Counter[str] = field(default_factory=Counter)
    """The counts that were printed last."""
    told_busy: float = 0

    @property
    def news(self) -> str:
        """Changes since it was printed last, and how long they took."""
        return f"{counted(self.counts - self.told)} in {clock(self.busy - self.told_busy)}"


Explain = Callable[[str, str], list[str]]
"""Name and namespace of a Helm release → lines: which of its pods are not ready, and why."""


def _unexplained(name: str, namespace: str) -> list[str]:
    return []


OF_THE_UPDATE = ": this update "
"""In a warning about what the update ends or deletes. It is printed before that happens, and again at the end."""


class Stages:
    """Follows the engine's events."""

    def __init__(self, display: Display, explain: Explain = _unexplained) -> None:
        self.display, self._explain = display, explain
        self._releases: dict[str, tuple[str, str]] = {}
        """URN of a Helm release that is being made → its name and namespace."""
        self._explained: dict[str, list[str]] = {}
        """URN of a Helm release → the lines about it that were printed last."""
        self.stages: dict[str, Stage] = {}
        self.errors: list[tuple[str, str]] = []
        """(resource, message) of every failure."""
        self.warnings: list[str] = []
        """Each one once."""
        self._held: dict[str, str] = {}
        """Entry of a run that others hold → words about when it begins."""
        self.said: tuple[str, float] | None = None
        """The first line of what the program said last, and when."""

    def consume(self, events: list[Event]) -> None:
        """Read new events. Call it often, also without new events."""
        for event in events:
            self._take(event)
        for name, stage in self.stages.items():
            if (
                not stage.pending
                and stage.counts != stage.told
                and self.display.now() - stage.changed >= SETTLED_SECONDS
            ):
                if name not in SILENT:
                    self.display.line(name, stage.news)
                stage.told, stage.told_busy = stage.counts.copy(), stage.busy
        if self.display.silent_too_long():
            self._print_pending()

    def changes(self) -> int:
        """Number of resources that were touched."""
        return sum(stage.counts.total() for stage in self.stages.values())

    def _take(self, event: Event) -> None:
        match event:
            case {"diagnosticEvent": {"severity": "warning"}}:
                new = [it for it in warnings_in([event]) if it not in self.warnings]
                self.warnings += new
                for each in (it for it in new if OF_THE_UPDATE in it):
                    self.display.line("program", each)
            case {"diagnosticEvent": {"severity": "error"} as diagnostic}:
                urn, message = diagnostic.get("urn", ""), diagnostic["message"].strip()
                if message not in ENDED or not self.errors:
                    who = "program" if _is_the_programs(urn) else resource(urn)
                    self._add_error(who, _shortened(who, message))
            case {"diagnosticEvent": {"severity": "info"} as diagnostic} if _is_the_programs(
                diagnostic.get("urn", "")
            ):
                text = diagnostic["message"].strip()
                self.display.line("program", text)
                self.said = text.partition("\n")[0], self.display.now()
                if held := BEGINS.match(text):
                    self._held[held[1]] = held[2]
            case {"resourcePreEvent": {"metadata": step}} if _is_work(step):
                self._begin(step)
            case {"resOutputsEvent": {"metadata": step}} if _is_work(step):
                self._end(step).counts[step["op"]] += 1
            case {"resOpFailedEvent": {"metadata": step}} if _is_work(step):
                self._end(step)

    def _add_error(self, who: str, message: str) -> None:
        """Once: the engine repeats what the program said before it ended."""
        if (who, message) not in self.errors:
            self.errors.append((who, message))

    def _begin(self, step: Event) -> None:
        name = stage_of(step["urn"])
        if name not in self.stages and name not in SILENT:
            self.display.line(name, "begins")
        self.stages.setdefault(name, Stage()).pending[step["urn"]] = self.display.now()
        inputs = (step.get("new") or {}).get("inputs") or {}
        if step.get("type") == RELEASE and {"name", "namespace"} <= inputs.keys():
            self._releases[step["urn"]] = inputs["name"], inputs["namespace"]

    def _end(self, step: Event) -> Stage:
        stage, now = self.stages.setdefault(stage_of(step["urn"]), Stage()), self.display.now()
        since = stage.pending.pop(step["urn"], now)
        stage.busy += now - max(since, stage.changed)
        stage.changed = now
        return stage

    def _print_pending(self) -> None:
        waiting = [
            (since, urn) for stage in self.stages.values() for urn, since in stage.pending.items()
        ]
        if not waiting and self.said:
            text, since = self.said
            shown = textwrap.shorten(text, SAID_CHARACTERS, placeholder=" …")
            self.display.line("program", f"{shown}, for {clock(self.display.now() - since)}")
            return
        if not waiting:
            self.display.line("engine", "is working")
            return
        since, urn = min(waiting)
        others = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        held = self._held.get(name_of(urn), "")
        self.display.line(
            stage_of(urn),
            f"waiting {clock(self.display.now() - since)} for {resource(urn)}{others}{held and f': it {held}'}",
        )
        for since, urn in sorted(waiting):
            if urn in self._releases and self.display.now() - since >= RELEASE_SECONDS:
                self._print_late(urn)

    def _print_late(self, urn: str) -> None:
        """Say what a Helm release waits for that takes longer than usual, where that is news."""
        lines = self._explain(*self._releases[urn])
        if lines and lines != self._explained.get(urn):
            for line in lines:
                self.display.line(stage_of(urn), f"{resource(urn)}: {line}")
        self._explained[urn] = lines


def warnings_in(events: Iterable[Event]) -> list[str]:
    """Each warning of the engine's events, once."""
    found = (event.get("diagnosticEvent") or {} for event in events)
    return [
        *dict.fromkeys(
            each["message"].strip() for each in found if each.get("severity") == "warning"
        )
    ]


def shown_warnings(warnings: Sequence[str]) -> tuple[str, list[str]]:
    """Title and lines of the list of warnings at the end of a command. The fix of one, where it has one, stands
    among the commands to type."""
    without_fix = (warning.partition(". Fix: ")[0] for warning in warnings)
    lines = [f"  {_cut(text)}" for text in without_fix]
    return f"{len(lines)} warning{'s' * (len(lines) != 1)}", lines


def _cut(warning: str) -> str:
    """The beginning of a long warning. One about an update is whole: `trainyard check` knows no update, and prints
    the others in full."""
    if OF_THE_UPDATE in warning:
        return warning
    return textwrap.shorten(warning, WARNING_CHARACTERS, placeholder=" …")


def stage_of(urn: str) -> str:
    """The stage of the outermost component around a resource."""
    chain = urn.split("::")[2].split("$")
    component = next(
        (kind.removeprefix("trainyard:") for kind in chain if kind.startswith("trainyard:")), None
    )
    if component is None:
        return "providers" if chain[-1].startswith("pulumi:") else "stack"
    return next(
        (stage for stage, kinds in COMPONENTS.items() if component.startswith(kinds)),
        component.partition(":")[2],
    )


def _is_the_programs(urn: str) -> bool:
    """True where the message is the program's own, and not a provider's about a resource."""
    return urn.count("::") < 3 or urn.split("::")[2] == "pulumi:pulumi:Stack"


def resource(urn: str) -> str:
    """`LustreFileSystem scratch` for a URN, `program` for none."""
    if urn.count("::") < 3:
        return "program"
    return title_of(urn)


def counted(counts: Counter[str]) -> str:
    """`12 create, 1 update`"""
    return ", ".join(f"{number} {what}" for what, number in counts.items()) or "nothing"


def _shortened(who: str, message: str) -> str:
    """The first lines of a message; of a traceback the last ones, which name the error."""
    lines = message.splitlines()
    most = PROGRAM_LINES if who == "program" else MESSAGE_LINES
    if message.startswith(TRACEBACK):
        shown = [lines[0], "…", *lines[-MESSAGE_LINES:]]
    else:
        shown = lines[:most] + (["…"] if len(lines) > most else [])
    return "\n    ".join(shown)


def _is_work(step: Event) -> bool:
    state = step.get("new") or step.get("old") or {}
    return step["op"] not in ("same", "read", "refresh") and bool(state.get("custom"))


# ---- jobs and tables
# -----------------------------------------------------------------------------------------------


def stage_table(stages: dict[str, Stage], jobs_seconds: float, *, first: bool) -> list[str]:
    """The duration of the stages here; nothing without a stage. `first`: of the first update of a stack, also the
    duration on AWS. A later one makes a part of a stage, for which no figure is known."""
    rows = [
        (
            name,
            clock(stage.busy + (jobs_seconds if name == "jobs" else 0)),
            *([_on_aws(name)] if first else []),
            counted(stage.counts),
        )
        for name, stage in stages.items()
        if name not in SILENT
    ]
    head = ("STAGE", "HERE", *(["ON AWS"] if first else []), "RESOURCES")
    return table([head, *rows]) if rows else []


def _on_aws(stage: str) -> str:
    return f"about {clock(STAGES[stage])}" if stage in STAGES else "not measured"
