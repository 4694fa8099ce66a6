"""Gives back the nodes of half gangs: PyTorchJobs that hold nodes while others of their pods do not run.

Kueue takes a PyTorchJob for complete as soon as its Master runs, so this program counts pods. A gang that
lacks one for longer than its queue waits is sent back: its Workload is deactivated, Kueue stops the job,
and others get its nodes. When its time has come the Workload is activated, and waits in its queue
again. It runs as one pod, with nothing but Python. Why: docs/decisions/0012. What it is told:
trainyard/objects/programs/gangs.py.
"""

from __future__ import annotations

import json
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from api_server import Api, ApiError, Object, apart, say, serve
from watching import Watching

PODS, WORKLOADS = "/api/v1/pods", "/apis/kueue.x-k8s.io/v1beta2/workloads"
JOB = "PyTorchJob"
NODES = "PET_NNODES"
"""Variable of each container of a PyTorchJob: how many pods torchrun waits for, of an elastic job
`fewest:most` (training-operator 1.8.1, pytorch/envvar.go and elastic.go)."""
STUCK_SECONDS = 120


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/programs/gangs.py writes."""

    pod_label: str
    """Of all pods of PyTorchJobs."""
    tries_note: str
    """Annotation of a Workload: how often its gang has given its nodes back since it last ran whole."""
    again_note: str
    """Annotation of a Workload that this program has deactivated: when it activates it."""
    look_seconds: float
    ready_seconds: float
    """A gang that lacks a pod for longer gives its nodes back."""
    backoff_seconds: int
    """Until the next try after the first one; each wait is twice the one before."""
    longest_backoff_seconds: int

    @staticmethod
    def read(path: Path) -> Settings:
        """The file of the ConfigMap."""
        return Settings(**json.loads(path.read_text()))


@dataclass
class Gang:
    """The pods of a job."""

    left: int = 0
    """How many have not been deleted to the end."""
    there: int = 0
    """How many run or have succeeded."""
    fewest: int = 0
    """How many torchrun waits for; 0: nobody says."""

    def add(self, pod: Object) -> None:
        phase, leaves = pod["status"].get("phase"), pod["metadata"].get("deletionTimestamp")
        self.left += 1
        self.there += phase == "Succeeded" or (phase == "Running" and not leaves)
        said = [
            each.get("value", "").partition(":")[0]
            for container in pod["spec"]["containers"]
            for each in container.get("env", [])
            if each["name"] == NODES
        ]
        # The operator writes it behind what a container says itself.
        if said and re.fullmatch("[0-9]{1,6}", said[-1]):
            self.fewest = int(said[-1])

    def needs(self, workload: Object) -> int:
        """How many pods it must have."""
        whole = sum(each["count"] for each in workload["spec"]["podSets"])
        return min(self.fewest or whole, whole)


class Gangs:
    """Looks at the gangs that their queues have started, and at those that it has sent back."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._lacking: dict[tuple[str, str], float] = {}
        """Workload and when it was admitted → since when it was seen to lack pods."""
        self.looked = time.monotonic()

    def run(self) -> None:
        """For ever."""
        while True:
            self.look(time.monotonic())
            time.sleep(self._settings.look_seconds)

    def look(self, now: float) -> None:
        """At all gangs. `now`: in seconds of a clock that only counts on."""
        self.looked = now
        try:
            self._step(now)
        except ApiError as error:
            say(f"the API server: {error}")
            self._lacking = {}  # Kubelets could not say either what runs: patience begins anew.

    def _step(self, now: float) -> None:
        gangs: dict[str, Gang] = {}
        for pod in self._api.items(PODS, labelSelector=self._settings.pod_label):
            gangs.setdefault(_owner(pod).get("uid", ""), Gang()).add(pod)
        before, self._lacking = self._lacking, {}
        for workload in self._api.items(WORKLOADS):
            job = _owner(workload)
            if job.get("kind") != JOB or _is(workload, "Finished"):
                continue
            gang = gangs.get(job["uid"], Gang())
            with apart(_name(workload)):
                if workload["spec"].get("active", True):
                    self._judge(workload, gang, before, now)
                elif not gang.left:
                    self._try_again(workload)

    def _try_again(self, workload: Object) -> None:
        """Where its time has come and its quota is free. One without a time was deactivated by somebody
        else."""
        again = _notes(workload).get(self._settings.again_note)
        if again and stamp(time.time()) >= again and not _is(workload, "QuotaReserved"):
            self._write(workload, {self._settings.again_note: None}, active=True)
            say(f"{_name(workload)} waits in its queue again")

    def _judge(
        self, workload: Object, gang: Gang, before: dict[tuple[str, str], float], now: float
    ) -> None:
        notes = _notes(workload)
        if self._settings.again_note in notes:  # somebody else has activated it
            self._write(workload, {self._settings.again_note: None})
            return
        if not _is(workload, "Admitted") or _is(workload, "Evicted"):
            return
        needed = gang.needs(workload)
        if gang.there >= needed:
            if self._settings.tries_note in notes:
                self._write(workload, {self._settings.tries_note: None})
            return
        key = workload["metadata"]["uid"], _condition(workload, "Admitted")["lastTransitionTime"]
        since = self._lacking[key] = before.get(key, now)
        # Kueue itself takes back what it does not take for complete.
        if now - since > self._settings.ready_seconds and _is(workload, "PodsReady"):
            self._give_back(workload, f"{gang.there} of {needed} pods run")

    def _give_back(self, workload: Object, why: str) -> None:
        tries = int(_notes(workload).get(self._settings.tries_note, 0))
        wait = min(
            self._settings.backoff_seconds * 2**tries, self._settings.longest_backoff_seconds
        )
        again = stamp(time.time() + wait)
        notes = {self._settings.tries_note: str(tries + 1), self._settings.again_note: again}
        self._write(workload, notes, active=False)
        said = (
            f"{why} after {self._settings.ready_seconds / 60:.0f} minutes: the gang gives its nodes back, and"
            f" waits in its queue again from {again}"
        )
        say(f"{_name(workload)}: {said}")
        events = f"/api/v1/namespaces/{workload['metadata']['namespace']}/events"
        self._api.ask("POST", events, event(workload, said))

    def _write(
        self, workload: Object, notes: dict[str, Any], *, active: bool | None = None
    ) -> None:
        """Only as it was seen: in between somebody may have changed it."""
        meta = workload["metadata"]
        change: Object = {
            "metadata": {"resourceVersion": meta["resourceVersion"], "annotations": notes}
        }
        if active is not None:
            change["spec"] = {"active": active}
        path = WORKLOADS.replace(
            "workloads", f"namespaces/{meta['namespace']}/workloads/{meta['name']}"
        )
        self._api.ask("PATCH", path, change, "merge-patch+json")


