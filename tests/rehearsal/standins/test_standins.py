"""The stand-ins alone: git, pip, and torchrun with one node or several on one host."""

from __future__ import annotations

import importlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.kubelet import images
from rehearsal.standins import git
from tests.support import etcd_server
from tests.support.patience import PATIENCE
from tests.support.ports import free_port
from trainyard.catalog.limits import FIRST_NODE_SECONDS, NODES_SECONDS
from trainyard.catalog.logs.symptom import read
from trainyard.catalog.logs.symptoms import RENDEZVOUS
from trainyard.objects.jobs.rendezvous import VARIABLE, conf

FAST = {"TRAINYARD_STEPS": "6", "TRAINYARD_STEP_SECONDS": "0.05", "HEARTBEAT_SECONDS": "30"}


def start(tool: str, *words: str, cwd: Path, **env: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, images.STAND_INS / f"{tool}.py", *words],
        cwd=cwd,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=os.environ | FAST | env,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    output, _ = process.communicate(timeout=PATIENCE)
    return process.returncode, output


def trains(process: subprocess.Popen[str]) -> None:
    """Returns when all ranks have met."""
    assert process.stdout
    while "all ranks met" not in process.stdout.readline():
        assert process.poll() is None


def children(process: subprocess.Popen[str]) -> list[int]:
    return [
        int(pid)
        for pid in Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    ]


def run(tool: str, *words: str, cwd: Path, **env: str) -> tuple[int, str]:
    return ended(start(tool, *words, cwd=cwd, **env))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("print('never run')\n")
    (tmp_path / "mirror/training/samples").mkdir(parents=True)
    (tmp_path / "mirror/training/samples/a.py").touch()
    return tmp_path


def two_nodes(
    folder: Path,
    *,
    first: dict[str, Any] | None = None,
    second: dict[str, Any] | None = None,
    words: tuple[str, ...] = (),
) -> list[subprocess.Popen[str]]:
    flags = (
        "--nnodes=2",
        "--nproc-per-node=2",
        "--rdzv_backend=static",
        f"--master_port={free_port()}",
        *words,
    )
    return [
        start("torchrun", *flags, f"--node_rank={i}", "train.py", cwd=folder, **(env or {}))
        for i, env in enumerate((first, second))
    ]


def test_efa_that_is_blocked_ends_ranks_on_several_nodes_in_the_words_of_nccl(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(images.STAND_INS))
    torchrun = importlib.import_module("torchrun")
    monkeypatch.setattr(torchrun, "FABRIC", tmp_path / "uverbs0")
    torchrun.fabric()
    torchrun.FABRIC.write_text("")
    torchrun.fabric()
    torchrun.FABRIC.write_text("no rule of sg-1 lets EFA out to sg-1")
    with pytest.raises(SystemExit):
        torchrun.fabric()
    said = capsys.readouterr().err
    assert "no rule of sg-1 lets EFA out to sg-1" in said
    assert "EFA does not work" in read(RENDEZVOUS, said, "")[0]


def test_git_clones_what_the_checkout_has(folder: Path) -> None:
    code, output = run(
        "git",
        "clone",
        "--depth",
        "1",
        "https://github.com/x/training.git",
        "code",
        cwd=folder,
        GIT_MIRROR=str(folder / "mirror"),
    )
    assert code == 0, output
    assert (folder / "code/samples/a.py").exists()


def test_git_has_no_network_for_the_rest(folder: Path) -> None:
    code, output = run(
        "git", "clone", "https://github.com/x/other", cwd=folder, GIT_MIRROR=str(folder / "mirror")
    )
    assert code == 128 and "Could not resolve host: github.com" in output


def test_git_refuses_a_folder_that_is_not_empty_and_what_it_does_not_know(folder: Path) -> None:
    assert "already exists" in run("git", "clone", "https://a/training", "mirror", cwd=folder)[1]
    assert run("git", "pull", cwd=folder) == (
        128,
        "fatal: the rehearsal's git does not implement 'pull'\n",
    )


@pytest.mark.parametrize("url", ["git@github.com:x/y.git", "https://u:p@github.com/x/y"])
def test_git_names_the_host(url: str) -> None:
    assert git.host(url) == "github.com"


