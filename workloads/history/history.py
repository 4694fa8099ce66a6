"""Records what each run took, so that it stays known after its job and its nodes are gone.

It runs as one pod, with nothing but Python. Every few seconds it lists jobs, their pods and their
nodes, and writes a ConfigMap for each run that has changed. It changes nothing else. What is kept:
record.py. Who reads it: operations/records.py.
"""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from record import JOB_OF_POD, Object, Record, Settings, look, stamp

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 20
NOT_FOUND = 404
JOBS = {
    "TrainJob": "/apis/trainer.kubeflow.org/v1alpha1/trainjobs",
    "PyTorchJob": "/apis/kubeflow.org/v1/pytorchjobs",
}
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
PRUNE_SECONDS, DAY = 3600.0, 86400.0


class ApiError(Exception):
    """The API server refused, or did not answer."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


class Api:
    """The API server, as the pod's service account."""

    def __init__(self) -> None:
        self._trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "json") -> Object:
        """Its answer; ApiError for a refusal and for none. `kind`: of a patch."""
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        link = http.client.HTTPSConnection(
            host, int(port), timeout=REQUEST_SECONDS, context=self._trust
        )
        headers = {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
            "Content-Type": f"application/{kind}",
        }
        try:
            link.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = link.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, str(error)) from None
        finally:
            link.close()
        if answer.status >= 300:
            raise ApiError(answer.status, text.decode(errors="replace")[:300])
        return json.loads(text)

    def items(self, path: str, **query: str) -> list[Object]:
        """A list, as the API server's cache has it; none of a kind that it does not serve."""
        try:
            asked = urllib.parse.urlencode({"resourceVersion": "0", **query})
            return self.ask("GET", f"{path}?{asked}")["items"]
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return []


class History:
    """Looks, and writes what has changed."""

    def __init__(self, api: Api, settings: Settings) -> None:
        self._api, self._settings = api, settings
        self._place = f"/api/v1/namespaces/{settings.namespace}/configmaps"
        self._records: dict[str, Record] | None = None
        """Of jobs that are there, by uid; None before the ConfigMaps were read."""
        self._written: dict[str, str] = {}
        """Uid → the record as its ConfigMap has it."""
        self._pruned = 0.0
        self.looked = time.monotonic()

    def run(self) -> None:
        """For ever."""
        while True:
            self.looked = time.monotonic()
            try:
                self.step(time.time())
            except ApiError as error:
                say(f"the API server: {error}")
            time.sleep(self._settings.look_seconds)

    def step(self, now: float) -> None:
        """One look at all jobs."""
        if self._records is None:
            self._recall()
        assert self._records is not None
        jobs = [
            {"apiVersion": path.split("/", 2)[2].rpartition("/")[0], "kind": kind, **job}
            for kind, path in JOBS.items()
            for job in self._api.items(path)
        ]
        pods = [
            pod
            for label in JOB_OF_POD.values()
            for pod in self._api.items("/api/v1/pods", labelSelector=label)
        ]
        nodes = self._api.items("/api/v1/nodes", labelSelector=self._settings.nodes_label)
        sets = self._api.items(JOBSETS)
        look(
            self._records,
            jobs,
            pods,
            {node["metadata"]["name"]: node for node in nodes},
            {_name(each): (each.get("status") or {}).get("restarts") or 0 for each in sets},
            self._settings,
            now,
        )
        there = {job["metadata"]["uid"] for job in jobs}
        for uid, record in [*self._records.items()]:
            try:
                self._write(record)
            except ApiError as error:  # the next look tries again; others need not wait for it
                say(f"{_name(record.job)}: {error}")
                continue
            if uid not in there:
                del self._records[uid], self._written[uid]
        if now - self._pruned > PRUNE_SECONDS:
            self._prune(now)
            self._pruned = now

    def _recall(self) -> None:
        """What earlier pods of this program wrote. It was not looking in between, so nothing that
        goes on is complete."""
        records: dict[str, Record] = {}
        for kept in self._list():
            try:
                record = Record.unpacked(kept["binaryData"]["record"])
            except (KeyError, OSError, TypeError, ValueError) as error:
                say(f"{kept['metadata']['name']} cannot be read: {error}")
                continue
            self._written[record.uid] = kept["binaryData"]["record"]
            record.complete = record.complete and bool(record.ended)
            records[record.uid] = record
        self._records = records

    def _write(self, record: Record) -> None:
        text = record.packed()
        if self._written.get(record.uid) == text:
            return
        meta = record.job["metadata"]
        body: Object = {
            "metadata": {"name": f"run-{record.uid}", "labels": {self._settings.record: "run"}},
            "data": {"job": _name(record.job), "ended": record.ended},
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
            (each for each in self._list() if each["data"]["ended"]),
            key=lambda e: e["data"]["ended"],
        )
        before = stamp(now - self._settings.days * DAY)
        too_many = len(oldest_first) - self._settings.most_runs
        for number, kept in enumerate(oldest_first):
            if kept["data"]["ended"] < before or number < too_many:
                self._api.ask("DELETE", f"{self._place}/{kept['metadata']['name']}")
                say(f"forgets {kept['data']['job']}, which ended {kept['data']['ended']}")

    def _list(self) -> list[Object]:
        return self._api.items(self._place, labelSelector=f"{self._settings.record}=run")


def _name(obj: Object) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def say(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


def answer(history: History, port: int) -> None:
    """Serve /healthz, which fails where the loop stands still."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            alive = time.monotonic() - history.looked < 180
            self.send_response(200 if alive else 503)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    threading.Thread(
        target=ThreadingHTTPServer(("", port), Handler).serve_forever, daemon=True
    ).start()


if __name__ == "__main__":
    looking = History(Api(), Settings.read(Path(sys.argv[1])))
    answer(looking, int(sys.argv[2]))
    looking.run()
