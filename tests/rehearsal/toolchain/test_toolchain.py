"""The toolchain with a Go that only pretends, and the real pins."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest

from development.programs import fetch_modules, wanted
from rehearsal import paths, processes, toolchain, world
from rehearsal.toolchain import __main__ as beside_builds
from rehearsal.toolchain import genuine, go
from rehearsal.toolchain.programs import (
    BY_NAME,
    DEFAULT_KUBERNETES,
    FOLDER,
    NEEDED,
    PROGRAMS,
    own_go,
    pinned,
    required_go,
)
from tests.support.patience import PATIENCE, until

PRETENDED_GO = """#!/bin/sh
echo "$@" >> "$GO_CALLS"
[ "$1" = env ] && echo go1.99.0
[ "$GOTOOLCHAIN" = local ] || [ -z "$ONLY_LOCAL_GO" ] || { echo "go: toolchain not available"; exit 1; }
[ "$1" = build ] || exit 0
sleep "${GO_SECONDS:-0}"
[ -z "$GO_FAILS" ] || { echo "package.go:7: undefined: answer"; exit 1; }
while [ "$1" != -o ]; do shift; done
echo "a program" > "$2"
"""


class Workshop:
    """A toolchain with empty caches; `said` is what it reported, `calls` what Go was asked to
    do."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.said: list[str] = []

    @property
    def calls(self) -> list[str]:
        file = self.folder / "calls"
        return file.read_text().splitlines() if file.exists() else []

    def ensure(self, *names: str) -> None:
        toolchain.ensure(names or toolchain.DEFAULT, self.said.append)


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    pretended = tmp_path / "go"
    pretended.write_text(PRETENDED_GO)
    pretended.chmod(0o755)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(paths, "BIN", tmp_path / "cache/bin")
    monkeypatch.setattr(go, "executable", lambda report: str(pretended))
    monkeypatch.setenv("GO_CALLS", str(tmp_path / "calls"))
    monkeypatch.setenv("TRAINYARD_GO_CACHE", "keep")
    return Workshop(tmp_path)


def test_every_program_is_linked_after_ensure(workshop: Workshop) -> None:
    workshop.ensure()
    usual = [program.name for program in PROGRAMS if not program.lazy]
    assert sorted(os.listdir(paths.BIN)) == sorted(usual)
    assert all((paths.BIN / name).read_text() == "a program\n" for name in usual)
    assert len(workshop.calls) == len(usual)


def test_nothing_runs_and_nothing_is_said_when_all_is_built(workshop: Workshop) -> None:
    workshop.ensure("etcd", "helm")
    before = workshop.calls
    workshop.said.clear()
    workshop.ensure("etcd", "helm")
    assert workshop.calls == before and workshop.said == []


def test_each_program_is_announced_and_its_time_told(workshop: Workshop) -> None:
    workshop.ensure("etcd", "helm")
    assert (
        workshop.said[0]
        == "building once from pinned sources: etcd, helm; about 1m51s on two cores"
    )
    assert sorted(workshop.said[1:]) == [
        "building etcd 1/2 …",
        "building helm 2/2 …",
        "built etcd 1/2 in 0s",
        "built helm 2/2 in 0s",
    ]


