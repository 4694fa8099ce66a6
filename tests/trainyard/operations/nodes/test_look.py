"""`trainyard tensorboard` and `trainyard notebook`: a pod that is priced, reached through forwarded ports, and deleted
whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.patience import PATIENCE, until
from tests.support.ports import free_port
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.terminal import Terminal
from trainyard.catalog.versions import NOTEBOOK_IMAGE
from trainyard.operations.nodes import look, notebook, one_pod, tensorboard
from trainyard.operations.nodes.shell_job import ShellError
from trainyard.operations.nodes.tensorboard import job_of, shown
from trainyard.operations.reach.stack import read_stack

Object = dict[str, Any]
FORWARDS = """
import select, signal, socket, sys
signal.alarm(120)
pairs = [word.split(":") for word in sys.argv if word[:1].isdigit()]
doors = {socket.create_server(("127.0.0.1", int(here))): int(there) for here, there in pairs}
for door in doors:
    print(f"Forwarding from 127.0.0.1:{door.getsockname()[1]} -> {doors[door]}", flush=True)
other = {}
while True:
    for one in select.select([*doors, *other], [], [])[0]:
        if one in doors:
            talk, _ = one.accept()
            try:
                pod = socket.create_connection(("127.0.0.1", doors[one]))
            except OSError as error:  # as kubectl does
                sys.exit(f"error: lost connection to pod: {error}")
            other |= {talk: pod, pod: talk}
        elif one in other:
            content = one.recv(65536)
            if content:
                other[one].sendall(content)
            else:
                for each in (one, other.pop(one)):
                    other.pop(each, None)
                    each.close()
"""
"""kubectl port-forward, to this machine's loopback in the place of a pod's."""
SERVES = """
import http.server, os, signal, sys
signal.alarm(120)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(os.environ.get(sys.argv[2], "nothing").encode())
    def log_message(self, *_): pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
"""A program that answers with one of its variables."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    (tmp_path / "workloads").symlink_to(CHECKOUT / "workloads")
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Cluster:
    """kubectl, and a pod that is a process of this machine. `variable`: what its program answers with."""

    def __init__(self, patch: pytest.MonkeyPatch, folder: Path, variable: str) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.may, self.sent, self.pod = "yes", Object(), None
        self._variable, self.command = variable, []
        """Command of the image's program, which `_start` replaces."""
        program = folder / "bin" / "kubectl"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\n{FORWARDS}")
        program.chmod(0o755)
        env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        for module in (tensorboard, notebook):
            patch.setattr(module, "PORT", free_port())
        patch.setattr(look, "DOOR", free_port())
        # The pod's loopback is that of this machine, so its port is taken.
        patch.setattr(look, "_free", lambda _: free_port())
        patch.setattr(look, "AGAIN_SECONDS", 0.05)
        patch.setattr(look, "SAY_SECONDS", 0.3)
        patch.setattr(look, "ALONE_SECONDS", 5)
        patch.setattr(look, "kubectl_with", lambda *_: self)
        patch.setattr(one_pod, "POLL_SECONDS", 0)

        @contextmanager
        def reached(*_: Any, **__: Any) -> Iterator[Any]:
            yield SimpleNamespace(login=lambda: env)

        patch.setattr(look, "reached", reached)

    def __call__(self, *words: str) -> str:
        self.calls.append(words)
        if words[0] == "auth":
            if self.may != "yes":
                raise RuntimeError(self.may)
            return "yes\n"
        if words[0] == "create":
            self._start(json.loads(Path(words[1].partition("=")[2]).read_text()))
        if words[0] == "delete" and self.pod:
            self.pod.terminate()
        if words[0] == "logs" and self.pod and self.pod.stdout:
            return self.pod.stdout.read()
        if words[:2] == ("get", "pods"):
            return json.dumps({"items": [self._pod()]})
        if words[:2] == ("get", "pod"):
            return json.dumps(self._pod())
        if words[0] == "get" and words[1] == "node":
            raise RuntimeError("nodes is forbidden")
        return json.dumps({"status": {}}) if words[0] == "get" else ""

    def _start(self, sent: Object) -> None:
        """The command of the pod, with a program of ours for the image's."""
        self.sent = sent
        *words, text = sent["spec"]["trainer"]["command"]
        settings = json.loads(text)
        self.command = settings["command"]
        settings["command"] = [sys.executable, "-c", SERVES, str(settings["port"]), self._variable]
        self.pod = subprocess.Popen(
            [sys.executable, *words[1:], json.dumps(settings)], stdout=subprocess.PIPE, text=True
        )

    def _pod(self) -> Object:
        runs = self.pod and self.pod.poll() is None
        state: Object = {"running": {}} if runs else {"terminated": {"exitCode": 0}}
        return {
            "metadata": {"name": "a-pod", "namespace": "training"},
            "spec": {"nodeName": "ip-10-0-1-7", "containers": [{"name": "node"}]},
            "status": {"containerStatuses": [{"state": state}]},
        }

    @property
    def deleted(self) -> bool:
        return any(words[:2] == ("delete", "trainjob") for words in self.calls)


