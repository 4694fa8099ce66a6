"""The file that `trainyard prove` writes and goes on from: its schema, its reading and its writing.

Nothing is written but by `save`, which redacts it. What only this machine may know, such as the state
before the stack was destroyed, is in LOCAL, and is never in the file.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import pydantic

from trainyard.operations.prove.redact import redacted

SCHEMA = 1
"""Version of the file. Another one is not read."""
FILE, PAGE = Path("prove.json"), Path("prove.txt")
"""The file and the page that somebody sends us."""
LOCAL = Path(".prove")
"""Folder with what stays on this machine: logs, events of the engine, the state before destroying."""
PRICED = "list price × time with every pool full, without tax and what is paid by use; the bill of AWS counts"
State = Literal["running", "done", "failed", "stopped"]


class NotReadable(RuntimeError):
    """Error: the file is not one of this program; the message says what to do."""


@dataclass(kw_only=True)
class Done:
    """A step that has begun."""

    name: str
    state: State
    start: str
    """UTC."""
    end: str = ""
    """Empty while it runs."""
    seconds: float = 0
    usd_per_hour: str = "0"
    """List price of what stands while it runs."""
    usd_per_hour_after: bool = False
    """Its resources stand after its end."""
    most_usd: str = "0"
    """The price that was asked for."""
    usd: str = "0"
    """List price × time until the next step began."""
    refusals: list[str] = field(default_factory=list[str])
    """Refusals of AWS, Kubernetes and this program in it, word for word."""


@dataclass(kw_only=True)
class PlannedStage:
    """A stage of the plan, beside which what was seen is held."""

    stage: str
    row: str
    """Row of LATENCIES; empty for a sum of stages."""
    typical: float
    """Seconds."""
    slow: float
    logs: int


@dataclass(kw_only=True)
class Seen:
    """A duration that was seen."""

    row: str
    """Row of LATENCIES, or the name of a sum of stages."""
    step: str
    start: str
    seconds: float
    instance_type: str = ""


@dataclass(kw_only=True)
class Node:
    """A node that was there."""

    created: str
    instance_type: str
    system: str
    """Operating system, as its kubelet says it."""
    kernel: str
    kubelet: str
    gpus: int
    efa: int


@dataclass(kw_only=True)
class Proof:
    """Everything that the hour has shown."""

    __pydantic_config__ = pydantic.ConfigDict(extra="forbid")
    schema: int = SCHEMA
    live: bool
    """It was an AWS account."""
    began: str
    region: str
    zone: str
    limit_usd: str
    usd: str = "0"
    """Spent so far."""
    priced: str = PRICED
    versions: dict[str, str] = field(default_factory=dict[str, str])
    steps: list[Done] = field(default_factory=list[Done])
    plan: list[PlannedStage] = field(default_factory=list[PlannedStage])
    seen: list[Seen] = field(default_factory=list[Seen])
    nodes: list[Node] = field(default_factory=list[Node])
    probes: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Pool → what a pod on its node said of kernel, Lustre client, mounts, EFA and GPUs."""
    answers: list[str] = field(default_factory=list[str])
    """Lines that `trainyard check --live` printed."""
    verdicts: list[dict[str, str | float | bool | None]] = field(
        default_factory=list[dict[str, str | float | bool | None]]
    )
    """Lines of `trainyard accept`."""
    status: list[str] = field(default_factory=list[str])
    """Lines that `trainyard status` printed after the run."""
    left: list[str] = field(default_factory=list[str])
    """Objects that were still there after destroying."""

    def step(self, name: str) -> Done | None:
        """The step of this name; None where it has not begun."""
        return next((step for step in self.steps if step.name == name), None)

    @property
    def over(self) -> bool:
        """True where every step has ended."""
        last = self.step("left")
        return last is not None and last.state == "done"


_ADAPTER = pydantic.TypeAdapter(Proof)


def load(file: Path = FILE) -> Proof | None:
    """The file of an earlier call; None where there is none. NotReadable where it is something else."""
    if not file.exists():
        return None
    try:
        found = json.loads(file.read_text())
        if not isinstance(found, dict) or found.get("schema") != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return _ADAPTER.validate_python(found)
    except (ValueError, pydantic.ValidationError) as error:
        reason = " ".join(str(error).split())
        raise NotReadable(
            f"{file}: must be a file of trainyard prove; got {reason}. Fix: move it away"
        ) from None


def save(proof: Proof, own: Collection[str], file: Path = FILE) -> None:
    """Write the file, redacted. It is whole at every moment: a killed program goes on from it."""
    text = json.dumps(redacted(dataclasses.asdict(proof), own), indent=1, ensure_ascii=False)
    new = file.with_name(f"{file.name}.new")
    new.write_text(f"{text}\n")
    new.replace(file)


def make_local() -> None:
    """Make LOCAL, for its owner alone, and out of git."""
    LOCAL.mkdir(mode=0o700, exist_ok=True)
    (LOCAL / ".gitignore").write_text("*\n")


def iso(seconds: float) -> str:
    """Unix seconds as UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def epoch(text: str) -> float:
    """Unix seconds of such a text, or of a time of Kubernetes."""
    return datetime.fromisoformat(text).timestamp()