def test_two_modules_are_built_at_the_same_time(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SECONDS", "0.5")
    workshop.ensure("etcd", "helm", "jobset")
    assert [line.split()[0] for line in workshop.said[1:4]] == ["building", "building", "built"]


def test_programs_of_one_module_are_built_one_after_the_other(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SECONDS", "0.5")
    workshop.ensure("kubectl", f"kube-scheduler-{DEFAULT_KUBERNETES}", "etcd")
    assert [line.split()[:2] for line in workshop.said[1:3]] == [
        ["building", "kubectl"],
        ["building", "etcd"],
    ]


def test_a_build_that_fails_stops_the_one_beside_it(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SECONDS", "0.5")
    monkeypatch.setenv("GO_FAILS", "yes")
    with pytest.raises(toolchain.ToolchainError):
        workshop.ensure("etcd", "helm", "jobset")
    assert len(workshop.calls) == 2, "the third was not begun"


@pytest.fixture
def beside(workshop: Workshop, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a command of a shell beside the builds, in a process of its own."""
    environment = os.environ | {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(tmp_path),
        "PYTHONPATH": str(FOLDER.parent.parent),
    }

    def run(command: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-S", "-m", "rehearsal.toolchain", "sh", "-c", command],
            env=environment | more,
            text=True,
            capture_output=True,
            check=False,
        )

    return run


@pytest.mark.world
def test_programs_are_built_while_another_command_runs(
    beside: Callable[..., subprocess.CompletedProcess[str]], workshop: Workshop
) -> None:
    done = beside("until grep -q helm.sh $GO_CALLS; do sleep 0.1; done; exit 7")
    assert done.returncode == 7 and "built etcd" in done.stdout, done


def test_a_first_make_up_is_not_silent_through_a_pipe(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It said nothing for minutes: pip is quiet, and what was built stood in a buffer."""
    monkeypatch.setattr(processes, "HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(beside_builds, "_build", lambda: 0)
    monkeypatch.setattr(subprocess, "Popen", lambda *_: Mock())
    said = io.StringIO()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(subprocess, "call", lambda command: until(said.getvalue) and 7)
    assert beside_builds.main(["pip", "install"]) == 7
    assert said.getvalue().startswith("installs Python packages … 0s\n")


def test_a_program_that_is_built_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[str] = []
    pipe = Mock(write=Mock(), flush=lambda: flushed.append("flushed"))
    monkeypatch.setattr(sys, "stdout", pipe)
    monkeypatch.setattr(world, "obstacle", lambda: None)
    monkeypatch.setattr(signal, "signal", Mock())
    monkeypatch.setattr(toolchain, "ensure", lambda _, report: report("built etcd"))
    assert beside_builds.main([]) == 0 and flushed == ["flushed"]


@pytest.mark.world
def test_the_builds_stop_with_the_command_beside_them(
    beside: Callable[..., subprocess.CompletedProcess[str]], workshop: Workshop
) -> None:
    """Also as a background job of a shell, which ignores ctrl-C, and whose programs do: the tests themselves
    waited for ever in one."""
    began = time.monotonic()
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = beside("until test -s $GO_CALLS; do sleep 0.1; done", GO_SECONDS="300")
    finally:
        signal.signal(signal.SIGINT, before)
    assert done.returncode == 0 and "Traceback" not in done.stderr, done
    assert time.monotonic() - began < 100


def test_a_long_build_shows_life(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "HEARTBEAT_SECONDS", 0.02)
    monkeypatch.setenv("GO_SECONDS", "0.3")
    workshop.ensure("etcd")
    assert workshop.said.count("building etcd 1/1 … 0s") >= 3


def test_a_failed_build_shows_the_end_of_the_compilers_output(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_FAILS", "yes")
    with pytest.raises(
        toolchain.ToolchainError, match=r"(?s)etcd could not be built.*undefined: answer"
    ):
        workshop.ensure("etcd")
    assert not (paths.BIN / "etcd").exists()


def test_what_was_built_before_an_interruption_is_not_built_again(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.ensure("etcd")
    monkeypatch.setenv("GO_FAILS", "yes")
    with pytest.raises(toolchain.ToolchainError):
        workshop.ensure("etcd", "helm")
    monkeypatch.delenv("GO_FAILS")
    workshop.ensure("etcd", "helm")
    assert [call.rpartition(" ")[2] for call in workshop.calls] == [
        "go.etcd.io/etcd/server/v3",
        "helm.sh/helm/v3/cmd/helm",
        "helm.sh/helm/v3/cmd/helm",
    ]


@pytest.mark.usefixtures("uncollected")
def test_an_interruption_ends_the_compiler_at_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SECONDS", "300")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a worker of pytest-xdist ignores it
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        workshop.ensure("etcd")
    assert time.monotonic() - started < 100
    monkeypatch.delenv("GO_SECONDS")
    workshop.ensure("etcd")
    assert (paths.BIN / "etcd").exists()


def test_two_callers_build_a_program_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_SECONDS", "0.3")
    callers = [threading.Thread(target=workshop.ensure, args=("etcd",)) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(workshop.calls) == 1


def test_nobody_waits_for_a_build_of_what_is_not_needed(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another checkout builds etcd, and helm after it for long."""
    workshop.ensure("kubectl")
    busy, waits = threading.Event(), threading.Event()

    def build(*_: object) -> None:
        waits.set()
        BY_NAME["etcd"].built.parent.mkdir(parents=True, exist_ok=True)
        BY_NAME["etcd"].built.write_text("")
        busy.wait(PATIENCE)

    monkeypatch.setattr(toolchain, "side_by_side", build)
    other = threading.Thread(target=workshop.ensure, args=("etcd", "helm"))
    other.start()
    try:
        assert waits.wait(PATIENCE)
        workshop.ensure("etcd", "kubectl")
        assert (paths.BIN / "etcd").exists() and other.is_alive()
    finally:
        busy.set()
        other.join()


def test_a_link_to_an_older_build_is_replaced(workshop: Workshop) -> None:
    paths.BIN.mkdir(parents=True)
    (paths.BIN / "etcd").symlink_to("/nowhere/etcd")
    workshop.ensure("etcd")
    assert (paths.BIN / "etcd").resolve() == BY_NAME["etcd"].built


def test_the_compilers_cache_goes_after_a_build_unless_it_shall_stay(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    workshop.ensure("etcd")
    assert "clean -cache" not in workshop.calls
    monkeypatch.delenv("TRAINYARD_GO_CACHE")
    workshop.ensure("helm")
    assert workshop.calls[-1] == "clean -cache"


def test_versions_compiled_in_are_those_of_go_mod() -> None:
    assert "version.gitVersion=v1.35.8 " in BY_NAME["kube-apiserver-1.35"].flags[-1]
    assert "version.gitVersion=v1.34.2 " in BY_NAME["kube-apiserver-1.34"].flags[-1]
    assert BY_NAME["karpenter"].flags[-1].endswith("operator.Version=1.14.1")
    assert BY_NAME["karpenter-1.15"].flags[-1].endswith("operator.Version=1.15.0")
    assert pinned("jobset", "sigs.k8s.io/jobset") == "v0.10.1"


def test_a_controller_of_one_release_is_built_for_the_stacks_that_name_it() -> None:
    every = {program.name for program in PROGRAMS if program.name in NEEDED}
    assert set(wanted({})) == set(wanted({"trainer": None})) == every >= {"etcd", "karpenter"}
    assert set(wanted({"trainer": {"version": "2.1.0"}})) == every | {"trainer", "jobset"}
    assert set(wanted({"trainer": {"version": "2.3.0"}})) == every | {"trainer-2.3", "jobset-0.12"}


def test_a_newer_karpenter_is_built_and_its_charts_fetched_for_the_stacks_that_name_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched = list[str]()
    monkeypatch.setattr(go, "module_folder", lambda folder, *_: fetched.append(folder))
    older, newer = ({"karpenter": {"version": version}} for version in ("1.14.1", "1.15.2"))
    assert "karpenter-1.15" not in {*wanted(older), *wanted({}), *toolchain.DEFAULT}
    assert "karpenter-1.15" in wanted(newer)
    fetch_modules(older, print)
    assert fetched == []
    fetch_modules(newer, print)
    assert fetched == ["karpenter-1.15"]


def test_an_older_control_plane_is_built_only_for_the_stacks_that_name_it() -> None:
    older = {"kube-apiserver-1.34", "kube-controller-manager-1.34", "kube-scheduler-1.34"}
    assert older.isdisjoint(toolchain.DEFAULT) and older.isdisjoint(wanted({}))
    assert older <= set(wanted({"cluster": {"version": "1.34"}}))
    newest = f"kube-apiserver-{DEFAULT_KUBERNETES}"
    assert newest in toolchain.DEFAULT and newest in wanted({"cluster": {"version": "1.34"}})


def test_kueue_is_built_for_the_stacks_that_have_queues() -> None:
    assert "kueue" not in wanted({}) and "kueue" not in wanted({"queues": None})
    for release, fits in {"2.1.0": "kueue", "2.3.0": "kueue-0.19"}.items():
        programs = wanted({"queues": {}, "trainer": {"version": release}})
        assert [name for name in programs if "kueue" in name] == [fits]
        assert fits not in toolchain.DEFAULT


def test_a_module_that_is_not_pinned_is_named() -> None:
    with pytest.raises(LookupError, match=r"etcd/go\.mod does not require example\.com/none"):
        pinned("etcd", "example.com/none")


def test_every_program_is_a_tool_of_its_go_mod() -> None:
    """So that `go mod tidy` keeps what it needs."""
    assert [
        p.name for p in PROGRAMS if p.package not in (FOLDER / p.folder / "go.mod").read_text()
    ] == []


def test_the_go_from_pypi_builds_every_program_whose_go_mod_names_no_other() -> None:
    assert tuple(map(int, go._pinned_go().split("."))) >= required_go()


def test_only_a_program_whose_go_mod_names_a_go_is_built_with_it() -> None:
    chosen = {name: go.environment(each.folder)["GOTOOLCHAIN"] for name, each in BY_NAME.items()}
    assert chosen.pop("karpenter-1.15") == own_go("karpenter-1.15") == "go1.27.3"
    assert {*chosen.values(), go.environment()["GOTOOLCHAIN"]} == {"local"}


def test_a_machine_that_cannot_get_the_go_of_a_program_says_which(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONLY_LOCAL_GO", "yes")
    workshop.ensure("karpenter")
    with pytest.raises(toolchain.ToolchainError) as refused:
        workshop.ensure("karpenter-1.15")
    said = str(refused.value)
    assert said.startswith(
        "karpenter-1.15 could not be built with go1.27.3, which Go downloads from the Go module proxy"
    )
    assert said.endswith("go: toolchain not available")


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where released plugins would lie in PULUMI_HOME; nothing was downloaded yet."""
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(genuine, "DOWNLOADS", tmp_path / "downloads")
    return tmp_path / "home/plugins"


def a_pulumi(folder: Path, does: str) -> Path:
    """A `pulumi` that does this when it is told to install a plugin; each call leaves a line in
    `calls`."""
    program = folder / "pulumi"
    program.write_text(f'#!/bin/sh\necho "$@" >> {folder}/calls\n{does}\n')
    program.chmod(0o755)
    return program


@pytest.mark.parametrize("name", genuine.RELEASED)
@pytest.mark.parametrize(
    ("choice", "installed", "used"),
    [
        ("", True, True),
        ("", False, False),
        ("own", True, False),
        ("own", False, False),
        ("genuine", True, True),
    ],
)
def test_a_genuine_plugin_is_used_where_it_is_found(
    choice: str,
    installed: bool,
    used: bool,
    name: str,
    theirs: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(f"{name.upper()}_PROVIDER", choice)
    program = theirs / f"resource-{name}-v4.34.2/pulumi-resource-{name}"
    if installed:
        program.parent.mkdir(parents=True)
        program.touch()
    assert genuine.provider(name, "4.34.2") == (program if used else None)


@pytest.mark.usefixtures("theirs")
def test_a_genuine_plugin_that_was_demanded_and_is_missing_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EKS_PROVIDER", "genuine")
    with pytest.raises(toolchain.ToolchainError, match="pulumi plugin install resource eks 4.4.0"):
        genuine.provider("eks", "4.4.0")


@pytest.mark.parametrize(("choice", "used"), [("", False), ("genuine", True), ("own", False)])
@pytest.mark.usefixtures("theirs")
def test_a_genuine_plugin_is_downloaded_only_where_it_is_demanded(
    choice: str, used: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBERNETES_PROVIDER", choice)
    put = 'd="$PULUMI_HOME/plugins/resource-$4-v$5"; mkdir -p "$d"; touch "$d/pulumi-resource-$4"'
    pulumi = a_pulumi(tmp_path, put)
    genuine.download("kubernetes", "4.34.2", print, pulumi)
    genuine.download("kubernetes", "4.34.2", print, pulumi)
    found = genuine.provider("kubernetes", "4.34.2")
    assert (found is not None and tmp_path / "downloads" in found.parents) is used
    assert (tmp_path / "calls").exists() is used
    assert (
        not used
        or (tmp_path / "calls").read_text() == "plugin install resource kubernetes 4.34.2\n"
    )


@pytest.mark.usefixtures("theirs")
def test_a_download_that_fails_is_said_and_tried_again_at_the_next_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pulumi, said = a_pulumi(tmp_path, "exit 1"), list[str]()
    monkeypatch.setenv("KUBERNETES_PROVIDER", "genuine")
    for _ in range(2):
        genuine.download("kubernetes", "4.34.2", said.append, pulumi)
    assert said[-1] == "the released kubernetes plugin cannot be had from here"
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


@pytest.mark.world
@pytest.mark.parametrize("name", BY_NAME)
def test_go_sum_names_everything_a_build_needs(name: str) -> None:
    program = BY_NAME[name]
    if not program.built.exists():
        pytest.skip(
            f"its modules are not here: `python -m rehearsal build --also {name}` gets them"
        )
    # A Go that go.mod names is verified by the checksum database, whose answer is in the cache.
    sums = {} if own_go(program.folder) else {"GOSUMDB": "off"}
    listed = subprocess.run(
        [go.executable(print), "list", "-deps", *program.flags, program.package],
        cwd=FOLDER / program.folder,
        text=True,
        capture_output=True,
        env=go.environment(program.folder) | {"GOPROXY": "off"} | sums,
    )
    assert listed.returncode == 0, listed.stderr