@pytest.fixture
def begin(uncollected: None, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A function that makes the cluster."""
    made: list[Cluster] = []

    def start(variable: str) -> Cluster:
        made.append(Cluster(monkeypatch, folder, variable))
        return made[0]

    yield start
    for each in made:
        if each.pod:
            each.pod.terminate()  # by SIGKILL it would leave its program, as no pod ends here
            each.pod.wait(PATIENCE)


class Reader(threading.Thread):
    """A person who waits for the address, asks it, does something more, and presses ctrl-C."""

    def __init__(self, said: Any, more: Any = lambda: None) -> None:
        super().__init__(daemon=True)
        self._said, self._more = said, more
        self.answer, self.path = "", ""

    def run(self) -> None:
        text = ""

        def printed() -> bool:
            nonlocal text
            text += self._said.readouterr().out
            return "http://" in text

        if until(printed):
            [[address, self.path]] = re.findall(r"(http://127\.0\.0\.1:\d+)(/\S*)", text)
            with urllib.request.urlopen(address, timeout=PATIENCE) as answer:
                self.answer = answer.read().decode()
            self._more()
        os.kill(os.getpid(), signal.SIGTERM)


def test_a_notebook_is_reached_with_its_token_until_ctrl_c(begin: Any, capsys: Any) -> None:
    cluster = begin("JUPYTER_TOKEN")
    reader = Reader(capsys)
    reader.start()
    assert run_word("notebook", ["dev", "--pool", "g6e", "--yes"]) == 0
    reader.join(PATIENCE)
    token = reader.path.partition("token=")[2]
    assert len(token) > 30 and reader.answer == token
    assert token not in json.dumps(cluster.sent), "whoever reads jobs reads no token"
    assert {"--ServerApp.ip=127.0.0.1", "--ServerApp.root_dir=/stores"} <= {*cluster.command}
    assert cluster.deleted and cluster.pod and cluster.pod.wait(PATIENCE) == 0


def test_tensorboard_sees_no_gpu_of_its_node(begin: Any, capsys: Any) -> None:
    cluster = begin("CUDA_VISIBLE_DEVICES")
    reader = Reader(capsys)
    reader.start()
    assert run_word("tensorboard", ["--stack", "dev", "--job", "t5-large", "--yes"]) == 0
    reader.join(PATIENCE)
    assert reader.answer == "" and reader.path == "/" and cluster.deleted
    assert {"--host=127.0.0.1", "--logdir=/stores/scratch/t5-large"} <= {*cluster.command}


def test_a_lost_connection_is_made_again_and_the_address_stays(
    begin: Any, capsys: Any, folder: Path
) -> None:
    cluster = begin("JUPYTER_TOKEN")

    def cut() -> None:
        """End kubectl, wait until the tool is there again, and longer than the pod waits for nobody."""
        pids = _forwarding(folder)
        assert pids
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        assert until(lambda: _forwarding(folder) and not {*_forwarding(folder)} & {*pids})
        time.sleep(5.5)
        assert cluster.pod and cluster.pod.poll() is None

    reader = Reader(capsys, cut)
    reader.start()
    assert run_word("notebook", ["dev", "--pool", "g6e", "--yes"]) == 0
    reader.join(PATIENCE)
    assert not reader.is_alive() and cluster.deleted
    assert until(lambda: not _forwarding(folder)), "no kubectl is left"


def _forwarding(folder: Path) -> list[int]:
    """Processes of this test's kubectl, and of no other on this machine."""
    found, kubectl = [], bytes(folder / "bin" / "kubectl")
    for each in Path("/proc").glob("[0-9]*"):
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if {b"port-forward", kubectl} <= {*words} and b"/bin/sh" not in words and parent != 1:
            found.append(int(each.name))
    return found


def test_a_tool_that_is_killed_leaves_neither_kubectl_nor_for_long_a_pod(
    begin: Any, folder: Path
) -> None:
    """The tool is a process of its own here, as nobody can catch SIGKILL."""
    cluster = begin("JUPYTER_TOKEN")
    script = f"""
import os, subprocess
from trainyard.operations.nodes import look
with look._forwarded(lambda: {{**os.environ, "PATH": {str(folder / "bin")!r} + ":" + os.environ["PATH"]}},
    {{"metadata": {{"name": "a-pod", "namespace": "training"}}}}, {{{free_port()}: {look.DOOR}}}):
    print("forwards", flush=True)
    input()
"""
    tool = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=CHECKOUT,
    )
    assert tool.stdout and tool.stdout.readline() == b"forwards\n" and _forwarding(folder)
    tool.kill()
    tool.wait()
    assert until(lambda: not _forwarding(folder))
    assert not cluster.sent


