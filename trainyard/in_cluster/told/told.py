"""Tells people what becomes of runs: one message when a run is complete, has failed, was deleted, stands
still or does not start on its nodes.

It runs as one pod, with nothing but Python. Every few seconds it lists jobs, pods and nodes, and keeps a
ConfigMap for each run. What is said: message.py. How it is said once: messages.py. What that promises, and
what not: docs/runs.md. What is kept of a run: trainyard/in_cluster/runs/record.py.
"""

from __future__ import annotations

import json
import signal
import sys
import time
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import query
from api_server import NOT_FOUND, Api, ApiError, apart, say, serve
from first_end import TAIL, end_of, first_to_fail, newer, ranks
from hangs import Hangs
from listing import Listed, full_name, kept_runs, listed, own_pods, path_of
from log_words import STEP_LINES, nothing_done, nothing_to_do
from message import (
    COMPLETE,
    DELETED,
    FAILED,
    LINES,
    STILL,
    WAITS,
    Settings,
    Story,
    Words,
    body,
    explain,
    last_words,
    subject,
)
from messages import Key, Messages, Publish, place, serial
from not_started import Wait, not_started, wait_of
from record import JOB_LABELS, Gangs, Object, Record, look, of_gang, seconds, stamp
from watching import Watching

PRUNE_SECONDS, KEPT_SECONDS = 3600.0, 86400.0
"""Between two looks at runs that may be forgotten, and how long after its end a run stays whose job is
gone."""
STUCK_SECONDS = 180
BEGAN = "began"
"""ConfigMap with the moment at which the first program began: what ended before is not told."""