def test_pip_says_what_it_would_install(folder: Path) -> None:
    (folder / "requirements.txt").write_text("# comment\ntorch>=2.4  # why\n\n-i https://x\n")
    assert run("pip", "install", "-q", "-r", "requirements.txt", "numpy", cwd=folder) == (
        0,
        "stand-in pip: would install torch>=2.4, numpy\n",
    )


def test_pip_needs_its_requirements_file(folder: Path) -> None:
    code, output = run("pip", "install", "-r", "nope.txt", cwd=folder)
    assert code == 1 and "Could not open requirements file" in output


def test_all_ranks_of_one_node_meet(folder: Path) -> None:
    code, output = run("torchrun", "--standalone", "--nproc_per_node", "3", "train.py", cwd=folder)
    assert code == 0 and "[rank 2/3]" in output and "step 6/6: all ranks met" in output
    assert "never run" not in output


def test_two_nodes_make_one_world_and_the_environment_sets_flags(folder: Path) -> None:
    port = str(free_port())
    env = {"PET_NNODES": "2", "PET_NPROC_PER_NODE": "2", "PET_MASTER_PORT": port}
    both = [start("torchrun", "train.py", cwd=folder, PET_NODE_RANK=str(i), **env) for i in (0, 1)]
    (code, one), (other_code, other) = map(ended, both)
    assert (code, other_code) == (0, 0), one + other
    assert "[rank 1/4]" in one and "[rank 2/4]" in other


@pytest.mark.parametrize(("nodes", "size"), [(1, 2), (2, 4), (3, 6)])
def test_an_elastic_run_begins_with_the_nodes_that_are_there(
    monkeypatch: pytest.MonkeyPatch, nodes: int, size: int
) -> None:
    """At least one and at most three: nobody waits for more once the last call is over, or for a
    fourth."""
    monkeypatch.syspath_prepend(str(images.STAND_INS))
    rendezvous = importlib.import_module("rendezvous")
    hub = rendezvous.Hub(0, "run", (1, 3), 1.0 if nodes < 3 else PATIENCE)
    lines = [rendezvous.connect(("127.0.0.1", hub.port), PATIENCE) for _ in range(nodes)]
    for number, line in enumerate(lines):
        line.say({"run": "run", "ranks": 2, "node_rank": number, "fixed": False})
    assert hub._gather() == size
    assert [line.hear(PATIENCE)["size"] for line in lines] == [size] * nodes


def test_an_elastic_torchrun_alone_trains_alone(folder: Path) -> None:
    words = ("--nnodes=1:4", "--rdzv_backend=c10d", "--rdzv_conf=last_call_timeout=1")
    endpoint = f"--rdzv_endpoint=localhost:{free_port()}"
    code, output = run("torchrun", *words, endpoint, "--nproc_per_node=2", "train.py", cwd=folder)
    assert code == 0 and "[rank 1/2]" in output


def test_a_name_that_dns_does_not_know_is_told_while_torch_waits(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(images.STAND_INS))
    rendezvous = importlib.import_module("rendezvous")
    with pytest.raises(OSError):
        rendezvous.connect(("t5-node-0-0.t5.invalid", 1), 0.5)
    said = capsys.readouterr().err
    assert said.count("cannot be retrieved (gai error: ") == 1
    found, _ = read(RENDEZVOUS, said, "", namespace="n", job="a=b")
    assert "DNS does not know the endpoint" in found


def test_a_node_without_an_endpoint_waits_for_itself(folder: Path) -> None:
    code, output = run(
        "torchrun",
        "--nnodes=2",
        "--rdzv_backend=c10d",
        "--rdzv_conf=join_timeout=1",
        f"--rdzv_endpoint=localhost:{free_port()}",
        "train.py",
        cwd=folder,
    )
    assert code == 1 and "RendezvousTimeoutError" in output


