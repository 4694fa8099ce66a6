"""Follows what the ranks of each run print, and serves it as metrics. Only where history.progress is
set; what the lines mean: progress.py."""

from __future__ import annotations

import json
import math
import urllib.parse
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from api_server import Api, apart
from listing import full_name
from progress import Progress, Words
from record import Object, Record, seconds, stamp

LINES, BYTES = 2000, 1 << 20
"""Of a log at one look, at most. Steps have numbers: one that is passed over is not missed."""
WRITE_SECONDS = 60.0
"""Between two times at which the record of a run gets how far it is."""
RUNS = 5
"""That go on, and whose logs are read at one look: each is two questions to kubelets. With more runs each is
read less often; of 125 runs every six minutes."""
KINDS = {
    "step": "newest step that the run has printed",
    "step_seconds": "seconds of a step, without saves",
    "unsaved_since_seconds": "when the newest checkpoint was written, or the attempt had its first step",
    "checkpoint_interval_seconds": "seconds between two checkpoints, by the plan",
    "goodput": "share of the run's time that is in its steps",
    "goodput_planned": "share of the time that trains, by the plan",
    "restarts": "restarts of the gang",
}
"""Metric, behind trainyard_run_ → what it is."""


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/programs/history.py writes."""

    namespace: str
    record: str
    """Label of a ConfigMap with a record."""
    left: str
    """Annotation of a recorded pod: when it was missed."""
    nodes_label: str
    """Label of the nodes that jobs run on, as key=value."""
    pool_label: str
    look_seconds: float
    days: float
    most_runs: int
    interval_note: str
    """Annotation of a job: seconds between two checkpoints, by the plan."""
    goodput_note: str
    """Annotation of a job: the goodput of the plan."""
    more_kinds: tuple[str, ...] = ()
    """Kinds of jobs beside TrainJobs and PyTorchJobs."""
    words: dict[str, list[tuple[str, bool]]] | None = None
    """How scripts say how far they are, each with whether capital letters count; None: logs are not
    read."""

    @staticmethod
    def read(path: Path) -> Settings:
        """The file of the ConfigMap."""
        return Settings(**json.loads(path.read_text()))


class Followed:
    """The runs that go on."""

    def __init__(self, api: Api, settings: Settings, tick: Callable[[], None]) -> None:
        """`tick`: called before each run, whose nodes may be slow to answer."""
        self._api, self._settings, self._tick = api, settings, tick
        self._words = Words.read(settings.words or {})
        self._runs: dict[str, Progress] = {}
        self._written: dict[str, float] = {}
        self._read: dict[str, int] = {}
        """Uid → number of the look at which its logs were read last."""
        self._looks = 0
        self._text = ""

    def look(
        self, records: Mapping[str, Record], pods: Mapping[str, list[Object]], now: float
    ) -> None:
        """Read what is new. `records`, `pods`: by uid of the job."""
        lines = {
            kind: [f"# HELP {name(kind)} {what}", f"# TYPE {name(kind)} gauge"]
            for kind, what in KINDS.items()
        }
        for uid, record in records.items():
            self._runs.setdefault(uid, Progress.restored(record.progress))
        for uid in self._due(records):
            run = self._runs[uid]
            self._tick()
            with apart(full_name(records[uid].job)):
                self._hear(run, _rank_logs(pods.get(uid, []), self._settings.pool_label))
                run.final = bool(records[uid].ended)
                self._keep(uid, records[uid], run, now)
        for uid, record in records.items():
            run = self._runs[uid]
            with apart(full_name(record.job)):
                for kind, value in self._values(record, run, now):
                    lines[kind].append(f"{name(kind)}{{{_labels(record)}}} {round(value, 6)}")
        self._runs = {uid: run for uid, run in self._runs.items() if uid in records}
        self._written = {uid: at for uid, at in self._written.items() if uid in records}
        self._read = {uid: look for uid, look in self._read.items() if uid in records}
        self._text = "".join(f"{line}\n" for each in lines.values() for line in each)

    def _due(self, records: Mapping[str, Record]) -> list[str]:
        """The runs that are read at this look: all that have ended since the last one, and as many of the
        others as RUNS says, those first that were not read for longest."""
        going = [uid for uid in records if not self._runs[uid].final]
        ended = [uid for uid in going if records[uid].ended]
        others = sorted((uid for uid in going if uid not in ended), key=self._order)
        self._looks += 1
        due = [*ended, *others[:RUNS]]
        self._read |= dict.fromkeys(due, self._looks)
        return due

    def _order(self, uid: str) -> int:
        return self._read.get(uid, 0)

    def metrics(self) -> str:
        """As Prometheus reads it."""
        return self._text

    def _hear(self, run: Progress, pods: list[Object]) -> None:
        """Lines of several pods in the order of their times."""
        run.begin(pods[0]["metadata"]["uid"] if pods else "")
        found: list[tuple[float, str, str]] = []
        for pod in pods:
            uid = pod["metadata"]["uid"]
            new = [*self._new_lines(pod, run.read.get(uid, 0.0))]
            run.read[uid] = max((at for at, _ in new), default=run.read.get(uid, 0.0))
            found += [(at, line, uid) for at, line in new]
        there = {pod["metadata"]["uid"] for pod in pods}
        run.read = {uid: at for uid, at in run.read.items() if uid in there}
        for at, line, uid in sorted(found):
            run.hear(at, line, self._words, uid)

    def _new_lines(self, pod: Object, read: float) -> Iterator[tuple[float, str]]:
        meta = pod["metadata"]
        wanted: dict[str, str | int] = {
            "container": pod["spec"]["containers"][0]["name"],
            "timestamps": "true",
            "tailLines": LINES,
            "limitBytes": BYTES,
        }
        if read:
            wanted["sinceTime"] = stamp(read)
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
        text = self._api.text(f"{path}?{urllib.parse.urlencode(wanted)}", otherwise="")
        for line in text.split("\n"):
            when, _, said = line.partition(" ")
            try:
                at = datetime.fromisoformat(when).timestamp()
            except ValueError:
                continue  # cut off, or the rest of a line
            if at > read:
                yield at, said

    def _keep(self, uid: str, record: Record, run: Progress, now: float) -> None:
        """Now and then: each time is a write of the record."""
        if run.step is None and not run.saved and not run.resumed:
            return
        if run.final or now - self._written.get(uid, 0.0) >= WRITE_SECONDS:
            self._written[uid] = now
            record.progress = deepcopy(vars(run))
            record.measured = {
                "resumed_from": run.resumed or None,
                "saved": run.saved or None,
                "saved_at": run.saved_at or None,
                "step": run.step,
                "step_seconds": run.step_seconds,
                "goodput": self._goodput(record, run, now),
            }

    def _goodput(self, record: Record, run: Progress, now: float) -> float | None:
        lost = bool(record.ended) and not record.succeeded
        return run.goodput(record.began, seconds(record.ended) if record.ended else now, lost=lost)

    def _values(self, record: Record, run: Progress, now: float) -> Iterator[tuple[str, float]]:
        """Those that are known of a run that goes on and prints its steps."""
        if run.final or run.step is None:
            return
        notes = record.job["metadata"]["annotations"]
        found: dict[str, Any] = {
            "step": run.step,
            "step_seconds": run.step_seconds,
            "unsaved_since_seconds": run.saves and run.unsaved_since or None,
            "checkpoint_interval_seconds": _number(notes.get(self._settings.interval_note)),
            "goodput": self._goodput(record, run, now),
            "goodput_planned": _number(notes.get(self._settings.goodput_note)),
            "restarts": record.restarts,
        }
        yield from ((kind, float(value)) for kind, value in found.items() if value is not None)


def _number(note: str | None) -> float | None:
    """The number of an annotation; None of what is none: a person may have written it."""
    try:
        number = float(note or "nan")
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def name(kind: str) -> str:
    """Of a metric."""
    return f"trainyard_run_{kind}"


def _labels(record: Record) -> str:
    meta = record.job["metadata"]
    return f'namespace="{meta["namespace"]}",run="{meta["name"]}"'


def _rank_logs(pods: list[Object], pool_label: str) -> list[Object]:
    """The pods of rank 0 and of the last rank, as torchrun counts them by the names of their hosts:
    the one prints what most scripts say, the other the steps of Megatron-LM."""
    newest = {
        pod["spec"].get("hostname") or pod["metadata"]["name"]: pod
        for pod in sorted(pods, key=lambda pod: pod["metadata"]["creationTimestamp"])
        if pod["spec"].get("nodeName") and _trains(pod, pool_label)
    }
    return [newest[host] for host in sorted({min(newest), max(newest)})] if newest else []


def _trains(pod: Object, pool_label: str) -> bool:
    """Whether its log can be that of a rank: no initializer, and no Master that only waits."""
    launches = "-launcher-" in pod["metadata"]["name"]  # mpirun prints for all ranks
    return launches or pool_label in (pod["spec"].get("nodeSelector") or {})
