"""The world's life: started in namespaces of its own, watched over, and taken down to the last process.

Two processes hold it. The *supervisor* lives outside, as a daemon: it relays 127.0.0.1 into the world and ends with it.
The *keeper* is the first process inside the namespaces: it makes the network, starts account and fleet, restarts the
fleet. Everybody asks to be told when the parent dies, so killing either takes the world down; what is left all the same
is found by its user namespace. A further part of the world is a row of PARTS.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rehearsal import paths, processes, relay
from rehearsal.processes import Process

PARTS = ("rehearsal.account", "rehearsal.nodes.fleet")
"""Modules to run, the account first: it holds the world's only memory."""
NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--net")
NETWORK = ("ip link set lo up", "ip link add br0 type bridge", f"ip address add {paths.BRIDGE}/16 dev br0",
           "ip link set br0 up")
PROBE = " && ".join((*NETWORK, "ip link add veth0 type veth peer name veth1",
                     "unshare --pid --fork --mount mount -t proc proc /proc"))
SYSCTLS = {"kernel.unprivileged_userns_clone": ("0", "1"), "user.max_user_namespaces": ("0", "15000"),
           "kernel.apparmor_restrict_unprivileged_userns": ("1", "0")}
"""Switches by which distributions forbid user namespaces: the forbidding value, and the one that allows them."""
SOCKET_PATH_LIMIT = 107
"""Bytes of a Unix socket's path (unix(7): sun_path has 108 with the closing zero)."""
START_SECONDS, STOP_SECONDS = 60, 20
LASTING = ("logs", "lock")
"""What of STATE outlives a world."""

Report = Callable[[str], None]


class WorldError(RuntimeError):
    """The world cannot do what was asked; the message says what to do."""


def obstacle() -> str | None:
    """Why this machine cannot hold a world, with the remedy; None where it can."""
    if missing := [program for program in ("unshare", "ip", "mount") if not shutil.which(program)]:
        return f"{', '.join(missing)} not found: install util-linux and iproute2"
    if len(str(paths.STATE / "account.sock").encode()) > SOCKET_PATH_LIMIT:
        return f"{paths.STATE} is too long for Unix sockets: set TRAINYARD_REHEARSAL to a shorter folder"
    tried = subprocess.run([*NAMESPACES, "sh", "-c", PROBE], capture_output=True, text=True)
    return _remedy(tried.stderr.strip()) if tried.returncode else None


def _remedy(error: str) -> str:
    forbidding = [f"sudo sysctl -w {name}={good}" for name, (bad, good) in SYSCTLS.items() if _sysctl(name) == bad]
    way_out = " && ".join(forbidding) or "use a machine, or a container, that allows unprivileged user namespaces"
    return f"this machine forbids the namespaces the rehearsal lives in ({error})\n  remedy: {way_out}"


def _sysctl(name: str) -> str | None:
    file = Path("/proc/sys", *name.split("."))
    return file.read_text().strip() if file.exists() else None


# ---- from outside: start, look, stop -------------------------------------------------------------------------------

def start(*, parts: tuple[str, ...] | None = None, speed: float = 60, report: Report = print) -> paths.World:
    """The running world, or a new and empty one where none runs or its account died."""
    if lost() or not running():
        if paths.BACKEND.exists() or members():
            report("clearing away an earlier world that ended without `make down`: its stacks are gone with it")
        stop()
        shutil.rmtree(paths.LOGS, ignore_errors=True)
        paths.remember(paths.World(api_port=paths.free_port(), account_port=paths.free_port(), speed=speed))
        _spawn_supervisor(parts or PARTS)
    processes.wait(lambda: lost() or _healthy(), START_SECONDS)
    if lost() or not _healthy():
        raise WorldError(f"the account does not answer: see account.log and supervisor.log in {paths.LOGS}")
    return paths.world()


def running() -> bool:
    """Whether the supervisor lives: the same process that wrote its pid and start time down."""
    pid, start_time = _recorded()
    return bool(pid) and processes.started(pid) == start_time


def lost() -> bool:
    """Whether the account died: its memory was all that AWS knew, so nothing can be destroyed any more."""
    return _file("account-lost").exists()


def incidents() -> list[str]:
    """What the keeper had to notice since the start, oldest first."""
    return _file("incidents").read_text().splitlines() if _file("incidents").exists() else []


def members() -> list[int]:
    """Every process inside the world."""
    if not _file("namespace").exists():
        return []
    return processes.in_namespace(_file("namespace").read_text(), _marker())


def end_orphans() -> None:
    """Plugins of an engine that was killed: an engine leads a session, whose number it wrote down (engine.py)."""
    if _file("engine").exists():
        processes.kill(processes.in_session(int(_file("engine").read_text()), _marker()))


def census() -> list[Process]:
    """What runs, supervisor first."""
    supervisor = [_recorded()[0]] if running() else []
    return [processes.look(pid) for pid in supervisor + members()]