LIMITS = {
    "c10d by itself": ("c10d", {}, (), (60, 600)),
    "static by itself": ("static", {}, (), (900, 900)),
    "c10d, its own two": ("c10d", {}, ("join_timeout=5,read_timeout=7",), (7, 5)),
    "c10d does not read that of static": ("c10d", {}, ("timeout=5",), (60, 600)),
    "static, its own one": ("static", {}, ("timeout=5,join_timeout=9",), (5, 5)),
    "the variable": ("c10d", {VARIABLE: conf()}, (), (FIRST_NODE_SECONDS, NODES_SECONDS)),
    "the variable with static": ("static", {VARIABLE: conf()}, (), (NODES_SECONDS,) * 2),
    "the command line wins": ("c10d", {VARIABLE: conf()}, ("join_timeout=5",), (60, 5)),
}


@pytest.mark.parametrize("name", LIMITS)
def test_rdzv_conf_sets_the_limits_that_the_backend_reads_in_torch(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    backend, env, said, expected = LIMITS[name]
    monkeypatch.syspath_prepend(str(images.STAND_INS))
    torchrun = importlib.import_module("torchrun")
    waited: list[float] = []

    class Silent:
        def say(self, value: Any) -> None:
            pass

        def hear(self, seconds: float) -> None:
            waited.append(seconds)
            raise TimeoutError

    def connect(address: tuple[str, int], seconds: float) -> Silent:
        waited.append(seconds)
        return Silent()

    monkeypatch.setattr(torchrun.rendezvous, "connect", connect)
    words = [f"--rdzv_backend={backend}", *(f"--rdzv_conf={each}" for each in said), "train.py"]
    with pytest.raises(SystemExit):
        torchrun.join(torchrun.arguments(words, env), ("127.0.0.1", 1), 1)
    assert tuple(waited) == expected


@pytest.mark.parametrize("late", [0, 1])
@pytest.mark.parametrize(("env", "code"), [({}, 1), ({VARIABLE: conf()}, 0)], ids=["torch", "ours"])
def test_a_node_that_is_half_an_hour_late_is_waited_for_with_the_variable_alone(
    folder: Path, late: int, env: dict[str, str], code: int
) -> None:
    """Which node it is: `late`. The half hour is 3 s long."""
    said = {**env, "TRAINYARD_RENDEZVOUS_SPEED": "600"}
    flags = ("--nnodes=2", f"--master_port={free_port()}")

    def node(rank: int) -> subprocess.Popen[str]:
        return start("torchrun", *flags, f"--node_rank={rank}", "train.py", cwd=folder, **said)

    early = node(1 - late)
    if code:
        assert ended(early)[0] == code, "torch by itself gives up after 900 s"
        return
    time.sleep(3)
    assert early.poll() is None
    assert [ended(each)[0] for each in (early, node(late))] == [0, 0]


def test_limits_of_the_rendezvous_are_divided_by_the_speed(folder: Path) -> None:
    endpoint = f"--rdzv_endpoint=localhost:{free_port()}"
    words = ("--nnodes=2", "--rdzv_backend=c10d", endpoint, "train.py")
    code, output = run("torchrun", *words, cwd=folder, TRAINYARD_RENDEZVOUS_SPEED="600")
    assert code == 1 and "RendezvousTimeoutError" in output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("nope.py",), "can't open file"),
        (("--nproc_per_node=gpu", "train.py"), "Cuda is not available"),
        (("--nproc_per_node=many", "train.py"), "Unsupported nproc_per_node"),
        (("--rdzv_backend=etcd", "train.py"), "does not implement the rendezvous backend 'etcd'"),
        (("--rdzv_conf=join_timeout", "train.py"), "must have a value specified"),
        (("--rdzv_conf=timeout=0", "train.py"), "timeout must be positive"),
    ],
)
def test_torchrun_fails_as_torchrun_does(
    folder: Path, words: tuple[str, ...], message: str
) -> None:
    code, output = run("torchrun", *words, cwd=folder)
    assert code == 1 and message in output


def test_a_killed_rank_ends_the_job_on_every_node(folder: Path) -> None:
    both = two_nodes(folder, first={"TRAINYARD_STEPS": "1000"}, second={"TRAINYARD_STEPS": "1000"})
    trains(both[0])
    os.kill(children(both[1])[0], signal.SIGKILL)
    for code, output in map(ended, both):
        assert code == 1 and "ChildFailedError" in output


