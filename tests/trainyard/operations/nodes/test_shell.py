"""`trainyard shell`: a pod on a pool that is priced, asked for, used, and deleted whatever happens."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from tests.support.patience import until
from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from tests.trainyard.operations.terminal import Terminal
from trainyard.operations.nodes import command_output, one_pod, shell
from trainyard.operations.nodes.one_pod import described, waits_for
from trainyard.operations.nodes.shell_job import ShellError, Wanted, pod_job, shell_job
from trainyard.operations.reach.stack import Stack, read_stack

Object = dict[str, Any]
RUNNING = {"running": {"startedAt": "2026-11-22T05:41:10Z"}}
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "message": "0/3 nodes are available",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    (tmp_path / "workloads").symlink_to(CHECKOUT / "workloads")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def a_shell(stack: Stack, **more: Any) -> Any:
    usual: Object = {
        "pool": "g6e",
        "image": None,
        "gpus": 1,
        "minutes": 60,
        "command": "nvidia-smi",
    }
    return shell_job(stack, "shell-1", **(usual | more))


@pytest.mark.usefixtures("folder")
def test_its_pod_is_that_of_a_job_of_the_stack_on_one_node() -> None:
    made = a_shell(read_stack("dev"))
    trainer = made.body["spec"]["trainer"]
    assert (made.body["metadata"]["namespace"], trainer["numNodes"]) == ("training", 1)
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "1"
    assert made.places == ("/stores/home", "/stores/scratch")
    assert "annotations" not in made.body["metadata"], "no stack owns it"
    team = a_shell(read_stack("team-vision"))
    assert team.body["metadata"]["namespace"] == "team-vision"
    assert team.places == ("/stores/scratch",), "what its jobs mount"


@pytest.mark.usefixtures("folder")
def test_a_pod_can_go_beside_a_gang_that_has_all_gpus_of_its_node() -> None:
    amounts = {"cpus_per_node": 1, "memory_gib": 4}
    wanted = Wanted(
        pool="g6e", image="a:1", gpus=None, minutes=60, words=("true",), amounts=amounts
    )
    made = pod_job(read_stack("dev"), "look-1", wanted)
    asked = made.body["spec"]["trainer"]["resourcesPerNode"]
    assert asked == {
        "requests": {"cpu": "1", "memory": "4Gi"},
        "limits": {"memory": "4Gi"},
    }
    assert made.gpus == 0 and (made.price.at_least_usd_per_hour or 0) > 30


def test_its_controller_ends_it_too_where_it_has_a_time_limit(folder: Path) -> None:
    assert "activeDeadlineSeconds" not in a_shell(read_stack("dev")).body["spec"]
    file = folder / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("version: 2.1.0", "version: 2.3.0"))
    spec = a_shell(read_stack("dev"), minutes=60).body["spec"]
    assert spec["activeDeadlineSeconds"] == 2 * 3600, "an hour for the node and the image"


@pytest.mark.usefixtures("folder")
def test_it_says_what_it_is_and_what_an_hour_costs() -> None:
    said = "\n".join(described(a_shell(read_stack("dev")), 60))
    assert "a pod with 1 GPU on pool g6e (g6e.48xlarge)" in said
    assert "USD an hour" in said and "ends after 60 minutes" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"pool": None}, "no pool is named. Fix: name one by --pool: g6e, h100"),
        ({"pool": "nope"}, "there is no pool nope"),
        ({"gpus": 9}, "GPUS must be between 1 and 8"),
        ({"gpus": 0}, "GPUS must be between 1 and 8"),
    ],
)
def test_what_cannot_be_is_refused_with_a_fix(more: Object, said: str) -> None:
    with pytest.raises(ShellError, match=said):
        a_shell(read_stack("dev"), **more)


def test_a_stack_without_a_job_needs_an_image_and_one_without_runtime_says_so(folder: Path) -> None:
    file = folder / "Pulumi.dev.yaml"
    text = file.read_text()
    file.write_text(text.partition("    jobs:\n")[0])
    with pytest.raises(ShellError, match="--image an image with a shell"):
        a_shell(read_stack("dev"))
    assert a_shell(read_stack("dev"), image="debian:13").image == "debian:13"


def test_a_private_image_is_pulled_with_the_secrets_of_the_jobs_of_its_registry(
    folder: Path,
) -> None:
    file = folder / "Pulumi.dev.yaml"
    before, _, rest = file.read_text().rpartition("        image: ")
    private = "        image: registry.example.com/a:1\n        pull_secrets: [registry]\n"
    file.write_text(before + private + rest.partition("\n")[2])
    stack = read_stack("dev")
    for image in (None, "registry.example.com/other:2"):
        assert _pull_secrets(a_shell(stack, image=image)) == ["registry"]
    assert _pull_secrets(a_shell(stack, image="debian:13")) == []


def _pull_secrets(made: Any) -> list[str]:
    [patch] = made.body["spec"]["podTemplateOverrides"]
    return [each["name"] for each in patch["spec"].get("imagePullSecrets", [])]


def _words(minutes: int, command: str | None, stack: Stack) -> list[str]:
    return a_shell(stack, minutes=minutes, command=command).body["spec"]["trainer"]["command"]


@pytest.mark.usefixtures("folder")
def test_a_terminal_waits_for_its_minutes_and_no_longer() -> None:
    assert _words(90, None, read_stack("dev")) == ["sleep", "5400"]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("command", "output", "code"),
    [("echo 'a b'; exit 3", "a b", 3), ("true", "", 0), ("no-such-program", "", 127)],
)
def test_a_command_prints_its_output_and_its_exit_code_last(
    command: str, output: str, code: int
) -> None:
    done = subprocess.run(
        _words(1, command, read_stack("dev")), capture_output=True, text=True, check=True
    )
    *lines, last = done.stdout.splitlines()
    assert "\n".join(lines).strip() == output and last == f"[ended with {code}]"


@pytest.mark.usefixtures("folder")
def test_a_command_ends_with_its_time() -> None:
    words = _words(1, "sleep 60", read_stack("dev"))
    words[2] = words[2].replace(" 60 ", " 0.1 ")
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert "[ended with 124]" in done.stdout


def test_what_it_waits_for_is_said() -> None:
    pod: Object = {"status": {"conditions": [NO_NODE]}}
    suspended = {"type": "Suspended", "message": "quota is used"}
    assert waits_for({"type": "Running"}, [pod]) == "for a node: 0/3 nodes are available"
    assert waits_for(suspended, []) == "in its queue: quota is used"
    assert waits_for({"type": "Running"}, []) == "for its pod"
    waiting = {"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}
    pulls: Object = {"status": {"containerStatuses": [waiting]}}
    assert waits_for({"type": "Running"}, [pulls]) == "ErrImagePull: not found"
    assert waits_for({"type": "Running"}, [{"status": {}}]) == "for its image and its mounts"


class Cluster:
    """kubectl, for a job that waits once, runs, and prints `log`."""

    def __init__(
        self,
        patch: pytest.MonkeyPatch,
        folder: Path,
        log: str,
        may: str = "yes",
        module: ModuleType = shell,
    ) -> None:
        self.calls: list[tuple[str, ...]] = []
        self.may, self.looks, self.fails, self.sent = may, 0, "", ""
        self.runs_on = False
        """The container runs, as the API server says."""
        self.failures: dict[str, list[str]] = {}
        """First words of a call → what the next ones fail with."""
        program = folder / "bin" / "kubectl"
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nprint({log!r}, end='')\n")
        program.chmod(0o755)
        path = f"{program.parent}:{os.environ['PATH']}"
        patch.setenv("PATH", path)
        patch.setattr(module, "kubectl_with", lambda *_: self)
        patch.setattr(one_pod, "POLL_SECONDS", 0)

        @contextmanager
        def reached(*_: Any, **__: Any) -> Iterator[Any]:
            yield SimpleNamespace(login=lambda: {**os.environ, "PATH": path})

        patch.setattr(module, "reached", reached)

    def __call__(self, *words: str) -> str:
        self.calls.append(words)
        for begins, errors in self.failures.items():
            if errors and " ".join(words).startswith(begins):
                raise RuntimeError(errors.pop(0))
        if words[0] == "auth":
            if self.may != "yes":
                raise RuntimeError(self.may)
            return "yes\n"
        if words[0] == "create":
            self.sent = Path(words[1].partition("=")[2]).read_text()
        if words[:2] == ("get", "pods"):
            self.looks += 1
            if self.fails == "ctrl-C":
                os.kill(os.getpid(), signal.SIGTERM)
            return json.dumps({"items": [self._pod()]})
        if words[0] == "get" and words[1] == "node":
            raise RuntimeError("nodes is forbidden")
        if words[:2] == ("get", "pod") and self.runs_on:
            return json.dumps(self._pod())
        if words[0] == "get":
            ended = {"type": "Failed", "status": "True", "reason": "Refused", "message": "by quota"}
            conditions = [ended] if self.fails == "ends" else []
            return json.dumps({"status": {"conditions": conditions}})
        return ""

    def _pod(self) -> Object:
        state = RUNNING if self.looks > 1 and self.fails != "ends" else {"waiting": {}}
        ended = {"terminated": {"exitCode": 128}}
        last = {"lastState": ended} if self.fails == "falls" else {}
        state = {"waiting": {"reason": "CrashLoopBackOff"}} if last else state
        return {
            "metadata": {"name": "shell-pod", "namespace": "training"},
            "spec": {"nodeName": "ip-10-0-1-7", "containers": [{"name": "node"}]},
            "status": {"containerStatuses": [{"state": state, **last}]},
        }

    @property
    def deleted(self) -> bool:
        return any(words[:2] == ("delete", "trainjob") for words in self.calls)


ASK = ["dev", "--pool", "g6e", "--run", "nvidia-smi", "--yes"]


def test_the_output_of_a_command_is_all_that_goes_to_standard_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "GPU 0: L40S\n[ended with 3]\n")
    assert run_word("shell", ASK) == 3
    said = capsys.readouterr()
    assert said.out == "GPU 0: L40S\n" and cluster.deleted
    assert "on node ip-10-0-1-7" in said.err and "USD an hour" in said.err
    assert json.loads(cluster.sent)["metadata"]["labels"]["trainyard.io/shell"] == "true"


def test_a_command_may_print_bytes_that_are_no_text(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Cluster(monkeypatch, folder, "")
    program = folder / "bin" / "kubectl"
    program.write_text("#!/bin/sh\nprintf 'GPU\\377\\n[ended with 3]\\n'\n")
    assert run_word("shell", ASK) == 3
    assert capsys.readouterr().out == "GPU\ufffd\n"


def test_a_pod_that_ends_before_its_command_is_an_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "half of it\n")
    assert run_word("shell", ASK) == 1 and cluster.deleted
    assert "ended before the command did" in capsys.readouterr().err


BREAKS = """#!/bin/sh
case "$*" in
*--since-time=2026-11-30T10:00:01Z*)
    echo '2026-11-30T10:00:01.000000001Z one'
    printf '2026-11-30T10:00:01.5Z 2 of\\r3\\n'
    echo '2026-11-30T10:00:01.500000001Z three'
    echo '2026-11-30T10:00:02Z [ended with 3]' ;;