class Told:
    """Looks at runs, and publishes what becomes of each."""

    def __init__(self, api: Api, settings: Settings, publish: Publish) -> None:
        self._api, self._settings = api, settings
        self.messages = Messages(api, settings.namespace, publish)
        self._hangs = Hangs(api, settings)
        self._began: float | None = None
        """None before the ConfigMaps were read."""
        self._runs: dict[str, Record] = {}
        """Those whose end is not told, by uid."""
        self._words: dict[str, Words] = {}
        """Uid → the last words of the rank that failed."""
        self._idle: dict[str, str] = {}
        """Uid of a complete run → why it had nothing to do. Its log is read once, however often SNS refuses."""
        self._teams: dict[str, str] = {}
        """Namespace → its team."""
        self._written: dict[str, str] = {}
        """Uid → the run as its ConfigMap has it."""
        self._done: set[str] = set()
        """Uids of runs whose end is told, or was before the first program began."""
        self._pruned = 0.0
        self.tick()

    def tick(self) -> None:
        """It goes on."""
        self.looked = time.monotonic()

    def run(self) -> None:
        """Until it is to end."""
        ends = self.messages.ends
        while not ends.is_set():
            self.tick()
            try:
                self.step(time.time(), time.monotonic())
            except ApiError as error:
                say(f"the API server: {error}")
            ends.wait(self._settings.look_seconds)

    def step(self, now: float, clock: float) -> None:
        """One look at all runs. `clock`: seconds that only count on."""
        if self._began is None:
            self._recall(now)
        seen = listed(self._api, self._settings.nodes_label, self._settings.more_kinds)
        for space in self._api.items("/api/v1/namespaces", labelSelector=self._settings.team_label):
            labels = space["metadata"]["labels"]
            self._teams[space["metadata"]["name"]] = labels[self._settings.team_label]
        known = {*self._runs}
        jobs = self._there(seen)
        pods = own_pods(jobs, seen.pods)
        look(self._runs, jobs, pods, seen.nodes, seen.restarts, self._settings, now)
        for uid, run in [*self._runs.items()]:
            if uid not in known and self._is_old(run):
                self._forget(uid)
                continue
            with apart(full_name(run.job)):
                self._follow(uid, run, pods, now, clock)
        self._tell_hangs(now, clock)
        if clock - self._pruned > PRUNE_SECONDS or not self._pruned:
            self._prune({job["metadata"]["uid"] for job in seen.jobs}, now)
            self._pruned = clock

    def _recall(self, now: float) -> None:
        """What earlier pods of this program wrote, or that this is the first one."""
        for kept in self._list():
            try:
                run = Record.unpacked(kept["binaryData"]["record"])
                words = json.loads(kept["data"].get("words") or "null")
                self._words |= {run.uid: Words(**words)} if words else {}
            except (KeyError, OSError, TypeError, ValueError) as error:
                say(f"{kept['metadata']['name']} cannot be read: {error}")
                continue
            if self.messages.recall(run.uid, kept) & {COMPLETE, FAILED, DELETED}:
                self._done.add(run.uid)
            else:
                run.complete = run.complete and bool(run.ended)
                self._runs[run.uid] = run
        self._began = self._first(now)

    def _first(self, now: float) -> float:
        """When the first program began."""
        mark = {"metadata": {"name": BEGAN}, "data": {"at": stamp(now)}}
        try:
            kept = self._api.ask("GET", f"{place(self._settings.namespace)}/{BEGAN}")
            return float(seconds(kept["data"]["at"]))
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
        self._api.ask("POST", place(self._settings.namespace), mark)
        return float(seconds(stamp(now)))

    def _there(self, seen: Listed) -> list[Object]:
        """The jobs whose end is not told. One that the list lacks is asked for by its name: a cache that
        is behind makes no run a deleted one."""
        shell = self._settings.shell_label
        jobs = [
            job
            for job in seen.jobs
            if job["metadata"]["uid"] not in self._done
            and shell not in (job["metadata"].get("labels") or {})
        ]
        listed_ = {job["metadata"]["uid"] for job in jobs}
        for uid, run in self._runs.items():
            if uid not in listed_ and not run.deleted and (job := self._asked(run)):
                jobs.append(job)
        return jobs

    def _asked(self, run: Record) -> Object | None:
        """The job of a run; None where it is gone, or another one has its name."""
        meta, kind = run.job["metadata"], run.job["kind"]
        group, _, plural = path_of(kind).rpartition("/")
        try:
            job = self._api.ask(
                "GET", f"{group}/namespaces/{meta['namespace']}/{plural}/{meta['name']}"
            )
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            return None
        kept = {"apiVersion": run.job["apiVersion"], "kind": kind}
        return kept | job if job["metadata"]["uid"] == meta["uid"] else None

    def _is_old(self, run: Record) -> bool:
        """Whether it ended before the first program began."""
        return bool(run.ended) and seconds(run.ended) < (self._began or 0.0)

    def _forget(self, uid: str) -> None:
        self._done.add(uid)
        for table in (self._runs, self._words, self._idle, self._written):
            table.pop(uid, None)

    def _follow(self, uid: str, run: Record, pods: Gangs, now: float, clock: float) -> None:
        """Keep what is new of a run, and tell its end."""
        self.tick()
        if not run.deleted:
            self._hear(uid, pods.get(of_gang(run.job), []))
        self._write(uid, run)
        what = _outcome(run)
        words = None if what == COMPLETE else _of_last_attempt(self._words.get(uid), run)
        if what == COMPLETE and uid not in self._idle:
            self._idle[uid] = self._nothing_done(pods.get(of_gang(run.job), []))
        if what and self._tell((uid, what), what, words, now, clock, self._idle.get(uid, "")):
            self._forget(uid)
        if not what:
            self._tell_wait(uid, run, pods.get(of_gang(run.job), []), now, clock)

    def _hear(self, uid: str, pods: list[Object]) -> None:
        """Read the log of the rank that failed, while its pod is there."""
        found, known = first_to_fail(pods), self._words.get(uid)
        there = {pod["metadata"]["uid"]: pod for pod in pods}
        unread = known is None or (known.uid in there and not known.text)
        if found and (unread or newer(found, known, there)):
            words = Words(**asdict(found))
            log = self._log(there[found.uid], words, TAIL)
            explain(words, log, self._settings.secrets)
            if words.text or known is None or known.uid != words.uid:
                self._words[uid] = words

    def _log(self, pod: Object, words: Words, lines: int) -> str:
        return self._text(
            pod, container=words.container, tailLines=lines, previous=str(words.previous).lower()
        )

    def _text(self, pod: Object, **wanted: object) -> str:
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
        return self._api.text(f"{path}?{urllib.parse.urlencode(wanted)}", otherwise="")

    def _nothing_done(self, pods: list[Object]) -> str:
        """Why a complete run had nothing to do, as the log of its first rank says it; empty where it had."""
        for pod in (pod for pod, number in ranks(pods) if number == 0):
            container = pod["spec"]["containers"][0]["name"]
            log = self._text(pod, container=container, tailLines=STEP_LINES)
            if origin := nothing_done(log.splitlines()):
                return nothing_to_do(origin)
        return ""

    def _tell_hangs(self, now: float, clock: float) -> None:
        """Tell which runs stand still: once for the pods that they have."""
        by_name = {of_gang(run.job): (uid, run) for uid, run in self._runs.items()}
        for (namespace, name), pods in self._hangs.hung(clock).items():
            labels = pods[0]["metadata"]["labels"]
            label = next(each for each in JOB_LABELS if each in labels)
            uid, run = by_name.get((label, namespace, name), ("", None))
            if run is None or run.ended:
                continue
            key = (uid, f"{STILL}.{_newest(pods)}")
            if key not in self.messages.told:
                with apart(full_name(run.job)):
                    self._tell(key, STILL, self._quietest(pods), now, clock)

    def _tell_wait(
        self, uid: str, run: Record, pods: list[Object], now: float, clock: float
    ) -> None:
        """Tell that pods of a run do not start while nodes are paid for: once for the pods that it has."""
        if not (stuck := not_started(pods, now, self._settings)):
            return
        key = (uid, f"{WAITS}.{_newest(pods)}")
        if key not in self.messages.told:
            label, _, name = of_gang(run.job)
            wait = wait_of(stuck, pods, self._events, self._settings, f"{label}={name}")
            self._tell(key, WAITS, None, now, clock, wait=wait)

    def _events(self, pod: Object) -> list[Object]:
        """What was said of a pod in the last hour; nothing where the API server does not say it."""
        meta = pod["metadata"]
        wanted = urllib.parse.urlencode({"fieldSelector": f"involvedObject.uid={meta['uid']}"})
        try:
            path = f"/api/v1/namespaces/{meta['namespace']}/events?{wanted}"
            return self._api.ask("GET", path)["items"]
        except ApiError as error:
            say(f"events of {full_name(pod)}: {error}")
            return []

    def _quietest(self, pods: list[Object]) -> Words:
        """The rank that is silent for longest, which the others wait for."""
        found = list[tuple[str, int, Words, Object]]()
        for pod, number in ranks(pods):
            self.tick()
            words = Words(**asdict(end_of(pod, pod["metadata"]["creationTimestamp"], number)))
            line = self._text(pod, container=words.container, tailLines=1, timestamps="true")
            words.at = line.partition(" ")[0] or words.at
            found.append((words.at, number, words, pod))
        _, _, words, pod = min(found, key=lambda each: each[:2])
        words.text = last_words(self._log(pod, words, LINES), self._settings.secrets)
        return words

    def _write(self, uid: str, run: Record) -> None:
        """Keep a run as it is now."""
        words = self._words.get(uid)
        said = json.dumps(asdict(words)) if words else ""
        text = run.packed()
        if self._written.get(uid) == text + said:
            return
        body: Object = {
            "metadata": {"name": f"run-{uid}", "labels": {self._settings.record: "run"}},
            "data": {"job": full_name(run.job), "ended": run.ended, "words": said},
            "binaryData": {"record": text},
        }
        try:
            self._api.ask("PATCH", place(self._settings.namespace, uid), body, "merge-patch+json")
        except ApiError as error:
            if error.code != NOT_FOUND:
                raise
            self._api.ask("POST", place(self._settings.namespace), body)
        self._written[uid] = text + said

    def _tell(
        self,
        key: Key,
        what: str,
        words: Words | None,
        now: float,
        clock: float,
        nothing: str = "",
        wait: Wait | None = None,
    ) -> bool:
        """Publish one message of a run, unless it is told. Returns whether it is told now."""
        run = self._runs[key[0]]
        team = self._teams.get(run.job["metadata"]["namespace"], "")

        def fields(again: bool) -> Mapping[str, str]:
            return self._fields(
                key, Story(what, run, team, words, serial(key), nothing, again, wait), now
            )

        if done := self.messages.tell(key, fields, now, clock):
            say(f"told: {full_name(run.job)} {what}")
        return done

    def _fields(self, key: Key, story: Story, now: float) -> dict[str, str]:
        """The parameters of Publish (SNS API reference)."""
        found = {
            "TopicArn": self._settings.topic,
            "Subject": subject(story, self._settings),
            "Message": body(story, self._settings, now),
        }
        namespace = story.record.job["metadata"]["namespace"]
        attributes = {"outcome": story.what, "namespace": namespace, "team": story.team}
        given = [(name, value) for name, value in attributes.items() if value]
        for number, (name, value) in enumerate(given, 1):
            entry = f"MessageAttributes.entry.{number}"
            found |= {
                f"{entry}.Name": name,
                f"{entry}.Value.DataType": "String",
                f"{entry}.Value.StringValue": value,
            }
        if self._settings.topic.endswith(".fifo"):
            found |= {"MessageGroupId": key[0], "MessageDeduplicationId": story.id}
        return found

    def _prune(self, there: set[str], now: float) -> None:
        """Forget runs whose job is gone, and whose end is told and long ago."""
        before = stamp(now - KEPT_SECONDS)
        for kept in self._list():
            uid, ended = (
                kept["metadata"]["name"].removeprefix("run-"),
                kept["data"].get("ended", ""),
            )
            if uid in self._done and uid not in there and ended and ended < before:
                self._api.ask("DELETE", place(self._settings.namespace, uid))
                self._done.discard(uid)

    def _list(self) -> Iterator[Object]:
        """The runs that are kept, and no cache of them: a run that a cache lacks would be told again."""
        return kept_runs(self._api, place(self._settings.namespace), self._settings.record)


