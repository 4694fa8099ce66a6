"""The pods of an elastic PyTorchJob as processes of this machine: the training-operator makes the pods, with
the command and the variables that the program and it have given them, and this stands in for kubelet."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal import processes
from rehearsal.kube import ApiError, Object
from rehearsal.kubelet.environment import environment, expand
from tests.support.operator_server import Operator
from tests.support.ports import free_port
from tests.workloads_train.runs import FAULTS, WORKLOADS, workers
from trainyard.objects.jobs.rendezvous import MASTER_PORT

PROGRAM = "/app/train.py"
"""Place of the sample in the image."""
GRACE = 30
"""Seconds that kubelet gives a pod between SIGTERM and SIGKILL."""


@dataclass(kw_only=True)
class ElasticPods:
    """The pods of one job, of which as many run as there are nodes."""

    operator: Operator
    job: Object
    folder: Path
    nodes: int
    env: dict[str, str] = field(default_factory=dict)
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    """UID of a pod that has a node → its process."""
    ended: list[tuple[str, int]] = field(default_factory=list)
    """Name and exit code of each container that ended and was not told to."""
    port: int = field(default_factory=free_port)

    def start(self) -> ElasticPods:
        self.folder.mkdir()
        (self.folder / "checkpoints").mkdir()
        at = self.operator.api.path(self.job, collection=True)
        self.operator.api.request("POST", at, self.job)
        return self

    def look(self) -> bool:
        """What kubelet does now: start what gets a node, start again what has failed on its node. Whether the
        job goes on."""
        for pod in self.pods:
            uid = pod["metadata"]["uid"]
            agent = self.agents.get(uid)
            if agent is None and len(self.agents) < self.nodes:
                self.agents[uid] = self._started(pod)
                self.operator.say(pod, "Running")
            elif agent and agent.poll() == 0:
                with suppress(ApiError):  # the operator deletes it as soon as the job is complete
                    self.operator.say(pod, "Succeeded")
            elif agent and agent.poll() is not None:
                self.ended.append((pod["metadata"]["name"], agent.returncode))
                self.agents[uid] = self._started(pod)
        return not {"Succeeded", "Failed"} & {*self.conditions}

    def leaves(self, *names: str) -> None:
        """The nodes of these pods are drained, and gone: SIGTERM, a grace period, SIGKILL. The pods then are
        Failed, and the operator makes others, which have no node."""
        pods = [pod for pod in self.pods if pod["metadata"]["name"] in names]
        agents = [self.agents.pop(pod["metadata"]["uid"]) for pod in pods]
        self.nodes -= len(pods)
        for agent in agents:
            agent.terminate()
        until = time.monotonic() + GRACE
        while any(agent.poll() is None for agent in agents) and time.monotonic() < until:
            time.sleep(0.1)
        late = [agent for agent in agents if agent.poll() is None]
        processes.kill([pid for agent in late for pid in (*workers(agent), agent.pid)])
        assert all(agent.wait() for agent in agents), "one 0 would end the whole job"
        for pod in pods:
            self.operator.say(pod, "Failed")

    def end(self) -> None:
        for agent in self.agents.values():
            if agent.poll() is None:
                processes.kill([*workers(agent), agent.pid])
                agent.wait()
        self.operator.api.delete(self.job)

    @property
    def pods(self) -> list[Object]:
        """In the order of their ranks; the first one hosts the rendezvous."""
        return sorted(self.operator.pods(self.job), key=lambda pod: pod["metadata"]["name"])

    @property
    def running(self) -> int:
        return sum(agent.poll() is None for agent in self.agents.values())

    @property
    def conditions(self) -> list[str]:
        found = (self.operator.api.get(self.job) or {}).get("status", {}).get("conditions") or []
        return [each["type"] for each in found if each["status"] == "True"]

    @property
    def log(self) -> str:
        return "".join(path.read_text() for path in sorted(self.folder.glob("*.log")))

    @property
    def losses(self) -> dict[int, tuple[float, int]]:
        """Step → loss and ranks, as the last process that took the step found them."""
        found = re.findall(r"^step (\d+) loss ([\d.]+) ranks (\d+)", self.log, re.MULTILINE)
        return {int(step): (float(loss), int(ranks)) for step, loss, ranks in found}

    def _started(self, pod: Object) -> subprocess.Popen[bytes]:
        [container] = pod["spec"]["containers"]
        here = {
            "PYTHONPATH": os.pathsep.join(
                [str(WORKLOADS), str(FAULTS.parent), os.environ.get("PYTHONPATH", "")]
            ),
            "OMP_NUM_THREADS": "1",
        }
        given = environment(pod, container, {}, {}, _nothing)
        name = pod["metadata"]["name"]
        env = {variable: self._here(value, name) for variable, value in given.items()}
        words = [self._here(expand(word, given), name) for word in container["command"]]
        assert words[0] == "torchrun"
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "torch.distributed.run", *words[1:]],
                env=os.environ | env | here | self.env,
                stdout=log,
                stderr=log,
                cwd=self.folder,
            )

    def _here(self, text: str, pod: str) -> str:
        """What a pod is told, with the places of this machine: host and port of the first pod, the image's
        program, the store. Only the first pod knows itself by its host, as in a cluster: torch takes 127.2, which
        is 127.0.0.2, for another machine."""
        first = f"{self.job['metadata']['name']}-worker-0"
        text = text.replace(first, "127.0.0.1" if pod == first else "127.2")
        text = text.replace(str(MASTER_PORT), str(self.port))
        text = text.replace(PROGRAM, str(WORKLOADS / "elastic" / "train.py"))
        return text.replace("/checkpoints", str(self.folder / "checkpoints"))


def _nothing(kind: str, reference: Object) -> dict[str, bytes]:
    raise AssertionError(f"the pod reads {kind} {reference}")