def test_a_pod_whose_program_ends_says_how(begin: Any, capsys: Any) -> None:
    cluster = begin("JUPYTER_TOKEN")
    words = ["dev", "--pool", "g6e", "--minutes", "1", "--yes"]

    def end() -> None:
        assert until(lambda: cluster.pod is not None)
        cluster.pod.terminate()

    threading.Thread(target=end, daemon=True).start()
    assert run_word("notebook", words) == 1 and cluster.deleted
    assert "its pod has ended" in capsys.readouterr().err


def test_price_and_pool_are_said_and_nothing_starts_without_a_yes(
    begin: Any, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    cluster = begin("JUPYTER_TOKEN")
    Terminal(monkeypatch, "n")
    assert run_word("notebook", ["dev", "--pool", "h100"]) == 3
    said = capsys.readouterr().err
    assert "a pod with 1 GPU on pool h100 (p5.48xlarge)" in said and "USD an hour" in said
    assert f"image {NOTEBOOK_IMAGE}" in said and "ends after 60 minutes" in said
    Terminal(monkeypatch, None)
    assert run_word("tensorboard", ["--stack", "dev"]) == 2
    said = capsys.readouterr().err
    assert "a pod with no GPU on pool g6e" in said and "nothing more on a node that runs" in said
    assert not cluster.sent


def test_who_may_not_connect_learns_it_before_a_node_is_paid_for(begin: Any, capsys: Any) -> None:
    cluster = begin("JUPYTER_TOKEN")
    cluster.may = "no"
    assert run_word("notebook", ["team-vision", "--pool", "g6e", "--yes"]) == 1
    said = capsys.readouterr().err
    assert "namespace team-vision" in said and "members of the team" in said and not cluster.sent


@pytest.mark.parametrize(
    ("setting", "seen"),
    [
        ("tensorboard: {store: home, directory: events/t5}", ("home", "events/t5")),
        ("tensorboard: {store: home, directory: 'events/{run}'}", ("home", "events")),
        ("tensorboard: {store: home, directory: 'events/t5-{run}/tb'}", ("home", "events")),
        ("tensorboard: {store: home, directory: 't5-{run}'}", ("home", "t5-1")),
        ("", ("scratch", "t5-large")),
    ],
)
def test_it_shows_events_else_checkpoints_and_all_runs_where_they_have_a_folder(
    folder: Path, setting: str, seen: tuple[str, str]
) -> None:
    file = folder / "Pulumi.dev.yaml"
    text = re.sub(r"\n +tensorboard: .*", "", file.read_text())
    head, checkpoints, rest = text.partition("        checkpoints:")
    file.write_text(f"{head}        {setting}\n{checkpoints}{rest}" if setting else text)
    stack = read_stack("dev")
    name = job_of(stack, None)
    assert shown(stack.jobs[name], name)[:2] == seen


@pytest.mark.usefixtures("folder")
def test_a_job_that_writes_to_no_store_or_is_not_there_is_refused_with_a_fix() -> None:
    stack = read_stack("dev")
    [name] = stack.jobs
    with pytest.raises(ShellError, match=f"no job nope. Fix: --job {name}"):
        job_of(stack, "nope")
    bare = SimpleNamespace(tensorboard=None, checkpoints=None)
    with pytest.raises(ShellError, match="writes to no store. Fix: add tensorboard"):
        shown(bare, "t5")  # type: ignore[arg-type]