def event(workload: Object, words: str) -> Object:
    """An event of the job, which `kubectl describe` shows."""
    job, space, now = _owner(workload), workload["metadata"]["namespace"], stamp(time.time())
    about = {key: job[key] for key in ("apiVersion", "kind", "name", "uid")}
    return {
        "metadata": {"generateName": f"{job['name']}.", "namespace": space},
        "involvedObject": {**about, "namespace": space},
        "type": "Warning",
        "reason": "HalfGang",
        "message": words,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "source": {"component": "trainyard-gangs"},
    }


def stamp(seconds: float) -> str:
    """A moment as Kubernetes writes it; later ones compare as greater."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def _owner(obj: Object) -> Object:
    owners = obj["metadata"].get("ownerReferences") or [{}]
    return owners[0]


def _notes(workload: Object) -> dict[str, str]:
    return workload["metadata"].get("annotations") or {}


def _condition(workload: Object, name: str) -> Object:
    conditions = workload.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def _is(workload: Object, name: str) -> bool:
    return _condition(workload, name).get("status") == "True"


def _name(workload: Object) -> str:
    return f"{workload['metadata']['namespace']}/{_owner(workload)['name']}"


if __name__ == "__main__":
    looking = Gangs(Watching(), Settings.read(Path(sys.argv[1])))
    serve(int(sys.argv[2]), lambda: time.monotonic() - looking.looked < STUCK_SECONDS)
    looking.run()
