"""Work of Fluent Bit on a node where its DaemonSet's pod runs: it sends the logs of containers to
CloudWatch Logs, as its configuration says and with the identity of its pod.

It reads the ConfigMap of the graph. Its words: Fluent Bit 5.0, plugins in_tail and
out_cloudwatch_logs. It remembers nothing over a restart of the machine.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatch
from typing import Any, BinaryIO

from rehearsal.kube import Object
from rehearsal.kubelet.aws import TROUBLE, AwsError
from rehearsal.kubelet.kubelet import Kubelet
from rehearsal.kubelet.pod import Pod

IMAGE = "aws-for-fluent-bit"
LOG_LOOK_SECONDS = 0.5
"""Between two looks for new lines in the logs of containers."""
MOST_EVENTS = 1000
"""Most events of one PutLogEvents; AWS takes 10,000."""
Sections = dict[str, dict[str, str]]


@dataclass
class Tailed:
    """A log that it reads."""

    log: BinaryIO
    stream: str
    waiting: list[Object] = field(default_factory=list)
    """Lines that CloudWatch has not taken yet."""
    begun: str = ""
    """Beginning of a line that goes on in the next one."""

    def read(self) -> None:
        """Whole lines since the last time."""
        *lines, rest = self.log.read().split(b"\n")
        self.log.seek(-len(rest), 1)
        for line in lines:
            when, _, tag, text = line.decode(errors="replace").split(" ", 3)
            self.begun += text
            if tag == "F":
                at = int(datetime.fromisoformat(when).timestamp() * 1000)
                # CloudWatch refuses an empty message.
                self.waiting += [{"timestamp": at, "message": self.begun}] if self.begun else []
                self.begun = ""


class FluentBit:
    """On one machine."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._tailed: dict[tuple[str, str, int], Tailed | None] = {}
        """Uid of a pod, container and run → its log; None: it is not of those that are sent."""
        self._streams: set[str] = set()

    def follow(self) -> None:
        """For ever."""
        while True:
            try:
                self.look()
            except TROUBLE as error:
                self._kubelet.log(f"fluent-bit: {error}")
            time.sleep(LOG_LOOK_SECONDS)

    def look(self) -> None:
        """Read what is new, and send it. A log whose pod is gone is read to its end."""
        pod = self._kubelet.daemon(IMAGE)
        if pod is None:
            return
        config = self._config(pod)
        there = dict(_logs(list(self._kubelet.pods.values())))
        for key, (path, name) in there.items():
            if key not in self._tailed and path.exists():
                stream = _stream(config, name)
                self._tailed[key] = Tailed(path.open("rb"), stream) if stream else None
        for key, tailed in list(self._tailed.items()):
            if tailed:
                tailed.read()
                self._send(pod, config["OUTPUT"], tailed)
            if key not in there:
                del self._tailed[key]

    def _config(self, pod: Object) -> Sections:
        [name] = [v["configMap"]["name"] for v in pod["spec"]["volumes"] if "configMap" in v]
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/configmaps/{name}"
        return sections(self._kubelet.api.request("GET", path)["data"]["fluent-bit.conf"])

    def _send(self, pod: Object, output: dict[str, str], tailed: Tailed) -> None:
        if not tailed.waiting:
            return
        if wall := self._kubelet.account.blocked(self._kubelet.id, "aws:logs"):
            raise AwsError(f"[output:cloudwatch_logs] dial logs: i/o timeout: {wall}")
        keys, region = self._kubelet.pod_identity(pod), output["region"]
        if not keys:
            raise AwsError("[output:cloudwatch_logs] could not obtain credentials")
        where = {"logGroupName": output["log_group_name"], "logStreamName": tailed.stream}
        account = self._kubelet.account
        if tailed.stream not in self._streams:
            try:
                account.logs("CreateLogStream", where, region, keys)
            except AwsError as error:
                if "ResourceAlreadyExistsException" not in str(error):
                    raise
            self._streams.add(tailed.stream)
        while events := tailed.waiting[:MOST_EVENTS]:
            account.logs("PutLogEvents", {**where, "logEvents": events}, region, keys)
            del tailed.waiting[: len(events)]


def sections(text: str) -> Sections:
    """A configuration in Fluent Bit's classic form."""
    found: Sections = {}
    for line in text.splitlines():
        if match := re.fullmatch(r"\[(\w+)]", line.strip()):
            found[match[1]] = {}
        elif line.strip():
            key, _, value = line.strip().partition(" ")
            found[[*found][-1]][key.lower()] = value.strip()
    return found


def _logs(pods: list[Pod]) -> Iterator[tuple[tuple[str, str, int], tuple[Any, str]]]:
    """Each run of each container → its log here, and the name of that file on a node."""
    for pod in pods:
        meta = pod.obj["metadata"]
        for container in [*pod.init, *pod.containers]:
            for run in range(container.runs):
                id_ = hashlib.sha256(f"{meta['uid']}{container.name}{run}".encode()).hexdigest()
                name = f"{meta['name']}_{meta['namespace']}_{container.name}-{id_}.log"
                key = (meta["uid"], container.name, run)
                yield key, (pod.log_file(container.name, run), f"/var/log/containers/{name}")


def _stream(config: Sections, file: str) -> str:
    """The stream of a log; empty where the configuration leaves it out."""
    tail = config["INPUT"]
    if any(fnmatch(file, each) for each in tail["exclude_path"].split(",")):
        return ""
    named = re.search(tail["tag_regex"].replace("(?<", "(?P<"), file.rpartition("/")[2])
    if not fnmatch(file, tail["path"]) or named is None:
        return ""
    tag = re.sub(r"<(\w+)>", lambda found: named[found[1]], tail["tag"])
    return config["OUTPUT"]["log_stream_prefix"] + tag
