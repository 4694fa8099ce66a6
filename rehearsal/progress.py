"""What a person sees of a rehearsal: lines while it works, tables when it is done.

A stage is a kind of component: STAGE_OF says which. Nothing here starts or changes anything.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from catalog.latencies import STAGES
from rehearsal.kube import Object
from rehearsal.processes import Process

STAGE_OF = {
    "trainyard:network:Network": "network",
    "trainyard:storage:Lustre": "storage",
    "trainyard:storage:Efs": "storage",
    "trainyard:cluster:Cluster": "cluster",
    "trainyard:cluster:CniIdentity": "cluster",
    "trainyard:cluster:AddOns": "cluster",
    "trainyard:nodes:SystemNodes": "system nodes",
    "trainyard:nodes:Karpenter": "karpenter",
    "trainyard:nodes:GpuNodes": "pools",
    "trainyard:nodes:GpuPool": "pools",
    "trainyard:nodes:DevicePlugins": "pools",
    "trainyard:trainer:Trainer": "trainer",
    "trainyard:trainer:Runtimes": "runtimes",
    "trainyard:jobs:Workspace": "jobs",
    "trainyard:jobs:TrainJob": "jobs",
}
"""Component type to stage; a component that is not here is a stage of its own."""
SIMULATED = (
    "AWS: one embedded account; its durations are AWS's typical ones divided by {speed:g}",
    "GPUs, EFA and NCCL: devices are counted, nothing computes on them",
    "Lustre and EFS: folders under {state}",
    "images: no container runtime; controllers and jobs run as processes, other pods are only said to run",
)
SILENCE_SECONDS = 8
"""Something is said at least this often."""
SETTLED_SECONDS = 3
"""A stage that has been quiet for so long is said to be done."""
FINISHED = ("Complete", "Failed")
SILENT = ("stack", "providers")
"""What belongs to no component."""
MESSAGE_LINES = 5
"""Lines of an error that are shown; the log has all of it."""

Event = dict[str, Any]
Row = Sequence[object]


def clock(seconds: float) -> str:
    """1:05"""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def table(rows: Iterable[Row]) -> list[str]:
    """Aligned columns, indented by two."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
            for row in cells]


def suggestions(commands: Iterable[tuple[str, str]]) -> list[str]:
    """Commands to paste, each with what it is for."""
    return [f"  {command}  # {purpose}" for command, purpose in commands]


def _print(line: str) -> None:
    print(line, flush=True)


class Display:
    """Lines with the time since the start and the stage they belong to."""

    def __init__(self, write: Callable[[str], None] = _print, now: Callable[[], float] = time.monotonic) -> None:
        self.write, self.now = write, now
        self.started = self.last = now()

    def line(self, stage: str, text: str) -> None:
        self.last = self.now()
        self.write(f"{clock(self.last - self.started):>6}  {stage:<13} {text}")

    def silent_too_long(self) -> bool:
        return self.now() - self.last >= SILENCE_SECONDS

    @contextmanager
    def waiting(self, stage: str, text: str) -> Iterator[None]:
        """Break the silence while the block runs."""
        done = threading.Event()

        def speak() -> None:
            while not done.wait(1):
                if self.silent_too_long():
                    self.line(stage, text)

        speaker = threading.Thread(target=speak)
        speaker.start()
        try:
            yield
        finally:
            done.set()
            speaker.join()

    def section(self, title: str, lines: Iterable[str]) -> None:
        self.write("\n".join(["", title, *lines]))


@dataclass(kw_only=True)
class Stage:
    """What happened to the resources of one kind of component."""

    pending: dict[str, float] = field(default_factory=dict)
    """URN of what is being worked on, and since when."""
    counts: dict[str, int] = field(default_factory=dict)
    busy: float = 0
    """Seconds in which something was being worked on."""
    changed: float = 0
    told: bool = False


