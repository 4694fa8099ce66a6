"""A container's root: what a job writes into its volumes leads nowhere out of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.kubelet import sandbox, volumes
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.process import Mount
from tests.support.worlds import NEEDS_A_WORLD

NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--uts", "--pid", "--fork")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """What a job must not reach: a folder with a key."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home/key").write_text("secret")
    return tmp_path / "home"


@pytest.fixture
def store(tmp_path: Path, home: Path) -> Path:
    """A volume in which a job has made links."""
    store = tmp_path / "store"
    (store / "real/deep").mkdir(parents=True)
    (store / "out").symlink_to(home)
    (store / "up").symlink_to("../home")
    (store / "proc").symlink_to("/proc/self/root")
    (store / "dangling").symlink_to(home / "new")
    (store / "same").symlink_to("real")
    return store


@pytest.mark.parametrize(
    "path", ["out", "up", "out/new", "proc/etc", "dangling", "../home", "a/.."]
)
def test_a_path_that_leaves_a_volume_is_refused(store: Path, home: Path, path: str) -> None:
    if path == "a/..":  # stays inside: the volume itself
        os.close(sandbox.beneath(str(store), path))
        return
    with pytest.raises(OSError):
        sandbox.beneath(str(store), path)
    assert os.listdir(home) == ["key"]


def test_a_path_inside_a_volume_is_made_and_links_inside_it_are_followed(store: Path) -> None:
    for path in ("same/deep", "new/one"):
        os.close(sandbox.beneath(str(store), path))
    assert (store / "new/one").is_dir()
    with pytest.raises(FileNotFoundError):
        sandbox.beneath(str(store), "missing", make=False)


def _mounted(store: Path, sub_path: str) -> Mount:
    node: Any = SimpleNamespace(folder=store.parent / "node")
    made = volumes.Volumes({"spec": {}}, store, node)
    made._ready["data"] = Mount(source=str(store))
    return made.mounts(
        {"volumeMounts": [{"name": "data", "mountPath": "/data", "subPath": sub_path}]}
    )[0]


def test_a_sub_path_that_is_a_link_out_keeps_the_container_waiting(store: Path, home: Path) -> None:
    assert _mounted(store, "real").inside == "real"
    for path in ("out", "out/new", "up"):
        with pytest.raises(NotReady, match=f'^failed to prepare subPath "{path}": '):
            _mounted(store, path)
    assert os.listdir(home) == ["key"]


@pytest.mark.parametrize("kind", ["", "Directory", "DirectoryOrCreate", "File"])
def test_a_host_path_that_is_a_link_out_is_refused(tmp_path: Path, home: Path, kind: str) -> None:
    (tmp_path / "node/host").mkdir(parents=True)
    (tmp_path / "node/host/out").symlink_to(home)
    kubelet: Any = SimpleNamespace(kubelet=SimpleNamespace(folder=tmp_path / "node"))
    for path in ("/out", "/out/key", "/out/new"):
        with pytest.raises(NotReady, match="^hostPath type check failed"):
            volumes.host_path(kubelet, "v", {"hostPath": {"path": path, "type": kind}})
    assert os.listdir(home) == ["key"]


def _run(
    root: Path, command: str, *mounts: Mount, output: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """A shell command in a sandbox with these mounts and the host's programs."""
    same = [
        Mount(target=place, source=place, read_only=True)
        for place in ("/usr", "/bin", "/lib", "/lib64")
        if os.path.exists(place)
    ]
    root.mkdir(exist_ok=True)
    plan = {
        "root": str(root),
        "hostname": "pod",
        "argv": ["/bin/sh", "-c", command],
        "env": {"PATH": "/usr/bin:/bin"},
        "folder": "/",
        "mounts": [vars(one) for one in (*same, *mounts)],
        "links": {},
        "files": {"/etc/resolv.conf": "nameserver 127.0.0.1\n"},
        "folders": ["/tmp", "/etc"],
    }
    (root.parent / "plan.json").write_text(json.dumps(plan))
    program = [
        sys.executable,
        "-I",
        "-S",
        str(Path(sandbox.__file__)),
        str(root.parent / "plan.json"),
    ]
    return subprocess.run([*NAMESPACES, *program], stdout=output, stderr=subprocess.PIPE, text=True)


@NEEDS_A_WORLD
def test_a_link_that_is_swapped_in_after_the_check_is_not_mounted(
    tmp_path: Path, store: Path
) -> None:
    """The kubelet has looked already: the sandbox looks again, at what it mounts."""
    ended = _run(
        tmp_path / "root", "cat /data/key", Mount(source=str(store), inside="out", target="/data")
    )
    assert ended.returncode and "secret" not in ended.stdout
    good = _run(
        tmp_path / "root", "ls /data", Mount(source=str(store), inside="same", target="/data")
    )
    assert (good.returncode, good.stdout) == (0, "deep\n"), good.stderr


@NEEDS_A_WORLD
def test_a_mount_over_a_link_stays_in_the_containers_root(
    tmp_path: Path, store: Path, home: Path
) -> None:
    """Neither the folders of a target nor a file of the container are written through a link."""
    (store / "resolv.conf").symlink_to(home / "key")
    at_etc = Mount(source=str(store), target="/etc")
    for mounts in ([at_etc], [at_etc, Mount(source=str(store / "real"), target="/etc/out/new")]):
        _run(tmp_path / "root", "true", *mounts)
        assert os.listdir(home) == ["key"] and (home / "key").read_text() == "secret"


@NEEDS_A_WORLD
def test_a_container_whose_machine_has_died_does_not_start(tmp_path: Path) -> None:
    """It would outlive the machine, as nobody kills it."""
    (tmp_path / "seen").mkdir()
    seen = Mount(source=str(tmp_path / "seen"), target="/seen")
    for name, dies in (("a", False), ("b", True)):
        reads, writes = os.pipe()
        if dies:
            os.close(reads)
        ended = _run(tmp_path / "root", f"touch /seen/{name}", seen, output=writes)
        os.close(writes)
        assert bool(ended.returncode) == dies, ended.stderr
    assert os.listdir(tmp_path / "seen") == ["a"]
