"""Whether bash can read a script. Bash only reads it (`-n`): nothing of it runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache, lru_cache

SECONDS = 5
"""Reading takes milliseconds; without an answer by then nothing is said."""
OF_BASH_4 = "true |& true"
"""Syntax that bash 3.2 of macOS cannot read; the bash of images can."""
PLACEHOLDER = re.compile(r"<[\w-]+>")
"""Bash would redirect into it. A rule of jobs names it."""


@lru_cache(maxsize=1024)
def syntax_error(script: str) -> str:
    """What bash says about a script that it cannot read: "line 3: syntax error …". Empty where it
    can read it, and where this machine has no bash of version 4 or later."""
    bash = _bash()
    found = re.search(r"line \d+: .+", _read(bash, PLACEHOLDER.sub("x", script))) if bash else None
    return found[0] if found else ""


@cache
def _bash() -> str:
    bash = shutil.which("bash") or ""
    return "" if bash and _read(bash, OF_BASH_4) else bash


def _read(bash: str, script: str) -> str:
    """What bash prints while it reads a script; empty where it can read it."""
    try:
        read = subprocess.run(
            [bash, "--norc", "-O", "extglob", "-n"],
            input=script.encode(errors="replace"),
            env={"LC_ALL": "C"},
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return read.stderr.decode(errors="replace") if read.returncode else ""