class Stages:
    """Follows the engine's events."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.stages: dict[str, Stage] = {}
        self.errors: list[tuple[str, str]] = []
        """(resource, message) of everything that failed."""

    def consume(self, events: list[Event]) -> None:
        """Take what is new in; to be called often, also with nothing new."""
        for event in events:
            self._take(event)
        self._say_what_settled()
        if self.display.silent_too_long():
            self._say_what_is_pending()

    def changes(self) -> int:
        """How many resources were touched."""
        return sum(sum(stage.counts.values()) for stage in self.stages.values())

    def _take(self, event: Event) -> None:
        if "diagnosticEvent" in event and event["diagnosticEvent"]["severity"] == "error":
            said = event["diagnosticEvent"]
            self.errors.append((resource(said.get("urn", "")), _shortened(said["message"].strip())))
        acts = {"resourcePreEvent": self._begin, "resOutputsEvent": self._end, "resOpFailedEvent": self._drop}
        for kind in acts.keys() & event.keys():
            if _is_work(event[kind]["metadata"]):
                acts[kind](event[kind]["metadata"])

    def _begin(self, step: Event) -> None:
        name = stage_of(step["urn"])
        stage = self.stages.get(name)
        if stage is None:
            stage = self.stages[name] = Stage()
            if name not in SILENT:
                self.display.line(name, "begins")
        stage.pending[step["urn"]] = self.display.now()

    def _end(self, step: Event) -> None:
        counts = self._drop(step).counts
        counts[step["op"]] = counts.get(step["op"], 0) + 1

    def _drop(self, step: Event) -> Stage:
        stage, now = self.stages.setdefault(stage_of(step["urn"]), Stage()), self.display.now()
        since = stage.pending.pop(step["urn"], now)
        stage.busy += now - max(since, stage.changed)
        stage.changed, stage.told = now, False
        return stage

    def _say_what_settled(self) -> None:
        for name, stage in self.stages.items():
            if not (stage.pending or stage.told) and self.display.now() - stage.changed >= SETTLED_SECONDS:
                stage.told = True
                if name not in SILENT:
                    self.display.line(name, f"{counted(stage.counts)} in {clock(stage.busy)}")

    def _say_what_is_pending(self) -> None:
        waiting = [(since, urn) for stage in self.stages.values() for urn, since in stage.pending.items()]
        if not waiting:
            self.display.line("engine", "is working")
            return
        since, urn = min(waiting)
        others = f", and {len(waiting) - 1} more" if len(waiting) > 1 else ""
        self.display.line(stage_of(urn), f"waiting {clock(self.display.now() - since)} for {resource(urn)}{others}")


def stage_of(urn: str) -> str:
    """The stage of the outermost component around a resource."""
    chain = urn.split("::")[2].split("$")
    component = next((kind for kind in chain if kind.startswith("trainyard:")), None)
    if component is None:
        return "providers" if chain[-1].startswith("pulumi:") else "stack"
    return STAGE_OF.get(component) or component.rpartition(":")[2]


def resource(urn: str) -> str:
    """`LustreFileSystem scratch` for a URN, `program` for none."""
    if urn.count("::") < 3:
        return "program"
    _, _, chain, name = urn.split("::", 3)
    return f"{chain.rpartition('$')[2].rpartition(':')[2]} {name}"


def counted(counts: dict[str, int]) -> str:
    """`12 create, 1 update`"""
    return ", ".join(f"{number} {operation}" for operation, number in counts.items()) or "nothing"


def _shortened(message: str) -> str:
    lines = message.splitlines()
    return "\n    ".join(lines[:MESSAGE_LINES] + (["…"] if len(lines) > MESSAGE_LINES else []))


def _is_work(step: Event) -> bool:
    state = step.get("new") or step.get("old") or {}
    return step["op"] not in ("same", "read", "refresh") and bool(state.get("custom"))


# ---- jobs ----------------------------------------------------------------------------------------------------------

def ended(job: Object) -> str | None:
    """Complete or Failed, once a TrainJob is one of them."""
    conditions = job.get("status", {}).get("conditions") or []
    return next((c["type"] for c in conditions if c["type"] in FINISHED and c["status"] == "True"), None)


def phases(pods: list[Object]) -> str:
    """`Running 2`, or why there is nothing."""
    counts: dict[str, int] = {}
    for pod in pods:
        phase = pod.get("status", {}).get("phase", "Pending")
        counts[phase] = counts.get(phase, 0) + 1
    return ", ".join(f"{phase} {number}" for phase, number in sorted(counts.items())) or "no pods yet"


# ---- tables --------------------------------------------------------------------------------------------------------

def process_table(processes: list[Process]) -> list[str]:
    """Memory by program, the same programs together."""
    names = sorted({process.name for process in processes})
    same = {name: [process for process in processes if process.name == name] for name in names}
    rows = [(name, round(sum(p.rss_mib for p in found)), " ".join(str(p.pid) for p in found))
            for name, found in same.items()]
    return table([("PROGRAM", "MIB", "PROCESSES"), *rows,
                  ("all", round(sum(process.rss_mib for process in processes)), len(processes))])


def node_table(nodes: list[Object]) -> list[str]:
    """NAME INSTANCE ARCH OS GPU EFA ZONE, as AWS's labels and the device plugins say."""
    return table([("NAME", "INSTANCE", "ARCH", "OS", "GPU", "EFA", "ZONE"), *map(_node_row, nodes)])


def _node_row(node: Object) -> Row:
    labels, status = node["metadata"].get("labels") or {}, node.get("status") or {}
    capacity = status.get("capacity") or {}
    return (node["metadata"]["name"], labels.get("node.kubernetes.io/instance-type", "-"),
            labels.get("kubernetes.io/arch", "-"), (status.get("nodeInfo") or {}).get("osImage", "-"),
            capacity.get("nvidia.com/gpu", "-"), capacity.get("vpc.amazonaws.com/efa", "-"),
            labels.get("topology.kubernetes.io/zone", "-"))


def job_lines(job: Object, pods: list[Object]) -> list[str]:
    """Conditions of a TrainJob, then its pods with node and rank."""
    conditions = job.get("status", {}).get("conditions") or []
    rows = [(c["type"], c["status"], c.get("reason", ""), c.get("message", "")) for c in conditions]
    return [*table([("CONDITION", "STATUS", "REASON", "MESSAGE"), *rows]),
            *table([("POD", "PHASE", "RANK", "NODE"), *sorted(map(_pod_row, pods), key=str)])]


def _pod_row(pod: Object) -> Row:
    labels = pod["metadata"].get("labels") or {}
    return (pod["metadata"]["name"], pod.get("status", {}).get("phase", "Pending"),
            labels.get("batch.kubernetes.io/job-completion-index", "-"), pod["spec"].get("nodeName", "-"))


def stage_table(stages: dict[str, Stage], jobs_seconds: float) -> list[str]:
    """How long each stage took here, and is expected to take on AWS."""
    rows = [(name, clock(stage.busy + (jobs_seconds if name == "jobs" else 0)), expected(name), counted(stage.counts))
            for name, stage in stages.items() if name in STAGES]
    return table([("STAGE", "HERE", "ON AWS", "RESOURCES"), *rows])


def expected(stage: str) -> str:
    """Typical time of a stage on AWS."""
    return f"about {clock(STAGES[stage])}" if stage in STAGES else "-"
