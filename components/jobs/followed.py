"""Last lines of the ranks of a gang, read while they are written.

A JobSet deletes the pods of a try as soon as a rank has failed. Who looks at pods now and then finds them gone, and
their logs with them.
"""

from __future__ import annotations

import subprocess
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from threading import Thread

from trainyard.catalog.logs.cause import Cause, cause_of_logs
from trainyard.catalog.logs.first_end import TAIL, End, Object, end_of, ranks

MOST_PODS = 64
"""Pods of a gang that is followed: the API server holds a connection for each."""
WIDTH = 2000
"""Characters of a line that are kept."""
AGAIN_SECONDS = 60.0
"""Between two calls for the same pods, at least: a stream can end before they do."""
NO_LIMIT = "--request-timeout=0"
"""A stream has no time limit. The last flag of that name counts for kubectl."""


class Followed:
    """The last lines of one gang's pods. Everything ends with `close`."""

    def __init__(
        self, words: Sequence[str], selector: str, environment: Mapping[str, str] | None = None
    ) -> None:
        """`words`: kubectl, and its options. `selector`: of the pods. `environment`: that of kubectl; None: that of
        this program."""
        self._words = (
            *(*words, "logs", f"--selector={selector}", "--follow", "--prefix", "--ignore-errors"),
            *("--all-containers", f"--tail={TAIL}", f"--max-log-requests={MOST_PODS}", NO_LIMIT),
        )
        self._environment = environment
        self._stream: subprocess.Popen[str] | None = None
        self._at = -AGAIN_SECONDS
        self._pods: dict[str, End] = {}
        """Name of a pod that was followed → its rank and node."""
        self._lines: dict[str, deque[str]] = {}

    def look(self, pods: Iterable[Object]) -> None:
        """Follow the pods that have begun, once there is a new one among them."""
        begun = {
            pod["metadata"]["name"]: end_of(pod, "", number)
            for pod, number in ranks(pods)
            if pod["status"].get("phase") == "Running"
        }
        if not begun or len(begun) > MOST_PODS:
            return
        ended = self._stream is None or self._stream.poll() is not None
        over = ended and time.monotonic() - self._at >= AGAIN_SECONDS
        if begun.keys() - self._pods.keys() or over:
            self._follow(begun)

    def take(self) -> Cause | None:
        """Say why the pods that were followed ended, once; None where no line of theirs is an error."""
        logs = [
            (end, "\n".join([*self._lines[pod]]))
            for pod, end in self._pods.items()
            if pod in self._lines
        ]
        self._pods, self._lines = {}, {}
        return cause_of_logs(logs)

    def close(self) -> None:
        """End the stream."""
        if self._stream:
            self._stream.kill()
            self._stream.wait()
        self._stream = None

    def _follow(self, begun: dict[str, End]) -> None:
        self.close()
        self._at, self._pods, self._lines = time.monotonic(), begun, {}
        try:
            self._stream = subprocess.Popen(
                self._words,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                errors="replace",
            )
        except FileNotFoundError:
            return  # whoever waits says that there is no kubectl
        Thread(target=_read, args=(self._stream, self._lines), daemon=True).start()


def _read(stream: subprocess.Popen[str], into: dict[str, deque[str]]) -> None:
    """Keep the last lines of each pod until the stream ends. A line begins with [pod/<name>/<container>]."""
    assert stream.stdout
    with stream.stdout as lines:
        for line in lines:
            prefix, _, said = line.partition("] ")
            pod = prefix.removeprefix("[pod/").partition("/")[0]
            into.setdefault(pod, deque(maxlen=TAIL)).append(said[:WIDTH].rstrip("\n"))
