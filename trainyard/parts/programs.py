"""Programs of ours that run in the cluster: their files."""

from __future__ import annotations

from pathlib import Path

from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.objects.metrics.metrics import Target
from trainyard.plans.program import PORT

_PROGRAMS = Path(__file__).resolve().parents[1] / "in_cluster"
SHARED = _PROGRAMS / "shared"
"""Folder that every program has beside its own files."""
ON_AWS = _PROGRAMS / "on_aws"
"""Folder that programs have, too, that ask EC2."""
ASK_EC2 = ("repair",)


def program_folders(name: str) -> tuple[Path, ...]:
    """The folders whose files a program has."""
    return (SHARED, *([ON_AWS] if name in ASK_EC2 else []), _PROGRAMS / name)


def program_files(name: str) -> dict[str, str]:
    """Name of each file of a program → its text."""
    return {
        file.name: file.read_text()
        for folder in program_folders(name)
        for file in sorted(folder.glob("*.py"))
    }


def program_target(app: str) -> Target:
    """Target by which Prometheus finds a program: its pod has the label `app`, in the namespace of
    that name."""
    return Target(job=app, namespace=app, label=f"{LABEL}={app}", port=PORT)
