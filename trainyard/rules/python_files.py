"""Warnings about Python files that a job brings: one that Python cannot read, and modules of the checkout that it
imports and that stay there. Files of a job are in one folder of the container, without their own folders."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from trainyard.problems import At, InputWarning
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.files import is_inside

_PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def python_warnings(path: str, job: JobConfig, folder: Path) -> Iterator[InputWarning]:
    """Every warning about the Python files of a job. `folder`: of the stack file."""
    sources = job.files.sources if job.files else ()
    brought = {PurePosixPath(each).stem for each in sources}
    at = At(f"{path}.files.sources")
    for source in sources:
        if not source.endswith(".py") or not is_inside(folder, source):
            continue
        try:
            tree = ast.parse((folder / source).read_text("utf-8", "replace"))
        except (SyntaxError, ValueError, RecursionError) as error:
            yield at.warning(f"Python {_PYTHON} cannot read {source}: {error}")
            continue
        for module in sorted(_imported(tree) - brought - sys.stdlib_module_names):
            if there := _in_checkout(PurePosixPath(source), module, folder):
                yield at.warning(_left_behind(source, module, there))


def _imported(tree: ast.Module) -> set[str]:
    """First names of the modules that a file imports, wherever in it."""
    found = set[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {each.name.partition(".")[0] for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def _in_checkout(source: PurePosixPath, module: str, folder: Path) -> str | None:
    """The file or the package of a name in the folder of a source, or in one above it up to the stack file's."""
    names = [
        place / name
        for place in source.parents
        for name in (f"{module}.py", f"{module}/__init__.py")
    ]
    return next((str(each) for each in names if (folder / each).is_file()), None)


def _left_behind(source: str, module: str, there: str) -> str:
    fails = "unless the image has that module, the job ends with ModuleNotFoundError"
    if there.endswith("/__init__.py"):
        return (
            f"{source} imports {module}, a package of this checkout, and files of a job have no folders: {fails};"
            " put the package into the image"
        )
    return f"{source} imports {module}, and does not bring {there}: {fails}; add {there}"