*)
    echo '2026-11-30T10:00:01.000000001Z one'
    printf '2026-11-30T10:00:01.5Z 2 of\\r3\\n'
    echo 'error: unexpected EOF' >&2
    exit 1 ;;
esac
"""


def _breaking(cluster: Cluster, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "bin" / "kubectl").write_text(BREAKS)
    monkeypatch.setattr(command_output, "AGAIN_SECONDS", 0)
    cluster.runs_on = True


def test_a_lost_connection_does_not_end_a_command_that_runs(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _breaking(Cluster(monkeypatch, folder, ""), folder, monkeypatch)
    assert run_word("shell", ASK) == 3
    said = capsys.readouterr()
    assert said.out == "one\n2 of\r3\nthree\n", "each line once"
    assert "the connection was lost, and is made again error: unexpected EOF" in said.err


@pytest.mark.parametrize(
    "error", ["i/o timeout", 'Error from server (NotFound): pods "a" not found']
)
def test_an_api_server_that_is_away_is_waited_for_and_a_pod_that_is_gone_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: str
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    _breaking(cluster, folder, monkeypatch)
    cluster.failures["get pod shell-pod"] = [error]
    program = folder / "bin" / "kubectl"
    if "NotFound" in error:
        program.write_text("#!/bin/sh\nexit 1\n")
    assert run_word("shell", ASK) == (1 if "NotFound" in error else 3)
    assert ("ended before the command did" in capsys.readouterr().err) == ("NotFound" in error)


def test_a_log_that_cannot_be_read_does_not_hold_its_node(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    _breaking(cluster, folder, monkeypatch)
    (folder / "bin" / "kubectl").write_text("#!/bin/sh\necho 'cannot get pods/log' >&2\nexit 1\n")
    monkeypatch.setattr(command_output, "UNREAD_SECONDS", 0.2)
    assert run_word("shell", ASK) == 1 and cluster.deleted
    said = capsys.readouterr().err
    assert "cannot get pods/log\nthe log of the pod could not be read" in said
    assert said.count("made again") == 1


def test_a_job_that_ends_before_its_pod_says_how_and_is_deleted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    cluster.fails = "ends"
    assert run_word("shell", ASK) == 1 and cluster.deleted
    assert "the job ended: Refused: by quota" in capsys.readouterr().err


@pytest.mark.usefixtures("uncollected")
def test_a_terminal_that_closes_deletes_the_job_as_ctrl_c_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    cluster.fails = "ctrl-C"
    with pytest.raises(KeyboardInterrupt):
        run_word("shell", ASK)
    assert cluster.deleted and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


IN_A_TERMINAL = """
import fcntl, json, pathlib, sys, termios, time
from types import SimpleNamespace
from trainyard.operations.nodes import one_pod
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
calls = pathlib.Path(sys.argv[1])
pod = {"metadata": {"name": "p", "namespace": "n"}, "spec": {},
       "status": {"containerStatuses": [{"state": {"running": {}}}]}}
