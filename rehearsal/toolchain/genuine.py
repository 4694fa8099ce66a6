"""The released pulumi-kubernetes plugin, which is better than ours: used where it is found.

KUBERNETES_PROVIDER=own passes it by, KUBERNETES_PROVIDER=genuine demands it. Only the latter
downloads it: nobody here has checksums of its releases, and a program that nobody asked for must
not be fetched and run unchecked.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from rehearsal import paths
from rehearsal.toolchain.go import Report, ToolchainError

DOWNLOADS = paths.CACHE / "genuine"
"""PULUMI_HOME of what was downloaded: nothing of a rehearsal lies in the user's own."""
PATIENCE = 180
"""Seconds for a download of about 50 MB."""


def kubernetes_provider(version: str) -> Path | None:
    """The plugin in PULUMI_HOME, in ~/.pulumi or downloaded by us; ToolchainError where it is
    demanded and missing."""
    choice, found = os.environ.get("KUBERNETES_PROVIDER", ""), _found(version)
    if choice == "genuine" and not found:
        raise ToolchainError(
            "KUBERNETES_PROVIDER=genuine, but it is neither here nor to be downloaded: "
            f"`pulumi plugin install resource kubernetes {version}` brings it"
        )
    return None if choice == "own" else found


def download(version: str, report: Report, pulumi: Path = paths.BIN / "pulumi") -> None:
    """Have the plugin in DOWNLOADS where somebody demands it and it is nowhere else."""
    if os.environ.get("KUBERNETES_PROVIDER") != "genuine" or _found(version):
        return
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    report("asking for the released kubernetes plugin …")
    try:
        subprocess.run(
            [pulumi, "plugin", "install", "resource", "kubernetes", version],
            timeout=PATIENCE,
            check=True,
            env=os.environ | {"PULUMI_HOME": str(DOWNLOADS)},
            capture_output=True,
        )
        report(f"the released kubernetes plugin {version} runs")
    except (subprocess.SubprocessError, OSError):
        report("the released kubernetes plugin cannot be had from here")


def _found(version: str) -> Path | None:
    homes = (Path(os.environ.get("PULUMI_HOME") or Path.home() / ".pulumi"), DOWNLOADS)
    plugins = (
        home / f"plugins/resource-kubernetes-v{version}/pulumi-resource-kubernetes"
        for home in homes
    )
    return next((plugin for plugin in plugins if plugin.exists()), None)
