"""The released plugins of pulumi-kubernetes and pulumi-eks, which are better than ours: used where
they are found.

KUBERNETES_PROVIDER=own passes the first by, KUBERNETES_PROVIDER=genuine demands it; EKS_PROVIDER does
so for the other. Only a demand downloads: nobody here has checksums of the releases, and a program
that nobody asked for must not be fetched and run unchecked.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from rehearsal import paths
from rehearsal.toolchain.go import Report, ToolchainError

RELEASED = ("kubernetes", "eks")
"""Plugins whose releases run here."""
DOWNLOADS = paths.CACHE / "genuine"
"""PULUMI_HOME of what was downloaded: nothing of a rehearsal lies in the user's own."""
PATIENCE = 180
"""Seconds for a download of about 50 MB."""


def provider(name: str, version: str) -> Path | None:
    """One of RELEASED in PULUMI_HOME, in ~/.pulumi or downloaded by us; ToolchainError where it is
    demanded and missing."""
    choice, found = _choice(name), _found(name, version)
    if choice == "genuine" and not found:
        raise ToolchainError(
            f"{name.upper()}_PROVIDER=genuine, but it is neither here nor to be downloaded: "
            f"`pulumi plugin install resource {name} {version}` brings it"
        )
    return None if choice == "own" else found


def download(name: str, version: str, report: Report, pulumi: Path = paths.BIN / "pulumi") -> None:
    """Have the plugin in DOWNLOADS where somebody demands it and it is nowhere else."""
    if _choice(name) != "genuine" or _found(name, version):
        return
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    report(f"asking for the released {name} plugin …")
    try:
        subprocess.run(
            [pulumi, "plugin", "install", "resource", name, version],
            timeout=PATIENCE,
            check=True,
            env=os.environ | {"PULUMI_HOME": str(DOWNLOADS)},
            capture_output=True,
        )
        report(f"the released {name} plugin {version} runs")
    except (subprocess.SubprocessError, OSError):
        report(f"the released {name} plugin cannot be had from here")


def _choice(name: str) -> str:
    return os.environ.get(f"{name.upper()}_PROVIDER", "")


def _found(name: str, version: str) -> Path | None:
    homes = (Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi"), DOWNLOADS)
    plugins = (
        home / f"plugins/resource-{name}-v{version}/pulumi-resource-{name}" for home in homes
    )
    return next((plugin for plugin in plugins if plugin.exists()), None)