def kubectl(*words):
    with calls.open("a") as file:
        file.write(f"{words[0]}\\n")
    if words[0] == "delete":
        time.sleep(1)
        calls.with_name("deleted").touch()
    return json.dumps({"items": [pod], "metadata": {"labels": {}}})
plan = SimpleNamespace(kind="TrainJob", namespace="n", name="shell-1")
body = {"kind": "TrainJob", "metadata": {"name": "shell-1", "namespace": "n"}}
with one_pod.running(kubectl, SimpleNamespace(plan=plan, body=body, stack="dev")):
    calls.with_name("runs").touch()
    time.sleep(60)
"""


def test_a_real_terminal_that_closes_takes_the_job_with_it(tmp_path: Path) -> None:
    """Nothing can be written to it any more, and its shell sends the kernel's signal once more."""
    here, there = os.openpty()
    calls = tmp_path / "calls"
    tool = subprocess.Popen(
        [sys.executable, "-c", IN_A_TERMINAL, str(calls)],
        stdin=there,
        stdout=there,
        stderr=there,
        cwd=CHECKOUT,
        start_new_session=True,
    )
    os.close(there)
    assert until(lambda: (tmp_path / "runs").exists())
    os.close(here)
    until(lambda: tool.poll() is not None or "delete" in calls.read_text())
    for again in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        tool.send_signal(again)
    tool.wait()
    assert (tmp_path / "deleted").exists()