def _of_last_attempt(words: Words | None, run: Record) -> Words | None:
    """The words, where no pod of the run is younger than they are."""
    created = (pod["metadata"]["creationTimestamp"] for pod in run.pods.values())
    return words if words and max(created, default="") <= words.at else None


def _newest(pods: Iterable[Object]) -> str:
    """The uid of the newest pod; pods of one second are in no order."""
    return max((pod["metadata"]["creationTimestamp"], pod["metadata"]["uid"]) for pod in pods)[1]


def _outcome(run: Record) -> str:
    """What has become of a run; empty where it goes on."""
    if not run.ended:
        return ""
    if run.succeeded:
        return COMPLETE
    return DELETED if run.deleted else FAILED


def publisher(region: str) -> Publish:
    """What publishes in that region."""

    def publish(fields: Mapping[str, str]) -> str:
        answer = query.ask(query.SNS, region, "Publish", fields)
        return answer.findtext(".//MessageId") or ""

    return publish


if __name__ == "__main__":
    said = Settings(**json.loads(Path(sys.argv[1]).read_text()))
    looking = Told(Watching(), said, publisher(said.region))
    # As the first process of a container it would not end before it is killed, and then anywhere.
    signal.signal(signal.SIGTERM, lambda *_: looking.messages.ends.set())
    serve(int(sys.argv[2]), lambda: time.monotonic() - looking.looked < STUCK_SECONDS)
    looking.run()
