"""The world's life: started in namespaces of its own, watched over, and taken down to the last
process.

A daemon holds it, the *keeper*: the first process in a user, network, mount and PID namespace makes
the network, relays 127.0.0.1 of the machine into it, starts account and fleet, and restarts the
fleet. When it ends, however it ends, the kernel ends every other process of its PID namespace. A
further part of the world is a row of PARTS.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rehearsal import paths, processes, relay
from rehearsal.processes import Process

PARTS = ("rehearsal.aws", "rehearsal.kubelet.fleet")
"""Modules to run, the account first: it holds the world's only memory."""
NAMESPACES = (
    "unshare",
    "--user",
    "--map-root-user",
    "--net",
    "--mount-proc",
    "--pid",
    "--fork",
    "--kill-child",
)
NETWORK = (
    "ip link set lo up",
    "ip link add br0 type bridge",
    f"ip address add {paths.BRIDGE}/16 dev br0",
    "ip link set br0 up",
)
PROBE = " && ".join(
    (
        *NETWORK,
        "ip link add veth0 type veth peer name veth1",
        "unshare --pid --fork --mount mount -t proc proc /proc",
    )
)
SYSCTLS = {
    "kernel.unprivileged_userns_clone": ("0", "1"),
    "user.max_user_namespaces": ("0", "15000"),
    "kernel.apparmor_restrict_unprivileged_userns": ("1", "0"),
}
"""Switches by which distributions forbid user namespaces: the forbidding value, and the one that
allows them."""
SOCKET_PATH_LIMIT = 107
"""Bytes of a Unix socket's path (unix(7): sun_path has 108 with the closing zero)."""
START_SECONDS, STOP_SECONDS = 180, 60
LASTING = ("logs", "lock")
"""Names in STATE that outlive a world."""

Report = Callable[[str], None]


class WorldError(RuntimeError):
    """The world cannot do what was asked; the message says what to do."""


def obstacle() -> str | None:
    """Reason why this machine cannot hold a world, with the remedy; None where it can."""
    if missing := [program for program in ("unshare", "ip", "mount") if not shutil.which(program)]:
        return f"{', '.join(missing)} not found: install util-linux and iproute2"
    if len(str(paths.STATE / "account.sock").encode()) > SOCKET_PATH_LIMIT:
        return (
            f"{paths.STATE} is too long for Unix sockets: set TRAINYARD_REHEARSAL to a shorter"
            " folder"
        )
    tried = subprocess.run([*NAMESPACES, "sh", "-c", PROBE], capture_output=True, text=True)
    return _remedy(tried.stderr.strip()) if tried.returncode else None


def _remedy(error: str) -> str:
    forbidding = [
        f"sudo sysctl -w {name}={good}"
        for name, (bad, good) in SYSCTLS.items()
        if _sysctl(name) == bad
    ]
    remedy = (
        " && ".join(forbidding)
        or "use a machine, or a container, that allows unprivileged user namespaces"
    )
    return (
        f"this machine forbids the namespaces the rehearsal lives in ({error})\n  remedy: {remedy}"
    )


def _sysctl(name: str) -> str | None:
    file = Path("/proc/sys", *name.split("."))
    return file.read_text().strip() if file.exists() else None


# ---- from outside: start, look, stop
# -------------------------------------------------------------------------------


def start(
    *, parts: tuple[str, ...] | None = None, speed: float = 60, report: Report = print
) -> paths.World:
    """The running world, or a new and empty one where none runs or its account died."""
    if lost() or not running():
        if _file("keeper").exists():
            report(
                "clearing away an earlier world that ended without `make down`: its stacks are gone"
                " with it"
            )
        stop()
        shutil.rmtree(paths.LOGS, ignore_errors=True)
        _spawn_keeper(parts or PARTS, speed)
    processes.wait(lambda: lost() or _healthy(), START_SECONDS)
    if lost() or not _healthy():
        raise WorldError(
            f"the account does not answer: see account.log and keeper.log in {paths.LOGS}"
        )
    return paths.world()


def running() -> bool:
    """True where the world lives."""
    return processes.recorded(_file("keeper")) is not None


def lost() -> bool:
    """True where the account died: its memory was all that AWS knew, so nothing can be destroyed
    any more."""
    return _file("account-lost").exists()


def incidents() -> list[str]:
    """Events that the keeper had to notice since the start, oldest first."""
    return _file("incidents").read_text().splitlines() if _file("incidents").exists() else []


def list_processes() -> list[Process]:
    """Processes that run in the world."""
    keeper = processes.recorded(_file("keeper"))
    return (
        [processes.look(pid) for pid in processes.processes_in_namespace(keeper)] if keeper else []
    )