def test_a_pod_is_waited_for_over_a_cluster_that_is_away(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "[ended with 0]\n")
    cluster.failures["get pods"] = ["no route to host"] * 3
    assert run_word("shell", ASK) == 0
    assert (
        capsys.readouterr().err.count("waits: for an answer of the cluster: no route to host") == 1
    )


@pytest.mark.parametrize("failed", ["no route to host", "Error from server (NotFound): gone"])
def test_a_cluster_that_stays_away_and_a_job_that_is_gone_end_the_wait(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: str
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    cluster.failures["get pods"] = [failed] * 3
    if "NotFound" not in failed:
        monkeypatch.setattr(one_pod, "AWAY_SECONDS", -1)
    assert (
        run_word("shell", ASK) == 1 and cluster.deleted and len(cluster.failures["get pods"]) == 2
    )
    assert failed in capsys.readouterr().err


def test_nohup_keeps_a_command_when_the_terminal_closes() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with one_pod._no_way_around():
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_deletion_that_fails_is_tried_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "[ended with 0]\n")
    cluster.failures["delete"] = ["no route to host"] * 3
    assert run_word("shell", ASK) == 0 and not cluster.failures["delete"]
    assert capsys.readouterr().err.count("no route to host; tries again, for 5 minutes") == 1


@pytest.mark.parametrize("failed", ["no route to host", "Error from server (Forbidden): no"])
def test_a_job_that_is_left_is_an_error_with_the_word_that_ends_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], failed: str
) -> None:
    cluster = Cluster(monkeypatch, folder, "[ended with 0]\n")
    cluster.failures["delete"] = [failed] * 2
    if "Forbidden" not in failed:
        monkeypatch.setattr(one_pod, "AWAY_SECONDS", -1)
    assert run_word("shell", ASK) == 1 and len(cluster.failures["delete"]) == 1
    said = capsys.readouterr().err
    assert re.search(r"Fix: trainyard stop training/shell-[0-9a-f]{6} --stack dev", said)


