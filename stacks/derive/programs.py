"""Programs of ours that run in the cluster: their files."""

from __future__ import annotations

from pathlib import Path

_WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
SHARED = _WORKLOADS / "in_cluster"
"""What every program has beside its own files."""


def program_folder(name: str) -> Path:
    """The folder of a program."""
    return _WORKLOADS / name


def program_files(name: str) -> dict[str, str]:
    """Name of each file of a program → its text."""
    folders = (SHARED, program_folder(name))
    return {file.name: file.read_text() for each in folders for file in sorted(each.glob("*.py"))}
