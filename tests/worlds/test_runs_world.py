"""Runs are watched, recorded and looked into: the words of docs/runs.md in a world, the history by its
program at a real API server."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from trainyard.objects.programs.history import APP
from trainyard.plans.jobs import INTERVAL

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

JOB: Object = {
    "runtime": "torch-distributed",
    "nodes": 2,
    "pool": "l4",
    "image": "trainer:1",
    "shared_memory_gib": 8,
    "checkpoints": {"store": "home", "directory": "seen", "interval_minutes": 30},
    "env": {"TRAINYARD_STEPS": "20", "TRAINYARD_STEP_SECONDS": "0.2"},
    "torchrun": {"script": "/workspace/train/step.py"},
    "files": {"sources": ["step.py"], "path": "/workspace/train"},
    "wait": "complete",
}
TYPIST = """\
import os, pty, subprocess, sys
ours, theirs = pty.openpty()
words = [sys.executable, "-m", "trainyard", "shell", "see", "--yes"]
started = subprocess.Popen(words, stdin=theirs, stdout=theirs, stderr=theirs)
os.close(theirs)
said, typed = b"", False
while True:
    try:
        said += os.read(ours, 4096)
    except OSError:
        break
    if b"on node" in said and not typed:
        typed = True
        os.write(ours, b"tty; ls /stores/home/seen; echo $((40 + 2)); exit 5\\n")
print(said.decode(), started.wait())
"""
"""A person at a terminal, who types when the pod runs."""
LOOKER = """\
import os, signal, subprocess, sys, urllib.error, urllib.request
how, *words = sys.argv[1:]
tool = (
    "from trainyard.operations.nodes import look; look.SAY_SECONDS, look.ALONE_SECONDS = 1, 60;"
    " from trainyard.cli.main import main; main()"
)
started = subprocess.Popen([sys.executable, "-c", tool, *words], stdout=subprocess.PIPE, text=True)
address = started.stdout.readline().split()[-1]
for each in (address, address.partition("?")[0]):
    try:
        print("answer", urllib.request.urlopen(each).read().decode())
    except urllib.error.HTTPError as error:
        print("answer", error.code)
subprocess.run(["kubectl", "get", "pods", "--namespace=training", "--output=yaml"])
os.kill(started.pid, signal.Signals[how])
print("code", started.wait())
"""
"""A person who starts a program in a pod, looks at its page, with its token and without, and ends the tool. The pod
waits a minute for a tool that is gone, and not 5."""
LOOKED_AT = f"""\
#!{sys.executable}
import http.server, json, os, sys
options = dict(word[2:].split("=", 1) for word in sys.argv[1:] if "=" in word)
folder = options.get("logdir") or options["ServerApp.root_dir"]
token = os.environ.get("JUPYTER_TOKEN", "")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if token in self.path else 403)
        self.end_headers()
        said = [sorted(os.listdir(folder)), os.environ.get("CUDA_VISIBLE_DEVICES")]
        self.wfile.write(json.dumps(said).encode())
port = int(options.get("port") or options["ServerApp.port"])
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""
"""Stands for TensorBoard and for JupyterLab: it reads their options, and lists its folder."""
STACK = with_l4(
    storage={"home": {"efs": {}, "data": "delete"}},
    history={"days": 30, "progress": True},
    logs={"days": 14},
)