def stop() -> None:
    """End every process, politely first; mounts and interfaces go with the last of them. Then forget the world."""
    if running():
        os.kill(_recorded()[0], signal.SIGTERM)
        processes.wait(lambda: not running(), STOP_SECONDS)
    if not processes.wait(_nobody_left, STOP_SECONDS):
        raise WorldError(f"these processes do not end: {members()}")
    end_orphans()
    for entry in {*paths.STATE.glob("*")} - {paths.STATE / name for name in LASTING}:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def ask(method: str, path: str, body: Any = None) -> Any:
    """The account's own endpoints under /_world/; WorldError with its answer where it refuses."""
    request = urllib.request.Request(f"{paths.world().account_url}/_world/{path}", method=method,
                                     data=None if body is None else json.dumps(body).encode(),
                                     headers={"Content-Type": "application/json"})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise WorldError(f"{method} /_world/{path}: {error.code} {error.read().decode()}") from error


def environment() -> dict[str, str]:
    """The caller's, without its AWS identity, engine and cluster: nothing here may ever reach a real account."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PULUMI_", "KUBE"))}
    return kept | {"TRAINYARD_REHEARSAL": str(paths.STATE), "NO_PROXY": "*", "no_proxy": "*", "PYTHONUNBUFFERED": "1"}


def die_with_parent(number: int = signal.SIGTERM) -> None:
    """prctl(PR_SET_PDEATHSIG): this process gets a signal when the one that started it ends."""
    ctypes.CDLL(None).prctl(1, number)


def _spawn_supervisor(parts: tuple[str, ...]) -> None:
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    with (paths.LOGS / "supervisor.log").open("ab") as log:
        subprocess.Popen([sys.executable, "-m", "rehearsal.world", "supervise", *parts], cwd=paths.CHECKOUT,
                         env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)


def _healthy() -> bool:
    try:
        ask("GET", "health")
    except (OSError, WorldError):
        return False
    return True


def _nobody_left() -> bool:
    left = members()
    processes.kill(left)
    return not left


def _file(name: str) -> Path:
    return paths.STATE / name


def _marker() -> str:
    return f"TRAINYARD_REHEARSAL={paths.STATE}"


def _recorded() -> tuple[int, str]:
    words = _file("supervisor").read_text().split() if _file("supervisor").exists() else []
    return (int(words[0]), words[1]) if len(words) == 2 else (0, "")


# ---- the supervisor, outside ---------------------------------------------------------------------------------------

async def supervise(parts: tuple[str, ...]) -> None:
    """Relay until the keeper ends."""
    _file("supervisor").write_text(f"{os.getpid()} {processes.started(os.getpid())}")
    world = paths.world()
    await relay.serve(f"127.0.0.1:{world.account_port}", str(_file("account.sock")))
    await relay.serve(f"127.0.0.1:{world.api_port}", str(_file("api.sock")))
    keeper = await asyncio.create_subprocess_exec(*NAMESPACES, sys.executable, "-m", "rehearsal.world", "keep", *parts)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, keeper.terminate)
    await keeper.wait()


# ---- the keeper, inside --------------------------------------------------------------------------------------------

async def keep(parts: tuple[str, ...]) -> None:
    """Make the network, run the parts, end with SIGTERM or with the supervisor."""
    tasks: list[asyncio.Task[None]] = []
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: [task.cancel() for task in tasks])
    die_with_parent()
    if os.getppid() != _recorded()[0]:
        return
    _file("namespace").write_text(os.readlink("/proc/self/ns/user"))
    for command in NETWORK:
        subprocess.run(command.split(), check=True)
    await relay.serve(str(_file("api.sock")), f"127.0.0.1:{paths.world().api_port}")
    account, *others = parts
    tasks += [asyncio.create_task(part) for part in (_keep_account(account), *map(_keep_up, others))]
    await asyncio.gather(*tasks, return_exceptions=True)


async def _keep_account(module: str) -> None:
    """An account that ended is not started again: it would know nothing of what exists."""
    await _run_part(module)
    _note("what the account knew is lost: `make up` starts a new world, `make down` clears this one away")
    _file("account-lost").touch()


async def _keep_up(module: str) -> None:
    """Run a part, again and again."""
    pause = 1
    while True:
        await _run_part(module)
        await asyncio.sleep(pause)
        pause = min(2 * pause, 30)


async def _run_part(module: str) -> None:
    file = paths.LOGS / f"{module.rpartition('.')[2]}.log"
    with file.open("ab") as log:
        part = await asyncio.create_subprocess_exec(
            sys.executable, "-m", module, cwd=paths.CHECKOUT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            preexec_fn=die_with_parent)
    try:
        _note(f"{module} ended with {await part.wait()}: see {file}")
    except asyncio.CancelledError:
        await _end(part)
        raise


async def _end(part: asyncio.subprocess.Process) -> None:
    part.terminate()
    try:
        await asyncio.wait_for(part.wait(), STOP_SECONDS / 2)
    except TimeoutError:
        part.kill()


def _note(text: str) -> None:
    with _file("incidents").open("a") as file:
        file.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    asyncio.run({"supervise": supervise, "keep": keep}[sys.argv[1]](tuple(sys.argv[2:])))
