"""Programs of ours that run in the cluster, as modules of a test."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from stacks.derive.programs import SHARED, program_files, program_folder


@contextmanager
def imported(name: str) -> Iterator[ModuleType]:
    """The program's first file, which has its name; its imports find what its pod has."""
    folders = [str(SHARED), str(program_folder(name))]
    sys.path[:0] = folders
    try:
        yield importlib.import_module(name)
    finally:
        for folder in folders:
            sys.path.remove(folder)
        for file in program_files(name):
            sys.modules.pop(file.removesuffix(".py"), None)
