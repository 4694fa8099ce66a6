"""Programs of ours that run in the cluster: their files."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from trainyard.objects.metrics.metrics import APP as LABEL
from trainyard.objects.metrics.metrics import Target
from trainyard.plans.program import MILLICPUS, PORT
from trainyard.plans.system_nodes import SystemPod
from trainyard.settings.environment import EnvironmentConfig

_PROGRAMS = Path(__file__).resolve().parents[1] / "in_cluster"
SHARED = _PROGRAMS / "shared"
"""Folder whose files every program has beside its own."""
LOGS = _PROGRAMS.parent / "catalog" / "logs"
"""Folder of the brain with files that import nothing of ours: what programs and words both say of a log."""
_IMPORT = re.compile(r"^(?:from|import) (\w+)", re.MULTILINE)


@cache
def program_paths(name: str) -> tuple[Path, ...]:
    """The files of a program: those of shared/, those of its own folder, and those of other folders, or of
    LOGS, that one of its files imports. In a pod they lie side by side, so no two folders have a file of one name."""
    every = {file.stem: file for file in (*_PROGRAMS.glob("*/*.py"), *LOGS.glob("*.py"))}
    found = {file.stem: file for folder in (SHARED, _PROGRAMS / name) for file in _files(folder)}
    unread = [*found.values()]
    while unread:
        for imported in _IMPORT.findall(unread.pop().read_text()):
            if imported in every and imported not in found:
                found[imported] = every[imported]
                unread.append(every[imported])
    return tuple(found.values())


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.py"))


def program_files(name: str) -> dict[str, str]:
    """Name of each file of a program → its text."""
    return {file.name: file.read_text() for file in program_paths(name)}


def more_kinds(wanted: EnvironmentConfig) -> tuple[str, ...]:
    """Kinds of jobs that the training-operator of an environment runs beside PyTorchJobs."""
    return tuple(sorted(wanted.training_operator.more_kinds)) if wanted.training_operator else ()


def program_pod(app: str) -> SystemPod:
    """Its pod."""
    return SystemPod(app, MILLICPUS)


def program_target(app: str) -> Target:
    """Target by which Prometheus finds a program: its pod has the label `app`, in the namespace of
    that name."""
    return Target(job=app, namespace=app, label=f"{LABEL}={app}", port=PORT)
