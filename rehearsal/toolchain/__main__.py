"""Builds what every world runs while another command runs, such as pip, which uses one core:
`python -m rehearsal.toolchain pip install …`. It stops when that command ends; the next build goes on.

Imports the standard library alone: nothing may be installed yet."""

from __future__ import annotations

import signal
import subprocess
import sys
from functools import partial

from rehearsal import toolchain, world
from rehearsal.processes import heartbeat


def main(command: list[str]) -> int:
    """Run the command beside the builds and return its exit status; without a command, only build."""
    if not command:
        return _build()
    builds = subprocess.Popen([sys.executable, "-m", "rehearsal.toolchain"])
    try:
        with heartbeat(_installs):
            return subprocess.call(command)
    finally:
        builds.send_signal(signal.SIGINT)
        builds.wait()


def _installs(seconds: float) -> None:
    print(f"installs Python packages … {toolchain.duration(seconds)}", file=sys.stderr, flush=True)


def _build() -> int:
    """Build silently where nothing can be built: the word that needs the programs says why."""
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
    try:
        if world.obstacle():
            return 1
        toolchain.ensure(toolchain.NEEDED, partial(print, flush=True))
    except (KeyboardInterrupt, toolchain.ToolchainError):
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