def end_orphans() -> None:
    """Plugins of an engine that was killed: an engine leads a session, whose number it wrote down
    (engine.py)."""
    if _file("engine").exists():
        processes.kill(processes.in_session(int(_file("engine").read_text()), _marker()))


def stop() -> None:
    """Kill the keeper, and with it everything; mounts and interfaces go along. Then forget the
    world."""
    if keeper := processes.recorded(_file("keeper")):
        processes.kill(processes.children(keeper) or [keeper])
    if not processes.wait(lambda: not running(), STOP_SECONDS):
        raise WorldError(
            f"these processes do not end: {[process.pid for process in list_processes()]}"
        )
    end_orphans()
    for entry in {*paths.STATE.glob("*")} - {paths.STATE / name for name in LASTING}:
        if entry.is_dir():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def ask(method: str, path: str, body: Any = None) -> Any:
    """The account's own endpoints under /_world/; WorldError with its answer where it refuses."""
    now = paths.world()
    request = urllib.request.Request(
        f"{now.account_url}/_world/{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {now.world_secret}"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(request, timeout=10) as answer:
            return json.loads(answer.read() or b"null")
    except urllib.error.HTTPError as error:
        raise WorldError(
            f"{method} /_world/{path}: {error.code} {error.read().decode()}"
        ) from error


def environment() -> dict[str, str]:
    """The caller's, without its AWS identity, engine and cluster: nothing here may ever reach a
    real account."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "PULUMI_", "KUBE"))
    }
    return kept | {
        "TRAINYARD_REHEARSAL": str(paths.STATE),
        "NO_PROXY": "*",
        "no_proxy": "*",
        "PYTHONUNBUFFERED": "1",
    }


def _spawn_keeper(parts: tuple[str, ...], speed: float) -> None:
    """It inherits sockets that listen on the machine: the ports are ours from now on."""
    paths.LOGS.mkdir(parents=True, exist_ok=True)
    with (
        (paths.LOGS / "keeper.log").open("ab") as log,
        socket.create_server(("127.0.0.1", 0)) as api,
        socket.create_server(("127.0.0.1", 0)) as account,
        socket.create_server(("127.0.0.1", 0)) as tunnel,
    ):
        listening = api.fileno(), account.fileno(), tunnel.fileno()
        paths.remember(
            paths.World(
                api_port=api.getsockname()[1],
                account_port=account.getsockname()[1],
                speed=speed,
                tunnel_port=tunnel.getsockname()[1],
            )
        )
        keeper = subprocess.Popen(
            [*NAMESPACES, sys.executable, "-m", "rehearsal.world", *map(str, listening), *parts],
            cwd=paths.HOME,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=listening,
        )
        _file("keeper").write_text(f"{keeper.pid} {processes.started(keeper.pid)}")


def _healthy() -> bool:
    try:
        ask("GET", "health")
    except (OSError, WorldError):
        return False
    return True


def _file(name: str) -> Path:
    return paths.STATE / name


def _marker() -> str:
    return f"TRAINYARD_REHEARSAL={paths.STATE}"


# ---- the keeper, inside
# --------------------------------------------------------------------------------------------


def keep(api: int, account: int, tunnel: int, first: str, *others: str) -> None:
    """Make the network, relay what three sockets accept, run the parts.

    An account that ended is not started again: it would know nothing of what exists.
    """
    for command in NETWORK:
        subprocess.run(command.split(), check=True)
    api_port, account_port = paths.world().api_port, paths.world().account_port
    private = paths.private_endpoint().exists
    for listening, *where in (
        (api, api_port, private),
        (account, account_port),
        (tunnel, api_port),
    ):
        threading.Thread(target=relay.serve, args=(socket.socket(fileno=listening), *where)).start()
    for module in others:
        threading.Thread(target=_keep_up, args=(module,)).start()
    _run_part(first)
    _note(
        "what the account knew is lost: `make up` starts a new world, `make down` clears this one"
        " away"
    )
    _file("account-lost").touch()


def _keep_up(module: str) -> None:
    """Run a part, again and again."""
    pause = 1
    while True:
        _run_part(module)
        time.sleep(pause)
        pause = min(2 * pause, 30)


def _run_part(module: str) -> None:
    file = paths.LOGS / f"{module.rpartition('.')[2]}.log"
    with file.open("ab") as log:
        ended = subprocess.call(
            [sys.executable, "-m", module], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    _note(f"{module} ended with {ended}: see {file}")


def _note(text: str) -> None:
    with _file("incidents").open("a") as file:
        file.write(f"{time.strftime('%H:%M:%S')} {text}\n")


if __name__ == "__main__":
    api_, account_, tunnel_, *parts_ = sys.argv[1:]
    keep(int(api_), int(account_), int(tunnel_), *parts_)
