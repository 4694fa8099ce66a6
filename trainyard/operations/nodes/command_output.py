"""The output of a command in a pod, as its log has it: followed to the line with its exit code, also over connections
that are lost.

The end of `kubectl logs --follow` is not the end of the command: a laptop sleeps, an API server is replaced, and
something between them ends what is silent.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time

from trainyard.catalog.logs.first_end import container_statuses
from trainyard.operations.nodes.shell_job import ENDED
from trainyard.operations.reach.kubectl import NOT_FOUND, Kubectl, Login, Object

STAMP = re.compile(r"(\d{4}-\d\d-\d\dT[\d:]+)(?:\.(\d+))?Z ")
"""Text of the kubelet before a line."""
NANOSECONDS = 9
"""Digits behind the point of a time of the kubelet; older ones leave out zeros."""
AGAIN_SECONDS = 1.0
LONG_SECONDS = 60.0
"""A connection that lasts so long was one. The API server gives up sooner to reach a kubelet."""
UNREAD_SECONDS = 300.0
"""Seconds after which a log is given up that cannot be read while the API server answers: its node is paid for."""
OVER = "the pod ended before the command did, or could not start it"
UNREAD = "the log of the pod could not be read, so its command is given up"


class Output:
    """The output of a pod's command, each line once."""

    def __init__(self, login: Login, pod: Object) -> None:
        about, container = pod["metadata"], pod["spec"]["containers"][0]["name"]
        self._words = ["kubectl", "logs", "--follow", "--timestamps", about["name"]]
        self._words += [f"--namespace={about['namespace']}", f"--container={container}"]
        self._login = login
        self._newest = self._before = ("", "")
        """Second and fraction of the newest line, and of the one before this connection."""
        self._new = True
        self.error = ""
        """Message of kubectl about the last connection."""
        self.heard = time.monotonic()
        """Moment at which the log was read last."""

    def follow(self) -> int | None:
        """Print what is new until the connection ends; the exit code of the command where that has come."""
        began, code = time.monotonic(), None
        self._before, self._new = self._newest, True
        since = [f"--since-time={self._newest[0]}Z"] if self._newest[0] else []
        with subprocess.Popen(
            [*self._words, *since],
            env=self._login(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as log:
            assert log.stdout and log.stderr
            for line in filter(None, map(self._text, log.stdout)):
                self.heard = time.monotonic()
                if line.startswith(ENDED):
                    code = int(line.removeprefix(ENDED).rstrip("]\n"))
                else:
                    print(line, end="", flush=True)
            self.error = log.stderr.read().decode("utf-8", "replace").strip()
        if time.monotonic() - began > LONG_SECONDS:
            self.heard = time.monotonic()
        return code

    def _text(self, content: bytes) -> str:
        """A line of the log without its time; empty where it was printed before."""
        line = content.decode("utf-8", "replace")
        if stamp := STAMP.match(line):
            line = line[stamp.end() :]
            moment = (stamp[1], (stamp[2] or "").ljust(NANOSECONDS, "0"))
            self._new = moment > self._before
            self._newest = max(moment, self._newest)
        return line if self._new else ""


def followed(login: Login, kubectl: Kubectl, pod: Object) -> int:
    """Print the output of a pod's command until it ends; its exit code, or 1 where that never comes."""
    output, over, said = Output(login, pod), False, ""
    while (code := output.follow()) is None:
        if over or time.monotonic() - output.heard > UNREAD_SECONDS:
            said = f"{output.error}\n{OVER if over else UNREAD}".strip()
            print(said, file=sys.stderr)
            return 1
        goes_on = _goes_on(kubectl, pod)
        over = goes_on is False
        if goes_on is None:
            output.heard = time.monotonic()
        if not over:
            line = f"the connection was lost, and is made again {output.error}".rstrip()
            if line != said:
                print(said := line, file=sys.stderr, flush=True)
            time.sleep(AGAIN_SECONDS)
    return code


def _goes_on(kubectl: Kubectl, pod: Object) -> bool | None:
    """True where the container runs that ran before; None where the API server does not answer."""
    about = pod["metadata"]
    where = (f"--namespace={about['namespace']}", "--output=json")
    try:
        now = json.loads(kubectl("get", "pod", about["name"], *where))
    except RuntimeError as error:
        return False if NOT_FOUND in str(error) else None
    if "deletionTimestamp" in now.get("metadata", {}) or _restarts(now) != _restarts(pod):
        return False
    return any("running" in status.get("state", {}) for status in container_statuses(now))


def _restarts(pod: Object) -> int:
    return sum(status.get("restartCount", 0) for status in container_statuses(pod))
