"""Records what each run took, so that it stays known after its job and its nodes are gone.

It runs as one pod, with nothing but Python. Every few seconds it lists jobs, their pods and their
nodes, and writes a ConfigMap for each run that has changed. It changes nothing else. What is kept:
trainyard/in_cluster/runs/record.py. Who reads it: trainyard/operations/runs/records.py. With
history.progress it also reads what ranks print: follow.py.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Container, Iterator
from pathlib import Path

from api_server import NOT_FOUND, ApiError, apart, say, serve
from follow import Followed, Settings
from listing import full_name, gone_pods, kept_runs, listed, own_pods
from record import Object, Record, look, of_gang, stamp
from watching import Watching

PRUNE_SECONDS, DAY = 3600.0, 86400.0
STUCK_SECONDS = 180


class History:
    """Looks, and writes what has changed."""

    def __init__(self, api: Watching, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._place = f"/api/v1/namespaces/{settings.namespace}/configmaps"
        self._records: dict[str, Record] | None = None
        """Of jobs that are there, by uid; None before the ConfigMaps were read."""
        self._written: dict[str, str] = {}
        """Uid → the record as its ConfigMap has it."""
        self._pruned = 0.0
        self._followed = Followed(api, settings, self.tick) if settings.words else None
        self.tick()

    def tick(self) -> None:
        """It goes on."""
        self.looked = time.monotonic()

    def metrics(self) -> str:
        """As Prometheus reads it."""
        return self._followed.metrics() if self._followed else ""

    def run(self) -> None:
        """For ever."""
        while True:
            self.tick()
            try:
                self.step(time.time())
            except ApiError as error:
                say(f"the API server: {error}")
            time.sleep(self._settings.look_seconds)

    def step(self, now: float) -> None:
        """One look at all jobs."""
        seen = listed(self._api, self._settings.nodes_label, self._settings.more_kinds)
        jobs, pods = seen.jobs, own_pods(seen.jobs, seen.pods)
        there = {job["metadata"]["uid"] for job in jobs}
        if self._records is None:
            self._records = self._recalled(there)
        gone = gone_pods(self._api)
        look(self._records, jobs, pods, seen.nodes, seen.restarts, self._settings, now, gone)
        if self._followed:
            own = {job["metadata"]["uid"]: pods.get(of_gang(job), []) for job in jobs}
            self._followed.look(self._records, own, now)
        for uid, record in [*self._records.items()]:
            with apart(full_name(record.job)):
                self._write(record)
                if uid not in there:
                    del self._records[uid], self._written[uid]
        if now - self._pruned > PRUNE_SECONDS:
            self._prune(now)
            self._pruned = now

    def _recalled(self, there: Container[str]) -> dict[str, Record]:
        """What earlier pods of this program wrote, without runs that have ended and whose job is gone: thousands have
        no room. It was not looking in between, so nothing that goes on is complete. `there`: uids of
        the jobs."""
        records: dict[str, Record] = {}
        for kept in self._list():
            if kept["data"]["ended"] and kept["metadata"]["name"].removeprefix("run-") not in there:
                continue
            try:
                record = Record.unpacked(kept["binaryData"]["record"])
            except (KeyError, OSError, TypeError, ValueError) as error:
                say(f"{kept['metadata']['name']} cannot be read: {error}")
                continue
            self._written[record.uid] = kept["binaryData"]["record"]
            record.complete = record.complete and bool(record.ended)
            records[record.uid] = record
        return records

    def _write(self, record: Record) -> None:
        text = record.packed()
        if self._written.get(record.uid) == text:
            return
        meta = record.job["metadata"]
        body: Object = {
            "metadata": {"name": f"run-{record.uid}", "labels": {self._settings.record: "run"}},
            "data": {"job": full_name(record.job), "ended": record.ended},
            "binaryData": {"record": text},
        }
        try:
            self._api.ask("PATCH", f"{self._place}/run-{record.uid}", body, "merge-patch+json")
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            self._api.ask("POST", self._place, body)
            say(f"records {record.job['kind']} {meta['namespace']}/{meta['name']}")
        self._written[record.uid] = text

    def _prune(self, now: float) -> None:
        """Forget runs that ended too long ago, and the oldest where there are too many."""
        oldest_first = sorted(
            (each["data"]["ended"], each["metadata"]["name"], each["data"]["job"])
            for each in self._list()
            if each["data"]["ended"]
        )
        before = stamp(now - self._settings.days * DAY)
        too_many = len(oldest_first) - self._settings.most_runs
        for number, (ended, name, job) in enumerate(oldest_first):
            if ended < before or number < too_many:
                self._api.ask("DELETE", f"{self._place}/{name}")
                say(f"forgets {job}, which ended {ended}")

    def _list(self) -> Iterator[Object]:
        return kept_runs(self._api, self._place, self._settings.record)


if __name__ == "__main__":
    looking = History(Watching(), Settings.read(Path(sys.argv[1])))
    serve(
        int(sys.argv[2]),
        lambda: time.monotonic() - looking.looked < STUCK_SECONDS,
        looking.metrics,
    )
    looking.run()