def test_a_node_that_falls_silent_is_missed(folder: Path) -> None:
    env = {"TRAINYARD_STEPS": "1000", "HEARTBEAT_SECONDS": "2"}
    both = two_nodes(folder, first=env, second=env)
    trains(both[0])
    ranks = children(both[1])
    for rank in ranks:
        os.kill(rank, signal.SIGSTOP)
    code, output = ended(both[0])
    for pid in [both[1].pid, *ranks]:
        os.kill(pid, signal.SIGKILL)
    assert code == 1 and "no sign of rank 2, 3 for 2 s" in output


def test_a_restart_is_paid_from_max_restarts(folder: Path) -> None:
    job = start(
        "torchrun",
        "--standalone",
        "--nproc_per_node=2",
        "--max_restarts=1",
        "train.py",
        cwd=folder,
        TRAINYARD_STEPS="30",
        TRAINYARD_STEP_SECONDS="0.2",
    )
    trains(job)
    os.kill(children(job)[-1], signal.SIGKILL)  # the first is the hub
    code, output = ended(job)
    assert code == 0 and "[rank 0/2]" in output and "step 30/30" in output, output


def test_the_volume_of_a_checkpoint_folder_must_exist(folder: Path) -> None:
    code, output = run(
        "torchrun", "train.py", cwd=folder, CHECKPOINT_DIR=str(folder / "volume/run")
    )
    assert code == 1 and "no volume is mounted there" in output


def test_a_checkpoint_folder_on_the_containers_root_is_refused(folder: Path) -> None:
    code, output = run("torchrun", "train.py", cwd=folder, CHECKPOINT_DIR="/usr")
    assert code == 1 and "no volume is mounted there" in output


@pytest.mark.skipif(not Path("/dev/shm").is_mount(), reason="needs a second file system")
def test_training_resumes_from_its_checkpoint(folder: Path) -> None:
    volume = Path("/dev/shm") / f"trainyard-{os.getpid()}"
    store = volume / "ddp" / "1"  # a directory of its own for each run, as docs/jobs.md has it
    try:
        run("torchrun", "train.py", cwd=folder, CHECKPOINT_DIR=str(store))
        output = run(
            "torchrun", "train.py", cwd=folder, CHECKPOINT_DIR=str(store), TRAINYARD_STEPS="8"
        )[1]
        assert "resumed from step 3" in output and "step 5/8" in output and "step 4/8" not in output
        newest = store / "stand-in-checkpoint.json"
        newest.write_text(newest.read_text()[:4])
        output = run(
            "torchrun", "train.py", cwd=folder, CHECKPOINT_DIR=str(store), TRAINYARD_STEPS="12"
        )[1]
        assert "stand-in-checkpoint.json cannot be used" in output
        assert "resumed from step 3" in output, "the one before"
    finally:
        shutil.rmtree(volume)


def test_what_is_not_executed_is_said_with_the_arguments_that_it_would_get(folder: Path) -> None:
    code, said = run("torchrun", "train.py", "--lr", "0.05", "--name", "a b", cwd=folder)
    assert code == 0, said
    assert "train.py is read for syntax and not executed." in said
    assert "after `make torch`. Its arguments would be: --lr 0.05" in said
    assert "--name 'a b'" in said


@pytest.fixture
def etcd() -> Iterator[tuple[str, dict[str, str]]]:
    """host:port of an etcd, and what it keeps."""
    with etcd_server.serving("127.0.0.1", 0) as (server, values):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}", values
        server.shutdown()


def test_nodes_meet_by_etcd_where_an_earlier_gang_has_left_its_address(
    folder: Path, etcd: tuple[str, dict[str, str]]
) -> None:
    server, values = etcd
    key = "/v2/keys/torch/elastic/rendezvous/r"
    values[key] = f"127.0.0.1:{free_port()}"  # nobody is there
    flags = ("--nnodes=1:2", "--rdzv_backend=etcd-v2", f"--rdzv_endpoint={server}", "--rdzv_id=r")
    nodes = [start("torchrun", *flags, "train.py", cwd=folder) for _ in range(2)]
    ends = [ended(node) for node in nodes]
    assert [code for code, _ in ends] == [0, 0], ends
    assert "[rank 1/2]" in ends[0][1] + ends[1][1]