def _written(checkout: Path, run: int) -> None:
    config: Any = {"config": STACK}
    config["config"]["trainyard:environment"]["jobs"] = {"seen": {**JOB, "run": run}}
    (checkout / "Pulumi.see.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    files = {"Pulumi.see.yaml": yaml.safe_dump({"config": STACK}), "step.py": "import torch\n"}
    with rehearsing("see", files) as made:
        _written(made.checkout, 1)
        assert made.do("up", "--stack", "see") == 0, made.log.read_text()
        yield made


def _runs(harness: Harness) -> Object:
    return json.loads(harness.shell(f"{sys.executable} -m trainyard runs see --json"))


def test_a_run_is_listed_and_recorded_with_what_it_took(harness: Harness) -> None:
    def recorded() -> bool:
        found = harness.get(f"configmaps --namespace {APP} -l trainyard.io/history=run")["items"]
        return bool(found) and all(each["data"]["ended"] for each in found)

    assert until(recorded), harness.shell(f"kubectl logs -n {APP} deployment/{APP}", check=False)
    [run] = _runs(harness)["runs"]
    assert (run["job"], run["outcome"], run["nodes"], run["usd_known"]) == (
        "seen",
        "Complete",
        2,
        "",
    )
    assert run["by_stack"] and run["image"] == "trainer:1" and run["waited_seconds"] is not None


def test_its_steps_are_those_of_its_own_log(harness: Harness) -> None:
    """Step, time of a step, age and name of the checkpoint, by the times in the log of rank 0."""
    pods = harness.get("pods -n training -l batch.kubernetes.io/job-completion-index=0")["items"]
    said = harness.shell(f"kubectl logs -n training {pods[0]['metadata']['name']} --timestamps")
    steps: dict[int, float] = {}
    between: list[float] = []
    clean = False
    for when, line in (line.split(" ", 1) for line in said.splitlines() if " " in line):
        at = datetime.fromisoformat(when).timestamp()
        if found := re.match(r"step (\d+)/20", line):
            between += [at - steps[int(found[1]) - 1]] if clean else []
            steps[int(found[1])] = at
        clean = bool(found)

    assert until(lambda: harness.recorded("seen")), harness.shell(
        f"kubectl logs -n {APP} deployment/{APP}", check=False
    )
    [run] = _runs(harness)["runs"]
    each = sorted(between)[len(between) // 2]
    assert run["step"] == 20
    assert run["step_seconds"] == pytest.approx(each, rel=0.02)
    assert run["goodput_measured"] == pytest.approx(19 * each / run["ran_seconds"], rel=0.02)
    assert run["checkpoint"] == "step 19" and run["goodput_planned"] is None
    notes = harness.get("trainjob seen -n training")["metadata"]["annotations"]
    assert notes[INTERVAL] == "1800"


def test_the_run_before_stays_known_when_another_one_replaces_its_job(harness: Harness) -> None:
    _written(harness.checkout, 2)
    assert harness.do("up", "--stack", "see") == 0, harness.log.read_text()
    told = _runs(harness)
    first, second = told["runs"]
    assert told["history"] == "kept" and first["created"] < second["created"]
    assert [first["outcome"], second["outcome"]] == ["Complete", "NothingToDo"]
    assert second["resumed_from"] and second["resumed_from"].startswith("step")
    spent = json.loads(harness.shell(f"{sys.executable} -m trainyard spent see --json"))
    assert [run["job"] for run in spent["runs"]] == ["seen", "seen"]
    assert harness.tool("runs", "--stack", "see") == 0


def test_the_log_of_the_run_before_is_printed_though_its_pods_are_gone(harness: Harness) -> None:
    there = {pod["metadata"]["name"] for pod in harness.get("pods -n training")["items"]}
    kept: dict[str, list[str]] = {}

    def both() -> bool:
        kept.clear()
        words = f"{sys.executable} -m trainyard logs --stack see --job seen --past"
        for line in harness.shell(words, check=False).splitlines():
            if line.startswith("[pod/"):
                kept.setdefault(line.split("/")[1], []).append(line)
        return there <= {*kept}

    assert until(both), f"{kept} {there}"
    assert [*kept][0] not in there, "the oldest first"
    gone = [line for pod, lines in kept.items() if pod not in there for line in lines]
    assert any("step 20/20" in line for line in gone), gone  # one rank says it
    [group] = harness.aws("logs").describe_log_groups(logGroupNamePrefix="/trainyard")["logGroups"]
    assert group["retentionInDays"] == 14


def test_one_frame_shows_pools_and_runs_and_a_picture_is_drawn(harness: Harness) -> None:
    shown = harness.shell(f"{sys.executable} -m trainyard watch see --once")
    assert "l4" in shown and "training/seen" in shown and "USD an hour" in shown
    file = harness.state / "watch.svg"
    assert harness.tool("watch", "--stack", "see", "--svg", str(file)) == 0
    assert file.read_text().startswith("<svg")


def test_a_command_runs_on_a_node_with_the_stores_and_its_job_is_gone(harness: Harness) -> None:
    command = "ls /stores/home/seen; sleep 20; exit 3"  # longer than two looks of the history
    words = f"{sys.executable} -m trainyard shell see --yes --run '{command}'; echo code $?"
    said = harness.shell(words, check=False)
    assert "stand-in-checkpoint.json" in said and "code 3" in said, said
    jobs = harness.get("trainjobs --namespace training")["items"]
    assert [job["metadata"]["name"] for job in jobs] == ["seen"]

    def recorded() -> bool:
        return any(run["job"].startswith("shell-") for run in _runs(harness)["runs"])

    assert until(recorded)


def test_a_terminal_is_opened_on_a_node_and_its_pod_ends_with_it(harness: Harness) -> None:
    (harness.checkout / "typist.py").write_text(TYPIST)
    said = harness.shell(f"{sys.executable} typist.py", check=False)
    assert "stand-in-checkpoint.json" in said and "42" in said, said
    assert said.rstrip().endswith("5"), said
    jobs = harness.get("trainjobs --namespace training")["items"]
    assert [job["metadata"]["name"] for job in jobs] == ["seen"]


@pytest.fixture
def looker(harness: Harness) -> str:
    """The command of a person who looks; an image look:1 has both programs."""
    (harness.checkout / "looker.py").write_text(LOOKER)
    program = harness.state / "looked-at"
    program.write_text(LOOKED_AT)
    program.chmod(0o755)
    places = {f"/opt/stand-ins/bin/{name}": str(program) for name in ("tensorboard", "jupyter")}
    told = {"images": {"look": places}}
    (harness.state / "images.json").write_text(json.dumps(told))
    return f"{sys.executable} looker.py"


def test_tensorboard_shows_what_a_job_has_written_and_ends_with_the_tool(
    harness: Harness, looker: str
) -> None:
    words = "tensorboard seen --stack see --image look:1 --yes"
    said = harness.shell(f"{looker} SIGINT {words}", check=False)
    assert re.search(r'answer \[\[.*"stand-in-checkpoint.json"\], ""\]', said), said
    assert "code 0" in said, said
    assert "a pod with no GPU on pool l4" in said, said
    jobs = harness.get("trainjobs --namespace training")["items"]
    assert [job["metadata"]["name"] for job in jobs] == ["seen"]
    assert not harness.processes("port-forward")


def test_a_notebook_whose_tool_is_killed_ends_by_itself(harness: Harness, looker: str) -> None:
    words = "notebook see --image look:1 --yes"
    said = harness.shell(f"{looker} SIGKILL {words}", check=False)
    assert 'answer [["home"], ' in said and "answer 403" in said and "code -9" in said, said

    def complete() -> bool:
        jobs = harness.get("trainjobs --namespace training")["items"]
        looked = [job for job in jobs if job["metadata"]["name"].startswith("notebook-")]
        return bool(looked) and all(
            any(
                each["type"] == "Complete" and each["status"] == "True"
                for each in job.get("status", {}).get("conditions", ())
            )
            for job in looked
        )

    assert until(complete), harness.shell("kubectl get pods -n training", check=False)
    assert not harness.processes("port-forward")
    harness.shell("kubectl delete trainjobs --namespace training --selector trainyard.io/shell")