def test_why_a_job_ended_is_said_also_where_it_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    cluster.fails, cluster.failures["delete"] = "ends", ["Error from server (Forbidden): no"]
    assert run_word("shell", ASK) == 1
    said = capsys.readouterr().err
    assert "the job ended: Refused: by quota" in said and "may still be there" in said


def test_a_pod_that_falls_over_again_and_again_is_not_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch, folder, "exec: no such file\n")
    cluster.fails = "falls"
    assert run_word("shell", ASK) == 1 and cluster.deleted


@pytest.mark.parametrize("minutes", ["0", "1441", "an hour"])
def test_minutes_are_a_number_within_a_day(
    minutes: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        run_word("shell", ["dev", "--minutes", minutes])
    assert f"must be a number from 1 to 1440; got {minutes}" in capsys.readouterr().err


def test_nothing_starts_without_a_yes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    Terminal(monkeypatch, "n")
    assert run_word("shell", ASK[:-1]) == 3
    Terminal(monkeypatch, None)
    assert run_word("shell", ASK[:-1]) == 2
    assert not cluster.sent


def test_a_terminal_needs_one_here_and_the_right_to_one(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = Cluster(monkeypatch, folder, "", may="no")
    Terminal(monkeypatch, None)
    assert run_word("shell", ["dev", "--pool", "g6e", "--yes"]) == 1
    assert "there is no terminal here. Fix: --run" in capsys.readouterr().err
    Terminal(monkeypatch, "y")
    assert run_word("shell", ["dev", "--pool", "g6e"]) == 1
    assert "you cannot open a terminal in pods of namespace training" in capsys.readouterr().err
    assert not cluster.sent


def test_a_terminal_is_opened_and_the_pod_deleted_at_its_end(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = Cluster(monkeypatch, folder, "")
    Terminal(monkeypatch, "y")
    assert run_word("shell", ["dev", "--pool", "g6e"]) == 0 and cluster.deleted