RANK = "echo rank $OMPI_COMM_WORLD_RANK/$OMPI_COMM_WORLD_SIZE at $OMPI_COMM_WORLD_LOCAL_RANK"


@pytest.fixture
def keys(tmp_path: Path) -> dict[str, str]:
    """Variables with which mpirun and sshd of one job find each other."""
    for name in ("id_rsa", "id_rsa.pub", "authorized_keys"):
        (tmp_path / name).write_text(f"key of {'a' if name == 'id_rsa' else 'A'}\n")
    (tmp_path / "hosts").write_text(f"{socket.gethostname()} slots=2\n")
    return {
        "STAND_IN_SSH": str(tmp_path),
        "STAND_IN_SSH_PORT": str(free_port()),
        "OMPI_MCA_orte_default_hostfile": str(tmp_path / "hosts"),
    }


def over_ssh(command: str, folder: Path, keys: dict[str, str], **env: str) -> tuple[int, str]:
    """As mpirun starts a rank of another host."""
    ask = f"import sys, mpirun; sys.exit(mpirun.there('127.0.0.1', ['sh', '-c', {command!r}], {{'A': '1'}}))"
    done = subprocess.run(
        [sys.executable, "-c", ask],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(images.STAND_INS)} | keys | env,
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr


def test_mpirun_starts_a_rank_for_each_slot_of_the_hostfile(
    folder: Path, keys: dict[str, str]
) -> None:
    code, said = run("mpirun", "--mca", "btl", "tcp", "sh", "-c", RANK, cwd=folder, **keys)
    assert code == 0, said
    assert sorted(said.splitlines()) == ["rank 0/2 at 0", "rank 1/2 at 1"]
    code, said = run("mpirun", "-np", "3", "true", cwd=folder, **keys)
    assert code == 1 and "There are not enough slots available" in said


def test_the_first_rank_that_fails_ends_mpirun_and_the_others(
    folder: Path, keys: dict[str, str]
) -> None:
    fails = 'test "$OMPI_COMM_WORLD_RANK" = 0 && sleep 600 || exit 3'
    code, said = run("mpirun", "sh", "-c", fails, cwd=folder, **keys)
    assert code == 3 and "returned a non-zero exit code" in said


def test_deepspeed_starts_its_script_on_every_slot_with_open_mpi_only(
    folder: Path, keys: dict[str, str]
) -> None:
    words = "os.environ['OMPI_COMM_WORLD_RANK'] + ' ' + sys.argv[1] + chr(10)"
    (folder / "s.py").write_text(f"import os, sys; sys.stdout.write({words})")
    asked = ("--hostfile", str(folder / "hosts"), "s.py", "x")
    code, said = run("deepspeed", "--launcher", "openmpi", *asked, cwd=folder, **keys)
    assert code == 0 and sorted(said.splitlines()) == ["0 x", "1 x"], said
    code, said = run("deepspeed", *asked, cwd=folder, **keys)
    assert code == 1 and "implements --launcher openmpi only" in said


def test_sshd_runs_what_a_holder_of_an_authorized_key_asks_without_the_containers_variables(
    folder: Path, keys: dict[str, str]
) -> None:
    server = start("sshd", "-De", "-f", "/none", cwd=folder, **keys, OF_CONTAINER="seen")
    try:
        code, said = over_ssh("echo $A${OF_CONTAINER:-unseen}; exit 7", folder, keys)
        assert (code, said) == (7, "1unseen\n")
        (folder / "id_rsa.pub").write_text("key of B\n")
        code, said = over_ssh("true", folder, keys)
        assert code == 255 and "Permission denied" in said
    finally:
        server.terminate()
        assert ended(server)[0] == 0


def test_a_host_without_sshd_is_named(folder: Path, keys: dict[str, str]) -> None:
    code, said = over_ssh("true", folder, keys)
    assert code == 255 and "ssh: connect to host 127.0.0.1" in said
