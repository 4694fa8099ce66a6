"""Syntax errors of scripts, as bash reports them. Bash only reads a script (`-n`): nothing of it
runs."""

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
    """Message of bash about a script that it cannot read: "line 3: syntax error …". Empty where it
    can read it, and where this machine has no bash of version 4 or later."""
    found = re.search(r"line \d+: .+", _read(PLACEHOLDER.sub("x", script)))
    return found[0] if found and _is_bash_4() else ""


@cache
def _is_bash_4() -> bool:
    return not _read(OF_BASH_4)


@cache
def _bash() -> str:
    return shutil.which("bash") or ""


def _read(script: str) -> str:
    """Output of bash while it reads a script; empty where it can read it, and without bash."""
    if not (bash := _bash()):
        return ""
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
